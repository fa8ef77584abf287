"""Whatever a MILP solver does, the replay finishes, with the right samples, and says what happened."""

from __future__ import annotations

import os
import signal

import pytest

from bfreplay import replay_log
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.milp_solver import MilpSolver
from bfreplay.policies import BFTrainerPolicy, Decision, PolicyState
from bfreplay.runs.summary_text import render
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log

EVENTS = log(4, [(10, 1, True), (20, 2, True), (30, 1, False), (40, 3, True)], 60, idle_first=[0])
JOBS = JobSet([job("a", up_s=3, down_s=2), job("b", rates=(0.0, 4.0, 20.0, 21.0), up_s=1)])
FAULTY = "tests.milp.faulty_backends:"


def _solver(backend: str, **options) -> MilpSolver:
    return MilpSolver("choices", backend, referee=ExactSolver(), **options)


@pytest.mark.parametrize(
    ("backend", "reason", "quality"),
    [
        pytest.param("Aborts", "crashed", "none", marks=pytest.mark.thorough),
        pytest.param("KillsItself", "crashed", "none", marks=pytest.mark.thorough),
        pytest.param("Segfaults", "crashed", "none", marks=pytest.mark.slow),
        pytest.param("Hangs", "timed_out", "none", marks=pytest.mark.slow),
        ("CallsSuboptimalOptimal", "wrong", "wrong"),
        ("LiesAboutObjective", "wrong", "wrong"),
        ("GivesEverythingToEverybody", "wrong", "wrong"),
        ("AnswersFractions", "wrong", "wrong"),
    ],
)
def test_every_decision_of_a_bad_solver_falls_back_to_the_exact_one(backend, reason, quality):
    options = {"time_limit_s": 0.05, "grace_s": 0.05} if backend == "Hangs" else {}
    result = replay_log(EVENTS, JOBS, BFTrainerPolicy(60.0, _solver(FAULTY + backend, **options)))
    reference = replay_log(EVENTS, JOBS, BFTrainerPolicy(60.0))
    assert result.summary["fallbacks"] == {reason: result.summary["n_decisions"]}
    assert result.summary["decisions"] == {"proven_by_fallback": result.summary["n_decisions"]}
    n = result.summary["n_decisions"]
    words = f"{n} {reason.replace('_', ' ')}"
    assert result.warnings[-1].startswith(f"The fallback (exact) answered {n} of {n} decisions: {words}, the first: ")
    assert result.warnings[:-1] == reference.warnings
    assert result.summary["ledger"] == reference.summary["ledger"]
    assert f"fell back: {words}" in render(result)
    row = result.decisions.iloc[0]
    assert row["fell_back_from"].startswith("choices on ")
    assert row["solver"] == "exact"
    assert row["message"]


@pytest.mark.slow
def test_a_worker_that_is_killed_from_outside_costs_one_decision_a_fallback():
    solver = _solver("cbc")

    class Murderer(BFTrainerPolicy):
        asked = 0

        def decide(self, state: PolicyState) -> Decision:
            self.asked += 1
            if self.asked == 3:  # the worker sits idle between two decisions
                pid = solver._runner.worker_pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
            return super().decide(state)

    result = replay_log(EVENTS, JOBS, Murderer(60.0, solver))
    # a dead worker is noticed in time and replaced, or by the next decision, which then falls back
    assert result.summary["fallbacks"] in ({"crashed": 1}, {})
    n_fell_back = result.summary["fallbacks"].get("crashed", 0)
    kinds = {"proven": result.summary["n_decisions"] - n_fell_back, "proven_by_fallback": n_fell_back}
    assert result.summary["decisions"] == {kind: n for kind, n in kinds.items() if n}
    # the third decision has two optima: the exact solver takes one of them, and CBC the other
    policy = BFTrainerPolicy(60.0) if n_fell_back else BFTrainerPolicy(60.0, _solver("cbc"))
    reference = replay_log(EVENTS, JOBS, policy)
    assert result.summary["ledger"]["samples"] == reference.summary["ledger"]["samples"]
    assert solver._runner.worker_pid is None  # closed with the policy


@pytest.mark.slow
def test_a_solver_that_crashes_every_second_time_falls_back_every_second_time():
    result = replay_log(EVENTS, JOBS, BFTrainerPolicy(60.0, _solver(FAULTY + "CrashesEverySecondTime")))
    n = result.summary["n_decisions"]
    assert result.summary["fallbacks"] == {"crashed": n // 2}
    assert result.summary["decisions"] == {"proven": n - n // 2, "proven_by_fallback": n // 2}


def test_an_answer_without_proof_is_used_and_labelled():
    result = replay_log(EVENTS, JOBS, BFTrainerPolicy(60.0, _solver(FAULTY + "CallsOptimalFeasible")))
    assert result.summary["decisions"] == {"feasible": result.summary["n_decisions"]}
    assert result.summary["fallbacks"] == {}
    assert "feasible, not proven optimal" in render(result)


@pytest.mark.slow
def test_keeping_the_counts_is_what_the_published_program_does_when_it_has_no_optimum():
    result = replay_log(EVENTS, JOBS, BFTrainerPolicy(60.0, _solver(FAULTY + "Aborts", fallback="keep")))
    assert result.summary["ledger"]["samples"] == 0  # nothing ever starts
    assert result.summary["fallbacks"] == {"crashed": result.summary["n_decisions"]}
    assert set(result.decisions["solver"]) == {"keep"}
