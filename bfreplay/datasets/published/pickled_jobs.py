"""Published BFTrainer job sets: two pickled tables, bounds and curves."""

from __future__ import annotations

import math
from itertools import zip_longest
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.jobs.curve_points import CurveCache
from bfreplay.datasets.located import first_true, locate_errors
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.published.matrix import read_pickled_frame, times_us
from bfreplay.datasets.published.pickled_frames import PickledFrame, cell_list
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet

_BOUNDS_COLUMNS = ("Tcup", "Tcdw", "Jmin", "Jmax", "Pmax", "Tsub")
_CURVES_COLUMNS = ("Ns", "Ps", "Os", "Tsub")


def read_published_jobs(bounds: str | PathLike[str], curves: str | PathLike[str]) -> JobSet:
    """Read published job tables.

    Parameters
    ----------
    bounds
        Pickled table ``Tcup, Tcdw, Jmin, Jmax, Pmax, Tsub``, indexed by job name (``…-Jbnd-….pkl``).
    curves
        Pickled table ``Ns, Ps, Os, Tsub`` with the same index (``…-JNPs-….pkl``).

    Returns
    -------
    JobSet
        The model is the part of a name after its first ``-``, if any; a job whose ``Os`` equals its ``Ps``
        has no separate objective curve. Equal curves are one object.

    Raises
    ------
    InputError
        Columns are missing, the tables do not match, or a value is invalid.
    """
    bounds_file, curves_file = Path(bounds), Path(curves)
    table = _job_table(bounds_file, _BOUNDS_COLUMNS, "the bounds (…-Jbnd-….pkl)")
    points = _job_table(curves_file, _CURVES_COLUMNS, "the curves (…-JNPs-….pkl)")
    names = [str(name) for name in table.index]
    _check_same_index(names, [str(name) for name in points.index], curves_file)
    submit_us = times_us(table.column("Tsub"), bounds_file, "Tsub")
    other_us = times_us(points.column("Tsub"), curves_file, "Tsub")
    index = first_true(submit_us != other_us)
    if index is not None:
        raise InputError(
            f"job {names[index]!r} has another submit time in the curves than in the bounds",
            file=curves_file,
            row=index + 1,
            column="Tsub",
            value=iso_utc(int(other_us[index])),
            expected=iso_utc(int(submit_us[index])),
            fix="give the two files of one job set",
        )
    curve_cache = CurveCache()
    numbers = {name: _numbers(table, name, bounds_file) for name in _BOUNDS_COLUMNS[:-1]}
    jobs = []
    for index, name in enumerate(names):
        throughput = _curve(points, "Ps", index, curve_cache, curves_file)
        objective = _curve(points, "Os", index, curve_cache, curves_file)
        with locate_errors(bounds_file, index + 1):
            job = ElasticJob(
                name=name,
                submit_us=int(submit_us[index]),
                min_nodes=_whole(numbers["Jmin"][index], "Jmin"),
                max_nodes=_whole(numbers["Jmax"][index], "Jmax"),
                scale_up_cost_s=float(numbers["Tcup"][index]),
                scale_down_cost_s=float(numbers["Tcdw"][index]),
                work_samples=float(numbers["Pmax"][index]),
                throughput=throughput,
                objective=None if objective is throughput else objective,
                model=name.partition("-")[2] or None,
            )
        jobs.append(job)
    with locate_errors(bounds_file, None):
        sources = [SourceFile.of(file) for file in (bounds_file, curves_file)]
        return JobSet(jobs, sources=[(source.name, source.sha256) for source in sources])


def _job_table(pickle_file: Path, columns: tuple[str, ...], table_name: str) -> PickledFrame:
    data_frame = read_pickled_frame(pickle_file)
    column_names = [str(column_name) for column_name in data_frame.columns]
    missing = [column_name for column_name in columns if column_name not in column_names]
    if missing:
        is_other = set(_CURVES_COLUMNS[:3] if columns is _BOUNDS_COLUMNS else _BOUNDS_COLUMNS[:5]) <= set(column_names)
        raise InputError(
            f"a published job table lacks columns: {', '.join(missing)}",
            file=pickle_file,
            column=missing[0],
            value=column_names,
            expected=", ".join(columns),
            fix="the two files are swapped: give bounds first, then curves" if is_other else f"give {table_name} here",
        )
    return data_frame


def _check_same_index(bounds: list[str], curves: list[str], curves_file: Path) -> None:
    for job_index, (name, curve_name) in enumerate(zip_longest(bounds, curves)):
        if name != curve_name:
            raise InputError(
                f"the curves have {len(curves)} jobs but the bounds {len(bounds)}"
                if name is None
                else "the curves do not match the bounds: their job names differ",
                file=curves_file,
                row=job_index + 1,
                column="index",
                value=curve_name,
                expected="one row for each job of the bounds" if name is None else f"{name!r}, as in the bounds",
                fix="give the two files of one job set",
            )


def _numbers(data_frame: PickledFrame, column: str, pickle_file: Path) -> NDArray[np.float64]:
    values = data_frame.column(column)
    if values.dtype.kind not in "iuf":
        raise InputError(
            "a column holds no numbers", file=pickle_file, column=column, value=str(values.dtype), expected="numbers"
        )
    return values.astype(np.float64)


def _whole(node_count: float, column: str) -> int:
    if not math.isfinite(node_count) or node_count != int(node_count):
        raise InputError("a node count is not a whole number", column=column, value=float(node_count), expected=">= 1")
    return int(node_count)


def _curve(
    points: PickledFrame, column_name: str, index: int, curve_cache: CurveCache, curves_file: Path
) -> TabulatedCurve:
    with locate_errors(curves_file, index + 1, column_name, curve=True):
        try:
            return curve_cache.curve(
                cell_list(points.column("Ns")[index]), cell_list(points.column(column_name)[index])
            )
        except TypeError as error:
            raise InputError(f"a curve is unreadable: {error}", expected="lists of numbers") from error
