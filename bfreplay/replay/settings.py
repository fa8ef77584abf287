"""What a replay needs to know beside its log, its jobs and its policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bfreplay.errors import InputError
from bfreplay.policies import Decision, PolicyState
from bfreplay.replay.accounting import Semantics

SeedMap = Callable[[PolicyState, "np.ndarray[tuple[int], np.dtype[np.int64]]", np.random.Generator], Decision]
"""(state, free node numbers, generator) -> first map; only the published semantics use one."""


def random_seed_map(state: PolicyState, free: np.ndarray, rng: np.random.Generator) -> Decision:
    """The published first map: each idle node goes to a random job; jobs below ``min_nodes`` get none.

    Nodes above a job's ``max_nodes`` stay free, which the published program does not check.
    """
    owner = rng.integers(0, state.n_jobs, size=free.size)
    assigned = []
    for j in range(state.n_jobs):
        nodes = free[owner == j][: int(state.max_nodes[j])]
        assigned.append(nodes if nodes.size >= state.min_nodes[j] else nodes[:0])
    counts = np.array([nodes.size for nodes in assigned], dtype=np.int64)
    return Decision(counts, assigned=tuple(assigned))


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """Options of a replay.

    Parameters
    ----------
    max_parallel
        Most jobs active at once; the others queue, first come first served.
    semantics
        Continuous time, or the published program's.
    seed
        Of the published semantics' random first map.
    record_nodes
        Also write which node was held by whom (``nodes.parquet``).
    seed_map
        Replaces the random first map of the published semantics.
    """

    max_parallel: int = 10
    semantics: Semantics = Semantics.CONTINUOUS
    seed: int = 0
    record_nodes: bool = False
    seed_map: SeedMap = random_seed_map

    def __post_init__(self) -> None:
        if self.max_parallel < 1:
            raise InputError(
                "no job may run at all", column="max_parallel", value=self.max_parallel, expected="a whole number >= 1"
            )
