"""One decision by what each count is worth over possible futures of the pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.exact.every_capacity import node_prices, relaxed_optima
from bfreplay.milp.solver import Solver
from bfreplay.policies.look_ahead.futures import Futures
from bfreplay.policies.look_ahead.value_ahead import values_ahead
from bfreplay.policies.objectives.objective import problem_from
from bfreplay.policies.policy import Decision, PolicyState


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
