"""Former names of entries, tables and columns: folders of earlier schema versions are read as if they had today's.

They are read for one release (until 0.3), with a note. Nothing is written under a former name.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

NAMES: Mapping[str, str] = {
    # node time
    "free_node_us": "unallocated_node_us",
    "lost_to_preemption": "preempted",
    "lost_to_preemption_node_us": "preempted_node_us",
    "lost_to_preemption_node_hours": "preempted_node_hours",
    "unused_free": "unallocated",
    "unused_free_node_hours": "unallocated_node_hours",
    "unused_stalled": "stalled",
    "unused_stalled_node_hours": "stalled_node_hours",
    # rescales and preemptions
    "n_grown": "n_scale_ups",
    "n_shrunk": "n_scale_downs",
    "n_preempted": "n_preemptions",
    "n_jobs_grown": "n_jobs_scaled_up",
    "n_jobs_shrunk": "n_jobs_scaled_down",
    "n_left": "n_reclaimed",
    "preempt_samples": "preemption_samples",
    "preempt_cost_samples": "preemption_cost_samples",
    # idle intervals
    "n_holes": "n_intervals",
    "n_cut": "n_censored",
    "n_held": "n_allocated",
    "held_node_us": "allocated_node_us",
    # logs
    "dropped": "skipped",
    # figures
    "holes": "idle-intervals",
}
"""Entries of records, columns of tables and names of figures: former name -> name."""

TABLES: Mapping[str, str] = {"idle_intervals": "holes"}
"""Tables: name -> former name."""


def with_names_of_today(document: Any) -> Any:
    """Return JSON data with today's names for all entries, whatever their depth."""
    if isinstance(document, dict):
        return {NAMES.get(key, key): with_names_of_today(value) for key, value in document.items()}
    return [with_names_of_today(each) for each in document] if isinstance(document, list) else document


def name_of_today(name: str) -> str:
    """Return the name that a column or figure has today; a former one is a ``FutureWarning``."""
    if name in NAMES:
        note_former(f"{name!r} is called {NAMES[name]!r} now")
    return NAMES.get(name, name)


def note_former(what: str) -> None:
    """Warn that former names are read for one release only."""
    warnings.warn(f"{what}; former names are read until bfreplay 0.3", FutureWarning, stacklevel=3)
