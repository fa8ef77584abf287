"""One decision by what each count is worth over possible futures of the pool, when nodes have a price in those.

A job by itself, with its counts free in every later interval: what it makes, less what rescaling costs it, less what
its nodes cost. That the jobs share the pool is in the prices: what one node more would be worth to all of them at the
pool's size. So a node that will be scarce soon is worth giving up in time, and one that will be gone soon is not worth
growing for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.errors import InputError
from bfreplay.milp.exact.relaxation import node_prices, relaxed_optima
from bfreplay.milp.rescale_cost import growth_cost, shrink_cost
from bfreplay.milp.solver import Solver
from bfreplay.policies.objectives.objective import problem_from
from bfreplay.policies.policy import Decision, PolicyState


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


def last_pool_s(policy: str, t_fwd_s: object) -> float:
    """``t_fwd_s`` of the policy of this name, checked.

    Raises
    ------
    InputError
        It is no positive number: ``"auto"``, say, or a ``ForwardTime``.
    """
    expected = "seconds > 0"
    fix = "120 s is a good start: --t-fwd 120"
    if isinstance(t_fwd_s, bool) or not isinstance(t_fwd_s, int | float | np.integer | np.floating):
        raise InputError(
            f"the policy {policy!r} looks ahead itself and takes a number for --t-fwd: how long the last pool in sight "
            "is expected to last",
            column="t_fwd_s", value=t_fwd_s, expected=expected, fix=fix,
        )  # fmt: skip
    seconds = float(t_fwd_s)
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(
            "the forward-looking time is not a positive number",
            column="t_fwd_s", value=t_fwd_s, expected=expected, fix=fix,
        )  # fmt: skip
    return seconds


@compiled
def values_ahead(
    rate: NDArray[np.float64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
    scale_up_s: NDArray[np.float64],
    scale_down_s: NDArray[np.float64],
    price: NDArray[np.float64],
    seconds: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Worth of each count now, mean over S futures, ``(J, K + 1)``; 0 for no nodes.

    Parameters
    ----------
    rate : (J, K + 1)
        Objective per second of each job at each count.
    min_nodes, max_nodes, scale_up_s, scale_down_s : (J,)
        Bounds and rescale costs (seconds of the rate before).
    price, seconds : (S, L)
        Of each future the price of a node in each of its L intervals, and their lengths. The first interval is the
        one that begins now; its price is not read, because the decision knows the pool.
    """
    n_jobs, width = rate.shape
    n_futures, length = seconds.shape
    worth = np.zeros((n_jobs, width))
    held = np.empty(width)
    during = np.empty(width)
    more = np.empty(width)
    for j in range(n_jobs):
        twin = _twin(rate, min_nodes, max_nodes, scale_up_s, scale_down_s, j)
        if twin < j:
            worth[j] = worth[twin]
            continue
        top = max_nodes[j]
        for s in range(n_futures):
            held[:] = 0.0
            for i in range(length - 1, 0, -1):
                for n in range(top + 1):
                    allowed = n == 0 or n >= min_nodes[j]
                    during[n] = held[n] + seconds[s, i] * (rate[j, n] - price[s, i] * n) if allowed else -np.inf
                best = -np.inf
                for n in range(top, -1, -1):
                    more[n] = best
                    best = max(best, during[n])
                best = -np.inf  # of fewer nodes
                for n in range(top + 1):
                    now = rate[j, n]
                    up, down = growth_cost(now, scale_up_s[j]), shrink_cost(now, scale_down_s[j])
                    held[n] = max(during[n], more[n] - up, best - down)
                    best = max(best, during[n])
            for n in range(top + 1):
                worth[j, n] += seconds[s, 0] * rate[j, n] + held[n] - held[0]
        for n in range(top + 1):
            worth[j, n] /= n_futures
    return worth


@compiled
def _twin(
    rate: NDArray[np.float64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
    scale_up_s: NDArray[np.float64],
    scale_down_s: NDArray[np.float64],
    job: int,
) -> int:
    """The first job that is like ``job`` in all that matters: in a campaign all jobs are."""
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


class Decider:
    """Decides by futures; keeps what a node is worth at each size of the pool as long as the jobs are the same."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._priced: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]] | None = None
        self._prices = np.zeros(1)

    def decide(self, state: PolicyState, futures: Futures) -> Decision:
        """Counts of the solver, or the current ones where it has none."""
        prices = self._prices_of(state)
        idle = np.minimum(futures.idle, prices.size - 1)  # more nodes than all jobs can use are free
        gain = values_ahead(
            state.objective, state.min_nodes, state.max_nodes, state.scale_up_cost_s, state.scale_down_cost_s,
            prices[idle], futures.seconds,
        )  # fmt: skip
        rate_now = state.objective[np.arange(state.n_jobs), state.current]
        solution = self._solver.solve(problem_from(state, gain, rate_now))
        counts = solution.counts
        return Decision(state.current.copy() if counts is None else counts, solution)

    def _prices_of(self, state: PolicyState) -> NDArray[np.float64]:
        tables = (state.objective, state.min_nodes, state.max_nodes)
        if self._priced is None or not all(map(np.array_equal, tables, self._priced)):
            self._priced = (state.objective.copy(), state.min_nodes.copy(), state.max_nodes.copy())
            count = np.arange(state.objective.shape[1])
            allowed = (count == 0) | ((count >= state.min_nodes[:, None]) & (count <= state.max_nodes[:, None]))
            value = np.where(allowed, state.objective, -np.inf)
            optima = relaxed_optima(value, np.ones(state.n_jobs, np.int64), int(state.max_nodes.sum()))
            self._prices = node_prices(optima)
        return self._prices

    def close(self) -> None:
        """Close the solver, forget the jobs."""
        self._priced = None
        self._solver.close()
