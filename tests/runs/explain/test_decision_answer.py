"""Why a job has the nodes it has: worked by hand, and against all whole decisions of small runs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.verify import agrees, magnitude
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs.explain.decision_answer import Change, EmptyPool, render_decision
from bfreplay.runs.explain.why_these_nodes import answer, explain_decision
from bfreplay.runs.saved_decisions import recorded_decisions
from bfreplay.workload import JobSet, Verdict
from tests.examples import examples
from tests.milp.small_problems import by_count
from tests.replay.tiny import SECOND, job, job_sets, log, logs
from tests.runs.explain.brute_force import all_decisions, best
from tests.runs.explain.little_source import LittleHalving, Scripted, pausing_job

T_FWD_S = 60.0


def explained(run, name, at_s, events, jobs, **more):
    return explain_decision(run, name, round(at_s * SECOND), events=events, jobs=jobs, **more)


def test_a_job_that_shrinks_for_another():
    # a makes 10 samples/s a node and b, which comes at 10 s, 30: b is worth 2 x 1800 over 60 s; a falls from 3 nodes to
    # 1, from 1800 to 600, and pays 2 s x 30/s for it
    events = log(3, [], 60, idle_first=[0, 1, 2])
    jobs = JobSet([job("a", down_s=2.0), job("b", rates=(0.0, 30.0, 60.0), submit_s=10)])
    run = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    a = explained(run, "a", 12, events, jobs)
    assert (a.decision, a.time, a.trigger, a.n_idle, a.n_jobs) == (1, "1970-01-01T00:00:10Z", "arrival", 3, 2)
    assert (a.held, a.reclaimed, a.before, a.after) == (3, 0, 3, 1)
    assert (a.value_before, a.value_after, a.value_gained, a.rescale_loss, a.value_net) == (1800, 600, -1200, 60, -1260)
    assert (a.rescale_cost_samples, a.preemption_cost_samples) == (60.0, 0.0)
    assert (a.free_before, a.free_after) == (0, 0)
    assert a.others == (Change("b", 0, 0, 0, 2),)
    assert (a.chosen_objective, a.is_optimal, a.optimum) == (4140.0, True, None)  # 3600 + 600 - 60
    # none for a: 3600 - 60; two for a and one for b: 1800 + 1200 - 60
    assert (a.runner_up.nodes, a.runner_up.objective, a.runner_up.difference) == (0, 3540.0, 600.0)
    assert a.runner_up.difference_percent == pytest.approx(100 * 600 / 4140)
    assert a.runner_up.counts == {"a": 0, "b": 2}
    assert (a.as_it_was.nodes, a.as_it_was.objective) == (3, 1800.0)
    text = render_decision(a)
    for words in (
        "a at 1970-01-01T00:00:10Z: scaled down from 3 to 1 node",
        "b  0 to 2",
        "60 samples charged",
        "no decision has more (exact)",
        "600 less (14.5 %)",
        "left as it was",
    ):
        assert words in text, text


def test_a_change_costs_what_it_loses_more_than_staying():
    # as above; a still owes 25 of a pause if it stays on 3, and loses 60 on any other count; 2 is not offered
    events = log(3, [], 60, idle_first=[0, 1, 2])
    jobs = JobSet([job("a", down_s=2.0), job("b", rates=(0.0, 30.0, 60.0), submit_s=10)])
    run = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    (decision,) = recorded_decisions(run, [1], events=events, jobs=jobs)
    loss = np.zeros(decision.problem.gain.shape)
    loss[0, :4] = [60, 60, np.inf, 25]
    a = answer(run, replace(decision, problem=by_count(decision.problem, loss)), 0)
    assert (a.value_gained, a.rescale_loss, a.value_net) == (-1200, 60 - 25, -1235)
    assert (a.chosen_objective, a.is_optimal) == (3600 + 600 - 60, True)
    assert (a.as_it_was.nodes, a.as_it_was.objective) == (3, 1800.0 - 25)
    assert (a.runner_up.nodes, a.runner_up.objective) == (0, 3600.0 - 60)
    kept = answer(run, replace(decision, problem=by_count(decision.problem, loss), counts=np.array([3, 0])), 0)
    assert (kept.rescale_loss, kept.value_net, kept.is_optimal) == (0, 0, False)


def test_a_reclaim_is_told_first_and_with_its_cost():
    events = log(3, [(10, 0, False), (10, 1, False)], 60, idle_first=[0, 1, 2])
    jobs = JobSet([job("a", up_s=3.0, down_s=2.0), job("b", submit_s=10)])
    run = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    a = explained(run, "a", 10, events, jobs)
    assert (a.held, a.reclaimed, a.before, a.after, a.preemption_cost_samples) == (3, 2, 1, 1, 60.0)
    assert (a.rescale_loss, a.rescale_cost_samples, a.as_it_was) == (0.0, 0.0, None)
    assert render_decision(a).startswith(
        "a at 1970-01-01T00:00:10Z: 2 of its 3 nodes reclaimed by the batch scheduler (costs 60 samples); then kept "
        "1 node"
    )
    b = explained(run, "b", 10, events, jobs)
    assert b.others == (Change("a", 3, 2, 1, 1),)
    assert "a  3 to 1 reclaimed, then kept" in render_decision(b)


def test_a_job_below_its_minimum_could_not_be_left_as_it_was():
    events = log(3, [(10, 0, False)], 60, idle_first=[0, 1, 2])
    jobs = JobSet([job("wide", min_nodes=3, rates=(0.0, 10.0, 20.0, 30.0), down_s=1.0)])
    run = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    wide = explained(run, "wide", 20, events, jobs)
    assert (wide.held, wide.reclaimed, wide.before, wide.after) == (3, 1, 2, 0)
    assert (wide.as_it_was, wide.runner_up) == (None, None)
    assert (wide.value_before, wide.value_gained, wide.rescale_loss) == (0.0, 0.0, 0.0)
    assert any("cannot run on the 2 nodes left to it (min_nodes 3)" in note for note in wide.notes)
    assert "runner-up: none" in render_decision(wide)


def test_a_policy_without_an_objective_is_measured_by_the_jobs_own_curves():
    events = log(2, [], 60, idle_first=[0, 1])
    jobs = JobSet([job("slow", rates=(0.0, 1.0, 2.0)), job("fast", rates=(0.0, 50.0, 90.0))])
    run = replay_log(events, jobs, EqualSharePolicy(), efficiency=False, bound=False)
    with pytest.raises(InputError, match="--t-fwd"):
        explained(run, "slow", 5, events, jobs)
    slow = explained(run, "slow", 5, events, jobs, t_fwd_s=10.0)
    chosen = 10.0 * {2: 2.0, 1: 51.0}[slow.after]
    assert (slow.chosen_objective, slow.is_optimal) == (chosen, False)
    assert (slow.optimum.objective, slow.optimum.counts) == (900.0, {"slow": 0, "fast": 2})
    assert slow.optimum.difference == chosen - 900.0
    text = render_decision(slow)
    for words in ("'equal-share' does not maximise", "not the best (equal-share)", "best of all", "more ("):
        assert words in text, text


def test_the_published_limit_is_kept_in_the_alternatives():
    events = log(4, [], 60, idle_first=[0, 1, 2, 3])
    jobs = JobSet([job("a")])
    limited = replay_log(
        events, jobs, BFTrainerPolicy(T_FWD_S, ExactSolver(published_limit=True)), efficiency=False, bound=False
    )
    a = explained(limited, "a", 5, events, jobs)
    assert (a.after, a.is_optimal, a.runner_up.nodes) == (2, True, 1)  # from 0 by at most (4 + 1) // 2
    assert any("more than 2 nodes at once" in note for note in a.notes)
    free = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    b = explained(free, "a", 5, events, jobs)
    assert (b.after, b.runner_up.nodes, b.notes) == (4, 3, ())


def test_the_first_map_of_the_published_program_is_no_decision():
    events, jobs = log(4, [], 60, idle_first=[0, 1]), JobSet([job("a"), job("b")])
    run = replay_log(
        events,
        jobs,
        BFTrainerPolicy(T_FWD_S),
        ReplaySettings(semantics=Semantics.PUBLISHED),
        efficiency=False,
        bound=False,
    )
    assert any("drawn at random" in note for note in explained(run, "a", 5, events, jobs).notes)


def test_without_an_idle_node_there_was_nothing_to_decide():
    events = log(2, [(10, 0, False), (10, 1, False), (20, 0, True)], 60, idle_first=[0, 1])
    jobs = JobSet([job("a")])
    run = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    a = explained(run, "a", 15, events, jobs)
    assert a == EmptyPool("a", 1, "1970-01-01T00:00:10Z", n_reclaimed=2, held=2)
    assert "reclaimed 2 nodes, 2 of them from the job" in render_decision(a)
    assert explained(run, "a", 20, events, jobs).after == 1


def test_a_time_at_which_the_job_was_not_there_is_refused_with_when_it_was():
    events = log(1, [], 60, idle_first=[0])
    jobs = JobSet([job("a", work=100.0), job("b", submit_s=5), job("late", submit_s=99)])
    run = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), ReplaySettings(1), efficiency=False, bound=False)
    for name, at_s, says in (
        ("a", 10, "active until 1970-01-01T00:00:10Z (finished)"),
        ("b", 7, "admitted at 1970-01-01T00:00:10Z, active until the end of the window"),
        ("late", 7, "to be submitted at 1970-01-01T00:01:39Z and never admitted (not submitted)"),
        ("c", 7, "no such job"),
        ("a", 99, "no decision of the run is in force"),
    ):
        with pytest.raises(InputError) as caught:
            explained(run, name, at_s, events, jobs)
        assert says in str(caught.value)


def refused(run, name, at_s, events, jobs) -> str:
    with pytest.raises(InputError) as caught:
        explained(run, name, at_s, events, jobs)
    return str(caught.value)


def test_a_paused_trial_was_not_active():
    # t0 is at the rung at 2.5 s and is pruned there at 8.75 s; t2 is paused and resumed at 8.75 s
    events, source = log(4, [], 60, range(4)), LittleHalving()
    run = replay_log(events, source, EqualSharePolicy(), efficiency=False, bound=False)

    def of(name, at_s):
        return explained(run, name, at_s, events, source, t_fwd_s=T_FWD_S)

    assert of("t0", 0).after == 4
    for at_s, time in ((2.5, "00:00:02.500000Z"), (8, "00:00:08Z")):
        with pytest.raises(InputError) as caught:
            of("t0", at_s)
        says = str(caught.value)
        assert (
            "not active at this time: it was paused at 1970-01-01T00:00:02.500000Z, and not admitted again before "
            f"1970-01-01T{time}" in says
        )
        assert "admitted at 1970-01-01T00:00:00Z, paused at 1970-01-01T00:00:02.500000Z, active until " in says
        assert "1970-01-01T00:00:08.750000Z (pruned)" in says
    assert (of("t2", 8.75).after, of("t2", 20).after) == (2, 2)


def test_a_job_that_paused_alone_was_paused():
    events = log(4, [], 60, range(4))
    source = Scripted([pausing_job()], pausing=["a"], resume={20: ["a"]})
    run = replay_log(events, source, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    assert (
        "it was paused at 1970-01-01T00:00:02.500000Z, and not admitted again before 1970-01-01T00:00:19Z"
        in refused(run, "a", 19, events, source)
    )
    assert explained(run, "a", 20, events, source).after == 4


def test_a_job_paused_while_no_node_is_idle_was_paused_until_it_was_admitted_again():
    # paused at 2.5 s; no node is idle from 5 to 30 s; resumed at 20 s
    down = [(5, node, False) for node in range(4)]
    events = log(4, [*down, (30, 0, True)], 60, range(4))
    source = Scripted([pausing_job(), job("b", submit_s=1)], pausing=["a"], resume={20: ["a"]})
    run = replay_log(events, source, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    assert run.frame("reports")["verdict"].astype(str).tolist() == ["paused"]
    paused = run.frame("reports")["time"].iloc[0].timestamp()
    assert paused < 5
    for at_s in (5, 15):
        assert "and not admitted again before" in refused(run, "a", at_s, events, source)
        assert isinstance(explained(run, "b", at_s, events, source), EmptyPool)
    for at_s in (20, 25):
        assert isinstance(explained(run, "a", at_s, events, source), EmptyPool)


def test_many_pauses_are_told_with_how_many_more_there_were():
    events = log(1, [], 300, [0])
    marks = tuple(100.0 * k for k in range(1, 8))
    again = {20 * k: ["a"] for k in range(1, 8)}

    class Often(Scripted):
        def tell(self, report):
            return Verdict(pause=not report.is_finished)

    source = Often([replace(job("a", work=800.0), report_at_samples=marks)], resume=again)
    run = replay_log(events, source, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    says = refused(run, "a", 299, events, source)
    assert "paused at 1970-01-01T00:00:10Z, 1970-01-01T00:00:30Z, 1970-01-01T00:00:50Z and 4 times more, active" in says
    assert "until 1970-01-01T00:02:30Z (finished)" in says


POLICIES = {
    "exact": lambda: BFTrainerPolicy(T_FWD_S),
    "published limit": lambda: BFTrainerPolicy(T_FWD_S, ExactSolver(published_limit=True)),
    "equal share": EqualSharePolicy,
}


@settings(max_examples=examples(60))
@given(events=logs(), jobs=job_sets(), policy=st.sampled_from(sorted(POLICIES)), data=st.data())
def test_runner_up_and_margins_are_those_that_trying_all_decisions_finds(events, jobs, policy, data):
    run = replay_log(events, jobs, POLICIES[policy](), ReplaySettings(3), efficiency=False, bound=False)
    table = run.decisions
    decidable = np.flatnonzero((table["n_jobs"] > 0) & (table["n_idle"] > 0)).tolist()
    if not decidable:
        return
    wanted = data.draw(st.lists(st.sampled_from(decidable), min_size=1, max_size=4, unique=True))
    for found in recorded_decisions(run, wanted, events=events, jobs=jobs, t_fwd_s=T_FWD_S):
        problem = found.problem.within_published_limit() if policy == "published limit" else found.problem
        scale = magnitude(problem)
        for j in range(problem.n_jobs):
            told = answer(run, found, j)
            before, after = int(problem.current[j]), int(found.counts[j])
            optimum = best(problem)
            without = best(problem, lambda counts, j=j, after=after: counts[j] != after)
            as_it_was = best(problem, lambda counts, j=j, before=before: counts[j] == before)
            assert told.is_optimal == (
                told.chosen_objective is not None and agrees(told.chosen_objective, optimum, scale)
            )
            assert (told.runner_up is None) == (without is None)
            if without is not None:
                assert told.runner_up.objective == pytest.approx(without, rel=1e-9, abs=1e-6)
                assert told.runner_up.nodes != after
                assert tuple(told.runner_up.counts.values()) in {counts for counts, _ in all_decisions(problem)}
                margin = told.chosen_objective - told.runner_up.objective
                assert told.runner_up.difference == pytest.approx(margin, rel=1e-12, abs=1e-12 * scale)
            if before != after:
                assert (told.as_it_was is None) == (as_it_was is None)
            if told.as_it_was is not None:
                assert told.as_it_was.objective == pytest.approx(as_it_was, rel=1e-9, abs=1e-6)
                assert told.as_it_was.nodes == before != after
            assert (told.optimum is None) == told.is_optimal
            if told.is_optimal and told.runner_up is not None:
                assert told.runner_up.difference >= (0.0 if policy == "exact" else -1e-6 * scale)
            change = told.free_before - told.free_after
            others = sum(other.after - other.before for other in told.others)
            assert change == told.after - told.before + others
            json.dumps(told.to_dict(), allow_nan=False)
            assert render_decision(told).startswith(f"{told.job} at ")
