"""Which nodes of its type a job gets: the rule by which the replay places counts, type by type."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.policy import NodesSeen


def placed(nodes: NodesSeen, types: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Nodes of each job, last gained last.

    A job that stays on its type keeps the nodes it has, and gives back the ones it gained last first; one that moves
    gives back all. Then free nodes are taken, lowest number first, jobs in their order.

    Parameters
    ----------
    nodes
        As they are now; ``held(j)`` gives a job's last gained last.
    types : (J,) int64
        Type that each job is to be on, negative for none.
    counts : (J,) int64
        How many nodes of it, feasible.
    """
    is_free = nodes.is_idle.copy()
    kept: list[NDArray[np.int64]] = []
    for j, (kind, count) in enumerate(zip(types.tolist(), counts.tolist(), strict=True)):
        held = nodes.held(j).astype(np.int64)
        held = held[is_free[held]]  # of two jobs that shared nodes the first keeps them
        stays = held.size > 0 and nodes.node_type[held[0]] == kind
        kept.append(held[:count] if stays else held[:0])
        is_free[kept[-1]] = False
    free = [np.flatnonzero(is_free & (nodes.node_type == t)) for t in range(len(nodes.type_names))]
    used = [0] * len(free)
    placement = []
    for mine, kind, count in zip(kept, types.tolist(), counts.tolist(), strict=True):
        missing = count - mine.size
        if missing > 0:
            mine = np.concatenate([mine, free[kind][used[kind] : used[kind] + missing]])
            used[kind] += missing
        placement.append(mine)
    return tuple(placement)
