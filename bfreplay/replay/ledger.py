"""The ledger: labels every idle node-microsecond and every sample, computed in two ways that must agree."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bfreplay.errors import LedgerError
from bfreplay.result_folders.records import RecordPart

US_PER_NODE_HOUR = 3_600_000_000
HELD = ("useful", "rescaling", "preempted", "repeated", "stalled")
"""Labels of the node time that jobs held."""
_SAMPLE_TOLERANCE = 1e-9
"""Samples are sums of some 1e6 rounded products, so two ways of adding them agree to this, relatively."""


class NodeHours(RecordPart, frozen=True, kw_only=True):
    """Node-hours by label: useful, rescaling, preempted, repeated, unallocated and stalled add up to idle."""

    idle: float
    useful: float
    rescaling: float
    preempted: float
    repeated: float  # worked on, but the work was lost
    unallocated: float  # held by no job
    stalled: float  # held by a job that could not run

    @property
    def used(self) -> float:
        """Node-hours on which a job worked: useful, rescaling, preempted and repeated."""
        return self.useful + self.rescaling + self.preempted + self.repeated


@dataclass(slots=True)
class RunTotals:
    """Totals that grow as a run goes on; see ``Ledger``."""

    unallocated_node_us: int = 0
    gross_samples: float = 0.0
    samples: float = 0.0
    trimmed_samples: float = 0.0
    credited_samples: float = 0.0
    repeated_samples: float = 0.0
    largest_credit_samples: float | None = None


_NONE = NodeHours(idle=0, useful=0, rescaling=0, preempted=0, repeated=0, unallocated=0, stalled=0)


class Ledger(RecordPart, frozen=True, kw_only=True):
    """Totals of a run. Node time in node-microseconds (whole numbers), samples as floats.

    One side comes from the log (``idle_node_us``, summed node by node), the other from what the jobs did (the labels of
    ``HELD``, job by job) and from the nodes that no job held (``unallocated``, event by event). A third,
    ``allocated_node_us``, is the sum over the allocation intervals as written to disk. ``node_hours`` follows from
    these.
    """

    idle_node_us: int
    useful_node_us: int
    rescaling_node_us: int
    preempted_node_us: int
    repeated_node_us: int
    stalled_node_us: int
    unallocated_node_us: int
    allocated_node_us: int
    gross_samples: float  # what the held nodes could have made
    samples: float  # what counts as progress of the jobs
    samples_by_job: float  # the same, summed over the jobs' final progress
    rescale_samples: float  # worked off (continuous) or charged (published)
    preemption_samples: float
    repeated_samples: float  # made, and lost
    trimmed_samples: float  # made after a job's work was done
    credited_samples: float  # counted as done without being made, less those that were to be made again
    # of one report of measured progress, up or down: sums are rounded to it; None without reports
    largest_credit_samples: float | None = None
    node_hours: NodeHours = _NONE

    def __post_init__(self) -> None:
        names = NodeHours.__struct_fields__
        hours = NodeHours(**{label: getattr(self, f"{label}_node_us") / US_PER_NODE_HOUR for label in names})
        msgspec.structs.force_setattr(self, "node_hours", hours)

    def close(self) -> None:
        """Check that the ledger closes.

        Raises
        ------
        LedgerError
            Node time differs by as much as one node-microsecond, or samples by more than rounding.
        """
        paid_us = self.rescaling_node_us + self.preempted_node_us + self.repeated_node_us
        job_us = self.useful_node_us + paid_us + self.stalled_node_us
        if job_us + self.unallocated_node_us != self.idle_node_us:
            raise LedgerError(
                f"idle node time does not close: {self.idle_node_us} node-us in the log, "
                f"{job_us + self.unallocated_node_us} in the jobs and the free pool; {self}"
            )
        if job_us != self.allocated_node_us:
            raise LedgerError(
                f"held node time does not close: {job_us} node-us in the jobs, {self.allocated_node_us} allocated; "
                f"{self}"
            )
        costs = self.rescale_samples + self.preemption_samples + self.repeated_samples
        largest = max(self.gross_samples, costs, abs(self.samples), self.largest_credit_samples or 0.0)
        rounding = _SAMPLE_TOLERANCE * largest
        if self.trimmed_samples < -rounding:
            raise LedgerError(
                f"jobs were credited with {-self.trimmed_samples!r} samples that they did not make; {self}"
            )
        samples_used = self.samples + costs + self.trimmed_samples - self.credited_samples
        for label, left_side, right_side in (
            ("samples made", self.gross_samples, samples_used),
            ("progress", self.samples, self.samples_by_job),
        ):
            if abs(left_side - right_side) > rounding:
                raise LedgerError(f"{label} do not close: {left_side!r} against {right_side!r}; {self}")

    def close_idle_intervals(self, idle_node_us: int, held_node_us: int) -> None:
        """Check that it agrees with the idle intervals: their idle node time, and the part that jobs held.

        Raises
        ------
        LedgerError
            One of the two differs by as much as one node-microsecond.
        """
        for label, in_intervals, ledger in (
            ("idle", idle_node_us, self.idle_node_us),
            ("held", held_node_us, self.allocated_node_us),
        ):
            if in_intervals != ledger:
                raise LedgerError(
                    f"{label} node time of the idle intervals does not close: {in_intervals} node-us against {ledger}; "
                    f"{self}"
                )
