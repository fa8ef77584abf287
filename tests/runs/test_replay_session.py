"""A log that comes in portions gives the run of the whole log, however it is cut; bad portions are refused by name."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bfreplay
from bfreplay import InputError, NodeEvents, open_session, replay_log
from bfreplay.datasets.log.states import STATE_WORDS, EventBatch
from bfreplay.saved_state import read_state, write_state
from tests.examples import examples
from tests.replay.tiny import SECOND, job, log, logs
from tests.runs.test_resume import same


def small():
    return log(3, [(10, 1, True), (50, 0, False), (50, 2, True), (70, 1, False)], 100, idle_first=[0])


KINDS = {
    "bftrainer": {"policy": "bftrainer", "record_nodes": True},
    "learning T_fwd": {"t_fwd": "auto"},
    "nodes left alone": {"reserve": 1, "min_age": 20, "clear": 5, "notice": True},
    "rounds": {"policy": "gavel.fifo_perf"},
}
JOBS = [job("a", work=900.0), job("b", submit_s=40, up_s=3.0, down_s=2.0), job("c", work=2e3, submit_s=90, min_nodes=2)]


def rows_of(whole):
    """Return the states of all nodes at the start of a log, and its later events as triples."""
    first, *rest = whole.batches()
    rows = [
        (int(time_us), whole.nodes[node], STATE_WORDS[state])
        for batch in rest
        for time_us, node, state in zip(batch.time_us, batch.node, batch.state, strict=True)
    ]
    return first.state, rows


def to_come(whole, end="its own"):
    end = whole.window_end_us if end == "its own" else end
    return NodeEvents.to_come(whole.nodes, whole.window_start_us, end, initial_state=rows_of(whole)[0])


def fed(whole, portions, out, **options):
    """Replay a log that comes as (rows, until) each, and return the run, and the decisions that came as it went."""
    with open_session(to_come(whole), JOBS, out=out, **options) as session:
        decisions = [session.advance(rows, until).num_rows for rows, until in portions]
        return session.finish(log=whole), sum(decisions)


def one_by_one(rows):
    return [([row], None) for row in rows]


def at_once(rows):
    return [(rows, rows[-1][0] + 1)] if rows else []


@st.composite
def random_portions(draw, rows):
    """Cut anywhere, within an instant as well; events of a portion shuffled, and some ahead of their time."""
    cuts = sorted(draw(st.sets(st.integers(0, len(rows)), max_size=6)) | {0, len(rows)})
    early = draw(st.sets(st.integers(0, max(len(rows) - 1, 0)), max_size=3)) if rows else set()
    portions, given_early = [], []
    for begin, end in pairwise(cuts):
        part = [row for k, row in enumerate(rows[begin:end], begin) if k not in early or k == begin]
        ahead = [rows[k] for k in sorted(early) if k >= end and k not in given_early]
        given_early += [k for k in sorted(early) if k >= end]
        late = [rows[k] for k in range(begin, end) if k in early and k not in given_early and k != begin]
        until = rows[end][0] if end < len(rows) else rows[-1][0] + 1
        portions.append((draw(st.permutations([*part, *late, *ahead])), until))
    return portions


@given(data=st.data(), whole=logs(), kind=st.sampled_from(sorted(KINDS)))
@settings(max_examples=examples(30))
def test_however_the_log_is_cut_the_run_is_the_same(data, whole, kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    unbroken = replay_log(whole, JOBS, out=folder / "whole", **KINDS[kind])
    rows = rows_of(whole)[1]
    for name, portions in {
        "one": one_by_one(rows),
        "at once": at_once(rows),
        "random": data.draw(random_portions(rows)),
    }.items():
        run, _ = fed(whole, portions, folder / name, **KINDS[kind])
        same(folder / name, folder / "whole")
        assert run.record == unbroken.record


def test_the_sample_comes_in_portions_of_a_minute(tmp_path):
    whole = bfreplay.load_events("sample").between("2024-07-01", "2024-07-01T06:00")
    unbroken = replay_log(whole, JOBS, out=tmp_path / "whole")
    rows = rows_of(whole)[1]
    frame = pd.DataFrame(rows, columns=["time", "node", "state"])
    minute = frame.time // (60 * SECOND)
    with open_session(to_come(whole), JOBS, out=tmp_path / "run") as session:
        seen = [session.advance(part, (k + 1) * 60 * SECOND) for k, part in frame.groupby(minute)]
        session.finish(log=whole)
    same(tmp_path / "run", tmp_path / "whole")
    decisions = pd.concat([part.to_pandas() for part in seen], ignore_index=True)
    wanted = unbroken.decisions.iloc[: len(decisions)].reset_index(drop=True)
    assert len(wanted) - len(unbroken.decisions) > -3  # what is left is of the last minutes
    pd.testing.assert_series_equal(decisions["rate_samples_per_s"], wanted["rate_samples_per_s"])
    assert [list(each) for each in decisions["counts"]] == [list(each) for each in wanted["counts"]]


def test_an_event_waits_until_no_earlier_one_can_come():
    with open_session(to_come(small()), JOBS) as session:
        assert session.advance([(10 * SECOND, "n1", "idle")]).num_rows == 1  # the start; the event may have companions
        assert session.engine.reached_us == 0
        assert session.advance(until=10 * SECOND + 1).num_rows == 1
        assert session.engine.reached_us == 10 * SECOND


def test_times_and_states_are_taken_as_people_write_them():
    whole, events = small(), rows_of(small())[1]
    written = [
        ("1970-01-01T00:00:10Z", "n1", 0),
        (datetime.fromtimestamp(50, UTC), "n0", bfreplay.datasets.NodeState.BUSY),
        (pd.Timestamp(50, unit="s", tz="UTC"), "n2", "idle"),
        (70 * SECOND, "n1", "busy"),
    ]
    arrays = EventBatch(
        np.array([row[0] for row in events]), np.array([1, 0, 2, 1], np.int32), np.array([0, 1, 0, 1], np.int8)
    )
    wanted = replay_log(whole, JOBS).record
    for rows in (written, arrays, pd.DataFrame(written, columns=["time", "node", "state"])):
        assert fed(whole, [(rows, None)], None)[0].record == wanted


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([(5 * SECOND, "n1", "idle")], "'n1' has an event at a time that is over"),
        ([(30 * SECOND, "n9", "idle")], "row 0 of a portion names an unknown node"),
        ([(30 * SECOND, "n1", "busy"), (30 * SECOND, "n1", "down")], "'n1' has two states at 1970-01-01T00:00:30Z"),
        ([(30 * SECOND, "n1", "lazy")], "row 0 of a portion has an unknown state"),
        ([(30 * SECOND, "n1", "busy"), ("soon", "n1", "idle")], "row 1 of a portion is no event"),
        ([(30 * SECOND, "n1")], "row 0 of a portion is no event"),
        ([(30 * SECOND, "n1", "idle")], "'n1' becomes idle at 1970-01-01T00:00:30Z but is idle already"),
        ([(101 * SECOND, "n1", "busy")], "'n1' has an event after the end of the window"),
        ([(30 * SECOND, "n1", True)], "row 0 of a portion has an unknown state"),
        ([(30 * SECOND, "n1", 1.0)], "row 0 of a portion has an unknown state"),
        ([(30 * SECOND, "n1", np.True_)], "row 0 of a portion has an unknown state"),
        ([(30 * SECOND, "n1", ["busy"])], "row 0 of a portion has an unknown state"),
        ([(30 * SECOND, "n1", -1)], "row 0 of a portion has an unknown state"),
        ([(30.0 * SECOND, "n1", "busy")], "row 0 of a portion is no event: a number here is whole microseconds"),
        ([(np.float64(30), "n1", "busy")], "row 0 of a portion is no event: a number here is whole microseconds"),
        ([(math.nan, "n1", "busy")], "row 0 of a portion is no event"),
        ([(2**70, "n1", "busy")], "row 0 of a portion is no event: not a time before the year 10000"),
        ([(-(2**63), "n1", "busy")], "row 0 of a portion is no event: not a time before"),
        ([("9" * 5000, "n1", "busy")], "row 0 of a portion is no event"),
        ([(None, "n1", "busy")], "row 0 of a portion is no event"),
        ([(30 * SECOND, ["n1"], "busy")], "row 0 of a portion names an unknown node"),
        ([(30 * SECOND, 1, "busy")], "row 0 of a portion names an unknown node"),
        ([None], "row 0 of a portion is no event"),
        (7, "a portion has no rows"),
        (b"row", "row 0 of a portion is no event"),
        (pd.DataFrame({"time": [30 * SECOND], "node row": ["n1"]}), "a portion has no rows"),
        (EventBatch(np.array([3e7]), np.array([1]), np.array([1])), "row|columns are arrays of whole numbers"),
        (EventBatch(np.array([30 * SECOND]), np.array([3]), np.array([1])), "row|node is 0 to 2"),
        (EventBatch(np.array([30 * SECOND]), np.array([1]), np.array([99])), "row|state is 0 to 9"),
        (EventBatch(np.array([30 * SECOND]), np.array([1]), np.array([])), "row|columns are arrays"),
    ],
)
@pytest.mark.parametrize("until", [40 * SECOND, None])
def test_a_bad_portion_is_refused_by_name_and_nothing_of_it_is_taken(rows, problem, until):
    whole, (_, events) = small(), rows_of(small())
    with open_session(to_come(whole), JOBS) as session:
        session.advance(events[:1], 20 * SECOND)
        with pytest.raises(InputError, match=problem):
            session.advance([(25 * SECOND, "n2", "down"), *rows] if "row" not in problem else rows, until)
        assert session.until_us == 20 * SECOND
        session.advance(events[1:])
        assert session.finish(log=whole).record == replay_log(whole, JOBS).record


def test_a_node_that_becomes_idle_while_idle_is_refused_before_it_is_over():
    whole, events = small(), rows_of(small())[1]
    with open_session(to_come(whole), JOBS) as session:
        session.advance(events[:1], 20 * SECOND)
        for rows in ([(20 * SECOND, "n1", "idle")], [(25 * SECOND, "n2", "down"), (30 * SECOND, "n0", "idle")]):
            with pytest.raises(InputError, match="is idle already"):
                session.advance(rows)
        session.advance(events[1:])
        assert session.finish(log=whole).record == replay_log(whole, JOBS).record


def test_a_row_given_ahead_that_turns_out_to_be_wrong_is_taken_back():
    whole, events = small(), rows_of(small())[1]
    with open_session(to_come(whole), JOBS) as session:
        session.advance([*events[:1], (40 * SECOND, "n1", "idle")], 20 * SECOND)  # it may leave before
        with pytest.raises(InputError, match=r"'n1' becomes idle at .*40Z but is idle already") as refusal:
            session.advance(until=45 * SECOND)
        assert "and this one again" in str(refusal.value)
        assert session.until_us == 20 * SECOND
        session.advance(events[1:])
        assert session.finish(log=whole).record == replay_log(whole, JOBS).record


@pytest.mark.parametrize("until", [130 * SECOND, "9999-12-31", 101 * SECOND])
def test_a_time_after_the_window_means_its_end(until):
    whole, events = small(), rows_of(small())[1]
    with open_session(to_come(whole), JOBS) as session:
        session.advance(events)
        session.advance(until=until)
        session.advance(until=200 * SECOND)
        assert session.finish(log=whole).record == replay_log(whole, JOBS).record


@pytest.mark.parametrize("until", [2**70, 50.0, math.inf, True, "soon", b"5"])
def test_an_until_that_is_no_time_is_refused(until):
    with open_session(to_come(small()), JOBS) as session:
        with pytest.raises(InputError, match="until of the window is not a time"):
            session.advance(until=until)
        with pytest.raises(InputError, match="end of the window is not a time"):
            session.finish(until)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (log(2, [(10, 1, True), (50, 0, False), (70, 1, False)], 100, idle_first=[0]), "nodes differ"),
        (log(3, [(10, 1, True), (50, 0, False), (50, 2, True), (71, 1, False)], 100, idle_first=[0]), "idle node time"),
        (log(3, [(10, 1, True), (50, 0, False), (50, 2, True), (70, 1, False)], 101, idle_first=[0]), "end of the"),
        (small().between(5 * SECOND, 100 * SECOND), "start of the"),
    ],
)
def test_another_log_at_the_end_is_refused_by_what_differs(other, named):
    whole, events = small(), rows_of(small())[1]
    with open_session(to_come(whole), JOBS) as session:
        session.advance(events)
        with pytest.raises(InputError, match=f"not what came in portions: its {named}"):
            session.finish(log=other)
        assert session.finish(log=whole).record == replay_log(whole, JOBS).record


def test_a_session_that_has_ended_says_so(tmp_path):
    with open_session(to_come(small()), JOBS) as session:
        session.advance(rows_of(small())[1])
        session.save(tmp_path / "state")
        session.finish()
        for more in (session.finish, session.advance, lambda: session.save(tmp_path / "state")):
            with pytest.raises(InputError, match=r"has ended: finish\(\) returned its run"):
                more()
    with open_session(to_come(small()), JOBS) as left:
        pass
    with pytest.raises(InputError, match="left without finish"):
        left.advance()
    state = read_state(tmp_path / "state")
    state.tree[1]["of"]["engine"]["of"]["feed"]["of"] = 7
    write_state(tmp_path / "state", state)
    with open_session(to_come(small()), JOBS) as half:
        with pytest.raises(InputError, match="does not fit"):
            half.restore(tmp_path / "state")
        with pytest.raises(InputError, match="could not be restored"):
            half.advance()


@pytest.mark.parametrize("state", [True, 0.0, "idle", [0, 1], None])
def test_an_initial_state_that_is_none_is_refused(state):
    with pytest.raises(InputError, match="initial state is none"):
        NodeEvents.to_come(["n0", "n1", "n2"], 0, initial_state=state)


def test_equal_rows_that_are_still_to_come_count_once():
    whole, events = small(), rows_of(small())[1]
    with open_session(to_come(whole), JOBS) as session:
        session.advance(events, 20 * SECOND)
        session.advance(events[1:] + events[1:], 60 * SECOND)
        assert session.portions.n_repeated == 6
        assert session.finish(log=whole).record == replay_log(whole, JOBS).record


def test_the_replay_does_not_go_back():
    with open_session(to_come(small()), JOBS) as session:
        session.advance(until=20 * SECOND)
        with pytest.raises(InputError, match="does not go back"):
            session.advance(until=10 * SECOND)


def test_a_window_without_an_end_gets_one_at_the_end():
    whole, events = small(), rows_of(small())[1]
    with open_session(to_come(whole, end=None), JOBS, efficiency=False, bound=False) as session:
        session.advance(events, 80 * SECOND)
        with pytest.raises(InputError, match="no end yet"):
            session.finish()
        with pytest.raises(InputError, match="before what is replayed already"):
            session.finish("1970-01-01T00:01:10Z")
        with pytest.raises(InputError, match="before what is replayed already"):
            session.finish(0)
        run = session.finish(100 * SECOND)
    wanted = replay_log(whole, JOBS, efficiency=False, bound=False)
    assert run.summary.ledger == wanted.summary.ledger
    assert run.table("decisions").equals(wanted.table("decisions"))


def test_without_the_whole_log_the_run_says_why_it_has_no_baselines():
    whole, events = small(), rows_of(small())[1]
    with open_session(to_come(whole), JOBS) as session:
        session.advance(events)
        run = session.finish()
    assert run.u is None
    assert run.summary.bound is None
    assert "came in portions" in run.summary.reason_without_baselines


@pytest.mark.parametrize("options", [{"policy": "foresight"}, {"policy": "foresight", "learn_curves": "job"}])
def test_a_policy_that_knows_the_log_cannot_know_one_that_is_still_to_come(options):
    with pytest.raises(InputError, match="events of this log are still to come"):
        open_session(to_come(small()), JOBS, **options)


def test_a_saved_session_goes_on_elsewhere(tmp_path):
    whole, events = small(), rows_of(small())[1]
    with open_session(to_come(whole), JOBS, t_fwd="auto") as session:
        session.advance(events[:2])
        session.save(tmp_path / "state")
    with open_session(to_come(whole), JOBS, t_fwd="auto") as other:
        other.restore(tmp_path / "state")
        assert other.until_us == 50 * SECOND
        other.advance(events[1:])  # one of them is known
        assert other.finish(log=whole).record == replay_log(whole, JOBS, t_fwd="auto").record


def test_a_state_is_not_restored_into_another_session(tmp_path):
    with open_session(to_come(small()), JOBS) as session:
        session.save(tmp_path / "state")
    for options, named in (({"t_fwd": 60}, "config.policy.t_fwd_s"), ({"policy": "equal-share"}, "config.policy")):
        with open_session(to_come(small()), JOBS, **options) as other, pytest.raises(InputError, match=named):
            other.restore(tmp_path / "state")


def test_a_session_with_checkpoints_is_resumed(tmp_path):
    whole, events = small(), rows_of(small())[1]
    replay_log(whole, JOBS, out=tmp_path / "whole")
    with open_session(to_come(whole), JOBS, out=tmp_path / "run", checkpoint_every=0) as session:
        session.advance(events[:3], 60 * SECOND)
    with open_session(to_come(whole), JOBS, out=tmp_path / "run", resume=True) as other:
        other.advance([row for row in events if row[0] >= other.until_us])
        other.finish(log=whole)
    same(tmp_path / "run", tmp_path / "whole")


def test_a_session_that_reads_its_log_takes_no_portions():
    with (
        bfreplay.ReplaySession(
            small(),
            bfreplay.JobSet(JOBS),
            bfreplay.EqualSharePolicy(),
            bfreplay.ReplaySettings(),
            bfreplay.runs.RunSettings(),
        ) as session,
        pytest.raises(InputError, match="reads its log itself"),
    ):
        session.advance([])
