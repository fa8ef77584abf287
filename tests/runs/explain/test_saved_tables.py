"""Allocations are read part by part, the last first, and a part has all that were held in it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy
from bfreplay.replay.intervals import ALLOCATIONS
from bfreplay.result_folders.reading import Result
from bfreplay.result_folders.records import RUN, ResultRecord
from bfreplay.runs.explain.saved_tables import (
    Allocations,
    SavedAllocations,
    allocations_of,
    nodes_over_time,
    nodes_over_time_by_model,
)
from bfreplay.workload import JobSet
from tests.examples import examples
from tests.replay.tiny import SECOND, job, job_sets, log, logs

_ARRAYS = ("job", "count", "from_us", "to_us", "node_type", "sharing")
END = 120


@st.composite
def intervals(draw):
    """Rows (job, nodes, from, to) of three jobs, in the order of their ends."""
    rows = []
    for name in "abc":
        times = sorted(draw(st.sets(st.integers(0, END), max_size=14)))
        rows += [(name, draw(st.integers(1, 9)), *span) for span in zip(times[::2], times[1::2], strict=False)]
    return sorted(rows, key=lambda row: (row[3], row[0]))


class Folder(Result[ResultRecord]):
    kind = RUN
    record_type = ResultRecord


def saved(folder, rows, rows_at_once):
    """A folder with these allocations in a file of row groups of this size."""
    with pq.ParquetWriter(folder / "allocations.parquet", ALLOCATIONS) as writer:
        for first in range(0, len(rows), rows_at_once):
            job, count, since, until = zip(*rows[first : first + rows_at_once], strict=True)
            words = (pa.array(each).dictionary_encode() for each in (job, ["any"] * len(job)))
            columns = zip((*words, *map(pa.array, (count, since, until))), ALLOCATIONS, strict=True)
            writer.write_table(pa.Table.from_arrays([each.cast(of.type) for each, of in columns], schema=ALLOCATIONS))
    return Folder(ResultRecord(schema_version=RUN.schema_version), folder)


def sorted_rows(held):
    return sorted(zip(*(getattr(held, name).tolist() for name in _ARRAYS), strict=True))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=intervals(), rows_at_once=st.integers(1, 6), window=st.tuples(st.integers(0, 60), st.integers(61, END)))
def test_parts_cover_the_window_and_each_has_what_was_held_in_it(monkeypatch, tmp_path, rows, rows_at_once, window):
    monkeypatch.setattr("bfreplay.result_folders.reading._ROW_GROUPS", 1)
    run = saved(tmp_path, rows, rows_at_once)
    start_us, until_us = window
    for since_us, end_us, part in SavedAllocations.of(run).parts(*window):
        assert end_us == until_us
        assert start_us <= since_us < end_us
        assert sorted_rows(part) == sorted_rows(allocations_of(run).between(since_us, end_us))
        until_us = since_us
    assert until_us == start_us


def test_few_intervals_are_held_at_a_time(monkeypatch, tmp_path):
    monkeypatch.setattr("bfreplay.result_folders.reading._ROW_GROUPS", 1)
    rows = [("ab"[k % 2], 1 + k % 3, k, k + 2) for k in range(200)]
    run = saved(tmp_path, [("c", 1, 0, 1), *rows, ("c", 5, 1, 202)], rows_at_once=10)
    kept, and_of = [], Allocations.and_of
    monkeypatch.setattr(
        Allocations, "and_of", lambda own, others: kept.append(others[0].job.size) or and_of(own, others)
    )
    parts = [*SavedAllocations.of(run).parts(0, 210)]
    assert len(parts) > 15
    assert max(kept) <= 3  # one a job
    assert max(part.job.size for _, _, part in parts) <= 10 + 3  # one more a job
    assert run.tables == {}


def test_intervals_in_another_order_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("bfreplay.result_folders.reading._ROW_GROUPS", 1)
    run = saved(tmp_path, [("a", 1, 20, 30), ("b", 1, 0, 10)], rows_at_once=1)
    with pytest.raises(InputError, match="not in the order of their ends"):
        [*SavedAllocations.of(run).parts(0, 100)]


def test_names_are_those_of_all_rows_in_their_order(monkeypatch, tmp_path):
    monkeypatch.setattr("bfreplay.result_folders.reading._ROW_GROUPS", 1)
    run = saved(tmp_path, [("z", 1, 0, 1), ("b", 2, 0, 2), ("z", 3, 1, 3), ("a", 4, 0, 4)], rows_at_once=1)
    held = allocations_of(run)
    assert (held.names, held.type_names, held.is_shared) == (("z", "b", "a"), ("any",), False)
    assert held.job.tolist() == [0, 1, 0, 2]
    assert np.array_equal(held.count, [1, 2, 3, 4])


NODE_TIME = ("useful_node_us", "rescaling_node_us", "preempted_node_us", "stalled_node_us")


def test_a_job_that_gains_and_loses_nodes():
    events = log(3, [(10, 1, True), (20, 0, False), (20, 1, False), (40, 2, True)], 60, idle_first=[0])
    run = replay_log(events, JobSet([job("a")]), BFTrainerPolicy(60.0), efficiency=False, bound=False)
    steps = nodes_over_time(run, "a")
    assert (steps.edge_us / SECOND).tolist() == [0, 10, 20, 40, 60]
    assert steps.counts.tolist() == [1, 2, 0, 1]
    assert steps.area_us == (10 + 2 * 10 + 20) * SECOND
    assert steps.in_columns(np.array([0, 20, 50, 60]) * SECOND).mean.tolist() == [1.5, pytest.approx(1 / 3), 1.0]


def test_a_job_without_nodes_is_flat():
    run = replay_log(log(1, [], 60), JobSet([job("a")]), efficiency=False, bound=False)
    steps = nodes_over_time(run, "a")
    assert ((steps.edge_us / SECOND).tolist(), steps.counts.tolist()) == ([0, 60], [0])
    assert {label: each.counts.tolist() for label, each in nodes_over_time_by_model(run).items()} == {"(no model)": [0]}


def test_a_job_that_is_not_there_is_refused_with_the_nearest_name():
    run = replay_log(log(1, [], 60), JobSet([job("Trial-7"), job("other")]), efficiency=False, bound=False)
    with pytest.raises(InputError, match="did you mean 'Trial-7'") as caught:
        nodes_over_time(run, "trial-07")
    assert "one of Trial-7, other" in str(caught.value)


@settings(max_examples=examples(60))
@given(events=logs(), jobs=job_sets())
def test_nodes_over_time_are_the_node_time_of_the_books(events, jobs):
    run = replay_log(events, jobs, EqualSharePolicy(), efficiency=False, bound=False)
    for row in run.jobs.to_dict("records"):
        steps = nodes_over_time(run, row["job"])
        assert steps.area_us == sum(row[name] for name in NODE_TIME)
        assert (np.diff(steps.edge_us) > 0).all()
        assert (np.diff(steps.counts) != 0).all()
    ((_, together),) = nodes_over_time_by_model(run).items()
    assert together.area_us == sum(int(run.jobs[name].sum()) for name in NODE_TIME)
