"""What the rows of a run's tables have to be among themselves: in order, inside the window, of one another's jobs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bfreplay.answers.saved import Allocations, allocations_of
from bfreplay.answers.soundness.damage import damaged
from bfreplay.datasets.times import FIRST_TIME_US, LAST_TIME_US, iso_utc
from bfreplay.replay.active import FIRST, SECOND
from bfreplay.replay.placed_runs import node_types_of
from bfreplay.replay.result import RunResult

_IN_WINDOW = ("admitted", "first_start", "finished", "ended")
_AFTER_SUBMISSION = ("admitted", "first_start", "finished")
"""A source may take a job back before."""
_IN_CALENDAR = ("submitted", "deadline")
_NODE_TIME = ("useful_node_us", "rescaling_node_us", "lost_to_preemption_node_us", "stalled_node_us")


def check_rows(run: RunResult) -> None:
    """Raise ``InputError`` for a row that cannot be, beside the others and the window of the run."""
    for table, column, is_bad, values, expected in _checks(run):
        bad = np.flatnonzero(is_bad)
        if bad.size:
            row = int(bad[0])
            raise damaged(
                run, f"the run contradicts itself: the table {table!r}", file=f"{table}.parquet", column=column,
                value=values[row], expected=expected, row=row + 1,
            )  # fmt: skip


_Check = tuple[str, str, NDArray[np.bool_], Any, str]
"""Table, column, which rows are wrong ``(R,)``, what is shown of each, and what is expected."""


def _checks(run: RunResult) -> Iterator[_Check]:
    for of_table in (_decisions, _jobs, _allocations, _pool, _holes):
        yield from of_table(run)


def _window(run: RunResult) -> tuple[int, int]:
    config = run.record["config"]
    return config["window_start_us"], config["window_end_us"]


def _decisions(run: RunResult) -> Iterator[_Check]:
    time_us, measured_us = (_us(run.table(name), "time") for name in ("decisions", "timings"))
    yield "decisions", "time", _is_outside(run, time_us), _Times(time_us), "a time in the window"
    yield "decisions", "time", np.diff(time_us, prepend=time_us[:1]) < 0, _Times(time_us), "times in ascending order"
    yield "timings", "time", measured_us != time_us, _Times(measured_us), "the time of the decision in the same row"
    for name in ("build_s", "solve_s", "decide_s"):
        seconds = _floats(run.table("timings"), name)
        yield "timings", name, seconds < 0, seconds.tolist(), "seconds of at least 0"


def _jobs(run: RunResult) -> Iterator[_Check]:
    table = run.table("jobs")
    names = table["job"].to_pylist()
    first = {name: k for k, name in reversed(list(enumerate(names)))}
    is_repeated = np.array([first[name] != k for k, name in enumerate(names)], dtype=bool)
    yield "jobs", "job", is_repeated, names, "a name that no other job has"
    submitted_us = _us(table, "submitted")
    for column in (*_IN_CALENDAR, *_IN_WINDOW):
        if column not in table.column_names:
            continue
        time_us, is_there = _us(table, column), np.asarray(table[column].is_valid())
        if column in _IN_CALENDAR:
            is_wrong, expected = (time_us < FIRST_TIME_US) | (time_us > LAST_TIME_US), "a time in the years 1 to 9999"
        else:
            is_wrong, expected = _is_outside(run, time_us), "a time in the window"
        yield "jobs", column, is_there & is_wrong, _Times(time_us), expected
        if column in _AFTER_SUBMISSION:
            is_early = is_there & (time_us < submitted_us)
            yield "jobs", column, is_early, _Times(time_us), "a time when the job has been submitted"
    status = table["status"].to_pylist()
    is_told = (np.array(status, dtype=object) == "finished") == np.asarray(table["finished"].is_valid())
    yield "jobs", "finished", ~is_told, status, "a time of jobs that finished, and of no other"


def _allocations(run: RunResult) -> Iterator[_Check]:
    held, jobs = allocations_of(run), run.table("jobs")
    names = np.array(held.names, dtype=object)[held.job]
    number = {name: k for k, name in enumerate(jobs["job"].to_pylist())}
    job = np.array([number.get(name, -1) for name in held.names], dtype=np.int64)[held.job]
    yield "allocations", "job", job < 0, names, "a job of the table 'jobs'"
    yield "allocations", "count", held.count < 1, held.count.tolist(), "at least one node"
    yield "allocations", "from", _is_outside(run, held.from_us), _Times(held.from_us), "a time in the window"
    yield "allocations", "to", _is_outside(run, held.to_us), _Times(held.to_us), "a time in the window"
    yield "allocations", "to", held.to_us <= held.from_us, _Times(held.to_us), "a time after 'from'"
    held_us, told_us = np.zeros(jobs.num_rows, np.int64), np.zeros(jobs.num_rows, np.int64)
    known = job >= 0
    np.add.at(held_us, job[known], (held.count * held.charged_us)[known])
    for column in _NODE_TIME:
        told_us += np.asarray(jobs[column], dtype=np.int64)
    expected = "node-microseconds that the table 'allocations' has of the job"
    yield "jobs", " + ".join(_NODE_TIME), held_us != told_us, told_us.tolist(), expected
    types = set(node_types_of(run))
    names = np.array(held.type_names, dtype=object)[held.node_type]
    is_unknown = np.array([name not in types for name in held.type_names], dtype=bool)[held.node_type]
    yield "allocations", "node_type", is_unknown, names, f"a type of the log: {', '.join(sorted(types))}"
    yield "allocations", "sharing", held.sharing > SECOND, held.sharing.tolist(), "0, 1 or 2"
    expected = "as many nodes with the first of two jobs that share them as with the second, at any time"
    yield "allocations", "sharing", _is_alone_in_a_pair(held), held.sharing.tolist(), expected


def _is_alone_in_a_pair(held: Allocations) -> NDArray[np.bool_]:
    """(A,) whether the job shares its nodes at a time at which nobody is there to share so many of that type."""
    found = np.zeros(held.count.size, dtype=bool)
    for node_type in range(len(held.type_names)):
        (rows,) = np.nonzero((held.sharing > 0) & (held.node_type == node_type))
        signed = np.where(held.sharing[rows] == FIRST, 1, -1) * held.count[rows]
        times = np.concatenate([held.from_us[rows], held.to_us[rows]])
        edge, place = np.unique(times, return_inverse=True)
        change = np.zeros(edge.size, dtype=np.int64)
        np.add.at(change, place, np.concatenate([signed, -signed]))
        odd = np.flatnonzero(np.cumsum(change))
        if odd.size:
            found[rows] = (held.from_us[rows] <= edge[odd[0]]) & (edge[odd[0]] < held.to_us[rows])
    return found


def _pool(run: RunResult) -> Iterator[_Check]:
    if not run.has_table("pool"):
        return
    start_us, _ = _window(run)
    time_us = _us(run.table("pool"), "time")
    first = [iso_utc(each) for each in time_us[:1].tolist()] or ["no row"]
    yield "pool", "time", np.array([first != [iso_utc(start_us)]]), first, "the window's start in the first row"
    yield "pool", "time", _is_outside(run, time_us), _Times(time_us), "a time in the window"
    yield "pool", "time", np.diff(time_us, prepend=start_us - 1) <= 0, _Times(time_us), "times that go up"


def _holes(run: RunResult) -> Iterator[_Check]:
    if not run.has_table("holes"):
        return
    table = run.table("holes")
    over_s, up_to_s = _floats(table, "over_s"), _floats(table, "up_to_s")
    n_holes, n_cut, n_held, idle_us, held_us = (
        np.asarray(table[name], dtype=np.int64)
        for name in ("n_holes", "n_cut", "n_held", "idle_node_us", "held_node_us")
    )
    bins = list(zip(over_s.tolist(), table["up_to_s"].to_pylist(), strict=True))
    # a bin with more node time than 64 bits hold is in several rows
    follows = [after == before or after[0] == before[1] for before, after in pairwise(bins)]
    is_wrong = (over_s < 0) | ~np.array([True, *follows], dtype=bool)[: len(bins)]
    yield "holes", "over_s", is_wrong, bins, "where the bin of the row before ends"
    is_open = np.isnan(up_to_s) & (over_s > 0) & (over_s == over_s.max(initial=0.0))
    yield "holes", "up_to_s", ~((up_to_s > over_s) | is_open), bins, "more than over_s, or null in the last bin"
    is_empty = (np.arange(len(bins)) == 0) & ((n_holes == 0) | (idle_us == 0))
    yield "holes", "n_holes", is_empty, n_holes.tolist(), "a hole in the first bin"
    yield "holes", "n_cut", n_cut > n_holes, n_cut.tolist(), "no more than n_holes"
    yield "holes", "n_held", n_held > n_holes, n_held.tolist(), "no more than n_holes"
    yield "holes", "held_node_us", held_us > idle_us, held_us.tolist(), "no more than idle_node_us"


def _is_outside(run: RunResult, time_us: NDArray[np.int64]) -> NDArray[np.bool_]:
    start_us, end_us = _window(run)
    return (time_us < start_us) | (time_us > end_us)


def _us(table: pa.Table, column: str) -> NDArray[np.int64]:
    """Microseconds since the epoch, 0 where there is none."""
    return np.asarray(table[column].cast("int64").fill_null(0), dtype=np.int64)


def _floats(table: pa.Table, column: str) -> NDArray[np.float64]:
    """Numbers, nan where there is none."""
    return np.asarray(table[column].cast("float64").fill_null(float("nan")), dtype=np.float64)


class _Times:
    """Times as text, those that are asked for."""

    def __init__(self, time_us: NDArray[np.int64]) -> None:
        self._time_us = time_us

    def __getitem__(self, row: int) -> str:
        return iso_utc(int(self._time_us[row]))
