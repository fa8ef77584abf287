"""A session with a hold-back follows a cluster as it runs: rows come late, twice and corrected, and nodes appear."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bfreplay
from bfreplay import InputError, NodeEvents, NodeState, open_session, replay_log
from bfreplay.datasets.log.portions import FeedCounts
from bfreplay.datasets.log.states import STATE_WORDS, EventBatch
from bfreplay.experiments import one_run
from bfreplay.replay import intervals
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
    "planned nodes too": {"pool": "idle"},
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


def follow(polls, folder, *, typed=False, jobs=JOBS, asks=False, suffix="csv", cuts=(), **options):
    """Follow n0 and n1 through polls, ([(time_s, node, state), ...], now_s) each; return the log as a file has it.

    The run is in ``folder / "followed"``; after the polls ``cuts`` it goes on in another session, which is told nodes.
    """
    session, final = None, []
    end_s = max(0, *(now_s for _, now_s in polls)) + 2
    for number, (rows, now_s) in enumerate([*polls, ([], end_s + 5)]):
        if session is None or number in cuts:
            nodes = ["n0", "n1"] if session is None else cuts[number]
            types = [type_of(node) for node in nodes] if typed else None
            arguments = {"hold_back": "5s", "record_nodes": True, "out": folder / "followed", **QUICK, **options}
            to_come = NodeEvents.to_come(nodes, 0, node_types=types)
            with session or nullcontext():
                pass
            session = open_session(to_come, jobs, checkpoint_every=0, resume=bool(final), **arguments)
        rows = [(round(time_s * SECOND), node, state) for time_s, node, state in rows]
        types = {node: type_of(node) for _, node, _ in rows} if typed else None
        session.advance(rows, round(now_s * SECOND), node_types=types)
        final.append(session.final_events)
        if asks:
            ledger = session.ledger_now()
            assert ledger.pop("idle") == pytest.approx(sum(ledger.values()))
            held = {node for nodes in session.holders().values() for node in nodes}
            assert held == {now.node for now in session.nodes_now() if now.job}
            assert all(now.state in session.events.idle_states for now in session.nodes_now() if now.job)
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
    polls=feeds(),
    kind=st.sampled_from(sorted(KINDS)),
    suffix=st.sampled_from(("csv", "parquet")),
    asks=st.booleans(),
    cuts=st.dictionaries(st.integers(1, 12), st.sets(st.sampled_from(NODES), min_size=1).map(sorted), max_size=2),
)
@settings(max_examples=examples(40))
def test_the_log_that_was_followed_gives_the_run_of_the_session_to_the_byte(
    polls, kind, suffix, asks, cuts, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("run")
    if KINDS[kind].get("typed"):
        cuts = {
            number: ["n0", "n1", *(node for node in nodes if node not in ("n0", "n1"))]
            for number, nodes in cuts.items()
        }
    log = follow(polls, folder, suffix=suffix, asks=asks, cuts=cuts, **KINDS[kind])
    options = {"jobs": JOBS, **QUICK, **KINDS[kind]}
    options.pop("typed", None)
    replay_log(log, record_nodes=True, out=folder / "replayed", **options)
    same(folder / "followed", folder / "replayed")


def live(nodes=("n0", "n1"), jobs=JOBS, **options):
    return open_session(NodeEvents.to_come(list(nodes), 0), jobs, hold_back="5s", **(QUICK | options))


def at(time_s, node, state):
    return round(time_s * SECOND), node, state


def rows_of(session):
    """Return what became final last, as (seconds, node, state)."""
    events = session.final_events
    return [
        (int(time_us) / SECOND, session.events.nodes[node], STATE_WORDS[state])
        for time_us, node, state in zip(*events.columns, strict=True)
    ]


def test_rows_wait_for_the_hold_back_and_what_was_known_late_still_fits():
    with live() as session:
        session.advance([at(10, "n0", "idle")], at(12, "", "")[0])
        assert session.until_us == 7 * SECOND
        session.advance([at(9, "n1", "idle")], 15 * SECOND)  # known one poll later
        assert rows_of(session) == [(9, "n1", "idle")]
        session.advance(until=16 * SECOND)
        assert rows_of(session) == [(10, "n0", "idle")]
        assert session.feed_counts == FeedCounts()


def test_of_two_rows_of_an_instant_the_one_given_last_stands():
    with live() as session:
        session.advance([at(10, "n0", "busy"), at(10, "n0", "idle"), at(10, "n1", "idle")], 11 * SECOND)
        session.advance([at(10, "n1", "planned")], 12 * SECOND)
        session.advance(until=20 * SECOND)
        assert rows_of(session) == [(10, "n0", "idle"), (10, "n1", "planned")]
        assert session.feed_counts == FeedCounts(n_corrected=2)


def test_a_row_that_repeats_the_state_of_its_node_is_dropped_and_counted():
    with live() as session:
        session.advance(
            [at(1, "n0", "busy"), at(2, "n0", "idle"), at(3, "n0", "idle"), at(3, "n0", "idle")], 20 * SECOND
        )
        assert rows_of(session)[2:] == [(2, "n0", "idle")]
        assert session.feed_counts == FeedCounts(n_repeated=3)


def test_a_row_of_a_time_that_is_over_counts_from_the_earliest_time_that_is_not():
    with live() as session:
        session.advance(until=20 * SECOND)
        session.advance([at(3, "n0", "idle"), at(2, "n0", "down"), at(4, "n1", "down")], 21 * SECOND)
        assert rows_of(session) == [(15, "n0", "idle"), (15, "n1", "down")]
        assert session.feed_counts == FeedCounts(n_late=3, n_corrected=1)
        assert session.nodes_now()[0] == NodeNow("n0", NodeState.IDLE, 15 * SECOND, "a")


def test_a_late_row_does_not_replace_one_that_waits_for_the_earliest_time():
    with live() as session:
        session.advance([at(15, "n0", "idle")], 20 * SECOND)
        session.advance([at(12, "n0", "down")], 21 * SECOND)
        session.advance(until=30 * SECOND)
        assert session.nodes_now()[0] == NodeNow("n0", NodeState.IDLE, 15 * SECOND, "a")


def test_a_clock_that_steps_back_is_counted_and_nothing_is_replayed():
    with live() as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        assert session.advance(until=10 * SECOND).num_rows == 0
        session.advance([at(11, "n0", "busy")], 11 * SECOND)
        assert session.until_us == 15 * SECOND
        assert session.feed_counts == FeedCounts(n_late=1, n_clock_steps=1)
        session.advance(until=22 * SECOND)
        assert rows_of(session) == [(15, "n0", "busy")]
        session.finish(18 * SECOND)
        assert session.feed_counts.n_clock_steps == 1


def test_a_node_has_its_state_since_it_changed_without_a_hold_back_too():
    with open_session(NodeEvents.to_come(["n0"], 0), JOBS, **QUICK) as session:
        session.advance([at(3, "n0", "down"), at(5, "n0", "down"), at(5, "n0", "down")], 20 * SECOND)
        assert session.nodes_now() == [NodeNow("n0", NodeState.DOWN, 3 * SECOND, "")]
        assert rows_of(session) == [(0, "n0", "busy"), (3, "n0", "down"), (5, "n0", "down")]


def test_without_a_hold_back_all_stays_strict():
    with open_session(NodeEvents.to_come(["n0"], 0), JOBS, **QUICK) as session:
        session.advance(until=20 * SECOND)
        for rows, problem in (
            ([at(30, "n9", "idle")], "unknown node"),
            ([at(3, "n0", "idle")], "comes too late"),
            ([at(30, "n0", "idle"), at(30, "n0", "busy")], "two states"),
        ):
            with pytest.raises(InputError, match=problem):
                session.advance(rows)
        with pytest.raises(InputError, match="does not go back"):
            session.advance(until=10 * SECOND)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (at(30, " n9", "idle"), "spaces around it"),
        (at(30, "", "idle"), "empty"),
        (at(30, "n9", "lazy"), "unknown state"),
        ((30.0, "n9", "idle"), "no event"),
    ],
)
def test_a_bad_row_is_refused_and_its_node_does_not_appear(row, problem):
    with live() as session:
        with pytest.raises(InputError, match=problem):
            session.advance([at(20, "n8", "idle"), row], 40 * SECOND)
        assert session.events.nodes == ("n0", "n1")
        session.advance([at(20, "n8", "idle")], 40 * SECOND)
        assert session.holders()["a"] == ("n8",)


def test_nodes_that_appear_are_numbered_after_all_others_by_their_first_row():
    with live() as session:
        session.advance([at(8, "b1", "idle"), at(7, "c1", "idle"), at(7, "a1", "idle")], 9 * SECOND)
        session.advance([at(6, "a0", "idle"), at(7, "n1", "idle")], 20 * SECOND)
        assert session.events.nodes == ("n0", "n1", "a1", "c1", "b1", "a0")
        assert session.feed_counts.n_appeared == 4
        assert session.holders()["a"] == ("n1", "a1", "c1", "b1", "a0")
        assert [now.state for now in session.nodes_now()][:2] == [NodeState.BUSY, NodeState.IDLE]


def test_a_node_that_appears_needs_a_type_where_there_are_several():
    to_come = NodeEvents.to_come(["n0", "n1"], 0, node_types=["big", "small"])
    with open_session(to_come, JOBS, hold_back=5, **QUICK) as session:
        with pytest.raises(InputError, match="'n2' appears, and has no type"):
            session.advance([at(6, "n2", "idle")])
        with pytest.raises(InputError, match="node_types"):
            session.advance([at(6, "n2", "idle")], node_types="small")
        with pytest.raises(InputError, match="of a type that the log does not have"):
            session.advance([at(6, "n2", "idle")], node_types={"n2": "huge"})
        session.advance([at(6, "n2", "idle")], 20 * SECOND, node_types={"n2": "small"})
        assert session.events.metadata.node_types == {"big": ["n0"], "small": ["n1", "n2"]}
    with open_session(NodeEvents.to_come(["n0"], 0, node_types=["big"]), JOBS, hold_back=5, **QUICK) as session:
        session.advance([at(6, "n2", "idle")], 20 * SECOND)
        assert session.events.node_types.counts == {"big": 2}


@pytest.mark.parametrize("policy", ["gavel.fifo_perf", "shockwave.gandiva_fair"])
def test_a_policy_with_a_state_by_node_cannot_follow(policy):
    with pytest.raises(InputError, match=f"'{policy}' keeps a state by node"):
        live(policy=policy)


@pytest.mark.parametrize("jobs", [COSTLY, [job("one", rates=(0.0, 10.0), work=150.0)]])
def test_what_is_asked_of_now_is_what_a_session_that_ended_there_would_say(jobs):
    rows = [at(2, "n0", "idle"), at(12, "n1", "idle"), at(31, "n0", "busy"), at(44, "n2", "idle")]
    for end_s in range(1, 61, 4):
        with live(jobs=jobs) as session:
            session.advance(rows, (end_s + 5) * SECOND)
            now = session.ledger_now()
            ledger = session.finish(end_s * SECOND).summary.ledger
        assert now == {label: ledger[f"{label}_node_us"] / 1e6 for label in now}


def test_the_last_session_of_the_cases_goes_on_with_every_gap_closed():
    with live(("n1", "n2")) as session:
        session.advance([at(10, "n1", "idle")], 20 * SECOND)
        session.advance([at(15, "n1", "busy")], 21 * SECOND)
        session.advance([at(22, "n3", "idle"), at(23, "n2", "unknown"), at(24, "n2", "planned")], 24 * SECOND)
        session.advance(until=1 * SECOND)
        session.advance([at(50, "n1", "busy"), at(50, "n1", "idle")], 60 * SECOND)
        assert session.holders() == {"a": ("n3",), "b": ("n1",), "c": ()}
        assert session.finish(60 * SECOND).summary.ledger.idle_node_us == (5 + 38 + 10) * SECOND


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_log_that_was_followed_keeps_the_order_of_its_nodes_and_others_have_to_be_sorted(suffix, tmp_path):
    log = follow([([(2, "n10", "idle"), (1, "a7", "idle")], 9)], tmp_path, suffix=suffix)
    assert log.nodes == ("n0", "n1", "a7", "n10")
    assert log.metadata.n_nodes_at_start == 2
    assert log.first_states().tolist() == [1, 1, 6, 6]
    if suffix == "csv":
        sidecar = tmp_path / "log.csv.meta.json"
        text = sidecar.read_text()
        for wrong, problem in (("3", "not sorted"), ("0", "below 1"), ("5", "fewer nodes"), ("true", "number")):
            sidecar.write_text(text.replace('"n_nodes_at_start": 2', f'"n_nodes_at_start": {wrong}'))
            with pytest.raises(InputError, match=problem):
                bfreplay.load_events(tmp_path / "log.csv")
        sidecar.write_text(text.replace('"n_nodes_at_start": 2,', ""))
        with pytest.raises(InputError, match="not sorted"):
            bfreplay.load_events(tmp_path / "log.csv")


def saved(tmp_path, rows, until_s, **options):
    with live(**options) as session:
        session.advance(rows, until_s * SECOND)
        session.save(tmp_path / "state")
    return tmp_path / "state"


def test_a_state_goes_on_with_other_nodes(tmp_path):
    state = saved(tmp_path, [at(2, "n0", "idle"), at(3, "n1", "idle"), at(4, "z3", "idle")], 15)
    with live(("a7", "m4", "n1")) as session:
        session.restore(state)
        assert session.events.nodes == ("n0", "n1", "z3", "a7", "m4")  # the state's, then those that are new to it
        session.advance([at(12, "m4", "idle")], 30 * SECOND)
        assert rows_of(session) == [(10, "n0", "unknown"), (10, "z3", "unknown"), (12, "m4", "idle")]
        assert session.holders()["a"] == ("n1",)
        assert session.holders()["b"] == ("m4",)
        session.advance([at(31, "n0", "idle")], 40 * SECOND)  # it is back
        assert session.nodes_now()[0] == NodeNow("n0", NodeState.IDLE, 31 * SECOND, "a")


def test_a_node_that_is_gone_after_a_restore_is_unknown_after_its_last_row_that_waits(tmp_path):
    state = saved(tmp_path, [at(2, "n0", "idle"), at(13, "n0", "busy"), at(13, "n1", "idle")], 15)
    with live(("n1",)) as session:
        session.restore(state)
        session.advance(until=30 * SECOND)
        assert rows_of(session) == [(13, "n0", "unknown"), (13, "n1", "idle")]


def test_a_restored_session_knows_what_became_final_last(tmp_path):
    with live() as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        session.save(tmp_path / "state")
        last = rows_of(session)
    with live() as other:
        other.restore(tmp_path / "state")
        assert rows_of(other) == last == [(0, "n0", "busy"), (0, "n1", "busy"), (2, "n0", "idle")]


def test_jobs_are_added_by_a_restore_from_then_on_and_the_run_says_so(tmp_path):
    state = saved(tmp_path, [at(2, "n0", "idle"), at(3, "n1", "idle")], 40)
    new = [job("d", work=30.0), job("e", submit_s=60)]
    with live(jobs=[*new, *JOBS]) as session:
        session.restore(state)
        session.advance(until=41 * SECOND)
        session.save(tmp_path / "again")
    with live(jobs=[*JOBS, *new, job("f")]) as session:
        session.restore(tmp_path / "again")
        run = session.finish(100 * SECOND)
    submitted = {row["job"]: row["submitted"].timestamp() for row in run.table("jobs").to_pylist()}
    assert submitted == {"a": 0, "b": 20, "c": 50, "d": 35, "e": 60, "f": 36}
    assert list(submitted) == ["a", "b", "c", "d", "e", "f"]
    added = "2 at 1970-01-01T00:00:35Z; 1 at 1970-01-01T00:00:36Z"
    assert run.record.inputs.jobs.added == added
    assert run.record.inputs.jobs.n_jobs == 6
    assert any(added in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("jobs", "problem"),
    [
        (JOBS[:2], "'c' of the state is missing"),
        ([JOBS[0], replace(JOBS[1], weight=2.0), JOBS[2]], "'b' of the state is another one now"),
        ([job("a", work=900.0, rates=(*WIDE[:-1], 40.0)), *JOBS[1:]], "'a' of the state is another one now"),
    ],
)
def test_fewer_or_changed_jobs_are_refused_by_name(jobs, problem, tmp_path):
    state = saved(tmp_path, [at(2, "n0", "idle")], 40)
    with live(jobs=jobs) as session:
        with pytest.raises(InputError, match=problem):
            session.restore(state)
        with pytest.raises(InputError, match="could not be restored"):
            session.advance()


DONE = {"jobs": [job("a", work=10.0)], "settings": bfreplay.ReplaySettings(until_done=True)}


def test_node_types_in_another_order_are_refused(tmp_path):
    def typed(**types):
        to_come = NodeEvents.to_come(list(types), 0, node_types=list(types.values()))
        return open_session(to_come, JOBS, hold_back=5, **QUICK)

    with typed(n0="big", n1="small") as session:
        session.save(tmp_path / "state")
    with typed(a7="small", n0="big", n1="small") as other, pytest.raises(InputError, match="in another order"):
        other.restore(tmp_path / "state")
    with typed(n0="big", n1="small", a7="small") as other:
        other.restore(tmp_path / "state")
        assert other.events.metadata.node_types == {"big": ["n0"], "small": ["n1", "a7"]}


def test_the_ledger_of_a_run_that_is_over_grows_no_more():
    with live(**DONE) as session:
        session.advance([at(2, "n0", "idle")], 40 * SECOND)
        assert session.is_over
        assert session.ledger_now()["idle"] == session.ledger_now()["useful"] == 1
        assert session.finish(40 * SECOND).summary.ledger.idle_node_us == 1 * SECOND


def test_a_session_that_is_over_takes_no_more_jobs(tmp_path):
    state = saved(tmp_path, [at(2, "n0", "idle")], 40, **DONE)
    more = DONE | {"jobs": [*DONE["jobs"], job("b")]}
    with live(**more) as session, pytest.raises(InputError, match="to a run that is over"):
        session.restore(state)


def test_a_strict_session_is_restored_with_the_same_nodes_and_jobs_only(tmp_path):
    with open_session(NodeEvents.to_come(["n0"], 0), JOBS, **QUICK) as session:
        session.save(tmp_path / "state")
    for nodes, jobs in ((["n0", "n1"], JOBS), (["n0"], JOBS[:2])):
        other = open_session(NodeEvents.to_come(nodes, 0), jobs, **QUICK)
        with other, pytest.raises(InputError, match="another one"):
            other.restore(tmp_path / "state")
    with live(("n0",)) as other, pytest.raises(InputError, match="another one"):
        other.restore(tmp_path / "state")


def test_the_loops_of_the_policy_are_there_before_the_first_portion(monkeypatch):
    warmed = []
    monkeypatch.setattr(one_run, "warm_up_once", lambda *arguments: warmed.append(arguments))
    for options in ({}, {"policy": "reclaim-aware", "jobs": COSTLY}, {"t_fwd": "auto"}, {"warm_up": False}):
        with live(**options):
            pass
    assert warmed == [("bftrainer", 120.0), ("reclaim-aware", 120.0), ("bftrainer", "auto")]


def test_a_session_whose_warm_up_is_interrupted_leaves_nothing(monkeypatch, tmp_path):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(one_run, "warm_up_once", interrupt)
    with pytest.raises(KeyboardInterrupt):
        live(out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_nodes_that_appear_change_no_rows_that_were_written_before(tmp_path, monkeypatch):
    monkeypatch.setattr(intervals, "CHUNK_ROWS", 2)
    flaps = [([(2 * k, "n0", "idle"), (2 * k + 1, "n0", "busy")], 2 * k + 1) for k in range(1, 9)]
    log = follow([*flaps, ([(30, "a7", "idle"), (40, "a7", "busy")], 60)], tmp_path)
    replay_log(log, JOBS, record_nodes=True, out=tmp_path / "replayed", **QUICK)
    same(tmp_path / "followed", tmp_path / "replayed")


def test_a_copy_of_the_state_ends_with_what_is_final(tmp_path):
    rows = [at(2, "n0", "idle"), at(6, "a7", "idle"), at(10, "n1", "idle"), at(12, "n0", "busy")]
    with live() as session:
        session.advance(rows, 15 * SECOND)  # the last two wait, one of them for the end of the run
        session.save(tmp_path / "state")
        bfreplay.write_events(log_of(session, [session.final_events], session.until_us), tmp_path / "log.csv")
    log = bfreplay.load_events(tmp_path / "log.csv")
    with live(out=tmp_path / "run", checkpoint_every="1h", record_nodes=True) as session:
        session.advance(rows, 15 * SECOND)
        session.forget_waiting()
        session.finish(session.until_us, log=log)
    replay_log(log, JOBS, out=tmp_path / "replayed", record_nodes=True, **QUICK)
    same(tmp_path / "run", tmp_path / "replayed")


def test_a_checkpoint_is_saved_when_it_is_asked_for(tmp_path):
    with live(out=tmp_path / "run", checkpoint_every="1h") as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        session.checkpoint()
        session.advance(until=30 * SECOND)
    with live(out=tmp_path / "run", resume=True) as session:
        assert session.until_us == 15 * SECOND
        assert rows_of(session)[2:] == [(2, "n0", "idle")]
        session.finish(60 * SECOND)
    with live() as session, pytest.raises(InputError, match="has no checkpoints"):
        session.checkpoint()


def test_a_session_goes_on_from_a_log_that_was_followed(tmp_path):
    polls = [([(2, "n0", "idle"), (1, "m4", "idle")], 9), ([(11, "a7", "idle"), (12, "n1", "idle")], 30)]
    log = follow(polls, tmp_path)
    first, *rest = log.batches()
    n_at_start = log.metadata.n_nodes_at_start
    to_come = NodeEvents.to_come(log.nodes, 0, initial_state=first.state, n_nodes_at_start=n_at_start)
    with open_session(to_come, JOBS, hold_back="5s", record_nodes=True, out=tmp_path / "again", **QUICK) as session:
        for batch in rest:
            session.advance(batch)
        session.advance(until=log.window_end_us + 5 * SECOND)
        session.finish(log.window_end_us, log=log)
    same(tmp_path / "again", tmp_path / "followed")
    with pytest.raises(InputError, match="not sorted"):
        NodeEvents.to_come(["n0", "a7"], 0, n_nodes_at_start=2)
