"""Rounds that follow a plan: when it is made anew, what is remembered, what is counted."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.milp.backends import BackendAnswer
from bfreplay.milp.solution import SolverStatus
from bfreplay.systems.shockwave.planner.options import PlannerOptions, PlannerQuirks
from bfreplay.systems.shockwave.planner.planned_rounds import ShockwavePlanner
from bfreplay.systems.shockwave.planner.problem import PlanProblem
from bfreplay.systems.shockwave.planner.solve import Plan, PlanSolver, RemainingTimes
from bfreplay.systems.shockwave.profile import Profile

PROFILE = Profile(100, np.full(200, 4), np.full(200, 60.0))


def _planner(n_jobs: int = 3, gang: int = 1, **options) -> ShockwavePlanner:
    planner = ShockwavePlanner(PlannerOptions(future_rounds=5, **options))
    for job in range(n_jobs):
        planner.add(job, PROFILE, gang, 0.0)
    return planner


def _plans_until(planner: ShockwavePlanner, rounds: range, n_gpus: int = 2) -> list[int]:
    """Rounds in which a plan was made."""
    made = []
    for r in rounds:
        before = planner.summary()["plans"]
        planner.next_round(r, 120.0 * r, n_gpus)
        made += [r] if planner.summary()["plans"] > before else []
    return made


def test_plans_are_followed_to_their_end_and_made_anew_in_every_eighth_round() -> None:
    assert _plans_until(_planner(), range(20)) == [0, 5, 8, 13, 16]


def test_the_counter_of_rounds_is_not_reset_by_other_plans() -> None:
    planner = _planner(replan_every=4)
    assert _plans_until(planner, range(3)) == [0]
    planner.remove(1)
    assert _plans_until(planner, range(3, 9)) == [3, 4, 8]


def test_admission_completion_and_a_change_of_gpus_make_a_new_plan() -> None:
    planner = _planner()
    assert _plans_until(planner, range(2)) == [0]
    planner.add(7, PROFILE, 1, 240.0)
    assert _plans_until(planner, range(2, 4)) == [2]
    planner.remove(7)
    assert _plans_until(planner, range(4, 5)) == [4]
    assert _plans_until(planner, range(5, 7), n_gpus=1) == [5]
    assert _plans_until(planner, range(7, 8), n_gpus=2) == [7]


def test_rounds_hold_jobs_in_order_of_admission_that_fit() -> None:
    planner = _planner(0)
    for job, gang in ((9, 1), (4, 2), (6, 1)):
        planner.add(job, PROFILE, gang, 0.0)
    seen = [planner.next_round(r, 120.0 * r, 3) for r in range(8)]
    gang_of = {9: 1, 4: 2, 6: 1}
    for jobs in seen:
        assert jobs == sorted(jobs, key=[9, 4, 6].index)
        assert sum(gang_of[job] for job in jobs) == 3 or jobs == [9, 6]


def test_no_job_or_no_gpu_plans_nothing() -> None:
    planner = _planner(0)
    assert planner.next_round(0, 0.0, 4) == []
    planner.add(0, PROFILE, 1, 0.0)
    assert planner.next_round(1, 120.0, 0) == []
    assert planner.summary()["plans"] == 0
    assert planner.next_round(2, 240.0, 1) == [0]


def test_what_a_round_did_is_recorded_for_jobs_that_are_still_here() -> None:
    planner = _planner(2)
    planner.remove(1)
    planner.after_round(0, {0: (3, 4, 1.0), 1: (9, 4, 1.0)}, 120.0)
    assert planner.prediction(0).epochs_done == 3
    planner.after_round(1, {0: (999, 4, 1.0)}, 240.0)
    assert planner.prediction(0).epochs_done == 200


def test_nothing_is_recorded_of_a_round_that_ended_at_zero() -> None:
    planner = _planner(1)
    planner.after_round(0, {0: (3, 4, 1.0)}, 0.0)
    assert planner.prediction(0).epochs_done == 0


def test_targets_are_predicted_anew_with_other_jobs_or_gpus_only() -> None:
    planner = _planner(2)
    targets = planner.prediction(0).targets
    for r, n_gpus, n_targets in ((0, 2, 1), (8, 2, 1), (9, 1, 2)):
        planner.next_round(r, 120.0 * r, n_gpus)
        assert len(targets) == n_targets
    planner.add(5, PROFILE, 1, 1200.0)
    planner.next_round(10, 1200.0, 1)
    assert len(targets) == 3
    assert targets[-1][1] == pytest.approx(3 * planner.prediction(0).remaining_s)


def test_durations_count_since_admission_unless_as_published() -> None:
    """Admitted at 1200 s, to end at 1200 + R when alone: heading for rho 1 in round 10, not for less."""
    for quirks, expected in ((PlannerQuirks(), None), (PlannerQuirks(clock_times=True), 1200.0)):
        planner = ShockwavePlanner(PlannerOptions(quirks=quirks))
        planner.add(0, PROFILE, 1, 1200.0)
        problem = planner.problem(11, 1320.0, 1)
        remaining_s = planner.prediction(0).remaining_s
        assert problem.target_s[0] == pytest.approx(remaining_s + (expected or 0.0))
        assert problem.elapsed_s[0] == (120.0 if expected is None else 1320.0)
        assert problem.rho[0] > 1.0


def test_forgetting_starts_anew() -> None:
    planner = _planner()
    _plans_until(planner, range(3))
    fresh = ShockwavePlanner(PlannerOptions(future_rounds=5))
    planner.forget()
    assert planner.summary() == fresh.summary()
    assert planner.plan is None
    assert planner.next_round(3, 360.0, 2) == []


def test_the_summary_counts_plans_and_calls() -> None:
    planner = _planner()
    _plans_until(planner, range(6))
    assert planner.summary() == {
        "plans": 2,
        "infeasible": 2,
        "without_answer": 0,
        "stopped_by_time_limit": 0,
        "per_round": 0,
        "greedy": 0,
        "lexicographic": 0,
        "largest_gap": pytest.approx(0.0, abs=1e-3),
    }
    assert planner.solve_s > 0.0


def test_the_largest_gap_is_a_number_also_where_one_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    make = PlanSolver.plan

    def unknown(solver: PlanSolver, problem: PlanProblem, remaining_s: RemainingTimes) -> Plan:
        plan = make(solver, problem, remaining_s)
        return replace(plan, calls=tuple(replace(call, gap=math.inf) for call in plan.calls))

    monkeypatch.setattr(PlanSolver, "plan", unknown)
    planner = _planner()
    planner.next_round(0, 0.0, 2)
    assert planner.summary()["largest_gap"] == 0.0


def test_calls_without_an_answer_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlanSolver, "_answer", lambda *_: BackendAnswer(SolverStatus.NO_SOLUTION))
    planner = _planner()
    assert planner.next_round(0, 0.0, 2)
    found = planner.summary()
    assert (found["greedy"], found["without_answer"], found["infeasible"]) == (1, 3, 0)
