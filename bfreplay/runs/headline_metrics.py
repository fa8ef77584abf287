"""Headline metrics: the columns in tables of many runs, as ``bfreplay sweep`` and ``bfreplay runs`` print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bfreplay.runs.metrics import BY_COLUMN
from bfreplay.wording import value_text

_NOT_IN_SWEEPS = (
    "used_node_hours",
    "gross_samples_per_used_node_hour",
    "rescale_samples",
    "preemption_samples",
    "n_jobs_started",
)
COLUMNS = {name: metric for name, metric in BY_COLUMN.items() if name not in _NOT_IN_SWEEPS}
"""Metrics in the table of a sweep, by column."""

_LOG_HEADINGS = {
    "samples": "samples",
    "u": "U",
    "share_of_bound": "of the bound",
    "done_s": "last finish",
    "best_score": "best score",
    "batch_delay_node_hours": "batch delay, node-hours",
    "propagated_delay_node_hours": "propagated delay, node-hours",
}
"""Headings of the columns that are printed if some of the runs replayed a log."""
_CLUSTER_HEADINGS = {
    "known_average_jct_s": "average JCT, known rates",
    "deadlines_satisfied": "deadlines met",
    "accepted_as_published": "as published",
    "average_jct_s": "average JCT",
    "ideal_average_jct_s": "ideal JCT",
    "makespan_s": "makespan",
    "utilisation": "utilisation",
    "cost": "cost",
    "average_rho": "average rho",
    "worst_rho": "worst rho",
    "unfair_share": "unfair",
    "n_plan_solves_stopped": "solves stopped",
    "deadlines_missed": "deadlines missed",
}
"""Headings of the columns that are printed if some ran on a cluster."""
_HEADINGS = _LOG_HEADINGS | _CLUSTER_HEADINGS


def headline_texts(values: Mapping[str, Sequence[Any]], *, log: bool, cluster: bool) -> dict[str, list[str]]:
    """Return the metrics that tables of many runs print, as texts by column.

    Parameters
    ----------
    values
        Value of each run by column.
    log, cluster
        True if some of the runs replayed a log, and if some ran on a cluster.
    """
    texts = {
        column_name: [cell_text(column_name, value) for value in values[column_name]]
        for column_name in COLUMNS
        if (log and column_name in _LOG_HEADINGS) or (cluster and column_name in _CLUSTER_HEADINGS)
        if any(value is not None for value in values[column_name])
    }
    if not any([*values["deadlines_met"], *values["deadlines_missed"]]):
        texts.pop("deadlines_missed", None)
    return texts


def split_constants(texts: Mapping[str, list[str]]) -> tuple[dict[str, list[str]], str | None]:
    """Split the metrics of several runs: columns that differ, and one line about those with the same value in all."""
    n_runs = max(map(len, texts.values()), default=0)
    is_constant = {name: n_runs > 1 and len(set(column_texts)) == 1 for name, column_texts in texts.items()}
    same = [f"{column_heading(name)} {column_texts[0]}" for name, column_texts in texts.items() if is_constant[name]]
    line = f"The same in all runs (to three digits): {', '.join(same)}" if same else None
    return {name: column_texts for name, column_texts in texts.items() if not is_constant[name]}, line


def column_heading(column: str) -> str:
    """Heading of a metric in tables of many runs."""
    return _HEADINGS.get(column, column)


def cell_text(column: str, value: Any) -> str:
    """Text of a metric in tables of many runs; a dash for ``None``."""
    return "-" if value is None else value_text(value, COLUMNS[column].kind)
