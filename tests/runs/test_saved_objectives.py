"""Decisions posed again under any objective, with learned curves, and with jobs that a source makes."""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets import write_events, write_jobs
from bfreplay.errors import InputError
from bfreplay.milp.problem import AllocationProblem
from bfreplay.policies import ANY_TRIGGER, BFTrainerPolicy, Decision, EqualSharePolicy, Policy, PolicyState, Trigger
from bfreplay.policies.learning import LearningPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.runs.explain.why_these_nodes import explain_decision
from bfreplay.runs.saved_decisions import decision_at, recorded_decisions, recorded_jobs
from bfreplay.runs.saved_inputs import MissingInputsError, jobs_of
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import JobReport, JobSet, Orders, Verdict
from tests.examples import examples
from tests.replay.tiny import SECOND, job, job_sets, log, logs
from tests.runs.explain.little_source import LittleHalving

T_FWD_S = 60.0
OBJECTIVES = ("own", "speed-up", "max-min", "deadline", "0.7*throughput + 0.3*speed-up", "proportional-fairness")


class Asked(Policy):
    """BFTrainer's policy, and every question that it was asked, on the curves that it was shown."""

    def __init__(self, objective: str, wakes_on: Trigger = ANY_TRIGGER) -> None:
        self._policy = BFTrainerPolicy(T_FWD_S, objective=objective)
        self.name, self.wakes_on = self._policy.name, wakes_on
        self.describe, self.close = self._policy.describe, self._policy.close
        self.questions: list[tuple[int, AllocationProblem, np.ndarray]] = []

    def decide(self, state: PolicyState) -> Decision:
        problem = deepcopy(self._policy.objective.problem(state, T_FWD_S))
        decision = self._policy.decide(state)
        self.questions.append((state.time_us, problem, np.array(decision.counts)))
        return decision


def check_all(run: RunResult, events, jobs, asked: list) -> list:
    table = run.decisions
    decidable = np.flatnonzero((table["n_jobs"] > 0) & (table["n_idle"] > 0)).tolist()
    found = recorded_decisions(run, decidable, events=events, jobs=jobs)
    asked_for = [each for each in found if table["process_status"][each.index] != "not_needed"]
    assert len(asked_for) == len(asked)
    for each, (time_us, problem, counts) in zip(asked_for, asked, strict=True):
        assert each.time_us == time_us
        assert each.counts.tolist() == counts.tolist()
        for name in ("current", "min_nodes", "max_nodes", "gain", "scale_up_loss", "scale_down_loss"):
            np.testing.assert_array_equal(getattr(each.problem, name), getattr(problem, name))
        assert (each.problem.capacity, each.problem.change_limit) == (problem.capacity, problem.change_limit)
    for each in found:
        assert (each.held - each.reclaimed >= 0).all()
        assert each.state.current.tolist() == each.problem.current.tolist()
    return found


def in_thousandths(curve: TabulatedCurve) -> TabulatedCurve:
    """Rates that one may divide by."""
    return TabulatedCurve(curve.nodes, [round(value, 3) for value in curve.values])


@settings(max_examples=examples(60))
@given(
    events=logs(),
    jobs=job_sets(),
    objective=st.sampled_from(OBJECTIVES),
    max_parallel=st.integers(1, 4),
    share=st.none() | st.sampled_from(["job", "model"]),
    noise=st.sampled_from([0.0, 0.2]),
    wakes_on=st.sampled_from([ANY_TRIGGER, ANY_TRIGGER, Trigger.POOL, Trigger.ARRIVAL | Trigger.COMPLETION]),
)
def test_questions_are_those_of_any_objective_on_the_curves_that_were_believed(
    events, jobs, objective, max_parallel, share, noise, wakes_on
):
    jobs = JobSet(
        replace(each, model=f"m{k % 2}", deadline_us=100 * SECOND, throughput=in_thousandths(each.throughput))
        for k, each in enumerate(jobs)
    )
    asked = Asked(objective, wakes_on)
    policy = asked if share is None else LearningPolicy(asked, share, noise, seed=3, measure_s=5.0)
    run = replay_log(events, jobs, policy, ReplaySettings(max_parallel), efficiency=False, bound=False)
    check_all(run, events, jobs, asked.questions)


@settings(max_examples=examples(40))
@given(
    events=logs(),
    n=st.integers(2, 6),
    objective=st.sampled_from(OBJECTIVES),
    max_parallel=st.integers(1, 6),
    share=st.none() | st.sampled_from(["job", "model"]),
)
def test_questions_about_the_trials_of_a_source_are_posed_again(events, n, objective, max_parallel, share):
    source, asked = LittleHalving(n, up_s=2.0, down_s=1.0), Asked(objective)
    policy = asked if share is None else LearningPolicy(asked, share, measure_s=2.0)
    run = replay_log(events, source, policy, ReplaySettings(max_parallel), efficiency=False, bound=False)
    for each in check_all(run, events, source, asked.questions):
        assert set(each.job_names) <= {f"t{k}" for k in range(n)}


@pytest.mark.parametrize(
    ("changes", "n_idle"),
    [
        # a and b have a node each; what happens to b at 20 s, and to a after it, is slept through: nothing is learnt
        ([(20, 1, False), (30, 0, False), (40, 2, True)], 2),
        # a has two nodes and loses one while the policy sleeps: nobody knows when
        ([(20, 1, False), (25, 3, True)], 3),
    ],
)
def test_nothing_is_learnt_from_what_the_policy_slept_through(changes, n_idle):
    rates = (0.0, 10.0, 21.0) if n_idle == 3 else (0.0, 10.0)
    events = log(4, changes, 60, idle_first=range(n_idle))
    jobs = JobSet([job("a", rates=rates), job("b", rates=(0.0, 9.0)), job("c", rates=(0.0, 5.0), submit_s=50)])
    asked = Asked("own", Trigger.ARRIVAL | Trigger.COMPLETION)
    run = replay_log(events, jobs, LearningPolicy(asked, measure_s=5.0), efficiency=False, bound=False)
    found = check_all(run, events, jobs, asked.questions)
    assert len(found) > len(asked.questions) == 2
    nodes = len(rates) - 1
    assert found[-1].problem.gain[0, nodes] != rates[nodes] * T_FWD_S


def test_a_policy_that_learns_is_explained_by_what_it_believed():
    events = log(4, [(20, 2, True), (40, 3, True)], 60, idle_first=[0, 1])
    jobs = JobSet([job("a", rates=(0.0, 10.0, 11.0, 11.5, 12.0))])
    run = replay_log(
        events, jobs, LearningPolicy(BFTrainerPolicy(T_FWD_S), measure_s=5.0), efficiency=False, bound=False
    )
    known = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    believed = explain_decision(run, "a", 20 * SECOND, events=events, jobs=jobs)
    true = explain_decision(known, "a", 20 * SECOND, events=events, jobs=jobs)
    assert (believed.is_believed, true.is_believed) == (True, False)
    assert true.value_after == 11.5 * T_FWD_S
    assert believed.value_before == 11.0 * T_FWD_S  # it has seen 2 nodes make 11 samples/s
    assert believed.value_after != true.value_after  # it can only guess what 3 will make


def test_a_run_made_before_objectives_could_be_chosen_has_the_jobs_own():
    events, jobs = log(4, [(20, 2, True)], 60, idle_first=[0, 1]), JobSet([job("a"), job("b")])
    run = replay_log(events, jobs, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    (new,) = recorded_decisions(run, [1], events=events, jobs=jobs)
    del run.record["config"]["policy"]["objective"]
    (old,) = recorded_decisions(run, [1], events=events, jobs=jobs)
    np.testing.assert_array_equal(new.problem.gain, old.problem.gain)


def test_nodes_held_and_reclaimed_are_told_apart_from_what_was_decided_on():
    events = log(
        4,
        [(10, 0, False), (10, 3, True), (20, 1, False), (20, 2, False), (20, 3, False), (30, 1, True)],
        60,
        idle_first=[0, 1, 2],
    )
    jobs = JobSet([job("a", rates=(0.0, 10.0, 20.0)), job("b", rates=(0.0, 9.0, 18.0))])
    run = replay_log(events, jobs, EqualSharePolicy(), efficiency=False, bound=False)
    assert run.decisions["n_idle"].tolist() == [3, 3, 0, 1]
    found = recorded_decisions(run, [0, 1, 3], events=events, jobs=jobs, t_fwd_s=T_FWD_S)
    assert [each.held.tolist() for each in found] == [[0, 0], found[0].counts.tolist(), [0, 0]]
    assert [int(each.reclaimed.sum()) for each in found] == [0, 1, 0]
    assert (found[1].held - found[1].reclaimed).tolist() == found[1].problem.current.tolist()


class PausedAtFirst(LittleHalving):
    """One trial, which pauses at 50 samples and goes on at 20 s."""

    def ask(self, now_us: int) -> Orders:
        if not self.submitted:
            self.submitted = True
            return Orders(submit=(self._trial(0, now_us),), ask_again_us=20 * SECOND)
        if now_us < 20 * SECOND:
            return Orders(ask_again_us=20 * SECOND)
        return Orders(resume=("t0",) if now_us == 20 * SECOND else ())

    def tell(self, report: JobReport) -> Verdict:
        return Verdict(pause=report.samples == 50.0)


def test_what_a_trial_lost_before_its_pause_is_not_reclaimed_when_it_goes_on():
    # a node is reclaimed from it at 1 s, and another one, that is free, at the instant at which it goes on
    events = log(3, [(1, 0, False), (20, 2, False)], 30, idle_first=[0, 1, 2])
    source = PausedAtFirst()
    run = replay_log(events, source, EqualSharePolicy(), efficiency=False, bound=False)
    index = decision_at(run, 20 * SECOND)
    assert run.decisions["n_reclaimed"][index] == 1
    (found,) = recorded_decisions(run, [index], events=events, jobs=source, t_fwd_s=T_FWD_S)
    assert (found.held.tolist(), found.reclaimed.tolist(), found.counts.tolist()) == ([0], [0], [1])


# -- jobs of a run ----------------------------------------------------------------------------------------


def test_jobs_of_a_source_are_made_again():
    events, source = log(4, [], 60, range(4)), LittleHalving(5, up_s=2.0)
    run = replay_log(events, source, BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    jobs = recorded_jobs(run, events=events, jobs=source)
    assert sorted(jobs) == [f"t{k}" for k in range(5)]
    assert jobs["t3"].scale_up_cost_s == 2.0
    assert jobs["t3"].report_at_samples == (50.0, 100.0)


def test_a_source_that_decides_otherwise_is_found_out():
    events = log(4, [], 60, range(4))
    run = replay_log(events, LittleHalving(5), BFTrainerPolicy(T_FWD_S), efficiency=False, bound=False)
    with pytest.raises(InputError, match="differs from the run"):
        recorded_decisions(run, [1], events=events, jobs=LittleHalving(4))


def test_a_set_is_not_taken_for_a_source_nor_a_source_for_a_set():
    events, source, jobs = log(4, [], 60, range(4)), LittleHalving(), JobSet([job("a")])
    of_source = replay_log(events, source, efficiency=False, bound=False)
    of_set = replay_log(events, jobs, efficiency=False, bound=False)
    with pytest.raises(InputError, match="a source of jobs, such as a campaign"):
        jobs_of(of_source, jobs)
    with pytest.raises(InputError, match="expected: a set of jobs"):
        jobs_of(of_set, source)
    assert jobs_of(of_source, source) is source


def test_a_set_of_jobs_is_read_without_its_log(tmp_path):
    write_events(log(2, [], 60, [0]), tmp_path / "log.csv")
    write_jobs(JobSet([job("a"), job("b")]), tmp_path / "jobs.csv")
    replay_log(tmp_path / "log.csv", tmp_path / "jobs.csv", efficiency=False, bound=False, out=tmp_path / "run")
    (tmp_path / "log.csv").unlink()
    run = RunResult.load(tmp_path / "run")
    assert sorted(recorded_jobs(run)) == ["a", "b"]
    with pytest.raises(MissingInputsError):
        recorded_decisions(run, [0])
    (tmp_path / "jobs.csv").unlink()
    with pytest.raises(MissingInputsError, match="no longer at their recorded path"):
        recorded_jobs(run)


SOURCE_OF_A_USER = """
from tests.runs.explain.little_source import LittleHalving


class Mine(LittleHalving):
    def __init__(self):
        super().__init__(3)
"""


def test_a_source_that_was_named_by_its_class_is_made_again(tmp_path, monkeypatch):
    (tmp_path / "my_trials.py").write_text(SOURCE_OF_A_USER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_trials", raising=False)
    write_events(log(4, [], 60, range(4)), tmp_path / "log.csv")
    replay_log(tmp_path / "log.csv", "my_trials:Mine", efficiency=False, bound=False, out=tmp_path / "run")
    run = RunResult.load(tmp_path / "run")
    assert sorted(recorded_jobs(run, jobs="my_trials:Mine")) == ["t0", "t1", "t2"]
    assert recorded_decisions(run, [0], jobs="my_trials:Mine")[0].job_names == ("t0", "t1", "t2")
