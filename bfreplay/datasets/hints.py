"""Suggestions for headers that cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bfreplay.checks import near_name
from bfreplay.errors import InputError

_SEPARATORS = {";": "';'", "\t": "tabs", "|": "'|'"}
_JOB_SIGNS = ("min_nodes", "max_nodes", "scale_up_cost_s", "scale_down_cost_s", "work_samples")
_TOO_FEW_SIGNS = 2


def empty_cell(column: str, file: Path | None = None, row_number: int | str | None = None) -> InputError:
    """Return the error for a cell without a value."""
    return InputError(
        f"the column {column!r} is empty here",
        file=file,
        row=row_number,
        column=column,
        value=None,
        expected="a value in every row",
        fix="fill it in or drop the row",
    )


def did_you_mean(unknown: Sequence[str], missing: Sequence[str]) -> str | None:
    """Return ``"did you mean 'time' for 'tiem'?"``, each missing name at most once; ``None`` if none is like one."""
    remaining, pairs = list(missing), []
    for column_name in unknown:
        near = near_name(column_name, remaining)
        if near is not None:
            remaining.remove(near)
            pairs.append(f"{near!r} for {column_name!r}")
    return f"did you mean {', '.join(pairs)}?" if pairs else None


def kind_of_table(columns: Iterable[str]) -> str | None:
    """Name the table that columns look like: a log, a job set, a log of restarts, a table of curves; else ``None``."""
    names = {column_name.strip().lower() for column_name in columns}
    if len(names.intersection(_JOB_SIGNS)) > _TOO_FEW_SIGNS:
        return "a job set"
    if {"nodes_before", "nodes_after", "pause_s"} <= names:
        return "a log of restarts, for jobs fit --costs"
    if {"time", "node"} <= names and names & {"state", "idle"}:
        return "a log of nodes"
    return "a table of curves" if {"curve", "nodes", "value"} <= names else None


def refuse_other_separators(columns: Sequence[str], file: Path) -> None:
    """Refuse a header that is one cell because its names are not separated by commas.

    Raises
    ------
    InputError
        The message names the likely separator.
    """
    if len(columns) != 1:
        return
    for mark, shown in _SEPARATORS.items():
        if mark in columns[0]:
            raise InputError(
                f"the table looks separated by {shown}, not by commas",
                file=file,
                row="line 1",
                value=columns[0],
                expected="columns separated by commas",
                fix="use commas (and a point in decimal numbers): save it as comma-separated CSV",
            )
