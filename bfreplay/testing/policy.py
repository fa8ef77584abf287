"""What a policy must do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pytest

from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import NO_DEADLINE_US, Decision, Policy, PolicyCapabilities, PolicyState, Trigger
from bfreplay.replay import ReplaySettings, Semantics, replay_log
from bfreplay.replay.decision_checks import checked_answer, why_not_realisable
from bfreplay.scalability import TabulatedCurve
from bfreplay.testing.decisions import corner_decisions, random_decisions
from bfreplay.testing.placed_states import (
    TYPES,
    WIDEST,
    arrays_of,
    nodes_of_one_type,
    placed_jobs,
    placed_log,
    placed_states,
    read_only,
)
from bfreplay.workload import ElasticJob, JobSet

SECOND = 1_000_000
T_FWD_S = 60.0


class PolicyContract:
    """Inherit, and set ``policy`` to your class, or override ``make``.

    A policy that takes several node types (``check_types``) is shown nodes of one to three types and jobs that may
    share them; others, nodes of one type. One that takes only narrow jobs sets ``widest``.
    """

    policy: type[Policy]
    widest: int = WIDEST
    """Nodes of the widest job that a policy for several node types is asked about."""

    def make(self) -> Policy:
        """Return a new policy, as the command line makes one."""
        return self.policy.from_options(t_fwd_s=T_FWD_S, solver=ExactSolver())

    def test_it_says_what_it_is(self) -> None:
        made = self.make()
        assert isinstance(made.name, str)
        assert made.name
        assert isinstance(made, Policy), "it does not inherit from bfreplay.Policy"
        assert isinstance(made.wakes_on, Trigger)
        assert isinstance(made.capabilities, PolicyCapabilities)
        assert not made.capabilities.in_rounds or Trigger.ROUND in made.wakes_on, "has rounds, and sleeps through them"
        json.dumps([made.describe(), made.summary()], allow_nan=False)
        made.close()
        made.close()  # harmless when called twice

    def test_its_counts_are_allowed(self) -> None:
        for made, state in self._asked():
            decision = checked_answer(made, made.decide(state))
            assert isinstance(decision.counts, np.ndarray)
            assert not why_not_realisable(decision, state)
            names_no_time = decision.round is None or decision.round.until_us is None
            assert names_no_time or Trigger.ROUND in made.wakes_on, "names a time, and sleeps through it"

    def test_it_changes_nothing_that_it_sees(self) -> None:
        for made, state in self._asked():
            before = {name: array.copy() for name, array in arrays_of(state).items()}
            made.decide(state)
            for name, array in arrays_of(state).items():
                assert np.array_equal(array, before[name]), f"decide() changed {name}"

    def test_two_of_them_decide_alike(self) -> None:
        for (one, state), (other, _) in zip(self._asked(), self._asked(), strict=True):
            assert _answers(one.decide(state)) == _answers(other.decide(state))

    @pytest.mark.parametrize("semantics", list(Semantics))
    def test_a_replay_with_it_closes_its_books_and_repeats(self, semantics: Semantics) -> None:
        made = self.make()
        places = _places(made) and semantics is Semantics.CONTINUOUS  # the published clock knows one type
        in_rounds = Trigger.ROUND in made.wakes_on
        made.close()
        events, jobs = (placed_log(), placed_jobs(self.widest)) if places else (_log(), _jobs())
        settings = ReplaySettings(max_parallel=3, semantics=semantics)
        if in_rounds and semantics is Semantics.PUBLISHED:
            with pytest.raises(InputError, match="decides in rounds"):
                replay_log(events, jobs, self.make(), settings)
            return
        summaries = []
        for _ in range(2):
            run = replay_log(events, jobs, self.make(), settings)
            summaries.append(run.summary)  # a ledger that does not close has raised
        assert summaries[0] == summaries[1]
        assert summaries[0]["ledger"]["samples"] > 0, "nothing was trained on an idle machine"

    def _asked(self) -> Iterator[tuple[Policy, PolicyState]]:
        """States, and who is asked: one for all; of those that place jobs, who may know the nodes, a new one each."""
        made = self.make()
        if not _places(made):
            for state in _states():
                yield made, state
            made.close()
            return
        made.close()
        for state in placed_states(_N_PLACED, seed=3, widest=self.widest):
            made = self.make()
            yield made, state
            made.close()


_N_PLACED = 9


def _places(policy: Policy) -> bool:
    try:
        policy.check_types(TYPES)
    except InputError:
        return False
    return True


def _answers(decision: Decision) -> str:
    """Everything that a replay carries out."""
    parts = [decision.counts, decision.placement, decision.round]
    return json.dumps(parts, default=lambda part: part.tolist() if isinstance(part, np.ndarray) else asdict(part))


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
            nodes=nodes_of_one_type(problem.capacity, problem.current), model_names=("even", "odd"),
        )  # fmt: skip
        states.append(read_only(state))
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
