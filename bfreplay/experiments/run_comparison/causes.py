"""What made a difference in samples: an exact decomposition by the ledgers, and counts of what happened."""

from __future__ import annotations

from bfreplay.answers.comparison_words import TOTALS
from bfreplay.replay.metrics import BY_COLUMN
from bfreplay.replay.result import RunResult
from bfreplay.result_folders.comparison import Causes


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


def totals_of(run: RunResult) -> dict[str, int | float]:
    """Metrics of one run that are compared, by ``TOTALS``."""
    return {name: BY_COLUMN[name].of(run) for name in TOTALS}
