"""The story of a job: worked by hand, and against the ledger of random runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy, Trigger
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs.explain.answers import render_job
from bfreplay.runs.explain.job_story import (
    LOST,
    PAUSED,
    PREEMPTED,
    RESTARTED,
    SCALED_DOWN,
    SCALED_UP,
    STARTED,
    WORK_LOST,
    Step,
    job_story,
    job_story_from_tables,
)
from bfreplay.runs.explain.jobs_of_run import job_answers
from bfreplay.runs.explain.saved_tables import nodes_over_time
from bfreplay.workload import Ending, JobSet
from tests.examples import examples
from tests.replay.tiny import SECOND, job, job_sets, log, logs
from tests.runs.explain.little_source import LittleHalving, Scripted


def told(story) -> list[tuple[float, str, int, int, float | None]]:
    return [(s.time_us / SECOND, s.reason, s.before, s.after, s.cost_samples) for s in story.steps]


def test_a_job_that_starts_grows_is_preempted_waits_and_finishes():
    changes = [(10, 1, True), (20, 0, False), (30, 1, False), (40, 2, True)]
    events = log(3, changes, 60, idle_first=[0])
    jobs = JobSet([job("a", work=500.0, up_s=3.0, down_s=2.0)])
    run = replay_log(events, jobs, EqualSharePolicy(), efficiency=False, bound=False)
    story = job_story(run, "a", events=events, jobs=jobs)
    # 1 node: 100 samples in 10 s; growing costs 3 s x 10/s, the first reclaim 2 s x 20/s, the second, of the last node,
    # 2 s x 10/s: 500 + 90 samples are made in 10 s x 10 + 10 s x 20 + 10 s x 10 and, from 40 s on, 19 s x 10
    assert told(story) == [
        (0, "submitted", 0, 0, 0.0),
        (0, "admitted", 0, 0, 0.0),
        (0, STARTED, 0, 1, 0.0),
        (10, SCALED_UP, 1, 2, 30.0),
        (20, PREEMPTED, 2, 1, 40.0),
        (30, PREEMPTED, 1, 0, 20.0),
        (40, RESTARTED, 0, 1, 0.0),
        (59, "finished", 1, 0, 0.0),
    ]
    assert story.job == jobs[0]
    assert [s.decision for s in story.steps] == [None, None, 0, 1, 2, 3, 4, 5]
    tables = job_story_from_tables(run, "a")
    assert [step[:4] for step in told(tables)] == [step[:4] for step in told(story)]
    assert tables.job is None
    text = render_job(job_answers(run).to_dict("records")[0], story, most_steps=4)
    assert "... 4 changes omitted ..." in text
    assert "1970-01-01T00:00:59Z  finished" in text


def test_pauses_and_lost_work_are_named():
    # starts on 1 node and pauses until 5 s; a second node comes at 10 s: 3 s of pause, and what was made since
    # 8 s is lost; one is reclaimed at 20 s: 2 - 1 s, and the work since 18 s is lost
    costs = {"start_cost_s": 5.0, "restart": "pause", "work_saved_every_s": 8.0}
    events = log(2, [(10, 1, True), (20, 0, False)], 30, idle_first=[0])
    jobs = JobSet([replace(job("a", up_s=3.0, down_s=2.0), **costs)])
    notice = ReplaySettings(notice=True, clear_s=1.0)
    run = replay_log(events, jobs, EqualSharePolicy(), notice, efficiency=False, bound=False)
    story = job_story(run, "a", events=events, jobs=jobs)
    assert [(*step, s.pause_s) for step, s in zip(told(story), story.steps, strict=True)][2:] == [
        (0, STARTED, 0, 1, 50.0, 5.0),
        (10, SCALED_UP, 1, 2, 60.0, 3.0),
        (10, WORK_LOST, 2, 2, 20.0, 0.0),
        (20, PREEMPTED, 2, 1, 10.0, 1.0),
        (20, WORK_LOST, 1, 1, 40.0, 0.0),
        (30, "window end", 1, 1, 0.0, 0.0),
    ]
    text = render_job(job_answers(run).to_dict("records")[0], story, most_steps=99)
    assert "1970-01-01T00:00:10Z  scaled up, pause of 3 s  " in text
    assert "1970-01-01T00:00:20Z  work lost  " in text
    (pausing, lost) = (story.steps[3].to_dict(), story.steps[4].to_dict())
    assert (pausing["pause_s"], "pause_s" in lost) == (3.0, False)
    tables = job_story_from_tables(run, "a")
    assert [step[:4] for step in told(tables)] == [step[:4] for step in told(story)]
    assert [step[4] for step in told(tables) if step[1] == WORK_LOST] == [20.0, 40.0]


def test_a_reclaim_that_was_announced_costs_less():
    events, jobs = log(2, [(10, 0, False)], 30, idle_first=[0, 1]), JobSet([job("a", down_s=5.0)])
    notice = ReplaySettings(notice=True, clear_s=2.0)
    run = replay_log(events, jobs, EqualSharePolicy(), notice, efficiency=False, bound=False)
    assert (10, PREEMPTED, 2, 1, 60.0) in told(job_story(run, "a", events=events, jobs=jobs))


@pytest.mark.parametrize(("restart", "second"), [("charge", (0.0, 0.0)), ("pause", (40.0, 2.0))])
def test_settled_reclaims_are_told_at_their_instants(restart, second):
    # decided at 23 s; one charge covers both reclaims, and the second pause replaces what is left of the first
    events = log(4, [(20, 0, False), (21, 1, False)], 30, idle_first=range(4))
    jobs = JobSet([replace(job("a", down_s=2.0), restart=restart, work_saved_every_s=8.0)])
    run = replay_log(events, jobs, EqualSharePolicy(), ReplaySettings(settle_s=2.0), efficiency=False, bound=False)
    story = job_story(run, "a", events=events, jobs=jobs)
    first = (80.0, 0.0) if restart == "charge" else (60.0, 2.0)
    assert [(*step, s.pause_s, s.decision) for step, s in zip(told(story), story.steps, strict=True)][3:-1] == [
        (20, PREEMPTED, 4, 3, *first, 1),
        (20, WORK_LOST, 3, 3, 160.0, 0.0, None),
        (21, PREEMPTED, 3, 2, *second, 1),
    ]


@pytest.mark.parametrize(("work", "end"), [(1e9, (30, "window end", 1, 1, 0.0)), (530.0, (29, "finished", 1, 0, 0.0))])
def test_a_reclaim_is_told_although_the_job_or_the_window_ends_before_all_is_settled(work, end):
    # 500 samples by 25 s; on one node the rest of 30 takes 3 s, after 1 s for the reclaim
    events, jobs = log(2, [(25, 0, False)], 30, idle_first=[0, 1]), JobSet([job("a", down_s=0.5, work=work)])
    run = replay_log(events, jobs, EqualSharePolicy(), ReplaySettings(settle_s=6.0), efficiency=False, bound=False)
    assert told(job_story(run, "a", events=events, jobs=jobs))[3:] == [(25, PREEMPTED, 2, 1, 10.0), end]


def test_nodes_lost_and_won_at_one_instant_are_two_steps():
    events = log(3, [(10, 0, False), (10, 1, True), (10, 2, True)], 30, idle_first=[0])
    jobs = JobSet([job("a", down_s=2.0)])
    run = replay_log(events, jobs, EqualSharePolicy(), efficiency=False, bound=False)
    story = job_story(run, "a", events=events, jobs=jobs)
    assert told(story)[2:] == [
        (0, STARTED, 0, 1, 0.0),
        (10, PREEMPTED, 1, 0, 20.0),
        (10, RESTARTED, 0, 2, 0.0),
        (30, "window end", 2, 2, 0.0),
    ]
    assert [step[1:4] for step in told(job_story_from_tables(run, "a"))[2:]] == [
        (STARTED, 0, 1),
        (SCALED_UP, 1, 2),
        ("window end", 2, 2),
    ]


def test_tables_alone_do_not_tell_a_reclaim_from_a_shrinking_at_the_same_instant():
    # node 0 of a is reclaimed; b comes and takes one of the others from a
    events = log(4, [(10, 0, False)], 30, idle_first=[0, 1, 2, 3])
    jobs = JobSet([job("a", rates=(0.0, 10.0, 11.0, 12.0, 13.0)), job("b", rates=(0.0, 50.0), submit_s=10)])
    run = replay_log(events, jobs, BFTrainerPolicy(60.0), efficiency=False, bound=False)
    assert told(job_story(run, "a", events=events, jobs=jobs))[3:5] == [
        (10, PREEMPTED, 4, 3, 0.0),
        (10, SCALED_DOWN, 3, 2, 0.0),
    ]
    story = job_story_from_tables(run, "a")
    assert told(story)[3] == (10, LOST, 4, 2, None)
    assert "--events" in render_job(job_answers(run).to_dict("records")[0], story, 60)


def test_trials_pause_and_go_on_or_are_pruned():
    events, source = log(4, [], 60, range(4)), LittleHalving()
    run = replay_log(events, source, EqualSharePolicy(), efficiency=False, bound=False)

    def of(name):
        return [step[:4] for step in told(job_story(run, name, events=events, jobs=source))[2:]]

    assert of("t0") == [(0, STARTED, 0, 4), (2.5, PAUSED, 4, 0), (8.75, "pruned", 0, 0)]
    assert of("t1") == [(2.5, STARTED, 0, 4), (3.75, "failed", 4, 0)]
    # it is the last at the rung: paused and resumed at one instant, on as many nodes as before
    assert of("t2") == [(3.75, STARTED, 0, 2), (8.75, PAUSED, 2, 0), (8.75, RESTARTED, 0, 2), (23.75, "finished", 2, 0)]


def test_a_job_that_was_never_admitted_has_a_short_story():
    events, jobs = log(1, [], 30, [0]), JobSet([job("a"), job("b"), job("late", submit_s=99)])
    run = replay_log(events, jobs, EqualSharePolicy(), ReplaySettings(1), efficiency=False, bound=False)
    rows = {row["job"]: row for row in job_answers(run).to_dict("records")}
    for name, steps in (("b", [("submitted", 0, 0), ("window end", 0, 0)]), ("late", [("window end", 0, 0)])):
        for story in (job_story(run, name, events=events, jobs=jobs), job_story_from_tables(run, name)):
            assert [(s.reason, s.before, s.after) for s in story.steps] == steps
            is_late = "it was to be submitted at 1970-01-01T00:01:39Z" in render_job(rows[name], story, 60)
            assert is_late == (name == "late")


def test_a_job_stopped_before_it_was_to_be_submitted_was_never_submitted():
    events = log(1, [], 60, [0])
    jobs = [job("a"), job("early", submit_s=30), job("due", submit_s=10)]
    source = Scripted(jobs, stop={10: {"due": Ending.STOPPED, "early": Ending.STOPPED}})
    run = replay_log(events, source, EqualSharePolicy(), ReplaySettings(1), efficiency=False, bound=False)
    rows = {row["job"]: row for row in job_answers(run).to_dict("records")}
    for story in (job_story(run, "early", events=events, jobs=source), job_story_from_tables(run, "early")):
        assert told(story) == [(10, "stopped", 0, 0, 0.0)]
        assert "never started: it was to be submitted at 1970-01-01T00:00:30Z" in render_job(rows["early"], story, 60)
    assert [step[:2] for step in told(job_story(run, "due", events=events, jobs=source))] == [
        (10, "submitted"),
        (10, "stopped"),
    ]


def test_nodes_reclaimed_as_a_job_is_stopped_are_told_with_its_end_alone():
    events = log(2, [(10, 0, False)], 60, [0, 1])
    source = Scripted([job("a", down_s=2.0)], stop={10: {"a": Ending.STOPPED}})
    run = replay_log(events, source, EqualSharePolicy(), efficiency=False, bound=False)
    assert run.jobs["n_preemptions"].tolist() == [1]
    assert told(job_story(run, "a", events=events, jobs=source))[2:] == [
        (0, STARTED, 0, 2, 0.0),
        (10, "stopped", 2, 0, 0.0),
    ]


def _waking(on: Trigger):
    policy = BFTrainerPolicy(60.0)
    policy.wakes_on = on
    return policy


_POLICIES = {
    "exact": lambda: BFTrainerPolicy(60.0),
    "equal share": EqualSharePolicy,
    "sleepy": lambda: _waking(Trigger.POOL),
}


def check_against_the_books(run, events, jobs) -> None:
    """Steps lead from count to count, are those of the allocations, and sum up to what the ledger has."""
    for row in run.jobs.to_dict("records"):
        story = job_story(run, row["job"], events=events, jobs=jobs)
        steps = story.steps
        assert [s.before for s in steps[1:]] == [s.after for s in steps[:-1]]
        assert [s.time_us for s in steps[2:]] == sorted(s.time_us for s in steps[2:])
        held = nodes_over_time(run, row["job"])
        at_end = {s.time_us: s.after for s in steps if s.reason not in ("submitted", "admitted")}
        for since_us, count in zip(held.edge_us.tolist(), held.counts.tolist(), strict=False):
            assert at_end.get(since_us, 0) == count

        def of(*reasons: str, among: tuple[Step, ...] = steps) -> list[float]:
            return [s.cost_samples for s in among if s.reason in reasons]

        assert len(of(STARTED, RESTARTED)) == row["n_starts"]
        assert len(of(STARTED, RESTARTED, SCALED_UP)) == row["n_scale_ups"]
        assert len(of(SCALED_DOWN)) == row["n_scale_downs"]
        assert len(of(PREEMPTED)) == row["n_preemptions"]
        assert sum(of(WORK_LOST)) == pytest.approx(row["repeated_samples"])
        charged = {"preemption": sum(of(PREEMPTED)), "rescale": sum(of(STARTED, RESTARTED, SCALED_UP, SCALED_DOWN))}
        for kind, samples in charged.items():
            paid = row[f"{kind}_cost_samples"]
            if row["status"] == "finished":  # it has worked off all that it was charged
                assert samples == pytest.approx(paid, rel=1e-6, abs=1e-3)
            else:
                assert samples >= paid - 1e-3 - 1e-6 * abs(paid)


@settings(max_examples=examples(30))
@given(
    events=logs(),
    jobs=job_sets(),
    policy=st.sampled_from(sorted(_POLICIES)),
    max_parallel=st.integers(1, 4),
    unlimited_work=st.booleans(),
)
def test_stories_agree_with_the_ledger_of_any_run(events, jobs, policy, max_parallel, unlimited_work):
    run = replay_log(
        events,
        jobs,
        _POLICIES[policy](),
        ReplaySettings(max_parallel),
        unlimited_work=unlimited_work,
        efficiency=False,
        bound=False,
    )
    check_against_the_books(run, events, jobs)


@settings(max_examples=examples(25))
@given(
    events=logs(),
    jobs=job_sets(),
    start_s=st.sampled_from([0.0, 3.0, 40.0]),
    every_s=st.sampled_from([0.0, 2.0, 30.0]),
    clear_s=st.sampled_from([0.0, 7.0]),
)
def test_stories_with_starts_that_cost_and_lost_work_agree_with_the_ledger(events, jobs, start_s, every_s, clear_s):
    jobs = JobSet(replace(each, start_cost_s=start_s, work_saved_every_s=every_s) for each in jobs)
    notice = ReplaySettings(3, notice=clear_s > 0, clear_s=clear_s)
    run = replay_log(events, jobs, BFTrainerPolicy(60.0), notice, efficiency=False, bound=False)
    check_against_the_books(run, events, jobs)


@settings(max_examples=examples(25))
@given(
    events=logs(),
    jobs=job_sets(),
    settle_s=st.sampled_from([0.5, 5.0, 60.0]),
    every_s=st.sampled_from([0.0, 2.0]),
)
def test_stories_of_settled_runs_agree_with_the_ledger(events, jobs, settle_s, every_s):
    jobs = JobSet(replace(each, work_saved_every_s=every_s) for each in jobs)
    settled = ReplaySettings(3, settle_s=settle_s)
    events = events.between(events.window_start_us, events.window_end_us - 1)  # a reclaim at its end is not told
    run = replay_log(events, jobs, BFTrainerPolicy(60.0), settled, efficiency=False, bound=False)
    check_against_the_books(run, events, jobs)


@settings(max_examples=examples(25))
@given(
    events=logs(),
    n=st.integers(2, 6),
    costs=st.tuples(st.floats(0, 20), st.floats(0, 20)),
    work=st.floats(101.0, 3e3),
    max_parallel=st.integers(1, 6),
)
def test_stories_of_trials_agree_with_the_ledger(events, n, costs, work, max_parallel):
    source = LittleHalving(n, *costs, work)
    run = replay_log(events, source, BFTrainerPolicy(60.0), ReplaySettings(max_parallel), efficiency=False, bound=False)
    check_against_the_books(run, events, source)


@settings(max_examples=examples(25))
@given(events=logs(), jobs=job_sets(), seed=st.integers(0, 3))
def test_stories_under_the_published_clock_count_as_the_books_do(events, jobs, seed):
    run = replay_log(
        events, jobs, BFTrainerPolicy(60.0), ReplaySettings(3, Semantics.PUBLISHED, seed), efficiency=False, bound=False
    )
    for row in run.jobs.to_dict("records"):
        steps = job_story(run, row["job"], events=events, jobs=jobs).steps
        reasons = [s.reason for s in steps]
        # a job whose end is noticed as it loses nodes is told as finished, and counted as preempted
        at_its_end = row["n_preemptions"] - reasons.count(PREEMPTED)
        assert at_its_end == 0 or (at_its_end == 1 and row["status"] == "finished")
        assert reasons.count(SCALED_DOWN) == row["n_scale_downs"]
        assert sum(reasons.count(reason) for reason in (STARTED, RESTARTED, SCALED_UP)) == row["n_scale_ups"]
        charged = sum(s.cost_samples for s in steps if s.reason == PREEMPTED)
        if not at_its_end:
            assert charged == pytest.approx(row["preemption_cost_samples"], rel=1e-6, abs=1e-6)
