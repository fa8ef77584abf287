"""Contract of objectives."""

from __future__ import annotations

import json

import numpy as np

from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.verify import violation
from bfreplay.policies import NO_DEADLINE_US, BFTrainerPolicy, Policy, PolicyState
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.objectives.objective import Objective
from bfreplay.testing.decisions import corner_decisions, random_decisions
from bfreplay.testing.policy import T_FWD_S, PolicyContract, state_of
from bfreplay.testing.replays import SECOND


class ObjectiveContract(PolicyContract):
    """Inherit, and set ``objective`` to your spec, ``"mine:function"``, or override ``make_objective``.

    The contract of policies for BFTrainer's policy with this objective, and more.
    """

    objective: str

    def make_objective(self) -> Objective:
        """Return a new objective, as the command line makes one."""
        return objective_of(self.objective)

    def make(self) -> Policy:
        """Return a new policy that maximises it."""
        return BFTrainerPolicy(T_FWD_S, ExactSolver(), self.make_objective())

    def test_its_spec_makes_it_again(self) -> None:
        made = self.make_objective()
        described = made.describe()
        assert json.loads(json.dumps(described, allow_nan=False))["spec"] == made.spec
        again = objective_of(made.spec)
        assert again.describe() == described
        for state in jobs_of_every_kind():
            assert _same(made.problem(state, T_FWD_S), again.problem(state, T_FWD_S)), (
                "its spec makes a different objective"
            )

    def test_it_poses_sound_decisions_for_jobs_of_every_kind(self) -> None:
        made = self.make_objective()
        for state in jobs_of_every_kind():
            for t_fwd_s in (1.0, T_FWD_S, 86_400.0):
                posed = made.problem(state, t_fwd_s)
                posed.validate()
                assert posed.capacity <= state.n_idle
                assert np.array_equal(posed.current, state.current)
                assert (posed.min_nodes >= state.min_nodes).all()
                assert (posed.max_nodes <= state.max_nodes).all()
                answer = ExactSolver().solve(posed)
                assert answer.counts is not None, answer.message
                assert violation(posed, answer.counts) == ""

    def test_two_of_them_pose_the_same(self) -> None:
        one, other = self.make_objective(), self.make_objective()
        for state in jobs_of_every_kind():
            assert _same(one.problem(state, T_FWD_S), other.problem(state, T_FWD_S))


def jobs_of_every_kind() -> list[PolicyState]:
    """Return read-only states with all kinds of jobs: new, old, endless, late, weighted and stuck."""
    rng = np.random.default_rng(7)
    now_us = 1_700_000_000 * SECOND
    states = []
    for problem in (*corner_decisions().values(), *random_decisions(60, seed=5)):
        n_jobs = problem.n_jobs
        rate = np.maximum(problem.gain, 0.0)
        rate[:, 0] = 0.0
        admitted_us = now_us - rng.choice([0, 1, 3_600, 10**6], n_jobs) * SECOND
        progress = rate.max(axis=1) * (now_us - admitted_us) / SECOND * rng.random(n_jobs)
        progress[rng.random(n_jobs) < 0.1] = -1.0  # the published accounting can charge more than was made
        deadline_us = now_us + rng.choice([-60, 0, 1, 600, 10**6], n_jobs) * SECOND
        deadline_us[rng.random(n_jobs) < 0.4] = NO_DEADLINE_US
        left = rng.choice([1.0, 1e4, 1e9, np.inf], n_jobs)
        state = state_of(
            problem,
            time_us=now_us,
            job=100 + np.arange(n_jobs),
            throughput=rate,
            objective=np.sqrt(rate),
            progress=progress,
            work=np.maximum(progress, 0.0) + left,
            weight=rng.choice([0.01, 1.0, 100.0], n_jobs),
            submit_us=admitted_us - SECOND,
            admitted_us=admitted_us,
            deadline_us=deadline_us,
            model=rng.integers(-1, 2, n_jobs),
        )
        states.append(state)
    return states


def _same(one: AllocationProblem, other: AllocationProblem) -> bool:
    read = np.arange(one.gain.shape[1]) <= one.max_nodes[:, None]
    return bool(
        np.array_equal(one.gain[read], other.gain[read])
        and np.array_equal(one.scale_up_loss, other.scale_up_loss)
        and np.array_equal(one.scale_down_loss, other.scale_down_loss)
        and (one.capacity, one.change_limit) == (other.capacity, other.change_limit)
    )
