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
from bfreplay.testing.subject import subject


class ObjectiveContract(PolicyContract):
    """Inherit, and set ``objective`` to your spec, ``"mine:function"``, or override ``make_objective``.

    The contract of policies for BFTrainer's policy with this objective, and more:

    - Its ``spec`` makes it again, with the same description and the same decisions.
    - Its values are finite where a count is allowed, for any job: new, old, endless, late, weighted, stuck, with a
      progress below 0; and for a forward-looking time from a second to a day.
    - It keeps the counts that jobs hold, and their bounds at least as narrow.
    """

    objective: str

    def make_objective(self) -> Objective:
        """Return a new objective, as the command line makes one."""
        return objective_of(subject(self, "objective"))

    def make(self) -> Policy:
        """Return a new policy that maximises it."""
        return BFTrainerPolicy(T_FWD_S, ExactSolver(), self.make_objective())

    def test_its_spec_makes_it_again(self) -> None:
        objective = self.make_objective()
        description = objective.describe()
        assert json.loads(json.dumps(description, allow_nan=False))["spec"] == objective.spec
        again = objective_of(objective.spec)
        assert again.describe() == description
        for state in jobs_of_every_kind():
            assert _same(objective.problem(state, T_FWD_S), again.problem(state, T_FWD_S)), (
                "its spec makes a different objective"
            )

    def test_it_poses_sound_decisions_for_jobs_of_every_kind(self) -> None:
        objective = self.make_objective()
        for state in jobs_of_every_kind():
            for t_fwd_s in (1.0, T_FWD_S, 86_400.0):
                problem = objective.problem(state, t_fwd_s)
                problem.validate()
                assert problem.capacity <= state.n_idle
                assert np.array_equal(problem.current, state.current)
                assert (problem.min_nodes >= state.min_nodes).all()
                assert (problem.max_nodes <= state.max_nodes).all()
                answer = ExactSolver().solve(problem)
                assert answer.counts is not None, answer.message
                assert violation(problem, answer.counts) == ""

    def test_two_of_them_pose_the_same(self) -> None:
        first_objective, second_objective = self.make_objective(), self.make_objective()
        for state in jobs_of_every_kind():
            assert _same(first_objective.problem(state, T_FWD_S), second_objective.problem(state, T_FWD_S))


def jobs_of_every_kind() -> list[PolicyState]:
    """Return read-only states with all kinds of jobs: new, old, endless, late, weighted and stuck."""
    generator = np.random.default_rng(7)
    now_us = 1_700_000_000 * SECOND
    states = []
    for problem in (*corner_decisions().values(), *random_decisions(60, seed=5)):
        n_jobs = problem.n_jobs
        job_rates = np.maximum(problem.gain, 0.0)
        job_rates[:, 0] = 0.0
        admitted_us = now_us - generator.choice([0, 1, 3_600, 10**6], n_jobs) * SECOND
        progress = job_rates.max(axis=1) * (now_us - admitted_us) / SECOND * generator.random(n_jobs)
        progress[generator.random(n_jobs) < 0.1] = -1.0  # the published accounting can charge more than was made
        deadline_us = now_us + generator.choice([-60, 0, 1, 600, 10**6], n_jobs) * SECOND
        deadline_us[generator.random(n_jobs) < 0.4] = NO_DEADLINE_US
        remaining = generator.choice([1.0, 1e4, 1e9, np.inf], n_jobs)
        state = state_of(
            problem,
            time_us=now_us,
            job=100 + np.arange(n_jobs),
            throughput=job_rates,
            objective=np.sqrt(job_rates),
            progress=progress,
            work=np.maximum(progress, 0.0) + remaining,
            weight=generator.choice([0.01, 1.0, 100.0], n_jobs),
            submit_us=admitted_us - SECOND,
            admitted_us=admitted_us,
            deadline_us=deadline_us,
            model=generator.integers(-1, 2, n_jobs),
        )
        states.append(state)
    return states


def _same(first: AllocationProblem, second: AllocationProblem) -> bool:
    arrays, others, is_read = first.arrays(), second.arrays(), first.is_read
    return (first.capacity, first.change_limit, [*arrays]) == (second.capacity, second.change_limit, [*others]) and all(
        np.array_equal(array[is_read], others[name][is_read])
        if array.ndim == 2
        else np.array_equal(array, others[name])
        for name, array in arrays.items()
    )
