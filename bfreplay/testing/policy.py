"""Contract of policies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.policies import NO_DEADLINE_US, Decision, Policy, PolicyCapabilities, PolicyState, Trigger
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.replay.decision_checks import decision_fault, require_decision
from bfreplay.runs import ReplaySession, RunSettings, run_replay
from bfreplay.scalability import TabulatedCurve
from bfreplay.testing.decisions import corner_decisions, random_decisions
from bfreplay.testing.replays import SECOND, check_resumes, toggling_log
from bfreplay.testing.subject import made, subject
from bfreplay.workload import Colocation, ElasticJob, JobSet

TYPES = ("v100", "p100", "k80")
_MODELS = ("large", "small", "tiny")
WIDEST = 4
"""Nodes of the widest job."""
_TOGETHER = 0.6


@dataclass(frozen=True, slots=True, eq=False)
class NodesByHand:
    """Nodes of a state made without a replay; see ``policies.state.NodesSeen``."""

    type_names: tuple[str, ...]
    node_type: NDArray[np.int16]
    is_idle: NDArray[np.bool_]
    holds: tuple[tuple[int, ...], ...]  # by row

    def held(self, j: int) -> NDArray[np.int32]:
        """Return the nodes that row ``j`` holds."""
        return np.array(self.holds[j], dtype=np.int32)


def state_of(problem: AllocationProblem, **other_fields: Any) -> PolicyState:
    """Return ``problem`` as a read-only state; ``other_fields`` are the fields that it lacks."""
    return read_only(
        PolicyState(
            n_idle=problem.capacity,
            current=problem.current.copy(),
            min_nodes=problem.min_nodes.copy(),
            max_nodes=problem.max_nodes.copy(),
            scale_up_cost_s=problem.scale_up_loss.astype(np.float64),
            scale_down_cost_s=problem.scale_down_loss.astype(np.float64),
            **other_fields,
        )
    )


def read_only(state: PolicyState) -> PolicyState:
    """Make the arrays of ``state`` read-only, as in a replay, and return it."""
    for array in arrays_of(state).values():
        array.setflags(write=False)
    return state


def arrays_of(state: PolicyState) -> dict[str, NDArray[np.generic]]:
    """Return all arrays of a state by name."""
    fields_by_name = {field.name: getattr(state, field.name) for field in fields(PolicyState)}
    if state.nodes is not None:
        fields_by_name |= {"nodes.node_type": state.nodes.node_type, "nodes.is_idle": state.nodes.is_idle}
    return {array_name: value for array_name, value in fields_by_name.items() if isinstance(value, np.ndarray)}


def nodes_of_one_type(n_idle: int, current: NDArray[np.int64]) -> NodesByHand:
    """Return idle nodes, the first of them held by the jobs with nodes."""
    n_nodes = max(n_idle, int(current.sum()))
    ends = np.cumsum(current).tolist()
    holds = tuple(tuple(range(stop - count, stop)) for stop, count in zip(ends, current.tolist(), strict=True))
    return NodesByHand(("any",), np.zeros(n_nodes, np.int16), np.ones(n_nodes, np.bool_), holds)


def states_with_nodes(n_states: int, seed: int, widest: int = WIDEST) -> list[PolicyState]:
    """Return ``n_states`` states with one to three node types; some jobs hold or share nodes, or exclude a type.

    No job uses more than ``widest`` nodes.
    """
    generator = np.random.default_rng(seed)
    return [_state(generator, 1 + index % len(TYPES), widest) for index in range(n_states)]


def _state(generator: np.random.Generator, n_types: int, widest: int) -> PolicyState:
    n_nodes, n_jobs = int(generator.integers(2, 13)), int(generator.integers(1, 7))
    node_type = generator.integers(0, n_types, n_nodes).astype(np.int16)
    is_idle = generator.random(n_nodes) < 0.8
    is_idle[0] = True
    most_nodes = min(widest, n_nodes)
    min_nodes = generator.integers(1, min(2, most_nodes) + 1, n_jobs)
    max_nodes = np.maximum(min_nodes, generator.integers(1, most_nodes + 1, n_jobs))
    by_type = generator.uniform(1.0, 20.0, (n_jobs, n_types, 1)) * np.arange(most_nodes + 1) ** 0.8
    by_type[np.arange(most_nodes + 1) > max_nodes[:, None, None] + np.zeros((1, n_types, 1))] = 0.0
    is_unsuited = generator.random((n_jobs, n_types)) < 0.2
    is_unsuited[:, 0] &= n_types > 1
    by_type[is_unsuited] = 0.0
    holds = _random_holdings(generator, node_type, is_idle, min_nodes, max_nodes)
    type_of_job = np.array([node_type[nodes[0]] if nodes else 0 for nodes in holds])
    weight = generator.choice([1.0, 5.0], n_jobs)
    throughput = by_type[np.arange(n_jobs), type_of_job]
    submit_us = np.sort(generator.integers(0, 3_600, n_jobs)) * SECOND
    has_deadline = generator.random(n_jobs) < 0.3
    return read_only(
        PolicyState(
            time_us=3_600 * SECOND,
            n_idle=int(is_idle.sum()),
            job=np.arange(n_jobs),
            current=np.array([len(nodes) for nodes in holds]),
            min_nodes=min_nodes,
            max_nodes=max_nodes,
            scale_up_cost_s=generator.uniform(0, 30, n_jobs),
            scale_down_cost_s=generator.uniform(0, 30, n_jobs),
            throughput=throughput,
            objective=weight[:, None] * throughput,
            progress=generator.uniform(0, 1e3, n_jobs),
            work=generator.uniform(2e3, 1e5, n_jobs),
            weight=weight,
            submit_us=submit_us,
            admitted_us=submit_us.copy(),
            deadline_us=np.where(has_deadline, 7_200 * SECOND, NO_DEADLINE_US),
            model=np.arange(n_jobs) % len(_MODELS),
            throughput_by_type=by_type,
            nodes=NodesByHand(TYPES[:n_types], node_type, is_idle, holds),
            model_names=_MODELS,
            colocation=colocation(),
        )
    )


def _random_holdings(
    generator: np.random.Generator,
    node_type: NDArray[np.int16],
    is_idle: NDArray[np.bool_],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
) -> tuple[tuple[int, ...], ...]:
    """Return the nodes of each job: none, some of one type, or the nodes of the job before it."""
    free_nodes = np.flatnonzero(is_idle).tolist()
    holds: list[tuple[int, ...]] = []
    is_shared = False
    for job_index, (min_count, max_count) in enumerate(zip(min_nodes.tolist(), max_nodes.tolist(), strict=True)):
        nodes_before = holds[-1] if job_index and not is_shared else ()
        if nodes_before and min_count <= len(nodes_before) <= max_count and generator.random() < 0.3:
            is_shared = True
            holds.append(nodes_before)
            continue
        is_shared = False
        kind = int(generator.integers(0, 1 + int(node_type.max())))
        nodes = [node for node in free_nodes if node_type[node] == kind][: int(generator.integers(0, max_count + 1))]
        nodes = nodes if len(nodes) >= min_count else []
        free_nodes = [node for node in free_nodes if node not in nodes]
        holds.append(tuple(nodes))
    return tuple(holds)


def colocation() -> Colocation:
    """Return rates of pairs: 0.6 of the rates of ``jobs_by_type`` alone; two large jobs cannot share."""
    together = {}
    for first, model in enumerate(_MODELS):
        for second, other_model in enumerate(_MODELS[: first + 1]):
            for node_type in TYPES:
                for n_nodes in range(1, WIDEST + 1):
                    rates = (_rate(first, node_type, n_nodes), _rate(second, node_type, n_nodes))
                    if first + second:
                        together[model, other_model, n_nodes, node_type] = (_TOGETHER * rates[0], _TOGETHER * rates[1])
    return Colocation(together)


def _rate(model: int, node_type: str, n_nodes: int) -> float:
    return float((1 + model) * (4.0, 2.0, 1.0)[TYPES.index(node_type)] * n_nodes**0.9)


def jobs_by_type(widest: int = WIDEST) -> JobSet:
    """Return six jobs of one to four nodes, at most ``widest``; one runs on a single type."""
    jobs = []
    for index in range(6):
        n_nodes = min(widest, (1, 2, 1, 4, 1, 2)[index])
        types = TYPES if index != 4 else TYPES[:1]
        curves = {
            node_type: TabulatedCurve(
                range(n_nodes + 1),
                (0.0, *(_rate(index % len(_MODELS), node_type, n + 1) for n in range(n_nodes))),
            )
            for node_type in types
        }
        jobs.append(
            ElasticJob(
                f"job{index}",
                index * 300 * SECOND,
                min(n_nodes, 1 + (index == 3)),
                n_nodes,
                5.0,
                3.0,
                1_500.0 * (index + 1),
                curves["v100"],
                weight=1.0 + 4 * (index == 2),
                deadline_us=None if index else 3_000 * SECOND,
                model=_MODELS[index % len(_MODELS)],
                throughput_by_type=curves,
            )
        )
    return JobSet(jobs, colocation=colocation())


T_FWD_S = 60.0


class PolicyContract:
    """Inherit, and set ``policy`` to your class, or override ``make``.

    A policy that takes several node types (``check_types``) is shown nodes of one to three types and jobs that may
    share them; others, nodes of one type. One that takes only narrow jobs sets ``widest``.

    It demands of a policy:

    - It inherits from ``bfreplay.Policy``, and ``from_options(t_fwd_s=..., solver=...)`` makes it.
    - Counts are an array of whole numbers, one a job: 0, or ``min_nodes`` to ``max_nodes``, in all at most ``n_idle``.
    - A decision that names a time (``Round.until_us``), or ``in_rounds``, goes with ``Trigger.ROUND`` in ``wakes_on``.
    - ``Decision.restart_s`` goes with ``capabilities.restarts_jobs``, one number >= 0 a job; ``waiting`` is there only
      with ``sees_queue``.
    - It changes no array of the state, and two new ones decide alike: no clock, no random numbers without a seed.
    - ``describe()`` and ``summary()`` are JSON without nan and inf; ``close()`` may be called twice.
    - A replay trains something on an idle machine, and its ledger closes, under both semantics (a policy in rounds,
      or with ``restarts_jobs``: continuous time only).
    - Its attributes are data, or named in ``not_saved`` and made anew by the constructor: a run that is cut after any
      instant and resumed ends with the same tables.
    """

    policy: type[Policy]
    widest: int = WIDEST
    """Nodes of the widest job shown to a policy for several node types."""

    def make(self) -> Policy:
        """Return a new policy, as the command line makes one."""
        policy_type: type[Policy] = subject(self, "policy", "decide", "from_options")
        policy: Policy = made(lambda: policy_type.from_options(t_fwd_s=T_FWD_S, solver=ExactSolver()), "policy")
        return policy

    def test_it_says_what_it_is(self) -> None:
        policy = self.make()
        assert isinstance(policy.name, str)
        assert policy.name
        assert isinstance(policy, Policy), "it does not inherit from bfreplay.Policy"
        assert isinstance(policy.wakes_on, Trigger)
        assert isinstance(policy.capabilities, PolicyCapabilities)
        assert not policy.capabilities.in_rounds or Trigger.ROUND in policy.wakes_on, (
            "has rounds, and does not wake on them"
        )
        json.dumps([policy.describe(), policy.summary()], allow_nan=False)
        policy.close()
        policy.close()  # harmless when called twice

    def test_its_counts_are_allowed(self) -> None:
        for policy, state in self._states_with_policy():
            decision = require_decision(policy, policy.decide(state))
            assert isinstance(decision.counts, np.ndarray)
            assert not decision_fault(decision, state)
            names_no_time = decision.round is None or decision.round.until_us is None
            assert names_no_time or Trigger.ROUND in policy.wakes_on, "names a time, and does not wake on rounds"
            assert decision.placement or not policy.capabilities.chooses_nodes, "chooses nodes, and names none"

    def test_it_changes_nothing_that_it_sees(self) -> None:
        for policy, state in self._states_with_policy():
            originals = {name: array.copy() for name, array in arrays_of(state).items()}
            policy.decide(state)
            for name, array in arrays_of(state).items():
                assert np.array_equal(array, originals[name]), f"decide() changed {name}"

    def test_two_of_them_decide_alike(self) -> None:
        for (first, state), (second, _) in zip(self._states_with_policy(), self._states_with_policy(), strict=True):
            assert _answers(first.decide(state)) == _answers(second.decide(state))

    @pytest.mark.parametrize("semantics", list(Semantics))
    def test_a_replay_with_it_closes_its_ledger_and_repeats(self, semantics: Semantics) -> None:
        events, jobs, in_rounds = self._replay_case(semantics)
        policy = self.make()
        restarts = policy.capabilities.restarts_jobs
        policy.close()
        settings = ReplaySettings(max_parallel=3, semantics=semantics)
        if (in_rounds or restarts) and semantics is Semantics.PUBLISHED:
            with pytest.raises(InputError, match="decides in rounds" if in_rounds else "its own cost of a change"):
                run_replay(events, jobs, self.make(), settings, RunSettings())
            return
        # a ledger that does not close raises
        first, second = (run_replay(events, jobs, self.make(), settings, RunSettings()).summary for _ in range(2))
        assert first == second
        assert first["ledger"]["samples"] > 0, "nothing was trained on an idle machine"

    def test_its_state_can_be_saved_and_restored_between_any_two_decisions(self) -> None:
        events, jobs, _ = self._replay_case(Semantics.CONTINUOUS)
        settings, run_settings = ReplaySettings(max_parallel=3), RunSettings(efficiency=False, bound=False)
        check_resumes(lambda: ReplaySession(events, jobs, self.make(), settings, run_settings))

    def _replay_case(self, semantics: Semantics) -> tuple[NodeEvents, JobSet, bool]:
        """Return a log and jobs to replay, and whether the policy decides in rounds."""
        policy = self.make()
        places = _places(policy) and semantics is Semantics.CONTINUOUS  # the published clock knows one type
        in_rounds = Trigger.ROUND in policy.wakes_on
        policy.close()
        if places:
            node_types = [TYPES[0]] * 4 + [TYPES[1]] * 4 + [TYPES[2]] * 2
            return toggling_log(10, 40, 3_600, node_types=node_types), jobs_by_type(self.widest), in_rounds
        return toggling_log(8, 60, 3_600), _jobs(), in_rounds

    def _states_with_policy(self) -> Iterator[tuple[Policy, PolicyState]]:
        """Yield policy and state; policies that place jobs or remember their round are new each time."""
        policy = self.make()
        places = _places(policy)
        asks_anew = places or policy.capabilities.in_rounds
        for state in states_with_nodes(_N_PLACED, seed=3, widest=self.widest) if places else _states():
            if asks_anew:
                policy.close()
                policy = self.make()
            n_jobs = state.n_jobs
            yield policy, replace(state, waiting=(n_jobs, n_jobs + 1)) if policy.capabilities.sees_queue else state
        policy.close()


_N_PLACED = 9


def _places(policy: Policy) -> bool:
    try:
        policy.check_types(TYPES)
    except InputError:
        return False
    return True


def _answers(decision: Decision) -> str:
    """Return all that a replay carries out, as text."""
    parts = [decision.counts, decision.placement, decision.round, decision.restart_s]
    return json.dumps(parts, default=lambda part: part.tolist() if isinstance(part, np.ndarray) else asdict(part))


def _states() -> list[PolicyState]:
    """Return the decisions of ``testing.decisions`` without a change limit, as read-only states."""
    states = []
    for problem in (*corner_decisions().values(), *random_decisions(60, seed=3)):
        n_jobs = problem.n_jobs
        job_rates = np.maximum(problem.gain, 0.0)
        state = state_of(
            problem,
            time_us=0,
            job=np.arange(n_jobs),
            throughput=job_rates,
            objective=job_rates.copy(),
            progress=np.zeros(n_jobs),
            work=np.full(n_jobs, 1e6),
            weight=np.ones(n_jobs),
            submit_us=np.zeros(n_jobs, np.int64),
            admitted_us=np.zeros(n_jobs, np.int64),
            deadline_us=np.full(n_jobs, NO_DEADLINE_US),
            model=np.arange(n_jobs) % 2,
            nodes=nodes_of_one_type(problem.capacity, problem.current),
            model_names=("even", "odd"),
        )
        states.append(state)
    return states


def _jobs() -> JobSet:
    curve = TabulatedCurve((0, 1, 2, 4), (0.0, 1.0, 1.8, 3.0))
    return JobSet(
        ElasticJob(f"job{k}", k * 300 * SECOND, 1 + k % 2, 4, 5.0, 3.0, 1_500.0 * (k + 1), curve) for k in range(5)
    )
