"""Which states count as idle: a view of the log, from which repeated idle rows are left out."""

from __future__ import annotations

import bfreplay
from bfreplay import NodeEvents, NodeState, load_events, replay_log
from bfreplay.datasets.log.states import POOLS
from bfreplay.runs.saved_inputs import inputs_of
from bfreplay.runs.summary_text import render
from tests.replay.tiny import SECOND, job

IDLE, BUSY, PLANNED, RESERVED = NodeState.IDLE, NodeState.BUSY, NodeState.PLANNED, NodeState.RESERVED


def planned_log(end_s=100):
    """Node n0 is planned, idle, planned, busy; n1 is reserved from 30 s on, and busy before."""
    rows = [(10, 0, IDLE), (20, 0, PLANNED), (30, 0, BUSY), (30, 1, RESERVED), (40, 0, PLANNED), (50, 1, IDLE)]
    times, nodes, states = zip(*rows, strict=True)
    times_us = [time_s * SECOND for time_s in times]
    return NodeEvents.from_arrays(["n0", "n1"], [PLANNED, BUSY], times_us, nodes, states, 0, end_s * SECOND)


def rows_of(log):
    return [
        (int(time_us) // SECOND, int(node), NodeState(state))
        for batch in log.batches(rows=1)
        for time_us, node, state in zip(*batch.columns, strict=True)
    ]


def test_planned_and_reserved_nodes_can_count_as_idle_and_no_idle_row_is_repeated():
    log = planned_log()
    assert len(rows_of(log)) == 8
    assert rows_of(log.counting_as_idle(POOLS["idle"])) == [
        (0, 0, IDLE), (0, 1, BUSY), (30, 0, BUSY), (30, 1, IDLE), (40, 0, IDLE),
    ]  # fmt: skip
    assert rows_of(log.counting_as_idle([PLANNED])) == [
        (0, 0, IDLE), (0, 1, BUSY), (30, 0, BUSY), (30, 1, RESERVED), (40, 0, IDLE), (50, 1, IDLE),
    ]  # fmt: skip
    assert rows_of(log.counting_as_idle(POOLS["idle"]).between(35 * SECOND, 60 * SECOND)) == [
        (35, 0, BUSY), (35, 1, IDLE), (40, 0, IDLE),
    ]  # fmt: skip
    assert rows_of(log) == rows_of(log.counting_as_idle(POOLS["startable"]))


def test_the_pool_of_a_run_is_in_its_record_and_in_its_summary(tmp_path):
    runs = {
        pool: replay_log(planned_log(), [job(work=50.0)], pool=pool, out=tmp_path / pool)
        for pool in ("startable", "idle")
    }
    assert runs["startable"].summary.ledger.idle_node_us == (10 + 50) * SECOND
    assert runs["idle"].summary.ledger.idle_node_us == (30 + 60 + 70) * SECOND
    assert runs["startable"].record.config.also_idle == ()
    assert runs["idle"].record.config.also_idle == ("reserved", "planned")
    assert "(reserved and planned nodes included)" in render(runs["idle"])
    assert "also_idle" not in (tmp_path / "startable" / "run.json").read_text()


def test_the_log_of_a_saved_run_is_read_again_with_its_pool(tmp_path):
    log = tmp_path / "log.csv"
    bfreplay.write_events(planned_log(), log)
    run = replay_log(log, [job(work=50.0)], pool="idle", out=tmp_path / "run")
    events, _ = inputs_of(run, jobs=bfreplay.JobSet([job(work=50.0)]))
    assert rows_of(events) == rows_of(planned_log().counting_as_idle(POOLS["idle"]))
    assert load_events(log).idle_states == (IDLE,)


def test_a_log_is_described_with_either_pool():
    hours = [bfreplay.describe(planned_log(), pool=pool).to_dict() for pool in ("startable", "idle", None)]
    assert hours[0] == hours[2] != hours[1]
