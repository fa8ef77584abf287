"""A session with a hold-back follows a cluster as it runs: rows come late, twice and corrected, and nodes appear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bfreplay
from bfreplay import InputError, NodeEvents, NodeState, open_session, replay_log
from bfreplay.datasets.log.portions import FeedCounts
from bfreplay.datasets.log.states import STATE_WORDS, EventBatch
from bfreplay.runs.session_now import NodeNow
from tests.examples import examples
from tests.replay.tiny import SECOND, job
from tests.runs.test_resume import same

QUICK = {"efficiency": False, "bound": False}
WIDE = (0.0, 10.0, 18.0, 24.0, 29.0, 33.0, 36.0, 38.0, 39.0)
JOBS = [
    job("a", work=900.0, rates=WIDE),
    job("b", submit_s=20, up_s=3.0, down_s=2.0, rates=WIDE),
    job("c", work=2e3, submit_s=50, min_nodes=2),
]
COSTLY = [replace(each, start_cost_s=2.0, restart="pause", work_saved_every_s=8.0) for each in JOBS]
KINDS = {
    "bftrainer": {"policy": "bftrainer", "objective": "speed-up"},
    "on runs": {"placement": "runs", "settle": 2},
    "reclaim-aware": {"policy": "reclaim-aware", "jobs": COSTLY, "notice": True, "clear": 1},
    "equal share": {"policy": "equal-share", "reserve": 1, "min_age": 4},
    "gang rule": {"policy": "products.gang"},
    "two types": {"policy": "bftrainer", "typed": True},
}


def type_of(node):
    return "big" if node[-1] in "02468" else "small"


def log_of(session, final, end_us):
    """Return the log that was followed: what became final, one after the other."""
    events = EventBatch.joined(final)
    n_nodes = int(np.count_nonzero(events.time_us == 0))
    start = np.full(len(session.events.nodes), NodeState.UNKNOWN)
    start[:n_nodes] = events.state[:n_nodes]
    rows = events.take(slice(n_nodes, None)).columns
    return NodeEvents.from_arrays(session.events.nodes, start, *rows, 0, end_us, session.events.metadata)


def follow(polls, folder, *, typed=False, jobs=JOBS, asks=False, suffix="csv", cut=None, **options):
    """Follow nodes n0 and n1 through polls, ([(time_s, node, state), ...], now_s) each; return the log as a file has it.

    The run is in ``folder / "followed"``; with ``cut`` it is saved, and goes on in another session, after that poll.
    """
    to_come = NodeEvents.to_come(["n0", "n1"], 0, node_types=["big", "small"] if typed else None)
    arguments = {"hold_back": "5s", "record_nodes": True, "out": folder / "followed", **QUICK, **options}
    session, final = open_session(to_come, jobs, **arguments), []
    end_s = max(0, *(now_s for _, now_s in polls)) + 2
    for number, (rows, now_s) in enumerate([*polls, ([], end_s + 5)]):
        rows = [(round(time_s * SECOND), node, state) for time_s, node, state in rows]
        types = {node: type_of(node) for _, node, _ in rows} if typed else None
        session.advance(rows, round(now_s * SECOND), node_types=types)
        final.append(session.final_events)
        if asks:
            ledger = session.ledger_now()
            assert ledger.pop("idle") == pytest.approx(sum(ledger.values()))
            held = {node for nodes in session.holders().values() for node in nodes}
            assert held == {now.node for now in session.nodes_now() if now.job}
            assert all(now.state == NodeState.IDLE for now in session.nodes_now() if now.job)
    bfreplay.write_events(log_of(session, final, round(end_s * SECOND)), folder / f"log.{suffix}")
    log = bfreplay.load_events(folder / f"log.{suffix}")
    assert log.nodes == session.events.nodes
    with session:
        session.finish(round(end_s * SECOND), log=log)
    return log


NODES = ("n0", "n1", "a7", "m4", "n10", "z3")
STATES = ("idle", "idle", "busy", "planned", "down", "unknown")


@st.composite
def feeds(draw):
    """Polls at times that may step back; rows up to 12 s late, twice, corrected, of nodes that are not there yet."""
    polls, now_s = [], 0
    for _ in range(draw(st.integers(1, 12))):
        now_s += draw(st.sampled_from((1, 2, 7, 20, -3)))
        row = st.tuples(
            st.integers(-2, 24).map(lambda half, now_s=now_s: now_s - half / 2),
            st.sampled_from(NODES[: draw(st.integers(1, len(NODES)))]),
            st.sampled_from(STATES),
        )
        polls.append((draw(st.lists(row, max_size=8)), now_s))
    return polls


@given(
    polls=feeds(), kind=st.sampled_from(sorted(KINDS)), suffix=st.sampled_from(("csv", "parquet")), asks=st.booleans()
)
@settings(max_examples=examples(40))
def test_the_log_that_was_followed_gives_the_run_of_the_session_to_the_byte(
    polls, kind, suffix, asks, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("run")
    log = follow(polls, folder, suffix=suffix, asks=asks, **KINDS[kind])
    options = {"jobs": JOBS, **QUICK, **KINDS[kind]}
    options.pop("typed", None)
    replay_log(log, record_nodes=True, out=folder / "replayed", **options)
    same(folder / "followed", folder / "replayed")
