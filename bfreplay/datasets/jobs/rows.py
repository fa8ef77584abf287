"""Jobs from rows of a job table, with errors that name row, column and value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bfreplay.checks import is_name, nearest, time_us
from bfreplay.datasets.hints import kind_of_table
from bfreplay.datasets.jobs.curve_points import INLINE_CURVE, CurveCache, is_law, law_of, number_of, points_of
from bfreplay.datasets.jobs.tables import JobTable
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.times import OUTSIDE_CALENDAR, in_calendar, parse_time_us, seconds_to_us, time_error
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.scalability import Curve, measured_counts
from bfreplay.workload import ElasticJob
from bfreplay.workload.elastic_job import COSTS, OPTIONAL_COSTS

REQUIRED_COLUMNS = ("name", "max_nodes", "scale_up_cost_s", "scale_down_cost_s", "work_samples", "curve")
REQUEST_COLUMNS = ("requested_nodes", "expected_s")
"""Columns of the request to a scheduler that cannot rescale."""

COLUMNS = (
    "name",
    "submit_time",
    "submit_after_s",
    "min_nodes",
    *REQUIRED_COLUMNS[1:],
    "objective_curve",
    "weight",
    "deadline",
    "deadline_after_s",
    "node_types",
    "model",
    *REQUEST_COLUMNS,
    *OPTIONAL_COSTS,
)
_FIX_SUBMIT = "give 0 or more; for calendar times use the column submit_time"
_MOST_REPEATED = 100_000
REPEAT_KEYS = ("count", "submit_every_s")
_FIXES = {
    "name": "give the job a name",
    "min_nodes": "give 1 or more",
    "max_nodes": "give min_nodes or more",
    **dict.fromkeys(COSTS, "give the seconds of the pause, 0 if none"),
    "work_saved_every_s": "give the seconds between two checkpoints, 0 if all work is always saved",
    "counts": "write the counts as 1;2;4;8, the first as min_nodes and the last as max_nodes",
    "work_samples": "give the samples to process, or inf for a job that never ends; drop a job without work",
    "weight": "give a weight above 0, 1 for an ordinary job; drop a job that is not to run",
}
_JOB_COLUMN_OF = {"throughput": "curve", "objective": "objective_curve"}


def check_columns(job_table: JobTable) -> None:
    """Refuse columns that are unknown, missing, or contradict each other.

    Raises
    ------
    InputError
        The message suggests the nearest known name.
    """
    kind = kind_of_table(job_table.columns)
    if kind not in (None, "a job set"):
        raise job_table.error(
            f"this looks like {kind}, not like a job set",
            expected=", ".join(REQUIRED_COLUMNS),
            fix="give it as `curves`, and the job set here"
            if kind == "a table of curves"
            else "give the job set here (are the two files swapped?); a log is read by load_events",
        )
    valid_names = (*COLUMNS, *REPEAT_KEYS) if job_table.file.suffix.lower() == ".toml" else COLUMNS
    for column_name in job_table.columns:
        if column_name not in valid_names:
            labels = (label for label, cells in job_table.rows if isinstance(label, str) and column_name in cells)
            raise job_table.error(
                f"the column {column_name!r} is unknown",
                row=next(labels, None),
                column=column_name,
                value=column_name,
                expected=", ".join(valid_names),
                fix=nearest(column_name, valid_names, "rename or drop the column"),
            )
    missing = [column_name for column_name in REQUIRED_COLUMNS if column_name not in job_table.columns]
    if missing:
        noun, verb = ("column", "is") if len(missing) == 1 else ("columns", "are")
        raise job_table.error(
            f"the {noun} {', '.join(map(repr, missing))} {verb} missing",
            column=missing[0],
            expected=", ".join(REQUIRED_COLUMNS),
            fix=f"add the {noun}",
        )
    if {"submit_time", "submit_after_s"} <= set(job_table.columns):
        raise job_table.error(
            "the file has both submit_time and submit_after_s",
            column="submit_after_s",
            expected="submit_time (calendar), or submit_after_s (seconds after the window's start), in the whole file",
            fix="drop one of the two",
        )


@dataclass(frozen=True, slots=True)
class JobRows:
    """Jobs of a table with checked columns; ``known`` are the curves that cells may name."""

    table: JobTable
    known: Mapping[str, Curve]
    curve_cache: CurveCache

    @property
    def submit_is_relative(self) -> bool:
        """True if submit times count from the start of the replay window."""
        return "submit_time" not in self.table.columns

    def jobs(self) -> list[ElasticJob]:
        """Return all jobs in the order of the file; InputError for the first bad cell or a duplicate name."""
        jobs: list[ElasticJob] = []
        row_of: dict[str, int | str] = {}
        for row_number, cells in self.table.rows:
            reader = _Row(self, row_number, cells)
            with locate_errors(self.table.file, row_number):
                for job in reader.repeat(reader.job()):
                    if job.name in row_of:
                        raise InputError(
                            f"two jobs are called {job.name!r} (the other one: row {row_of[job.name]})",
                            column="name",
                            value=job.name,
                            expected="unique names",
                            fix="rename one of them",
                        )
                    row_of[job.name] = row_number
                    jobs.append(job)
        return jobs


@dataclass(frozen=True, slots=True)
class _Row:
    """Converts a row to jobs; the caller of its methods adds the location to their errors."""

    rows: JobRows
    row: int | str
    cells: Mapping[str, Cell]

    def job(self) -> ElasticJob:
        submit_us = self._submit_us()
        throughput = self._curve("curve")
        objective = self._curve("objective_curve") if "objective_curve" in self.cells else None
        weight = self._number("weight") if "weight" in self.cells else 1.0
        try:
            return ElasticJob(
                name=self._text("name"),
                submit_us=submit_us,
                min_nodes=self._min_nodes(throughput),
                max_nodes=self._whole("max_nodes"),
                scale_up_cost_s=self._cost("scale_up_cost_s"),
                scale_down_cost_s=self._cost("scale_down_cost_s"),
                work_samples=self._number("work_samples"),
                throughput=throughput,
                objective=objective,
                weight=weight,
                deadline_us=self._deadline_us(submit_us),
                node_types=self._node_types(),
                model=self._text("model") if "model" in self.cells else None,
                requested_nodes=self._whole("requested_nodes") if "requested_nodes" in self.cells else None,
                expected_s=self._number("expected_s") if "expected_s" in self.cells else None,
                **{name: _READ[name](self, name) for name in OPTIONAL_COSTS if name in self.cells},
            )
        except InputError as error:
            if error.file is not None:
                raise
            # the value of the column, if the job itself does not give it
            column_name = _JOB_COLUMN_OF.get(error.column or "", error.column)
            raise error.with_changes(column=column_name, fix=error.fix or _FIXES.get(column_name or "")) from error

    def repeat(self, job: ElasticJob) -> Iterator[ElasticJob]:
        if "count" not in self.cells:
            if "submit_every_s" in self.cells:
                problem, fix = "submit_every_s without count", "add count = N to the job"
                raise self._error(problem, "submit_every_s", "a count of jobs", fix)
            yield job
            return
        count = self._whole("count")
        if count < 1:
            raise self._error("the count is below 1", "count", "a whole number >= 1", "give 1 or more, or drop the job")
        if count > _MOST_REPEATED:
            raise self._error("the count is too large", "count", f"at most {_MOST_REPEATED:,}", "give a lower count")
        if not is_name(f"{job.name}-{count - 1:04d}"):
            raise self._error("the numbered names are too long", "name", "a shorter name", "shorten the name")
        every_us = self._seconds_us("submit_every_s") if "submit_every_s" in self.cells else 0
        if every_us < 0:
            raise self._error("the interval is negative", "submit_every_s", "seconds >= 0", "give 0 or more seconds")
        for repeat_index in range(count):
            later_us = repeat_index * every_us
            time_us("submit_every_s", job.submit_us + later_us)
            yield replace(
                job,
                name=f"{job.name}-{repeat_index:04d}",
                submit_us=job.submit_us + later_us,
                deadline_us=None if job.deadline_us is None else job.deadline_us + later_us,
            )

    def _submit_us(self) -> int:
        if not self.rows.submit_is_relative:
            return self._time_us("submit_time")
        if "submit_after_s" not in self.cells:
            return 0
        after_us = self._seconds_us("submit_after_s")
        if after_us < 0:
            problem = "the job is submitted before the window starts"
            raise self._error(problem, "submit_after_s", "seconds >= 0", _FIX_SUBMIT)
        return after_us

    def _deadline_us(self, submit_us: int) -> int | None:
        columns = [column_name for column_name in ("deadline", "deadline_after_s") if column_name in self.cells]
        if not columns:
            return None
        column = columns[-1]
        if len(columns) == 2:
            raise self._error("the job has two deadlines", column, "deadline or deadline_after_s", "drop one of them")
        if column == "deadline" and self.rows.submit_is_relative:
            raise self._error(
                "the deadline is a calendar time but the submit time counts from the window's start",
                column,
                "deadline_after_s, or submit_time for all jobs",
                "use one clock in the file",
            )
        due_us = self._time_us(column) if column == "deadline" else submit_us + self._seconds_us(column)
        time_us(column, due_us)
        if due_us < submit_us:
            problem = "the deadline is before the submit time"
            raise self._error(problem, column, "a later time", "give a later deadline, or none")
        return due_us

    def _curve(self, column_name: str) -> Curve:
        cell, curves, curve_cache = self._cell(column_name), self.rows.known, self.rows.curve_cache
        with locate_errors(self.rows.table.file, self.row, column_name, curve=True):
            curve_name = cell.strip() if isinstance(cell, str) else ""
            if curve_name in curves:
                return curves[curve_name]
            if is_law(cell):
                return curve_cache.law(law_of(cell, allow_code=curve_cache.allow_code))
            if isinstance(cell, str) and INLINE_CURVE not in cell:
                raise self._error(
                    f"no curve is called {curve_name!r}",
                    column_name,
                    "points such as 0:0 1:7115.3, a law such as amdahl(rate_1=2831, serial=0.02), or one of: "
                    + (", ".join(sorted(curves)) or "a name in the file of --curves"),
                    nearest(curve_name, curves, "give the file of curves, or write the points here"),
                )
            return curve_cache.curve(*points_of(cell))

    def _cell(self, column_name: str) -> Any:
        if column_name not in self.cells:
            noun, state = ("key", "missing") if isinstance(self.row, str) else ("column", "empty")
            raise InputError(
                f"the {noun} {column_name!r} is {state} here",
                file=self.rows.table.file,
                row=self.row,
                column=column_name,
                value=None,
                expected="a value for every job",
                fix="fill it in or drop the job",
            )
        return self.cells[column_name]

    def _text(self, column_name: str) -> str:
        cell = self._cell(column_name)
        if not isinstance(cell, str):
            raise self._error(f"the {column_name} is not text", column_name, "text", "put it in quotes")
        return cell

    def _min_nodes(self, throughput: Curve) -> int:
        """Return the given bound; without one, the smallest count at which the curve was measured."""
        counts = measured_counts(throughput)
        if "min_nodes" in self.cells or counts is None:
            return self._whole("min_nodes")
        if counts[0] > self._whole("max_nodes"):
            raise self._error(
                f"max_nodes is below {counts[0]:,}, the smallest node count that the curve was measured at",
                "max_nodes",
                f"{counts[0]:,} or more without min_nodes",
                "raise max_nodes, or give min_nodes",
            )
        return counts[0]

    def _node_types(self) -> tuple[str, ...]:
        cell = self.cells.get("node_types", "")
        kinds = cell.split(";") if isinstance(cell, str) else cell
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            expected, fix = "names separated by ;", 'write gpu;fat, or ["gpu"]'
            raise self._error("the node types are not text", "node_types", expected, fix)
        return tuple(kind.strip() for kind in kinds if kind.strip())

    def _cost(self, column_name: str) -> Any:
        """Return a number, or what may be a cost by count, which the job itself reads."""
        cell = self._cell(column_name)
        is_by_count = isinstance(cell, Mapping | list | tuple) or (isinstance(cell, str) and ":" in cell)
        return cell if is_by_count else self._number(column_name)

    def _counts(self, column_name: str) -> list[int]:
        cell = self._cell(column_name)
        entries = re.split(r"[\s;,]+", cell.strip()) if isinstance(cell, str) else cell
        if isinstance(entries, list | tuple):
            numbers = [number_of(entry, column_name) for entry in entries]
            if all(number.is_integer() for number in numbers):
                return [int(number) for number in numbers]
        problem, expected = "the counts are no whole numbers", "whole numbers separated by ;"
        raise self._error(problem, column_name, expected, _FIXES[column_name])

    def _number(self, column_name: str) -> float:
        return number_of(self._cell(column_name), column_name)

    def _whole(self, column_name: str) -> int:
        cell_number = self._number(column_name)
        if not cell_number.is_integer():
            problem = f"the {column_name} is not a whole number"
            raise self._error(problem, column_name, "a whole number", "round it to a whole number")
        return int(cell_number)

    def _time_us(self, column_name: str) -> int:
        cell = self._cell(column_name)
        try:
            moment_us = parse_time_us(cell)
        except ValueError as error:
            raise time_error(cell, str(error), column=column_name) from error
        if not in_calendar(moment_us):  # before any log: another unit is meant
            raise time_error(cell, OUTSIDE_CALENDAR, column=column_name)
        return moment_us

    def _seconds_us(self, column_name: str) -> int:
        self._number(column_name)
        try:
            return time_us(column_name, seconds_to_us(self.cells[column_name], exact=False))
        except ValueError as error:
            problem = f"this is not a number of seconds: {error}"
            raise self._error(problem, column_name, "finite seconds", "give seconds") from error

    def _error(self, problem: str, column_name: str, expected: str, fix: str) -> InputError:
        return InputError(problem, column=column_name, value=self.cells.get(column_name), expected=expected, fix=fix)


_READ: Mapping[str, Callable[[_Row, str], Any]] = {
    "start_cost_s": _Row._cost,
    "restart": _Row._text,
    "work_saved_every_s": _Row._number,
    "saves": _Row._text,
    "counts": _Row._counts,
}
"""Reader of each of ``OPTIONAL_COSTS``."""
