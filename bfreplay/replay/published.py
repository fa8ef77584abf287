"""What only the published program does: its random first map."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.rescale_cost import growth_cost
from bfreplay.policies import Decision, PolicyState

SeedMap = Callable[[PolicyState, NDArray[np.int64], np.random.Generator], Decision]
"""(state, free node numbers, generator) -> first map."""


def random_seed_map(state: PolicyState, free: NDArray[np.int64], rng: np.random.Generator) -> Decision:
    """Give each idle node to a random job; jobs below ``min_nodes`` get none.

    Nodes above a job's ``max_nodes`` stay free, which the published program does not check.
    """
    owner = rng.integers(0, state.n_jobs, size=free.size)
    assigned = []
    for j in range(state.n_jobs):
        nodes = free[owner == j][: int(state.max_nodes[j])]
        assigned.append(nodes if nodes.size >= state.min_nodes[j] else nodes[:0])
    counts = np.array([nodes.size for nodes in assigned], dtype=np.int64)
    return Decision(counts, assigned=tuple(assigned))


def charge_first_map(records: NDArray[np.void]) -> float:
    """Charge every job of the first map as if it had grown to it from the same rate; returns the samples."""
    cost: NDArray[np.float64] = growth_cost(records["rate"], records["scale_up_cost_s"])
    records["rescale_cost"] = cost
    records["rescale_debt"] = cost
    return float(cost.sum())
