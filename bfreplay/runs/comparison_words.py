"""Words for the measures of a comparison, shared by its text and its page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bfreplay.result_folders.comparison import RunDifference
from bfreplay.runs.metrics import BY_COLUMN

_ROUNDING = 1e-9

HOUR_WORDS = {
    "samples": "samples",
    "held_node_hours": "node-hours held",
    "free_node_hours": "node-hours idle and free",
    "rescale_cost_samples": "samples charged for rescales",
    "preemption_cost_samples": "samples charged for preemptions",
    "n_scale_ups": "rescales up",
    "n_scale_downs": "rescales down",
    "n_preemptions": "preemptions",
}
"""Measures of each bin of time."""

CAUSE_WORDS = {
    "node_hours": "more or fewer used node-hours",
    "samples_per_node_hour": "samples per used node-hour",
    "rescaling": "rescaling",
    "preemption": "preemption",
    "trimmed": "made after the work was done",
}
"""Parts of a difference in samples."""

JOB_WORDS = {
    "finish_s": "finish",
    "start_s": "first start",
    "waiting_s": "waiting",
    "done_samples": "samples done",
    "useful_node_hours": "useful node-hours",
}
"""Measures of each job."""

_LABELS = {name: metric.comparison_label for name, metric in BY_COLUMN.items() if metric.comparison_label}
TOTALS = {"samples": _LABELS["samples"]} | _LABELS
"""Totals of each run: samples, then in the order of the metrics."""


def but_rounding(difference: float, level: float) -> float:
    """Return ``difference``, or 0 where it is within rounding of ``level``."""
    return 0.0 if abs(difference) <= _ROUNDING * abs(level) else difference


def option_text(value: Any) -> str:
    """Text of an option's value in tables; a dash where the run does not have the option."""
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def unpaired_jobs(pair: RunDifference) -> Iterator[tuple[int, str]]:
    """Yield the number of jobs without a partner in the other run, by reason, without zeros."""
    for reason_key, words in (
        ("only_in_baseline", f"only in {pair.baseline}"),
        ("only_in_other", f"only in {pair.run}"),
        ("n_other_params", "with other parameters in both, not paired"),
    ):
        if pair.jobs[reason_key]:
            yield pair.jobs[reason_key], words
