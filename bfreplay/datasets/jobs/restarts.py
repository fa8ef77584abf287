"""Logs of restarts: a row for each start or change of a job's nodes, with the time that it took."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.hints import did_you_mean, empty_cell, kind_of_table
from bfreplay.datasets.jobs.curve_points import number_of
from bfreplay.datasets.jobs.tables import JobTable
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.readers_by_ending import JOB_TABLE_READERS, read_by_ending
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.workload.cost_fit import MeasuredRestart

RESTART_COLUMNS = ("nodes_before", "nodes_after", "pause_s")
_NAMES = ("model", "job")


def load_restarts(path: str | PathLike[str]) -> tuple[str, dict[str, list[MeasuredRestart]]]:
    """Read a log of restarts.

    Parameters
    ----------
    path
        ``.csv`` or ``.parquet`` with the columns ``nodes_before`` (0 for a start), ``nodes_after`` and ``pause_s``,
        seconds without progress; optional ``model`` or ``job``. With both, restarts are grouped by model.

    Returns
    -------
    tuple
        ``"model"`` or ``"job"``, and the restarts of each, in the order of the file; without such a column all are of
        a model with the name of the file.

    Raises
    ------
    InputError
        Other columns; cells that are empty, no numbers or out of range; or no row.
    """
    table_file = Path(path)
    readers = {ending: reader for ending, reader in JOB_TABLE_READERS.items() if ending != ".toml"}
    job_table: JobTable = read_by_ending(table_file, readers)
    _check_columns(job_table)
    if not job_table.rows:
        raise InputError("the file has no restarts", file=table_file, expected="a row for each restart")
    by_column = next((name for name in _NAMES if name in job_table.columns), None)
    restarts: dict[str, list[MeasuredRestart]] = {}
    for row_number, cells in job_table.rows:
        with locate_errors(table_file, row_number):
            name = table_file.stem if by_column is None else str(_cell(cells, by_column)).strip()
            checks.name(by_column or _NAMES[0], name, by_column or _NAMES[0])
            before, after, pause_s = (_number(job_table, cells, column) for column in RESTART_COLUMNS)
        restarts.setdefault(name, []).append(MeasuredRestart(int(before), int(after), pause_s))
    return by_column or _NAMES[0], restarts


def _check_columns(job_table: JobTable) -> None:
    unknown = [name for name in job_table.columns if name not in (*RESTART_COLUMNS, *_NAMES)]
    missing = [name for name in RESTART_COLUMNS if name not in job_table.columns]
    if unknown or missing:
        kind = kind_of_table(job_table.columns) if missing else None
        raise job_table.error(
            f"the column {(missing or unknown)[0]!r} is {'missing' if missing else 'unknown'}",
            column=(missing or unknown)[0],
            expected=f"{', '.join(RESTART_COLUMNS)}; optional {' or '.join(_NAMES)}",
            fix=f"this looks like {kind}: give a log of restarts here"
            if kind is not None
            else did_you_mean(unknown, missing or _NAMES) or "rename or drop the column",
        )


def _cell(cells: Mapping[str, Cell], column: str) -> Cell:
    if column not in cells:
        raise empty_cell(column)
    return cells[column]


def _number(job_table: JobTable, cells: Mapping[str, Cell], column: str) -> float:
    column_cells = (row.get(column) for _, row in job_table.rows)
    number = number_of(_cell(cells, column), column, column_cells)
    if column == "pause_s":
        return checks.number(column, number, least=0)
    return checks.whole(column, int(number) if number.is_integer() else number, 0, checks.MOST_NODES)
