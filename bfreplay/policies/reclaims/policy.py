"""``ReclaimAwarePolicy``: BFTrainer's decision where reclaims cost work, with the frequency of reclaims learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay import defaults
from bfreplay._compiled import compiled
from bfreplay.errors import InputError
from bfreplay.milp.charge_rule import DOWN, START, UP, change_cost
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Quality, Solver
from bfreplay.policies.bftrainer import BFTrainerPolicy
from bfreplay.policies.names import OWN
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.objectives.own import OwnObjective
from bfreplay.policies.objectives.separable import SeparableObjective
from bfreplay.policies.policy import ANY_TRIGGER, Decision, Placement, PolicyCapabilities, Round, Trigger
from bfreplay.policies.reclaims.memory import ReclaimMemory, Stretches, count_hits, frequency
from bfreplay.policies.reclaims.node_sets import choose_nodes, runs_of, useful_share
from bfreplay.policies.state import NEVER_US, ChangeCosts, PolicyState

_SHARED = 0.3
"""Share of the reclaims of the smaller of two sets of nodes that do not hit the other."""


class ReclaimAwarePolicy(BFTrainerPolicy):
    """BFTrainer's decision, with counts valued by what a job makes between reclaims, and nodes chosen for it.

    It remembers which nodes were reclaimed together (``ReclaimMemory``); nothing of the future. Jobs that lost a node,
    or have none, restart anyway: their nodes and the free ones are one pool. Counts are those that maximise the
    objective over the forward-looking time, times the share of it that is kept on the best nodes of that number; then
    each job, most needed nodes first, takes the runs of neighbours that add most, and leaves nodes that add nothing.

    Parameters
    ----------
    t_fwd_s, solver, objective
        As of ``BFTrainerPolicy``; the time in seconds, and the objective one that values each job by itself.

    Raises
    ------
    InputError
        A parameter makes no sense.
    """

    name = "reclaim-aware"
    wakes_on = ANY_TRIGGER | Trigger.ROUND
    capabilities = PolicyCapabilities(chooses_nodes=True, warm_up="reclaim-aware")

    def __init__(
        self,
        t_fwd_s: float = defaults.T_FWD_S,
        solver: Solver | str | None = None,
        objective: Objective | str = OWN,
    ) -> None:
        super().__init__(t_fwd_s, solver, objective)
        if self.t_fwd_s is None:
            raise InputError(
                "this policy needs a forward-looking time in seconds",
                column="t_fwd",
                value=t_fwd_s,
                expected="seconds > 0",
            )
        if not isinstance(self.objective, OwnObjective | SeparableObjective):
            raise InputError(
                "this policy values each job by itself",
                column="objective",
                value=self.objective.spec,
                expected="own, a term such as throughput, or a sum of terms",
            )
        self.memory = ReclaimMemory()

    @classmethod
    def from_options(  # type: ignore[override]  # fewer options
        cls, *, t_fwd_s: float, solver: Solver, objective: Objective | str | None = None
    ) -> ReclaimAwarePolicy:
        """Return the policy; all options matter."""
        return cls(t_fwd_s, solver, OWN if objective is None else objective)

    def check_types(self, type_names: Sequence[str]) -> None:
        """Raise ``InputError``: it knows nodes of one type."""
        raise InputError(
            f"the policy {self.name!r} chooses among nodes of one type",
            value=", ".join(type_names),
            expected="one node type",
            fix="choose one with --node-type",
        )

    def decide(self, state: PolicyState) -> Decision:
        """Return counts and nodes."""
        return self.reasons(state).decision

    def reasons(self, state: PolicyState) -> Reasons:
        """Decide, and return what the decision came from."""
        assert state.nodes is not None
        self.memory.note(state.nodes.is_idle, state.time_us)
        pool = _Pool(state, self.memory.stretches())
        problem = self._problem(state, pool)
        solution = self.solver.solve(problem)
        counts = state.current if solution.counts is None else solution.counts
        nodes = pool.choose(counts)
        node_counts = np.array([chosen.size for chosen in nodes])
        if solution.counts is not None and (n_less := int((counts - node_counts).sum())):
            objective = float(problem.value[np.arange(state.n_jobs), node_counts].sum())
            message = f"nodes left that are reclaimed too often: {n_less}"
            solution = replace(
                solution, counts=node_counts, objective=objective, quality=Quality.FEASIBLE, message=message
            )
        wake = Round(self._next_checkpoint_us(state, pool, node_counts))
        decision = Decision(node_counts, solution, self.t_fwd_s, Placement(nodes), wake)
        return Reasons(decision, problem, pool)

    def _next_checkpoint_us(self, state: PolicyState, pool: _Pool, counts: NDArray[np.int64]) -> int:
        """Return when the next job that may grow has nothing at risk, unless that comes more often than ``t_fwd_s``."""
        every_s = costs_of(state).save_every_s
        may_grow = (counts > 0) & (counts < state.max_nodes) & (every_s >= self.t_fwd_s)
        if state.next_save_us is None or counts.sum() == state.n_idle or not may_grow.any():
            return NEVER_US
        goes_on = pool.stays & (counts == state.current)
        next_us = np.where(goes_on, state.next_save_us, state.time_us + np.rint(every_s * 1e6).astype(np.int64))
        return int(next_us[may_grow].min())

    def _problem(self, state: PolicyState, pool: _Pool) -> AllocationProblem:
        t_fwd_s = float(self.t_fwd_s or 0.0)
        given_up = pool.rates = state.objective
        value_rate = given_up
        if isinstance(self.objective, SeparableObjective):
            rates = self.objective.rates(state, t_fwd_s)
            value_rate, given_up = rates.value, np.maximum(rates.given_up, 0.0)
            pool.rates = np.maximum(rates.value, 0.0)
        gain, loss = pool.worths(value_rate, given_up, t_fwd_s)
        return AllocationProblem.by_count(state.current, state.min_nodes, state.max_nodes, gain, loss, state.n_idle)

    def close(self) -> None:
        """Close the solver, and forget what was learned."""
        super().close()
        self.memory = ReclaimMemory()


@dataclass(frozen=True, slots=True, eq=False)
class Reasons:
    """A decision, the problem whose optimum it is, and the nodes that it chose from."""

    decision: Decision
    problem: AllocationProblem
    pool: _Pool

    def reclaims_per_hour(self, job_row: int) -> float:
        """Return the reclaims that it expected of the nodes of one job."""
        pool, count = self.pool, int(self.decision.counts[job_row])
        own = frequency(int(pool.hits[job_row].sum()), pool.reclaims.seconds) * pool.stays[job_row]
        added = count - int(pool.state.current[job_row]) * pool.stays[job_row]
        return 3600.0 * float(_of_both(own, pool.reclaims_per_s[added]) if added > 0 else own if count else 0.0)


class _Pool:
    """The nodes of one decision: those that jobs keep, and those to choose from.

    ``rates (J, K + 1)`` is what sets of nodes are chosen by.
    """

    rates: NDArray[np.float64]

    def __init__(self, state: PolicyState, reclaims: Stretches) -> None:
        assert state.nodes is not None
        n_jobs = state.n_jobs
        self.state, self.reclaims = state, reclaims
        self.held = [np.sort(state.nodes.held(j)).astype(np.int64) for j in range(n_jobs)]
        lost_nodes = np.zeros(n_jobs) if state.lost_nodes is None else state.lost_nodes
        self.stays = (state.current >= state.min_nodes) & (lost_nodes == 0)
        self._collect()
        nothing = np.zeros(0, np.int64)
        kept = [held if stays else nothing for held, stays in zip(self.held, self.stays, strict=True)]
        first, last, _ = reclaims
        idle = np.flatnonzero(state.nodes.is_idle)
        self.hits = [count_hits(first, last, np.searchsorted(idle, held)) for held in kept]
        costs = costs_of(state)
        self.every_s, self.allowed = costs.save_every_s, costs.allowed
        by_count = np.maximum(costs.seconds[:, UP], costs.seconds[:, DOWN])
        columns = np.minimum(np.arange(state.throughput.shape[1]), by_count.shape[1] - 1)
        self.restart_s = np.ascontiguousarray(by_count[:, columns])  # (J, K + 1)
        of_all = self._choose(np.arange(state.throughput.shape[1], dtype=np.float64), -1, int(state.max_nodes.max()))
        self.reclaims_per_s = of_all[1]

    def _collect(self) -> None:
        """Collect the nodes to choose from."""
        assert self.state.nodes is not None
        is_free = self.state.nodes.is_idle.copy()
        for held in (held for held, stays in zip(self.held, self.stays, strict=True) if stays):
            is_free[held] = False
        self.nodes = np.flatnonzero(is_free)
        self.places = np.searchsorted(np.flatnonzero(self.state.nodes.is_idle), self.nodes)
        self.is_left = np.ones(self.nodes.size, np.bool_)

    def _choose(
        self, rate: NDArray[np.float64], job_row: int, most: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return which of ``nodes`` a job takes, and the frequency of reclaims by count; -1: a job as good as any."""
        of_one = max(job_row, 0)
        first, last, seconds = self.reclaims
        is_chosen = np.zeros(self.nodes.size, np.bool_)
        stays = job_row >= 0 and bool(self.stays[job_row])
        reclaims_per_s = choose_nodes(
            rate,
            int(self.state.min_nodes[job_row]) if job_row >= 0 else 1,
            most,
            job_row < 0,
            self.held[job_row].size if stays else 0,
            self.hits[job_row] if stays else np.zeros(first.size, np.bool_),
            runs_of(self.places, self.nodes, self.is_left),
            self.places,
            first,
            last,
            seconds,
            float(self.every_s[of_one]),
            self.restart_s[of_one],
            is_chosen,
        )
        return is_chosen, reclaims_per_s

    def worths(
        self, value_rate: NDArray[np.float64], given_up: NDArray[np.float64], t_fwd_s: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gains and losses of all counts, (J, K + 1) each."""
        state = self.state
        costs = costs_of(state)
        at_risk = np.zeros(state.n_jobs) if state.at_risk_samples is None else state.at_risk_samples
        next_s = np.zeros(state.n_jobs)
        if state.next_save_us is not None:
            next_s = np.where(costs.save_every_s > 0, (state.next_save_us - state.time_us) / 1e6, 0.0)
        own = np.array([frequency(int(hits.sum()), self.reclaims.seconds) for hits in self.hits])
        throughput_now = state.throughput[np.arange(state.n_jobs), state.current]
        of_jobs = state.current, state.min_nodes, value_rate, given_up, throughput_now
        hazards = self.stays, self.restart_s, own, self.reclaims_per_s
        arguments: tuple[Any, ...] = *of_jobs, *costs, at_risk, next_s, *hazards, t_fwd_s
        return _worths(*arguments)

    def choose(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Return the nodes of each job: what it keeps, and what it takes, most needed first."""
        state = self.state
        if (self.stays & (counts == 0)).any():  # the others may take what these give up
            self.stays = self.stays & (counts > 0)
            self._collect()
        nodes = [held if stays else held[:0] for held, stays in zip(self.held, self.stays, strict=True)]
        needs = counts - np.array([kept.size for kept in nodes])
        for job_row in np.argsort(-needs, kind="stable").tolist():
            if needs[job_row] <= 0:
                break
            is_chosen, _ = self._choose(self.rates[job_row], job_row, int(counts[job_row]))
            n_kept = nodes[job_row].size
            n_more = self._largest_allowed(job_row, n_kept + int(is_chosen.sum())) - n_kept
            if n_more > 0:
                chosen = np.flatnonzero(is_chosen)[:n_more]
                nodes[job_row] = np.concatenate((nodes[job_row], self.nodes[chosen]))
                self.is_left[chosen] = False
        return tuple(nodes)

    def _largest_allowed(self, job_row: int, most: int) -> int:
        """Return the largest count of at most ``most`` that the job can use, or 0."""
        is_allowed = self.allowed[job_row, np.minimum(np.arange(most + 1), self.allowed.shape[1] - 1)]
        is_allowed[: self.state.min_nodes[job_row]] = False
        return int(np.flatnonzero(is_allowed).max(initial=0))


def costs_of(state: PolicyState) -> ChangeCosts:
    """Return the costs of changes, also where they are the constant ones."""
    if state.costs is not None:
        return state.costs
    n_jobs, zeros = state.n_jobs, np.zeros(state.n_jobs)
    seconds = np.zeros((n_jobs, 4, 1))
    seconds[:, UP, 0], seconds[:, DOWN, 0] = state.scale_up_cost_s, state.scale_down_cost_s
    return ChangeCosts(seconds, np.zeros(n_jobs, np.int64), zeros, zeros, np.ones((n_jobs, 1), np.bool_), zeros, 0.0)


@compiled
def _of_both(first: float, second: float) -> float:
    """Return the reclaims a second of two sets of nodes together."""
    return max(first, second) + _SHARED * min(first, second)


@compiled
def _worths(
    current: NDArray[np.int64],
    min_nodes: NDArray[np.int64],
    value_rate: NDArray[np.float64],
    given_up: NDArray[np.float64],
    throughput_now: NDArray[np.float64],
    seconds: NDArray[np.float64],
    pauses: NDArray[np.int64],
    pause_left_s: NDArray[np.float64],
    unsaved_samples: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    every_s: NDArray[np.float64],
    longest_s: float,
    at_risk: NDArray[np.float64],
    next_save_s: NDArray[np.float64],
    stays: NDArray[np.bool_],
    restart_s: NDArray[np.float64],
    own_per_s: NDArray[np.float64],
    free_per_s: NDArray[np.float64],
    t_fwd_s: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what counts are worth over the forward-looking time, and what changes lose, see ``_Pool.worths``.

    A job that changes makes ``T g(n) v(n)`` with the useful share ``g`` (``useful_share``) of its rate ``v``, and pays
    for the change what the longest restart of all leaves of it. One that stays also has what it would save at its next
    checkpoint, in ``tau`` seconds, if no reclaim comes before, with probability ``p = exp(-L tau)``: its work at risk
    ``w``, the work until then, and no restart; for that its useful share does not count until then.
    """
    gain = np.zeros(given_up.shape)
    loss = np.zeros(given_up.shape)
    for j in range(current.shape[0]):
        before = current[j]
        rate_now = given_up[j, before] if before >= min_nodes[j] else 0.0
        per_sample = rate_now / throughput_now[j] if rate_now > 0.0 and throughput_now[j] > 0.0 else 0.0
        for n in range(given_up.shape[1]):
            if n == before and stays[j]:
                own = own_per_s[j]
                share = useful_share(own, every_s[j], restart_s[j, n])
                survives = exp(-own * next_save_s[j])
                kept = at_risk[j] * per_sample + rate_now * next_save_s[j]
                kept += exp(-own * every_s[j]) * rate_now * (longest_s - pause_left_s[j])
                until_saved = share * rate_now * (1.0 - survives) / own
                saved_by_change = (at_risk[j] - unsaved_samples[j]) * per_sample
                gain[j, n] = t_fwd_s * share * value_rate[j, n]
                gain[j, n] += survives * kept - until_saved - saved_by_change
                continue
            is_shrinking = stays[j] and 0 < n < before
            if is_shrinking or not allowed[j, min(n, allowed.shape[1] - 1)]:
                loss[j, n] = np.inf
                continue
            per_s = free_per_s[n]
            if stays[j] and n > before:
                per_s = _of_both(own_per_s[j], free_per_s[n - before])
            share = useful_share(per_s, every_s[j], restart_s[j, n]) if n > 0 else 1.0
            column = min(n, seconds.shape[2] - 1)
            cost = change_cost(
                pauses[j] > 0,
                rate_now,
                given_up[j, n],
                before,
                n,
                min_nodes[j],
                seconds[j, START, column],
                seconds[j, UP, column],
                seconds[j, DOWN, column],
            )
            gain[j, n] = t_fwd_s * share * value_rate[j, n] + longest_s * given_up[j, n]
            loss[j, n] = pause_left_s[j] * rate_now if n == before else cost
    return gain, loss
