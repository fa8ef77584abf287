"""Tables of measured rates, in any unit of `UNITS`; files of curves, which may hold such rates; logs of restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.hints import did_you_mean, kind_of_table
from bfreplay.datasets.jobs.curve_points import INLINE_CURVE, CurveCache
from bfreplay.datasets.jobs.rate_units import NEEDS, UNITS, RateColumns, count_and_rate_columns, rate_columns
from bfreplay.datasets.jobs.tables import JobTable, named_curves
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.readers_by_ending import JOB_TABLE_READERS, ROW_TABLE_READERS, read_by_ending
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.scalability import Curve
from bfreplay.scalability.choice import means_as_points
from bfreplay.scalability.measurements import COLUMNS, Measurements, check_measurement
from bfreplay.wording import count as amount_of
from bfreplay.workload.cost_fit import MeasuredRestart

OPTIONAL = ("repeat", "curve")
_KNOWN = (*OPTIONAL, *NEEDS)
_OF_RESTARTS = ("nodes_before", "nodes_after", "pause_s")
_OWNERS = ("model", "job")


def load_measurements(path: str | PathLike[str], numbers: Mapping[str, float] | None = None) -> dict[str, Measurements]:
    """Read measured rates.

    Parameters
    ----------
    path
        ``.csv`` or ``.parquet`` with a column of node counts, ``nodes`` or ``gpus``, and one of rates in a unit of
        `UNITS`, such as ``samples_per_s`` or ``seconds_per_step``; one row a measurement. Optional: ``repeat``, a
        label, different for each measurement of one count; ``curve``, the name of the curve, for several in one file;
        and the numbers that the units need, by their names in `NEEDS`.
    numbers
        Those of these numbers that are the same in all rows and have no column.

    Returns
    -------
    dict
        Measurements by name of the curve, in the order of the file; without the column ``curve``, the name of the file.

    Raises
    ------
    InputError
        Other columns, or a missing number; cells that are empty, not numbers or out of range; a duplicate repeat; or a
        curve of fewer than two node counts.
    """
    table_file = Path(path)
    return _measurements_of(read_by_ending(table_file, ROW_TABLE_READERS), numbers or {})


def read_curves_file(curves_file: Path, curve_cache: CurveCache) -> dict[str, Curve]:
    """Read curves by name: ``curve, nodes, value`` rows (CSV, Parquet), or ``[curves.NAME]`` tables (TOML).

    Measured rates in any unit are taken as well (`load_measurements`): the curve goes through the means.

    Raises
    ------
    InputError
        Other columns, cells that are not numbers, or points that form no valid curve.
    """
    job_table: JobTable = read_by_ending(curves_file, JOB_TABLE_READERS)
    if job_table.curves:
        return named_curves(job_table, curve_cache)
    if count_and_rate_columns(job_table.columns)[1]:
        points_of_name = {name: means_as_points(measured) for name, measured in _measurements_of(job_table, {}).items()}
        return {name: curve_cache.curve(curve.nodes, curve.values, name) for name, curve in points_of_name.items()}
    needed_columns = ("curve", "nodes", "value")
    missing = [name for name in needed_columns if name not in job_table.columns]
    unknown = [name for name in job_table.columns if name not in needed_columns]
    if missing or unknown:
        kind = kind_of_table(job_table.columns)
        is_other = kind not in (None, "a table of curves")
        raise job_table.error(
            "these are not the columns of a table of curves",
            column=(missing or unknown)[0],
            expected=", ".join(needed_columns) + " (one row a point); measured rates, as for jobs fit; or in TOML "
            "[curves.NAME] with nodes and values",
            fix=(f"this looks like {kind}: give the table of curves here" if is_other else None)
            or did_you_mean(unknown, missing)
            or ("add the missing columns" if missing else "drop the other columns"),
        )
    points: dict[str, list[tuple[int | str, float, float]]] = {}
    for row_number, cells in job_table.rows:
        with locate_errors(curves_file, row_number):
            name = str(job_table.cell(cells, "curve"))
            node, value = (job_table.number(cells, column_name) for column_name in ("nodes", "value"))
        points.setdefault(name, []).append((row_number, node, value))
    if not points:
        problem, fix = "the file has no curves", "add a row for each point"
        raise InputError(problem, file=curves_file, expected="at least one row", fix=fix)
    curves: dict[str, Curve] = {}
    for name, of_curve in points.items():
        rows, nodes, values = zip(*of_curve, strict=True)
        checks.name("curve", name, "curve", curves_file)
        if INLINE_CURVE in name:
            raise InputError(
                "the name of a curve has a colon",
                file=curves_file,
                row=rows[0],
                column="curve",
                value=name,
                expected="a name without colons, which separate nodes and values in points",
                fix="rename the curve",
            )
        with locate_errors(curves_file, rows[0] if len(rows) == 1 else f"{rows[0]} to {rows[-1]}", "curve"):
            curves[name] = curve_cache.curve(nodes, values, name)
    return curves


def _measurements_of(job_table: JobTable, numbers: Mapping[str, float]) -> dict[str, Measurements]:
    table_file = job_table.file
    read = _check_columns(job_table, (*job_table.columns, *numbers))
    if not job_table.rows:
        raise InputError("the file has no measurements", file=table_file, expected="a row for each measurement")
    by_curve: dict[str, list[tuple[float, float, int | str]]] = {}
    first_row: dict[tuple[str, float, str], int | str] = {}
    for row_number, cells in job_table.rows:
        with locate_errors(table_file, row_number):
            curve = _curve_name(job_table, cells)
            count, rate = read.measurement(partial(job_table.number, {**cells, **numbers}))
            check_measurement(count, rate, columns=(read.counts, read.rates))
        if "repeat" in job_table.columns:
            label = (curve, count, str(cells.get("repeat", "")).strip())
            if label in first_row:
                raise InputError(
                    f"two measurements at {amount_of(int(count), 'node')} are the same repeat "
                    f"(the other one: row {first_row[label]})",
                    file=table_file,
                    row=row_number,
                    column="repeat",
                    value=cells.get("repeat"),
                    expected="a label of its own for each measurement of a count",
                    fix="delete the duplicate row, or number the repeats",
                )
            first_row[label] = row_number
        by_curve.setdefault(curve, []).append((count, rate, row_number))
    columns = {}
    for curve, of_curve in by_curve.items():
        counts, rates, rows = map(list, zip(*of_curve, strict=True))
        with locate_errors(table_file, rows[0] if len(rows) == 1 else f"{rows[0]} to {rows[-1]}"):
            columns[curve] = Measurements(counts, rates, curve, rows)
    return columns


def _check_columns(job_table: JobTable, columns: Sequence[str]) -> RateColumns:
    counts, rates = count_and_rate_columns(columns)
    unknown = [name for name in columns if name not in (*_KNOWN, *counts, *rates)]
    missing = [name for name, names in zip(COLUMNS, (counts, rates), strict=True) if not names]
    for content, names in {"node counts": counts, "rates": rates}.items():
        if len(names) > 1:
            problem = f"several columns hold {content}: {', '.join(names)}"
            raise job_table.error(problem, column=names[1], fix="keep one of them")
    if not unknown and not missing:
        with locate_errors(job_table.file, None):
            return rate_columns(counts[0], rates[0], columns)
    problem = f"the column {(unknown or missing)[0]!r} is {'unknown' if unknown else 'missing'}"
    if unknown and missing:
        noun, verb = ("columns", "are") if len(missing) > 1 else ("column", "is")
        problem = f"the {noun} {' and '.join(map(repr, missing))} {verb} missing, "
        problem += f"and {' and '.join(map(repr, unknown))} {'are' if len(unknown) > 1 else 'is'} unknown"
    kind = kind_of_table(job_table.columns)
    raise job_table.error(
        problem,
        column=(missing or unknown)[0],
        expected=f"nodes or gpus; {', '.join(unit.examples for unit in UNITS.values())}; optional {', '.join(_KNOWN)}",
        fix=f"this looks like {kind}: give the measurements here"
        if kind is not None
        else did_you_mean(unknown, missing or OPTIONAL)
        or "name each column by what it holds and its unit (step_time_ms, batch_per_gpu or global_batch); drop others",
    )


def _curve_name(job_table: JobTable, cells: Mapping[str, Cell]) -> str:
    if "curve" not in job_table.columns:
        return job_table.file.stem
    column_name = str(job_table.cell(cells, "curve")).strip()
    if INLINE_CURVE in column_name or "(" in column_name:
        raise InputError(
            "the name of a curve has a colon or a parenthesis",
            column="curve",
            value=column_name,
            expected="a name without them: they mark points and laws",
            fix="rename the curve",
        )
    return column_name


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
    _check_columns_of_restarts(job_table)
    if not job_table.rows:
        raise InputError("the file has no restarts", file=table_file, expected="a row for each restart")
    by_column = next((name for name in _OWNERS if name in job_table.columns), None)
    restarts: dict[str, list[MeasuredRestart]] = {}
    for row_number, cells in job_table.rows:
        with locate_errors(table_file, row_number):
            name = table_file.stem if by_column is None else str(job_table.cell(cells, by_column)).strip()
            checks.name(by_column or _OWNERS[0], name, by_column or _OWNERS[0])
            before, after = (_count(column, job_table.number(cells, column)) for column in _OF_RESTARTS[:2])
            pause_s = checks.number("pause_s", job_table.number(cells, "pause_s"), least=0)
        restarts.setdefault(name, []).append(MeasuredRestart(before, after, pause_s))
    return by_column or _OWNERS[0], restarts


def _check_columns_of_restarts(job_table: JobTable) -> None:
    unknown = [name for name in job_table.columns if name not in (*_OF_RESTARTS, *_OWNERS)]
    missing = [name for name in _OF_RESTARTS if name not in job_table.columns]
    if unknown or missing:
        kind = kind_of_table(job_table.columns) if missing else None
        raise job_table.error(
            f"the column {(missing or unknown)[0]!r} is {'missing' if missing else 'unknown'}",
            column=(missing or unknown)[0],
            expected=f"{', '.join(_OF_RESTARTS)}; optional {' or '.join(_OWNERS)}",
            fix=f"this looks like {kind}: give a log of restarts here"
            if kind is not None
            else did_you_mean(unknown, missing or _OWNERS) or "rename or drop the column",
        )


def _count(column: str, number: float) -> int:
    nodes = int(number) if number.is_integer() else number
    return checks.whole(column, nodes, 0, checks.MOST_NODES)
