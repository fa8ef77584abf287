"""Jobs whose batch size changes while they train, with a scalability curve for each batch size."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.saved_state import restorable
from bfreplay.scalability import Curve, TabulatedCurve


@restorable
@dataclass(frozen=True, slots=True)
class Adaptation:
    """Batch sizes of a job as it trains (Accordion, gradient noise scale), and its throughput with each.

    Parameters
    ----------
    rule
        Name of the rule that chooses the batch size, for tables and for policies that know the rule.
    samples_per_epoch
        Size of the data set, > 0.
    throughput
        Curve in samples/s for each batch size that the job may have.
    changes
        ``(progress in samples, batch size)``: from this progress on the job trains with this batch size. The first is
        at 0; progress increases, and the batch size differs from the one before.

    Raises
    ------
    InputError
        The changes are out of order, or a batch size has no curve.
    """

    rule: str
    samples_per_epoch: int
    throughput: Mapping[int, Curve]
    changes: tuple[tuple[float, int], ...]

    def __post_init__(self) -> None:
        checks.name("rule", self.rule, "rule")
        checks.whole("samples_per_epoch", self.samples_per_epoch, 1)
        if not self.changes or self.changes[0][0] != 0.0:
            raise _error("the first batch size does not begin at 0 samples", self.changes[:1], "((0.0, batch size),)")
        for (before, size), (after, next_size) in itertools.pairwise(self.changes):
            if not before < after < float("inf") or size == next_size:
                raise _error(
                    "changes of the batch size are out of order",
                    ((before, size), (after, next_size)),
                    "increasing progress, and another batch size each time",
                )
        for _, size in self.changes:
            if size not in self.throughput:
                known = ", ".join(map(str, sorted(self.throughput))) or "none"
                raise _error(f"the batch size {size} has no throughput curve", size, f"one of {known}")

    def batch_size_at(self, samples: float) -> int:
        """Return the batch size of the job after ``samples`` samples."""
        return self.changes[bisect_right(self.changes, samples, key=lambda change: change[0]) - 1][1]

    def next_change(self, samples: float) -> float:
        """Return the progress of the first change above ``samples``; inf if none follows."""
        place = bisect_right(self.changes, samples, key=lambda change: change[0])
        return self.changes[place][0] if place < len(self.changes) else float("inf")

    def fastest(self, max_nodes: int) -> TabulatedCurve:
        """Return the highest rate over all batch sizes at each count up to ``max_nodes``."""
        rates = np.max([self.throughput[size].table(max_nodes) for _, size in self.changes], axis=0)
        return TabulatedCurve(range(max_nodes + 1), rates.tolist(), "fastest batch size")

    def average(self, max_nodes: int, work_samples: float) -> TabulatedCurve:
        """Return the rate at each count up to ``max_nodes``, averaged over ``work_samples`` of work."""
        if work_samples == float("inf"):
            return TabulatedCurve(range(max_nodes + 1), self.throughput[self.changes[-1][1]].table(max_nodes).tolist())
        rates = [0.0, *(work_samples / self.seconds_alone(n, work_samples) for n in range(1, max_nodes + 1))]
        return TabulatedCurve(range(max_nodes + 1), rates, "average over batch sizes")

    def seconds_alone(self, n_nodes: int, work_samples: float) -> float:
        """Return the seconds that the job takes on ``n_nodes`` dedicated nodes; inf if it cannot run there.

        Raises
        ------
        InputError
            A curve ends below ``n_nodes``.
        """
        ends = [*(samples for samples, _ in self.changes[1:]), float("inf")]
        total = 0.0
        for (begin, size), end in zip(self.changes, ends, strict=True):
            samples = min(end, work_samples) - begin
            if samples > 0:
                rate = float(self.throughput[size].table(n_nodes)[n_nodes])
                total += samples / rate if rate > 0 else float("inf")
        return total


def _error(problem: str, value: object, expected: str) -> InputError:
    return InputError(problem, column="adaptation", value=value, expected=expected)
