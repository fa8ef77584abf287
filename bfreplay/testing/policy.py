"""What a policy must do."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import NO_DEADLINE_US, Decision, Policy, PolicyState, Trigger
from bfreplay.replay import ReplaySettings, Semantics, replay_log
from bfreplay.scalability import TabulatedCurve
from bfreplay.testing.decisions import corner_decisions, random_decisions
from bfreplay.workload import ElasticJob, JobSet

SECOND = 1_000_000
T_FWD_S = 60.0


class PolicyContract:
    """Inherit, and set ``policy`` to your class, or override ``make``."""

    policy: type[Any]

    def make(self) -> Policy:
        """Return a new policy, as the command line makes one."""
        made: Policy = self.policy.from_options(t_fwd_s=T_FWD_S, solver=ExactSolver())
        return made

    def test_it_says_what_it_is(self) -> None:
        made = self.make()
        assert isinstance(made.name, str)
        assert made.name
        assert isinstance(made.wakes_on, Trigger)
        json.dumps(made.describe(), allow_nan=False)
        made.close()
        made.close()  # harmless when called twice

    def test_its_counts_are_allowed(self) -> None:
        made = self.make()
        for state in _states():
            decision = made.decide(state)
            assert isinstance(decision, Decision)
            counts = decision.counts
            assert isinstance(counts, np.ndarray)
            assert np.issubdtype(counts.dtype, np.integer)
            assert counts.shape == (state.n_jobs,)
            assert counts.sum() <= state.n_idle
            within = (counts >= state.min_nodes) & (counts <= state.max_nodes)
            assert (within | (counts == 0) | (counts == state.current)).all()
        made.close()

    def test_it_changes_nothing_that_it_sees(self) -> None:
        made = self.make()
        for state in _states():
            before = [np.array(getattr(state, name)) for name in _ARRAYS]
            made.decide(state)
            for name, array in zip(_ARRAYS, before, strict=True):
                assert np.array_equal(getattr(state, name), array), f"decide() changed {name}"
        made.close()

    def test_two_of_them_decide_alike(self) -> None:
        one, other = self.make(), self.make()
        for state in _states():
            assert one.decide(state).counts.tolist() == other.decide(state).counts.tolist()
        one.close()
        other.close()

    @pytest.mark.parametrize("semantics", list(Semantics))
    def test_a_replay_with_it_closes_its_books_and_repeats(self, semantics: Semantics) -> None:
        summaries = []
        for _ in range(2):
            run = replay_log(_log(), _jobs(), self.make(), ReplaySettings(max_parallel=3, semantics=semantics))
            summaries.append(run.summary)  # a ledger that does not close has raised
        assert summaries[0] == summaries[1]
        assert summaries[0]["ledger"]["samples"] > 0, "nothing was trained on an idle machine"


_ARRAYS = tuple(field.name for field in fields(PolicyState) if field.name not in ("time_us", "n_idle"))


def _states() -> list[PolicyState]:
    """States as a replay shows them, read-only: the decisions of ``testing.decisions`` without a change limit."""
    states = []
    for problem in (*corner_decisions().values(), *random_decisions(60, seed=3)):
        n_jobs = problem.n_jobs
        rate = np.maximum(problem.gain, 0.0)
        state = PolicyState(
            time_us=0, n_idle=problem.capacity, job=np.arange(n_jobs), current=problem.current.copy(),
            min_nodes=problem.min_nodes.copy(), max_nodes=problem.max_nodes.copy(),
            scale_up_cost_s=problem.scale_up_loss.copy(), scale_down_cost_s=problem.scale_down_loss.copy(),
            throughput=rate, objective=rate.copy(), progress=np.zeros(n_jobs), work=np.full(n_jobs, 1e6),
            weight=np.ones(n_jobs), submit_us=np.zeros(n_jobs, np.int64), admitted_us=np.zeros(n_jobs, np.int64),
            deadline_us=np.full(n_jobs, NO_DEADLINE_US), model=np.arange(n_jobs) % 2,
        )  # fmt: skip
        for name in _ARRAYS:
            getattr(state, name).setflags(write=False)
        states.append(state)
    return states


def _log() -> NodeEvents:
    """Eight nodes that come and go for an hour."""
    rng = np.random.default_rng(0)
    names = [f"n{k}" for k in range(8)]
    times = np.sort(rng.choice(np.arange(1, 3_600), 60, replace=False)) * SECOND
    node = rng.integers(0, 8, 60)
    idle = np.ones(8, dtype=bool)
    states = []
    for n in node.tolist():
        idle[n] = not idle[n]
        states.append(NodeState.IDLE if idle[n] else NodeState.BUSY)
    opening = np.full(8, NodeState.IDLE, dtype=np.int8)
    return NodeEvents.from_arrays(names, opening, times.tolist(), node.tolist(), states, 0, 3_600 * SECOND)


def _jobs() -> JobSet:
    curve = TabulatedCurve((0, 1, 2, 4), (0.0, 1.0, 1.8, 3.0))
    return JobSet(
        ElasticJob(f"job{k}", k * 300 * SECOND, 1 + k % 2, 4, 5.0, 3.0, 1_500.0 * (k + 1), curve) for k in range(5)
    )
