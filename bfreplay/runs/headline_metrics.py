"""Headline metrics: the columns in tables of many runs, as ``bfreplay sweep`` and ``bfreplay runs`` print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bfreplay.runs.metrics import BY_COLUMN
from bfreplay.wording import value_text

COLUMNS = {name: metric for name, metric in BY_COLUMN.items() if metric.in_results_table}
"""Metrics in the table of a sweep, by column."""


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
        name: [cell_text(name, value) for value in values[name]]
        for name, metric in COLUMNS.items()
        if (log and metric.log_heading) or (cluster and metric.cluster_heading)
        if any(value is not None for value in values[name])
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
    return COLUMNS[column].log_heading or COLUMNS[column].cluster_heading or column


def cell_text(column: str, value: Any) -> str:
    """Text of a metric in tables of many runs; a dash for ``None``."""
    return "-" if value is None else value_text(value, COLUMNS[column].kind)
