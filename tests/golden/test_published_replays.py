"""The published program's replays, step by step: our accounting against its log, our optimum against its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bfreplay.experiments.parity.bftrainer import BELOW_ITS_OWN_OPTIMUM
from bfreplay.experiments.parity.recorded.bftrainer import (
    LOG_COLUMNS,
    RUNS,
    PublishedReplay,
    objectives,
    recorded_questions,
)
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.milp_solver import MilpSolver


@cache
def published(shared: Path, run: str) -> PublishedReplay:
    return PublishedReplay.load(shared, run)


@pytest.mark.parametrize("run", RUNS)
def test_forced_decisions_are_asked_for_in_the_published_states(shared, run):
    replay = published(shared, run)
    assert replay.rerun.policy.questions == recorded_questions(replay)


@pytest.mark.parametrize("run", RUNS)
def test_forced_decisions_reproduce_the_published_step_log(shared, run):
    replay = published(shared, run)
    ours_at, *ours = zip(*replay.rerun.step_log(), strict=True)
    at, *recorded = zip(*replay.step_log, strict=True)
    assert ours_at == at
    for name, here, there in zip(LOG_COLUMNS, ours, recorded, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-8, atol=1e-6, err_msg=f"{run} {name}")


@pytest.mark.parametrize("run", RUNS)
def test_forced_decisions_reproduce_the_published_final_progress(shared, run):
    replay = published(shared, run)
    assert replay.rerun.final_progress() == pytest.approx(replay.record["final_progress"], rel=1e-6)


@pytest.mark.parametrize("run", RUNS)
def test_on_every_recorded_state_the_exact_optimum_under_the_published_limit_is_the_recorded_objective(shared, run):
    replay = published(shared, run)
    ours, theirs = np.array(objectives(replay.rerun.policy))
    assert len(ours) == len(replay.record["decisions"])
    # decisions worse than the published model's own optimum (CBC with big-M rows, by 3e-4)
    short = np.flatnonzero(~np.isclose(ours, theirs, rtol=1e-6, atol=1e-6)).tolist()
    assert {f"{run}, decision {k}" for k in short} == {name for name in BELOW_ITS_OWN_OPTIMUM if name.startswith(run)}
    assert (ours >= theirs * (1 - 1e-6)).all()
    assert (ours[short] <= theirs[short] * (1 + 1e-3)).all()


def test_the_one_recorded_answer_below_ours_is_below_the_optimum_of_the_published_model_too(shared):
    """Decision 256 of G2: CBC called 76,054 optimal; the published model itself admits 76,080."""
    policy = published(shared, "G2").rerun.policy
    solver = MilpSolver("published", "cbc", time_limit_s=1200.0, fallback="none", referee=ExactSolver())
    try:
        solution = solver.solve(policy.problems[256])
    finally:
        solver.close()
    ours, theirs = objectives(policy)
    assert solution.objective == pytest.approx(ours[256], rel=1e-9)
    assert solution.objective > theirs[256]


def test_the_published_limit_costs_objective_somewhere(shared):
    """The limit is a real restriction on these states, so the tests above would notice its absence."""
    policy = published(shared, "G1").rerun.policy
    unlimited = np.array([ExactSolver().solve(problem).objective for problem in policy.problems])
    limited = np.array(objectives(policy)[0])
    assert (unlimited >= limited - 1e-6).all()
    assert (unlimited > limited * (1 + 1e-6) + 1e-6).any()
