"""Polls become rows; gaps are filled or unknown, and said; the clock of a log never runs backwards."""

from __future__ import annotations

import pytest
from scripted import S, ScriptedClock, ScriptedSource, T, accounted_log

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.readings import JobReading
from bfreplay.errors import InputError
from bfreplay.live import feed as feed_module
from bfreplay.live.feed import PolledStates
from bfreplay.live.sources import NoAnswerError

IDLE, BUSY, UNKNOWN, PLANNED = NodeState.IDLE, NodeState.BUSY, NodeState.UNKNOWN, NodeState.PLANNED


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ScriptedClock:
    """Clock whose steady clock runs with it; ``steady_s`` moves that one alone."""
    clock = ScriptedClock()
    clock.behind_s = 0.0
    monkeypatch.setattr(feed_module, "monotonic_ns", lambda: round((clock.now_s - clock.behind_s) * 1e9))
    return clock


def begun(clock: ScriptedClock, **states: str) -> tuple[ScriptedSource, PolledStates]:
    source = ScriptedSource(clock, states)
    feed = PolledStates(source, clock, poll_s=1.0)
    feed.begin()
    return source, feed


def poll(feed: PolledStates, source: ScriptedSource, at_s: float, **states: str):
    source.clock.now_s = at_s
    if states:
        source.states = states
    return feed.poll()


def test_a_change_has_the_time_of_the_poll_that_shows_it(clock):
    source, feed = begun(clock, a="idle", b="busy")
    portion = poll(feed, source, 1, a="busy", b="busy")
    assert portion.rows == [(T + S, "a", BUSY)]
    assert portion.until_us == T + S


def test_a_log_begins_with_the_states_of_the_first_poll(clock):
    feed = PolledStates(ScriptedSource(clock, {"b": "busy", "a": "planned"}), clock, 1.0)
    assert feed.begin() == feed_module.Beginning(("a", "b"), (PLANNED, BUSY), T, "tiny")


def test_a_first_poll_without_an_answer_is_an_error(clock):
    with pytest.raises(NoAnswerError, match="nobody there"):
        PolledStates(ScriptedSource(clock, None), clock, 1.0).begin()


def test_a_poll_without_an_answer_gives_nothing_and_says_why(clock):
    source, feed = begun(clock, a="idle")
    source.states = None
    assert feed.poll() is None
    assert (feed.problem, feed.n_polls, feed.n_unanswered) == ("nobody there", 2, 1)
    poll(feed, source, 2, a="idle")
    assert feed.problem == ""


def test_an_answer_without_any_known_state_is_none(clock):
    source, feed = begun(clock, a="idle", b="busy")
    for states in ({"a": "unknown", "b": "unknown"}, {}):
        source.states = states
        assert poll(feed, source, 1) is None
        assert feed.problem == "no node has a known state: the scheduler may have started just now"
    assert poll(feed, source, 2, a="unknown", b="busy").rows == [(T + 2 * S, "a", UNKNOWN)]


def test_a_gap_is_filled_from_accounting_and_named(clock):
    source, feed = begun(clock, a="idle", b="busy")
    source.log = accounted_log(
        0, 60, {"a": "idle", "b": "busy"}, (20, "a", "busy"), (30, "b", "idle"), (40, "a", "idle")
    )
    portion = poll(feed, source, 60, a="idle", b="idle")
    assert portion.rows == [(T + 20 * S, "a", BUSY), (T + 30 * S, "b", IDLE), (T + 40 * S, "a", IDLE)]
    assert source.asked == [(T, T + 60 * S)]
    (span,) = feed.spans
    assert (span.kind, span.is_filled) == ("gap", True)
    assert span.words.startswith("not followed; the states are those of accounting")


def test_what_the_poll_after_a_gap_shows_counts_beside_accounting(clock):
    source, feed = begun(clock, a="idle", b="busy")
    source.log = accounted_log(0, 60, {"a": "idle", "b": "busy"})
    portion = poll(feed, source, 60, a="down", b="busy")
    assert portion.rows == [(T + 60 * S, "a", NodeState.DOWN)]


def test_where_accounting_differs_from_what_was_seen_last_it_counts_from_then_on(clock):
    source, feed = begun(clock, a="planned", b="busy")
    source.log = accounted_log(0, 60, {"a": "idle", "b": "busy"})
    portion = poll(feed, source, 60, a="idle", b="busy")
    assert portion.rows == [(T + 1, "a", IDLE)]


def test_without_accounting_all_nodes_are_unknown_in_a_gap(clock):
    source, feed = begun(clock, a="idle", b="busy")
    portion = poll(feed, source, 60, a="idle", b="busy")
    assert portion.rows == [
        (T + 1, "a", UNKNOWN),
        (T + 1, "b", UNKNOWN),
        (T + 60 * S, "a", IDLE),
        (T + 60 * S, "b", BUSY),
    ]
    assert not feed.spans[0].is_filled
    assert feed.spans[0].words == "not followed; all 2 nodes are unknown: scripted has no accounting"


def test_nodes_that_are_gone_after_a_gap_are_unknown_in_it_and_accounting_is_not_asked_of_them(clock):
    source, feed = begun(clock, a="idle", b="idle", c="idle")
    poll(feed, source, 1, a="idle", b="idle")
    source.log = accounted_log(1, 100, {"a": "idle"})
    portion = poll(feed, source, 100, a="idle")
    assert source.asked_nodes == ["a"]
    rows = [row for row in portion.rows if row[1] != "c"]
    assert rows == [(T + S + 1, "b", UNKNOWN)]
    assert all(state == UNKNOWN for _, node, state in portion.rows if node == "c")


def test_accounting_that_cannot_be_read_leaves_the_gap_unknown_with_the_reason(clock):
    source, feed = begun(clock, a="idle")
    source.log = InputError("sacct is broken", value="x")
    poll(feed, source, 60, a="idle")
    assert "sacct is broken" in feed.spans[0].words


def test_accounting_that_hides_the_jobs_of_others_is_not_believed(clock):
    source, feed = begun(clock, a="busy", b="busy", c="idle")
    source.log = accounted_log(0, 60, {"a": "idle", "b": "idle", "c": "idle"})
    portion = poll(feed, source, 60, a="busy", b="busy", c="idle")
    assert {state for _, _, state in portion.rows[:3]} == {UNKNOWN}
    assert "shows no jobs on most of the nodes that were busy" in feed.spans[0].words


def test_a_job_that_started_just_now_says_nothing_against_accounting(clock):
    source, feed = begun(clock, a="idle", b="idle", c="idle")
    source.log = accounted_log(0, 60, {"a": "idle", "b": "idle", "c": "idle"})
    source.jobs = [JobReading("1", "batch", "RUNNING", T + 50 * S, None, ("a", "b"))]
    poll(feed, source, 60, a="busy", b="busy", c="idle")
    assert feed.spans[0].is_filled
    source.jobs = [JobReading("1", "batch", "RUNNING", T - 50 * S, None, ("a", "b"))]
    source.log = accounted_log(60, 130, {"a": "idle", "b": "idle", "c": "idle"})
    poll(feed, source, 130, a="busy", b="busy", c="idle")
    assert not feed.spans[1].is_filled


def test_nodes_that_are_lent_say_nothing_against_accounting(clock):
    source = ScriptedSource(clock, dict.fromkeys("abc", "busy"))
    source.jobs = [JobReading("1", "gives", "RUNNING", T - 500 * S, None, ("a", "b", "c"))]
    feed = PolledStates(source, clock, 1.0, ["gives"])
    feed.begin()
    assert feed.n_lent == 3
    source.log = accounted_log(0, 60, dict.fromkeys("abc", "idle"))
    poll(feed, source, 60)
    assert feed.spans[0].is_filled


def test_a_partition_that_lends_and_is_not_there_is_said(clock):
    feed = PolledStates(ScriptedSource(clock, {"a": "idle"}), clock, 1.0, ["batch", "bacth"])
    feed.begin()
    assert feed.notes == ["no node is in the partition bacth, which lends"]


def test_a_pause_of_three_polls_is_no_gap_and_a_longer_one_is(clock):
    source = ScriptedSource(clock, {"a": "idle"})
    feed = PolledStates(source, clock, poll_s=20.0)
    feed.begin()
    poll(feed, source, 60)
    assert feed.spans == []
    poll(feed, source, 121)
    assert len(feed.spans) == 1


def test_a_clock_that_is_set_back_is_noted_and_the_log_waits_for_it(clock):
    source, feed = begun(clock, a="idle")
    poll(feed, source, 40)
    clock.behind_s = -30.0
    portion = poll(feed, source, 11, a="busy")
    assert portion.until_us == T + 40 * S
    assert feed.problem == "the clock of this machine was set back, and the log waits for it"
    assert all(time_us <= T + 40 * S for time_us, _, _ in portion.rows)
    portions = [poll(feed, source, at_s, a="busy") for at_s in (12, 39, 41)]
    assert [row for portion in portions for row in portion.rows] + portion.rows == [(T + 41 * S, "a", BUSY)]
    assert feed.problem == ""
    step = feed.spans[-1]
    assert len(feed.spans) == 2  # the jump to 40 s is a gap
    assert step.kind == "clock"
    assert "set back by 30" in step.words


def test_a_clock_that_is_set_forward_is_noted(clock):
    source, feed = begun(clock, a="idle")
    clock.behind_s = 5.0
    poll(feed, source, 6)
    assert "set forward by 5" in feed.spans[0].words


def test_a_clock_that_is_a_little_unsteady_is_not_noted(clock):
    source, feed = begun(clock, a="idle")
    clock.behind_s = 0.4
    poll(feed, source, 1)
    assert feed.spans == []


def test_hidden_jobs_are_said_once(clock):
    source, feed = begun(clock, a="busy")
    source.jobs = ()
    for at_s in (1, 2, 3, 4):
        poll(feed, source, at_s)
    assert feed.notes == [feed_module.PRIVATE]


def test_a_word_of_a_state_that_the_table_lacks_is_noted_once(clock):
    source, feed = begun(clock, a="idle")
    source.strange_words["sulking"] = "IDLE+SULKING"
    for at_s in (1, 2):
        poll(feed, source, at_s)
    assert feed.notes == [
        "the table of states lacks 'sulking' (IDLE+SULKING): such nodes are unknown, unless they are busy or down"
    ]


def test_a_node_that_is_not_listed_any_more_is_unknown_and_a_new_one_appears(clock):
    source, feed = begun(clock, a="idle", b="idle")
    assert poll(feed, source, 1, a="idle", c="idle").rows == [(T + S, "b", UNKNOWN), (T + S, "c", IDLE)]


def test_nodes_lent_by_preemptible_jobs_are_counted(clock):
    job = JobReading("1", "idle", "RUNNING", T, None, ("a",))
    source = ScriptedSource(
        clock, {"a": "busy", "b": "busy"}, [job, JobReading("2", "batch", "RUNNING", T, None, ("b",))]
    )
    feed = PolledStates(source, clock, 1.0, ("idle",))
    assert feed.begin().states == (IDLE, BUSY)
    assert feed.n_lent == 1


def test_accounting_is_believed_where_only_lent_nodes_have_jobs_that_it_leaves_out(clock):
    jobs = [JobReading(str(number), "idle", "RUNNING", T, None, (node,)) for number, node in enumerate("abd")]
    source = ScriptedSource(clock, dict.fromkeys("abcd", "busy"), jobs)
    feed = PolledStates(source, clock, 1.0, ("idle",))
    feed.begin()
    source.log = accounted_log(0, 100, {"a": "idle", "b": "idle", "c": "busy", "d": "idle"})
    assert poll(feed, source, 100).rows == []
    assert feed.spans[0].is_filled
