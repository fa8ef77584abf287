"""The pool over time and the idle intervals by length: hand-worked, and against the log and who held which node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.idleness.idle_intervals import SPECTRUM_OVER_US
from bfreplay.errors import InputError, LedgerError
from bfreplay.policies import BFTrainerPolicy, Decision, EqualSharePolicy, Placement, Policy, PolicyState
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.replay.engine import Engine
from bfreplay.replay.pool_tables import (
    CARRIED_US,
    IDLE_INTERVALS,
    POOL,
    count_interval,
    empty_bins,
    node_time_of_bins,
    write_idle_intervals,
)
from bfreplay.replay.run_tables import RunTables
from bfreplay.replay.tables import CHUNK_ROWS, MemorySink, ParquetSink, RowTable
from bfreplay.runs import RunResult
from bfreplay.workload import ElasticJob, JobSet, Orders, Verdict
from tests.examples import examples
from tests.replay.test_job_sources import Scripted, reporting
from tests.replay.tiny import SECOND, job, job_sets, log, logs

PUBLISHED = ReplaySettings(semantics=Semantics.PUBLISHED)


def replayed(
    events: NodeEvents, jobs: Iterable[ElasticJob], policy: Policy | None = None, options: ReplaySettings | None = None
) -> RunResult:
    return replay_log(events, JobSet(jobs), policy, options, efficiency=False, bound=False)


def idle_intervals(run: RunResult) -> list[tuple[float, ...]]:
    """(over s, n, cut, held, idle node-s, held node-s) of each bin that holds any."""
    return [
        (
            round(row["over_s"], 2),
            row["n_intervals"],
            row["n_censored"],
            row["n_allocated"],
            row["idle_node_us"] / SECOND,
            row["allocated_node_us"] / SECOND,
        )
        for row in run.table("idle_intervals").to_pylist()
        if row["n_intervals"]
    ]


def pool(run: RunResult) -> list[tuple[float, int]]:
    return [(row["time"].timestamp(), row["n_idle"]) for row in run.table("pool").to_pylist()]


def test_a_idle_interval_held_until_it_is_reclaimed_is_held_for_as_long_as_its_job_was_there():
    run = replayed(log(1, [(10, 0, True), (14, 0, False)], 20), [job(submit_s=11)])
    assert idle_intervals(run) == [(2.83, 1, 0, 1, 4, 3)]  # over 2**1.5 s
    assert run.table("idle_intervals")["up_to_s"].to_pylist() == [4.0]  # the edge belongs to the bin below
    assert pool(run) == [(0, 0), (10, 1), (14, 0)]


def test_a_idle_interval_held_twice_is_one_idle_interval_and_the_next_idle_interval_of_the_node_begins_anew():
    # 5 s of work for each job; 0-30 s idle, cut by the window's start; 35-40 s idle and free, cut by its end
    jobs = [job("a", work=50, submit_s=2), job("b", work=50, submit_s=20)]
    run = replayed(log(1, [(30, 0, False), (35, 0, True)], 40, idle_first=[0]), jobs)
    assert idle_intervals(run) == [(4, 1, 1, 0, 5, 0), (22.63, 1, 1, 1, 30, 10)]
    bounds = run.table("idle_intervals").to_pydict()
    assert bounds["n_intervals"] == [1, 0, 0, 0, 0, 1]  # all bins in between
    assert bounds["up_to_s"][:-1] == bounds["over_s"][1:]
    assert pool(run) == [(0, 1), (30, 0), (35, 1)]


def test_the_node_given_back_by_a_decision_is_not_held_from_then_on():
    class Shrinks(EqualSharePolicy):
        script = iter([[2], [1]])

        def decide(self, state: PolicyState) -> Decision:
            return Decision(np.array(next(self.script)))

    run = replayed(log(3, [(6, 2, True)], 20, idle_first=[0, 1]), [job()], Shrinks())
    assert idle_intervals(run) == [(11.31, 1, 1, 0, 14, 0), (16, 2, 2, 2, 40, 26)]


@pytest.mark.parametrize(("second", "held_s"), [([0], 20), ([1, 0], 30), ([1], 20)])
def test_nodes_that_a_policy_chooses_itself_are_held_from_decision_to_decision(second: list[int], held_s: int):
    class Chooses(EqualSharePolicy):
        script = iter([[1], second])

        def decide(self, state: PolicyState) -> Decision:
            nodes = np.array(next(self.script))
            return Decision(np.array([nodes.size]), placement=Placement((nodes,)))

    run = replayed(log(3, [(10, 2, True)], 20, idle_first=[0, 1]), [job()], Chooses())
    n_allocated = len({1, *second})
    assert idle_intervals(run) == [(8, 1, 1, 0, 10, 0), (16, 2, 2, n_allocated, 40, held_s)]


def test_under_the_published_clock_the_first_map_and_the_late_end_of_a_job_are_held_time():
    # both nodes by the first map; done after 5 s, noticed at 8 s
    run = replayed(log(3, [(8, 2, True)], 20, idle_first=[0, 1]), [job(work=100)], options=PUBLISHED)
    assert idle_intervals(run) == [(11.31, 1, 1, 0, 12, 0), (16, 2, 2, 2, 40, 16)]


def test_a_pause_ends_the_holding_and_not_the_idle_interval():
    # one node at 10/s: 0-4 s, when the source is asked; asked again at 9 s it lets the job go on, to 13 s
    source = Scripted(
        [
            Orders(submit=(reporting("waits", 40.0, work=80.0),)),
            Orders(ask_again_us=9 * SECOND),
            Orders(resume=("waits",)),
        ],
        {("waits", 40.0): Verdict(1.0, pause=True)},
    )
    run = replay_log(log(1, [], 20, idle_first=[0]), source, efficiency=False, bound=False)
    assert idle_intervals(run) == [(16, 1, 1, 1, 20, 8)]


def test_a_log_without_an_idle_node_has_no_idle_interval_and_one_row_of_nothing():
    run = replayed(log(2, [], 20), [job()])
    assert run.table("idle_intervals").num_rows == 0
    assert run.table("idle_intervals").schema == IDLE_INTERVALS
    assert pool(run) == [(0, 0)]


@pytest.mark.parametrize("jobs", [Scripted([]), JobSet([job(submit_s=99)])], ids=["no job", "a job to come later"])
def test_nodes_idle_for_the_whole_window_are_cut_and_without_jobs_free(jobs):
    run = replay_log(log(3, [], 20, idle_first=range(3)), jobs, efficiency=False, bound=False)
    assert idle_intervals(run) == [(16, 3, 3, 0, 60, 0)]
    assert pool(run) == [(0, 3)]


def test_a_reclaim_at_the_very_end_is_seen_and_a_node_that_joins_there_is_no_idle_interval():
    run = replayed(log(2, [(5, 0, True), (10, 0, False), (10, 1, True)], 10), [job()])
    assert idle_intervals(run) == [(4, 1, 0, 1, 5, 5)]
    assert pool(run) == [(0, 0), (5, 1)]  # one goes, one comes: as many as before


def test_the_pool_is_written_on_when_all_jobs_are_done():
    run = replayed(log(2, [(10, 1, True), (15, 0, False), (15, 1, False)], 20, idle_first=[0]), [job(work=10)])
    assert run.decisions["time"].iloc[-1].timestamp() == 1
    assert pool(run) == [(0, 1), (10, 2), (15, 0)]


def test_a_folder_holds_what_memory_holds(tmp_path):
    events = log(2, [(10, 1, True), (15, 0, False)], 20, idle_first=[0])
    kept = replayed(events, [job()])
    replay_log(events, JobSet([job()]), out=tmp_path / "run", efficiency=False, bound=False)
    saved = RunResult.load(tmp_path / "run")
    for name, schema in (("pool", POOL), ("idle_intervals", IDLE_INTERVALS)):
        assert kept.table(name).schema == schema
        assert saved.table(name).equals(kept.table(name))
        (tmp_path / "run" / f"{name}.parquet").unlink()
        with pytest.raises(InputError, match="bfreplay replay --out"):
            RunResult.load(tmp_path / "run").table(name)


def test_a_replay_that_keeps_no_tables_keeps_none_of_these():
    run = replay_log(log(1, [], 9, [0]), JobSet([job()]), with_tables=False, efficiency=False, bound=False)
    assert run.tables == {}
    run_tables = RunTables.nowhere()
    assert (run_tables.pool, run_tables.idle_intervals) == (None, None)


@pytest.mark.parametrize("what", ["idle_us", "held_us"])
def test_the_books_do_not_close_when_a_microsecond_of_the_idle_intervals_is_missing(monkeypatch, what: str):
    engine = Engine(
        log(1, [(5, 0, False)], 9, [0]), JobSet([job()]), BFTrainerPolicy(), ReplaySettings(), RunTables.nowhere()
    )
    engine.pool._bins[what][0] -= 1
    with pytest.raises(LedgerError, match=f"{what[:4]} node time of the idle intervals"):
        engine.run()


def test_the_pool_comes_back_whatever_the_chunks(tmp_path):
    sinks = MemorySink(POOL), ParquetSink(tmp_path / "pool.parquet", POOL)
    memory, disk = (RowTable(POOL, sink, is_full=True) for sink in sinks)
    numbers = [n % 7 for n in range(2 * CHUNK_ROWS + 5)]
    for table in (memory, disk):
        for n, n_idle in enumerate(numbers):
            table.append((n, n_idle))
    kept = memory.close()
    assert disk.close() is None
    assert kept is not None
    for read in (kept, pq.read_table(tmp_path / "pool.parquet")):
        assert read["time"].cast("int64").to_pylist() == list(range(len(numbers)))
        assert read["n_idle"].to_pylist() == numbers


def test_node_time_beyond_64_bits_is_exact_and_its_bin_has_several_rows():
    bins = empty_bins()
    for _ in range(9):
        count_interval(bins, CARRIED_US - 1, CARRIED_US - 3, True)
    count_interval(bins, CARRIED_US - 1, 0, False)
    idle, held = node_time_of_bins(bins)
    assert (sum(idle), sum(held)) == (10 * (CARRIED_US - 1), 9 * (CARRIED_US - 3))
    table = RowTable(IDLE_INTERVALS, MemorySink(IDLE_INTERVALS))
    write_idle_intervals(bins, table)
    written = table.close()
    assert written is not None
    columns = written.to_pydict()
    assert len(columns["over_s"]) == 5
    assert set(columns["over_s"]) == {SPECTRUM_OVER_US[-1] / 1e6}
    assert set(columns["up_to_s"]) == {None}
    totals = {name: sum(columns[name]) for name in IDLE_INTERVALS.names[2:]}
    assert totals == {
        "n_intervals": 10,
        "n_censored": 9,
        "n_allocated": 9,
        "idle_node_us": sum(idle),
        "allocated_node_us": sum(held),
    }


# -- against the log and the table of nodes --------------------------------------------------------------------


def idle_intervals_of_log(events: NodeEvents) -> list[tuple[str, int, int, bool]]:
    """(node, from, to, is cut) of every idle interval of any length, by brute force."""
    found, since, end_us = [], {}, events.window_end_us
    for batch in events.batches():
        for t, node, state in zip(batch.time_us.tolist(), batch.node.tolist(), batch.state.tolist(), strict=True):
            name = events.nodes[node]
            if state == NodeState.IDLE:
                since.setdefault(name, t)
            elif name in since:
                start = since.pop(name)
                found.append((name, start, t, start == events.window_start_us))
    found += [(name, start, end_us, True) for name, start in since.items()]
    return [idle_interval for idle_interval in found if idle_interval[2] > idle_interval[1]]


def expected_rows(run: RunResult, events: NodeEvents) -> list[dict[str, Any]]:
    nodes = run.table("nodes")
    spans = list(
        zip(
            nodes["node"].to_pylist(),
            nodes["from"].cast("int64").to_pylist(),
            nodes["to"].cast("int64").to_pylist(),
            strict=True,
        )
    )
    edges: Sequence[float] = [*SPECTRUM_OVER_US.tolist(), float("inf")]
    rows: dict[int, list[int]] = {}
    for name, start, stop, is_cut in idle_intervals_of_log(events):
        k = next(k for k in range(len(edges) - 1) if edges[k] < stop - start <= edges[k + 1])
        held = sum(b - a for node, a, b in spans if node == name and start <= a and b <= stop)
        row = rows.setdefault(k, [0] * 5)
        for column, value in enumerate((1, is_cut, held > 0, stop - start, held)):
            row[column] += value
    used = range(min(rows), max(rows) + 1) if rows else range(0)
    return [
        dict(zip(IDLE_INTERVALS.names, (edges[k] / 1e6, edges[k + 1] / 1e6, *rows.get(k, [0] * 5)), strict=True))
        for k in used
    ]


def expected_pool(events: NodeEvents) -> list[tuple[int, int]]:
    rows: list[tuple[int, int]] = []
    idle: set[int] = set()
    for batch in events.batches():
        times = batch.time_us.tolist()
        for now in sorted(set(times)):
            for t, node, state in zip(times, batch.node.tolist(), batch.state.tolist(), strict=True):
                if t == now:
                    (idle.add if state == NodeState.IDLE else idle.discard)(node)
            if not rows or rows[-1][1] != len(idle):
                rows.append((now, len(idle)))
    return rows


@settings(deadline=None, max_examples=examples(150))
@given(
    events=logs(),
    jobs=job_sets(),
    policy=st.sampled_from([BFTrainerPolicy, EqualSharePolicy]),
    semantics=st.sampled_from(list(Semantics)),
    max_parallel=st.integers(1, 4),
    seed=st.integers(0, 3),
)
def test_both_tables_are_those_of_the_log_and_of_the_nodes_that_were_held(
    events, jobs, policy, semantics, max_parallel, seed
):
    run = replayed(events, jobs, policy(), ReplaySettings(max_parallel, semantics, seed, record_nodes=True))
    rows = run.table("idle_intervals").to_pylist()
    assert rows == expected_rows(run, events)
    table = run.table("pool")
    assert list(zip(table["time"].cast("int64").to_pylist(), table["n_idle"].to_pylist(), strict=True)) == (
        expected_pool(events)
    )
    ledger = run.summary["ledger"]
    assert sum(row["idle_node_us"] for row in rows) == ledger["idle_node_us"]
    assert sum(row["allocated_node_us"] for row in rows) == ledger["allocated_node_us"]
    spectrum = characterise(events).idle_interval_spectrum
    assert tuple(row["n_intervals"] for row in rows) == spectrum.count
    assert tuple(row["idle_node_us"] for row in rows) == spectrum.node_us
    assert [row["over_s"] for row in rows] == [edge / 1e6 for edge in spectrum.edges_us[:-1]]
