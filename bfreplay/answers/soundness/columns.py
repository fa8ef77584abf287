"""What the tables of a run have to have: the columns that are written, of their types, without holes in them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bfreplay.answers.soundness.damage import damaged
from bfreplay.errors import InputError
from bfreplay.milp.solution import Quality
from bfreplay.replay.intervals import ALLOCATIONS, SHARED, allocations_schema
from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.replay.pool_tables import HOLES, POOL
from bfreplay.replay.result import RunResult
from bfreplay.replay.tables import DECISIONS, JOBS, REPORTS, TIME, TIMINGS

_ALWAYS = {"decisions": DECISIONS, "timings": TIMINGS, "jobs": JOBS, "allocations": ALLOCATIONS}
_TOGETHER = {"pool": POOL, "holes": HOLES}
"""Older versions wrote neither."""
_MAY_LACK = {
    "decisions": {"counts", "t_fwd_s", "rejected_process_status", "rejected_solver_status", "rejected_quality"},
    "jobs": {
        "deadline", "deadline_met", "ended", "weight", "n_reports", "last_score", "best_score", "params",
        "isolated_jct_s",
    },
}  # fmt: skip
"""Columns that older versions did not write."""
_OF_SCHEDULING = {"weight", "isolated_jct_s"}
"""Columns of the table of jobs that are there wherever the record has metrics of scheduling."""
_MAY_BE_NULL = {
    "decisions": {
        "t_fwd_s", "objective", "bound", "gap", "solver", "solver_status", "fell_back_from", "rejected_process_status",
        "rejected_solver_status", "rejected_quality", "message",
    },
    "jobs": {
        "model", "admitted", "first_start", "finished", "ended", "deadline", "deadline_met", "n_reports", "last_score",
        "best_score", "params", "isolated_jct_s",
    },
    "holes": {"up_to_s"},
    "reports": {"score"},
}  # fmt: skip
_MAY_BE_INFINITE = {"jobs": {"work_samples"}}
"""Beside columns that may be null, of which nothing is calculated."""
_WORDS: Mapping[tuple[str, str], frozenset[str]] = {
    ("decisions", "quality"): frozenset(Quality),
    ("decisions", "trigger"): frozenset(
        "+".join(words) or "window_begin"
        for n in range(5)
        for words in combinations(("pool", "arrival", "completion", "round"), n)
    ),
    ("jobs", "status"): frozenset(STATUSES),
}


def check_tables(run: RunResult) -> None:
    """Raise ``InputError`` unless every table is there and has the columns and kinds of values that are written."""
    tables = dict(_ALWAYS)
    if any(map(run.has_table, _TOGETHER)):
        tables |= _TOGETHER
    if run.record["inputs"]["jobs"].get("source") is not None:
        tables["reports"] = REPORTS
    for name, schema in tables.items():
        if not run.has_table(name):
            others = (
                "both, or, as older versions, neither of pool and holes"
                if name in _TOGETHER
                else "a table that every such run has"
            )
            raise damaged(
                run, f"the run has no table {name!r}", file=f"{name}.parquet", column=None, value="no such file",
                expected=others,
            )  # fmt: skip
        table = run.table(name)
        if name == "allocations":
            schema = allocations_schema(SHARED.name in table.column_names)
        _check_table(run, name, table, schema)


def _check_table(run: RunResult, name: str, table: pa.Table, schema: pa.Schema) -> None:
    try:
        table.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        raise damaged(
            run, f"the table {name!r} is damaged: {error}", file=f"{name}.parquet", column=None, value=None,
            expected="a whole table",
        ) from error  # fmt: skip
    may_lack = _MAY_LACK.get(name, set()) - (_OF_SCHEDULING if "scheduling" in run.summary else set())
    for field in schema:
        n = table.column_names.count(field.name)
        if n == 0 and field.name in may_lack:
            continue
        if n != 1:
            raise _wrong(run, name, field.name, f"{n} such columns", "one such column")
        _check_column(run, name, field, table[field.name])


def _check_column(run: RunResult, table: str, field: pa.Field, column: pa.ChunkedArray) -> None:
    name = field.name
    if not _is_alike(column.type, field.type):
        raise _wrong(run, table, name, str(column.type), str(field.type))
    if pa.types.is_list(field.type):
        return
    is_word = pa.types.is_dictionary(column.type)
    values = column.cast(column.type.value_type) if is_word else column  # a word may be null in its dictionary
    is_null = name in _MAY_BE_NULL.get(table, ())
    if values.null_count and not is_null:
        raise _wrong(run, table, name, None, "a value in every row", row=_first(pc.is_null(values)))
    if pa.types.is_integer(field.type):
        _refuse_where(run, table, name, values, pc.less(values, 0), "whole numbers of at least 0")
    if pa.types.is_floating(field.type) and not is_null:
        bad = pc.is_nan(values) if name in _MAY_BE_INFINITE.get(table, ()) else pc.invert(pc.is_finite(values))
        _refuse_where(run, table, name, values, bad, "finite numbers")
    known = _WORDS.get((table, name))
    if known is not None:
        bad = pc.invert(pc.is_in(values, value_set=pa.array(sorted(known), type=pa.string())))
        _refuse_where(run, table, name, values, bad, f"one of {', '.join(sorted(known))}")


def _is_alike(found: pa.DataType, written: pa.DataType) -> bool:
    """Whether one type can be read as the other; times have to be the same, as their numbers are read."""
    kinds = pa.types
    if kinds.is_dictionary(written):
        return bool(kinds.is_dictionary(found) and kinds.is_string(found.value_type))
    if kinds.is_dictionary(found):  # older versions wrote some texts as words
        found = found.value_type
    for kind in (kinds.is_string, kinds.is_floating, kinds.is_signed_integer, kinds.is_list, kinds.is_boolean):
        if kind(written):
            return bool(kind(found))
    return bool(found == written == TIME)


def _refuse_where(
    run: RunResult, table: str, column: str, values: pa.ChunkedArray, bad: pa.ChunkedArray, expected: str
) -> None:
    row = _first(bad)
    if row is not None:
        raise _wrong(run, table, column, values[row - 1].as_py(), expected, row)


def _first(found: pa.ChunkedArray) -> int | None:
    """The first row, counted from 1, that is true."""
    place = pc.index(found, True).as_py()
    return None if place < 0 else int(place) + 1


def _wrong(run: RunResult, table: str, column: str, value: Any, expected: str, row: int | None = None) -> InputError:
    return damaged(
        run, f"the table {table!r} is damaged", file=f"{table}.parquet", column=column, value=value, expected=expected,
        row=row,
    )  # fmt: skip
