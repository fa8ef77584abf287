"""Policies that look beyond the present decision: into the log itself, or along what followed earlier pools.

A decision is posed by what each count is worth over possible futures of the pool, when nodes have a price in those. A
job by itself, with its counts free in every later interval: what it makes, less what rescaling costs it, less what its
nodes cost. That the jobs share the pool is in the prices: what one node more would be worth to all of them at the
pool's size. So a node that will be scarce soon is worth giving up in time, and one that will be gone soon is not worth
growing for.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks, defaults
from bfreplay._compiled import compiled, copy_into
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.idleness.observe import pool_of
from bfreplay.datasets.idleness.pool import PoolSeries
from bfreplay.errors import InputError
from bfreplay.milp.charge_rule import scale_down_cost, scale_up_cost
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.exact.relaxation import node_prices, optima_of_hulls
from bfreplay.milp.solution import Solver
from bfreplay.policies.forward_time import is_number, positive_seconds
from bfreplay.policies.objectives.objective import problem_from
from bfreplay.policies.policy import Decision, Policy, PolicyCapabilities
from bfreplay.policies.state import LONG_AGO_US, JobTables, PolicyState


@dataclass(frozen=True, slots=True, eq=False)
class Futures:
    """S possible futures of the pool, over L intervals each; the first begins now.

    Parameters
    ----------
    idle : (S, L) int64
        Idle nodes; the first column is not read.
    seconds : (S, L) float64
        Length of each interval.
    """

    idle: NDArray[np.int64]
    seconds: NDArray[np.float64]

    @classmethod
    def none(cls, seconds: float) -> Futures:
        """Nothing is known: all stays as it is for ``seconds``. Then the decision is BFTrainer's."""
        return cls(np.zeros((1, 1), np.int64), np.full((1, 1), seconds))


def last_pool_s(policy: str, t_fwd_s: float | str) -> float:
    """Return ``t_fwd_s`` of the policy of this name, checked.

    Raises
    ------
    InputError
        It is no positive number: ``"auto"``, say, or a ``ForwardTime``.
    """
    expected, fix = "seconds > 0", "120 s is a good start: --t-fwd 120"
    if not is_number(t_fwd_s):
        problem = (
            f"the policy {policy!r} looks ahead itself and takes a number for --t-fwd: how long the last pool in sight "
            "is expected to last"
        )
        raise InputError(problem, column="t_fwd_s", value=t_fwd_s, expected=expected, fix=fix)
    return positive_seconds(t_fwd_s, expected, fix)


@compiled
def values_ahead(jobs: JobTables, price: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Worth of each count now, mean over S futures, ``(J, K + 1)``; 0 for no nodes.

    Parameters
    ----------
    jobs
        Of which rescale costs are seconds of the rate before.
    price, seconds : (S, L)
        Of each future the price of a node in each of its L intervals, and their lengths. The first interval is the
        one that begins now; its price is not read, because the decision knows the pool.
    """
    rate, min_nodes, max_nodes, scale_up_s, scale_down_s = jobs
    n_jobs, n_columns = rate.shape
    n_futures, length = seconds.shape
    worth = np.zeros((n_jobs, n_columns))
    ahead = np.empty(n_columns)
    during = np.empty(n_columns)
    more = np.empty(n_columns)
    for j in range(n_jobs):
        twin = _twin(jobs, j)
        if twin < j:
            copy_into(worth[j], worth[twin])
            continue
        most_nodes = max_nodes[j]
        for s in range(n_futures):
            ahead.fill(0.0)
            for i in range(length - 1, 0, -1):
                for n in range(most_nodes + 1):
                    is_legal = n == 0 or n >= min_nodes[j]
                    during[n] = ahead[n] + seconds[s, i] * (rate[j, n] - price[s, i] * n) if is_legal else -np.inf
                best_value = -np.inf
                for n in range(most_nodes, -1, -1):
                    more[n] = best_value
                    best_value = max(best_value, during[n])
                best_value = -np.inf  # of fewer nodes
                for n in range(most_nodes + 1):
                    up_cost = scale_up_cost(rate[j, n], scale_up_s[j])
                    down_cost = scale_down_cost(rate[j, n], scale_down_s[j])
                    ahead[n] = max(during[n], more[n] - up_cost, best_value - down_cost)
                    best_value = max(best_value, during[n])
            for n in range(most_nodes + 1):
                worth[j, n] += seconds[s, 0] * rate[j, n] + ahead[n] - ahead[0]
        for n in range(most_nodes + 1):
            worth[j, n] /= n_futures
    return worth


@compiled
def _twin(jobs: JobTables, job: int) -> int:
    """Return the first job with the same curve, bounds and costs as ``job``: in a campaign all jobs have."""
    rate, min_nodes, max_nodes, scale_up_s, scale_down_s = jobs
    for j in range(job):
        is_like = (
            min_nodes[j] == min_nodes[job]
            and max_nodes[j] == max_nodes[job]
            and scale_up_s[j] == scale_up_s[job]
            and scale_down_s[j] == scale_down_s[job]
        )
        for n in range(rate.shape[1]):
            if not is_like:
                break
            is_like = rate[j, n] == rate[job, n]
        if is_like:
            return j
    return job


class _AheadPolicy(Policy):
    """Base of the two policies: it decides by what nodes are worth over the futures that it expects."""

    capabilities = PolicyCapabilities(warm_up="look-ahead(events=1, futures=1)")
    parameters: ClassVar[tuple[str, ...]]
    """Parameters besides ``t_fwd_s`` and the solver."""

    def __init__(self, t_fwd_s: float | str, solver: Solver | None) -> None:
        self.t_fwd_s = last_pool_s(self.name, t_fwd_s)
        self.solver: Solver = ExactSolver() if solver is None else solver
        self._prices = np.zeros(1)
        self._forget()

    def _forget(self) -> None:
        """Forget the replay."""
        self._priced: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]] | None = None

    @abstractmethod
    def futures_from(self, state: PolicyState) -> Futures:
        """Return the futures to decide for."""

    def decide(self, state: PolicyState) -> Decision:
        """Return the counts that are best on average over the expected futures."""
        futures, prices = self.futures_from(state), self._prices_of(state)
        idle = np.minimum(futures.idle, prices.size - 1)  # more nodes than all jobs can use are free
        gain = values_ahead(state.tables, prices[idle], futures.seconds)
        rate_now = state.objective[np.arange(state.n_jobs), state.current]
        solution = self.solver.solve(problem_from(state, gain, rate_now))
        counts = solution.counts
        return Decision(state.current.copy() if counts is None else counts, solution)

    def _prices_of(self, state: PolicyState) -> NDArray[np.float64]:
        tables = (state.objective, state.min_nodes, state.max_nodes)
        if self._priced is None or not all(map(np.array_equal, tables, self._priced)):
            self._priced = (state.objective.copy(), state.min_nodes.copy(), state.max_nodes.copy())
            count = np.arange(state.objective.shape[1])
            is_allowed = (count == 0) | ((count >= state.min_nodes[:, None]) & (count <= state.max_nodes[:, None]))
            job_values = np.where(is_allowed, state.objective, -np.inf)
            optima = optima_of_hulls(job_values, np.ones(state.n_jobs, np.int64), int(state.max_nodes.sum()))
            self._prices = node_prices(optima)
        return self._prices

    def describe(self) -> dict[str, object]:
        """Return parameters and solver."""
        parameters = {name: getattr(self, name) for name in ("name", *self.parameters, "t_fwd_s")}
        return {**parameters, "solver": self.solver.describe()}

    def close(self) -> None:
        """Close the solver, forget the replay."""
        self._forget()
        self.solver.close()


class ForesightPolicy(_AheadPolicy):
    """Policy that knows the times of the next ``events`` pool events and the number of idle nodes after each.

    It is no policy for a machine: it measures what a perfect forecast of so many events would be worth. After the last
    event that it sees it expects the pool to stay as it is for ``t_fwd_s``, or to the end of the window when no other
    event comes. Without a log, or with ``events`` 0, it decides as BFTrainer.

    Parameters
    ----------
    events
        Pool events that it knows, >= 0.
    t_fwd_s
        How long the last pool in sight is expected to last, seconds > 0.
    solver
        Answers each decision; the exact solver by default.

    Raises
    ------
    InputError
        A parameter makes no sense.
    """

    name = "foresight"
    parameters = ("events",)
    not_saved = ("_known",)

    def __init__(self, events: int = 10, t_fwd_s: float | str = defaults.T_FWD_S, solver: Solver | None = None) -> None:
        checks.whole("events", events, 0, 100_000)
        self.events = int(events)
        super().__init__(t_fwd_s, solver)

    def _forget(self) -> None:
        super()._forget()
        self._known: PoolSeries | None = None

    @classmethod
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver, events: int = 10) -> ForesightPolicy:
        """Return the policy; all options matter."""
        return cls(events, t_fwd_s, solver)

    def foresee(self, events: NodeEvents) -> None:
        """Learn the log that is about to be replayed."""
        self._known = pool_of(events)

    def futures_from(self, state: PolicyState) -> Futures:
        """Return the events in sight."""
        pool_series, now_us = self._known, state.time_us
        if pool_series is None or self.events == 0:
            return Futures.none(self.t_fwd_s)
        first = int(np.searchsorted(pool_series.time_us, now_us, side="right"))
        begins = np.append(now_us, pool_series.time_us[first : first + self.events])
        is_all = first + self.events >= pool_series.time_us.size
        last_us = pool_series.end_us if is_all else int(begins[-1]) + round(self.t_fwd_s * 1e6)
        seconds = np.diff(begins, append=last_us) * 1e-6
        idle = np.append(0, pool_series.idle[first : first + self.events])
        return Futures(idle[None, :], seconds[None, :])


class LookAheadPolicy(_AheadPolicy):
    """Policy that expects what followed earlier pools of about the present size.

    Parameters
    ----------
    events
        How many events ahead, >= 1.
    futures
        How many earlier moments to follow, >= 1: those whose pool was nearest in size, the latest of equals.
    memory
        How many pool changes are remembered, >= ``futures + events``.
    t_fwd_s
        How long the last pool of a future is expected to last, seconds > 0; and the forward-looking time as long as too
        little has been seen.
    solver
        Answers each decision; the exact solver by default.

    Raises
    ------
    InputError
        A parameter makes no sense.
    """

    name = "look-ahead"
    parameters = ("events", "futures", "memory")

    def __init__(
        self,
        events: int = 5,
        futures: int = 20,
        memory: int = 500,
        t_fwd_s: float | str = defaults.T_FWD_S,
        solver: Solver | None = None,
    ) -> None:
        checks.whole("events", events, 1, 1000)
        checks.whole("futures", futures, 1, 1000)
        checks.whole("memory", memory, events + futures, 1_000_000)
        self.events, self.futures, self.memory = int(events), int(futures), int(memory)
        super().__init__(t_fwd_s, solver)

    def _forget(self) -> None:
        super()._forget()
        # twice the memory, so that old entries are moved out now and then instead of at every event
        self._time_us = np.zeros(2 * self.memory, np.int64)
        self._idle = np.zeros(2 * self.memory, np.int64)
        self._n = 0
        self._last_us = LONG_AGO_US

    @classmethod
    def from_options(
        cls, *, t_fwd_s: float | str, solver: Solver, events: int = 5, futures: int = 20, memory: int = 500
    ) -> LookAheadPolicy:
        """Return the policy; all options matter."""
        return cls(events, futures, memory, t_fwd_s, solver)

    def _remember(self, state: PolicyState) -> None:
        if state.time_us < self._last_us:
            self._forget()  # another replay
        self._last_us = state.time_us
        if self._n and self._idle[self._n - 1] == state.n_idle:
            return  # jobs came or went, or as many nodes were reclaimed as became idle
        if self._n == self._idle.size:
            for history in (self._time_us, self._idle):
                history[: self.memory] = history[self.memory :]
            self._n = self.memory
        self._time_us[self._n], self._idle[self._n] = state.time_us, state.n_idle
        self._n += 1

    def futures_from(self, state: PolicyState) -> Futures:
        """Return what followed earlier pools of about this size."""
        self._remember(state)
        first = max(self._n - self.memory, 0)
        # a moment counts when all that follows it has been seen; the last entry is now
        last = self._n - 1 - self.events
        if last - first + 1 < self.futures:
            return Futures.none(self.t_fwd_s)
        earlier = np.arange(last, first - 1, -1)
        away = np.abs(self._idle[earlier] - state.n_idle)
        nearest = earlier[np.argsort(away, kind="stable")[: self.futures]]
        path = nearest[:, None] + np.arange(self.events + 1)
        idle = np.maximum(self._idle[path] - self._idle[nearest][:, None] + state.n_idle, 0)
        begins = self._time_us[path]
        tail = np.full((nearest.size, 1), self.t_fwd_s)
        return Futures(idle, np.concatenate([np.diff(begins, axis=1) * 1e-6, tail], axis=1))
