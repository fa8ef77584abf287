"""A CBC that aborts, hangs and lies: what it does is statuses and counts, never a dead process or a believed answer."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import bfreplay
from benchmarks.decisions import realistic
from bfreplay.milp import ExactSolver, MilpSolver, ProcessStatus, Quality, SolverStatus
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.verify import agrees, magnitude, violation
from bfreplay.policies import BFTrainerPolicy
from bfreplay.testing.decisions import random_decisions

LIFT = "measure it again, and lift the ban on it if it is sound"
REPOSITORY = Path(__file__).resolve().parents[2]
NAIVE = "tests.milp.naive_cbc:NaiveCbc"
BIG_M = "tests.milp.big_m_sos2:BigMSos2"


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of the environment that `make unsafe-cbc` makes."""
    path = Path(os.environ.get("BFREPLAY_UNSAFE_CBC") or REPOSITORY / ".venv-unsafe-cbc") / "bin" / "python"
    if not path.exists():
        message = f"no unsafe CBC at {path}: `make unsafe-cbc` installs one"
        if os.environ.get("BFREPLAY_REQUIRE_SHARED"):
            pytest.fail(message)
        pytest.skip(message)
    return path


def _decisions():
    rng = np.random.default_rng(0)
    solvable = [problem for problem in random_decisions(16) if ExactSolver().solve(problem).counts is not None]
    return [realistic(10, 50, 64, 120.0, rng) for _ in range(12)] + solvable


def _outcomes(formulation: str, backend: str, python: Path | None, decisions, limit_s: float = 60.0, **options):
    """Count (process status, solver status, quality), and check whatever was believed."""
    outcomes = Counter()
    with IsolatedBackend(backend, python=python, grace_s=0.5) as worker:
        options |= {"referee": ExactSolver(), "fallback": "exact", "time_limit_s": limit_s}
        solver = MilpSolver(formulation, backend, worker=worker, **options)
        for problem in decisions:
            solution = solver.solve(problem)
            best = ExactSolver().solve(problem)
            assert violation(problem, solution.counts) == ""
            assert agrees(solution.objective, best.objective, magnitude(problem))
            told = solution.rejected or solution
            outcomes[told.process_status, told.solver_status, told.quality] += 1
        starts = worker.starts
    assert sum(outcomes.values()) == len(decisions)
    return outcomes, starts


@pytest.mark.slow
def test_crashes_and_wrong_optima_are_counted_and_none_is_believed(python, tmp_path):
    outcomes, starts = _outcomes(BIG_M, NAIVE, python, _decisions(), 4.0, save_failures=tmp_path)
    crashed = sum(n for (process, _, _), n in outcomes.items() if process is ProcessStatus.CRASHED)
    hung = sum(n for (process, _, _), n in outcomes.items() if process is ProcessStatus.TIMED_OUT)
    wrong = outcomes[ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG]
    assert crashed + hung > 0, f"this build no longer crashes on SOS2; {LIFT}"
    assert wrong > 0, f"this build no longer calls wrong answers optimal; {LIFT}"
    assert crashed + hung <= starts <= crashed + hung + 1  # a new one after each failure, but for the last decision
    rejected = sum(n for (*_, quality), n in outcomes.items() if quality not in (Quality.PROVEN, Quality.FEASIBLE))
    assert rejected >= crashed + hung + wrong
    assert len(list(tmp_path.glob("*.mps"))) == len(list(tmp_path.glob("*.json"))) == rejected


@pytest.mark.thorough
def test_without_sets_the_same_build_is_right(python):
    outcomes, starts = _outcomes("choices", NAIVE, python, _decisions()[:6])
    assert outcomes[ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.PROVEN] == 6
    assert starts == 1


@pytest.mark.thorough
def test_a_whole_replay_survives_it_and_trains_as_much_as_with_the_exact_solver(python):
    log = bfreplay.load_events(bfreplay.sample_events_path()).between(1_719_813_600_000_000, 1_719_820_800_000_000)
    jobs = bfreplay.load_jobs(bfreplay.sample_jobs_path())
    with IsolatedBackend(NAIVE, python=python, grace_s=0.5) as worker:
        solver = MilpSolver(BIG_M, NAIVE, worker=worker, referee=ExactSolver(), time_limit_s=0.5)
        run = bfreplay.replay_log(log, jobs, BFTrainerPolicy(120.0, solver), efficiency=False, bound=False)
    exact = bfreplay.replay_log(log, jobs, efficiency=False, bound=False)
    assert run.summary["n_decisions"] == exact.summary["n_decisions"]
    assert sum(run.summary["fallbacks"].values()) > 0
    assert set(run.summary["decisions"]) <= {"proven", "proven_by_fallback", "proven_trivially"}
    assert run.summary["ledger"]["samples"] == pytest.approx(exact.summary["ledger"]["samples"], rel=1e-3)


def test_our_settings_are_why_the_build_in_use_is_sound():
    """The same naive calls on the build that bfreplay requires still go wrong; bfreplay's back end does not."""
    decisions = [
        problem for problem in random_decisions(120, seed=9) if ExactSolver().solve(problem).counts is not None
    ]
    naive, _ = _outcomes(BIG_M, NAIVE, None, decisions)
    ours, _ = _outcomes(BIG_M, "cbc", None, decisions)
    proven = (ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.PROVEN)
    assert naive[proven] < len(decisions)
    assert ours == {proven: len(decisions)}
