"""What is compared of runs, in words: the same in the text of a comparison and on the page about it."""

from __future__ import annotations

from bfreplay.replay.metrics import BY_COLUMN

HOUR_WORDS = {
    "samples": "samples",
    "held_node_hours": "node-hours held",
    "free_node_hours": "node-hours idle and free",
    "rescale_cost_samples": "samples charged for rescales",
    "preempt_cost_samples": "samples charged for preemptions",
    "n_grown": "rescales up",
    "n_shrunk": "rescales down",
    "n_preempted": "preemptions",
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

TOTALS = {"samples": BY_COLUMN["samples"].total} | {name: each.total for name, each in BY_COLUMN.items() if each.total}
"""Totals of each run: samples, then in the order of the metrics."""
