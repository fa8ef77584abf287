"""The published program's replays, step by step: our accounting against its log, our optimum against its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.milp_solver import MilpSolver
from bfreplay.milp.problem import AllocationProblem, published_change_limit
from bfreplay.milp.verify import objective_of
from bfreplay.policies import Decision, PolicyState
from bfreplay.policies.bftrainer import problem_of
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import RunResult, replay_log
from tests.golden.published_replays import RUNS, PublishedReplay, RecordedPolicy

_COLUMNS = {
    "Thr": "samples_since_last",
    "Rate": "rate_samples_per_s",
    "ReScost": "rescale_cost_samples",
    "Nleft": "n_left",
    "Npre": "n_jobs_preempted",
    "Njoin": "n_joined",
    "nJob": "n_jobs",
    "nNd": "n_idle",
    "nJrun": "n_jobs_running",
    "nNrun": "n_nodes_used",
    "PreCost": "preempt_cost_samples",
}


# recorded decisions worse than the published model's own optimum (CBC with big-M rows, by 3e-4)
_SHORT_OF_THEIR_OWN_OPTIMUM = {"G2": [256]}


def _replay(published: PublishedReplay, policy: RecordedPolicy) -> RunResult:
    return replay_log(
        published.events,
        published.jobs,
        policy,
        ReplaySettings(published.record["max_parallel_jobs"], Semantics.PUBLISHED, seed_map=policy.first),
        with_efficiency=False,
        with_bound=False,
    )


@cache
def _forced(shared: Path, run: str) -> tuple[PublishedReplay, RecordedPolicy, RunResult]:
    published = PublishedReplay.load(shared, run)
    policy = published.recorded_policy()
    return published, policy, _replay(published, policy)


@pytest.mark.parametrize("run", RUNS)
def test_forced_decisions_reproduce_the_published_step_log(shared, run):
    published, policy, result = _forced(shared, run)
    log = published.step_log
    ours = result.table("decisions").to_pydict()
    # the first row is the seeding of the map, which the published program does not log
    assert [t.strftime("%Y-%m-%d %H:%M:%S") for t in ours["time"][1:]] == log["evtTime"]
    for theirs, column in _COLUMNS.items():
        np.testing.assert_allclose(ours[column][1:], log[theirs], rtol=1e-8, atol=1e-6, err_msg=f"{run} {theirs}")
    assert policy.asked == len(published.record["decisions"])


@pytest.mark.parametrize("run", RUNS)
def test_forced_decisions_reproduce_the_published_final_progress(shared, run):
    published, _, result = _forced(shared, run)
    jobs = result.table("jobs").to_pydict()
    active = {
        name: done
        for name, status, done in zip(jobs["job"], jobs["status"], jobs["done_samples"], strict=True)
        if status in ("running", "waiting")
    }
    assert active == pytest.approx(published.record["final_progress"], rel=1e-6)


class _Comparing(RecordedPolicy):
    """Puts every recorded question to our solver, under the published limit, and keeps both objectives."""

    def __init__(self, published: PublishedReplay) -> None:
        super().__init__(published.record, published.events.nodes, [job.name for job in published.jobs])
        self.t_fwd_s = published.record["t_fwd_s"]
        self.pairs: list[tuple[float, float]] = []
        self.problems: list[AllocationProblem] = []

    def decide(self, state: PolicyState) -> Decision:
        recorded = super().decide(state)
        problem = problem_of(state, self.t_fwd_s)
        limited = AllocationProblem(
            problem.current, problem.min_nodes, problem.max_nodes, problem.gain, problem.scale_up_loss,
            problem.scale_down_loss, problem.capacity, published_change_limit(problem.capacity),
        )  # fmt: skip
        ours = ExactSolver().solve(limited)
        self.problems.append(problem)
        self.pairs.append((ours.objective, objective_of(limited, recorded.counts)))
        return recorded


@pytest.mark.parametrize("run", RUNS)
def test_on_every_recorded_state_the_exact_optimum_under_the_published_limit_is_the_recorded_objective(shared, run):
    published = PublishedReplay.load(shared, run)
    policy = _Comparing(published)
    _replay(published, policy)
    ours, theirs = np.array(policy.pairs).T
    assert len(ours) == len(published.record["decisions"])
    short = _SHORT_OF_THEIR_OWN_OPTIMUM.get(run, [])
    assert np.flatnonzero(~np.isclose(ours, theirs, rtol=1e-6, atol=1e-6)).tolist() == short
    assert (ours >= theirs * (1 - 1e-6)).all()
    assert (ours[short] <= theirs[short] * (1 + 1e-3)).all()


def test_the_one_recorded_answer_below_ours_is_below_the_optimum_of_the_published_model_too(shared):
    """Decision 256 of G2: CBC called 76,054 optimal; the published model itself admits 76,080."""
    published = PublishedReplay.load(shared, "G2")
    policy = _Comparing(published)
    _replay(published, policy)
    solver = MilpSolver("published", "cbc", time_limit_s=60.0, fallback="none", referee=ExactSolver())
    try:
        solution = solver.solve(policy.problems[256])
    finally:
        solver.close()
    ours, theirs = policy.pairs[256]
    assert solution.objective == pytest.approx(ours, rel=1e-9)
    assert solution.objective > theirs


def test_the_published_limit_costs_objective_somewhere(shared):
    """The limit is a real restriction on these states, so the tests above would notice its absence."""
    published = PublishedReplay.load(shared, "G1")
    policy = _Comparing(published)
    _replay(published, policy)
    unlimited = np.array([ExactSolver().solve(problem).objective for problem in policy.problems])
    limited = np.array([ours for ours, _ in policy.pairs])
    assert (unlimited >= limited - 1e-6).all()
    assert (unlimited > limited * (1 + 1e-6) + 1e-6).any()
