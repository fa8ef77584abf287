"""What is compared of runs, in words: the same in the text of a comparison and on the page about it."""

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

TOTALS = {"samples": BY_COLUMN["samples"].total} | {name: each.total for name, each in BY_COLUMN.items() if each.total}
"""Totals of each run: samples, then in the order of the metrics."""


def but_rounding(difference: float, level: float) -> float:
    """0 for what is no more than rounding of ``level``."""
    return 0.0 if abs(difference) <= _ROUNDING * abs(level) else difference


def option_text(value: Any) -> str:
    """The value of an option of a run as tables have it; a dash for an option that the run does not have."""
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def unpaired_jobs(pair: RunDifference) -> Iterator[tuple[int, str]]:
    """How many jobs of two runs have no partner, and why; of reasons that there are."""
    for key, words in (
        ("only_in_baseline", f"only in {pair.baseline}"),
        ("only_in_other", f"only in {pair.run}"),
        ("n_other_params", "with other parameters in both, not paired"),
    ):
        if pair.jobs[key]:
            yield pair.jobs[key], words
