"""Named curves of files: points, laws, or measured rates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.hints import did_you_mean, empty_cell, kind_of_table
from bfreplay.datasets.jobs.curve_points import INLINE_CURVE, LAW_KEY, CurveCache, is_law, law_of, points_of
from bfreplay.datasets.jobs.measurements import measurements_of
from bfreplay.datasets.jobs.rate_units import count_and_rate_columns
from bfreplay.datasets.jobs.tables import JobTable
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.readers_by_ending import JOB_TABLE_READERS, read_by_ending
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.scalability import Curve
from bfreplay.scalability.choice import means_as_points

_CURVE_KEYS = ("nodes", "values", "law")


def named_curves(job_table: JobTable, curve_cache: CurveCache) -> dict[str, Curve]:
    """Return the ``[curves.NAME]`` tables of a TOML file as curves.

    Raises
    ------
    InputError
        Keys other than ``nodes`` and ``values``, or ``law`` and its parameters; points or
        parameters that form no valid curve.
    """
    curves: dict[str, Curve] = {}
    for name, cells in job_table.curves.items():
        label = f"[curves.{name}]"
        with locate_errors(job_table.file, label, LAW_KEY if is_law(cells) else None):
            checks.name("curve", name, "curves")
            if is_law(cells):
                curves[name] = curve_cache.law(law_of(cells, allow_code=curve_cache.allow_code))
                continue
            if set(cells) != {"nodes", "values"}:
                unknown = [cell_key for cell_key in cells if cell_key not in _CURVE_KEYS]
                raise InputError(
                    f"curve {name!r} has neither exactly the keys nodes and values nor a law",
                    value=sorted(cells),
                    expected='nodes = [0, 1, …] and values = [0.0, …], or law = "amdahl" with its parameters',
                    fix=did_you_mean(unknown, [cell_key for cell_key in _CURVE_KEYS if cell_key not in cells]),
                )
            curves[name] = curve_cache.curve(*points_of([cells["nodes"], cells["values"]], as_columns=True), name)
    return curves


def with_own_curves(
    curves: Mapping[str, Curve], job_table: JobTable, curve_cache: CurveCache, place: str
) -> dict[str, Curve]:
    """Return curves of a file of curves, and those of the table itself, ``place`` for messages.

    Raises
    ------
    InputError
        As `named_curves`; or both have a curve of one name.
    """
    own_curves = named_curves(job_table, curve_cache)
    for curve_name in own_curves:
        if curve_name in curves:
            raise InputError(
                f"curve {curve_name!r} {place} and in the curves file",
                file=job_table.file,
                row=f"[curves.{curve_name}]",
                value=curve_name,
                fix="keep one of them",
            )
    return {**curves, **own_curves}


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
        points_of_name = {name: means_as_points(measured) for name, measured in measurements_of(job_table).items()}
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
        missing = [name for name in needed_columns if name not in cells]
        if missing:
            raise empty_cell(missing[0], curves_file, row_number)
        with locate_errors(curves_file, row_number):
            node, value = (job_table.number(cells, column_name) for column_name in ("nodes", "value"))
        points.setdefault(str(cells["curve"]), []).append((row_number, node, value))
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
