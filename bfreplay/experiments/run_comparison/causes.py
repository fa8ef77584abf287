"""What made a difference in samples: an exact decomposition by the ledgers, and counts of what happened."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay.answers.comparison_words import TOTALS
from bfreplay.replay.metrics import BY_COLUMN
from bfreplay.replay.result import RunResult

PARTS = ("node_hours", "samples_per_node_hour", "rescaling", "preemption", "trimmed")
"""Of the difference in samples, in the order of tables and pictures."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Parts of ``other - baseline`` in samples; they add up to it, to rounding.

    A run processes ``samples = hours * rate - rescale - preempt - trimmed``. ``hours`` are the node-hours that were
    used (idle ones less those that nobody held or that stood still: the ledger's useful, rescaling and lost to
    preemption), ``rate`` what the held nodes could make per used node-hour. The difference of the product is split
    symmetrically: ``(h_B - h_A) * (r_A + r_B) / 2`` and ``(r_B - r_A) * (h_A + h_B) / 2``.

    Parameters
    ----------
    node_hours
        More or fewer used node-hours.
    samples_per_node_hour
        More or fewer samples per used node-hour: other jobs, or other widths of the same.
    rescaling, preemption
        Less or more that rescales and preemptions cost.
    trimmed
        Less or more made after a job's work was done; next to nothing in continuous time.
    """

    node_hours: float
    samples_per_node_hour: float
    rescaling: float
    preemption: float
    trimmed: float

    def to_json(self) -> dict[str, float]:
        """By ``PARTS``."""
        return {name: getattr(self, name) for name in PARTS}


def causes_of(baseline: RunResult, other: RunResult) -> Causes:
    """Decompose ``other - baseline``.

    Where a run has no used node-hour, its rate is taken to be that of the other run: all is due to node-hours.
    """
    a, b = baseline.summary.ledger, other.summary.ledger
    hours_a, hours_b = a.node_hours.used, b.node_hours.used
    gross_a, gross_b = a.gross_samples, b.gross_samples
    by_hours, by_rate = gross_b - gross_a, 0.0
    if hours_a > 0.0 and hours_b > 0.0:
        rate_a, rate_b = gross_a / hours_a, gross_b / hours_b
        by_hours = (hours_b - hours_a) * (rate_a + rate_b) / 2
        by_rate = (rate_b - rate_a) * (hours_a + hours_b) / 2
    return Causes(
        node_hours=by_hours,
        samples_per_node_hour=by_rate,
        rescaling=a.rescale_samples - b.rescale_samples,
        preemption=a.preempt_samples - b.preempt_samples,
        trimmed=a.trimmed_samples - b.trimmed_samples,
    )


def totals_of(run: RunResult) -> dict[str, float]:
    """Metrics of one run that are compared, by ``TOTALS``."""
    return {name: BY_COLUMN[name].of(run) for name in TOTALS}
