"""Logs of restarts: a row for each start or change of a job's nodes, with the time that it took."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.hints import did_you_mean, kind_of_table
from bfreplay.datasets.jobs.tables import JobTable
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.readers_by_ending import ROW_TABLE_READERS, read_by_ending
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
    job_table: JobTable = read_by_ending(table_file, ROW_TABLE_READERS)
    _check_columns(job_table)
    if not job_table.rows:
        raise InputError("the file has no restarts", file=table_file, expected="a row for each restart")
    by_column = next((name for name in _NAMES if name in job_table.columns), None)
    restarts: dict[str, list[MeasuredRestart]] = {}
    for row_number, cells in job_table.rows:
        with locate_errors(table_file, row_number):
            name = table_file.stem if by_column is None else str(job_table.cell(cells, by_column)).strip()
            checks.name(by_column or _NAMES[0], name, by_column or _NAMES[0])
            before, after = (_count(column, job_table.number(cells, column)) for column in RESTART_COLUMNS[:2])
            pause_s = checks.number("pause_s", job_table.number(cells, "pause_s"), least=0)
        restarts.setdefault(name, []).append(MeasuredRestart(before, after, pause_s))
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


def _count(column: str, number: float) -> int:
    return checks.whole(column, int(number) if number.is_integer() else number, 0, checks.MOST_NODES)
