"""Which node a job gets where the log does not say: the free nodes, kept so that each rule finds its next at once.

Compiled loops over plain arrays. ``free`` is a linked list of the free nodes in the order in which they became free,
``free[0]`` the node before and ``free[1]`` the node after each, with the node number N as the head of the ring; and
``dense`` the free nodes without order, ``dense[0]`` the nodes and ``dense[1]`` the position of each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled

LOWEST_ID, MOST_RECENT, LEAST_RECENT, RANDOM = range(4)
"""Codes of the rules, as in ``rules.ASSIGNMENTS``."""


def no_nodes(n_nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return an empty list ``free (2, N + 1)`` and an empty set ``dense (2, N)``."""
    free = np.full((2, n_nodes + 1), -1, np.int32)
    free[:, n_nodes] = n_nodes
    return free, np.full((2, n_nodes), -1, np.int32)


@compiled
def add_free(node: int, n_free: int, free: NDArray[np.int32], dense: NDArray[np.int32]) -> int:
    """Append a node to the free ones; returns how many there are then."""
    end = free.shape[1] - 1
    last = free[0, end]
    free[0, node] = last
    free[1, node] = end
    free[1, last] = node
    free[0, end] = node
    dense[0, n_free] = node
    dense[1, node] = n_free
    return n_free + 1


@compiled
def remove_free(node: int, n_free: int, free: NDArray[np.int32], dense: NDArray[np.int32]) -> int:
    """Take a node out of the free ones; returns how many are left."""
    before, after = free[0, node], free[1, node]
    free[1, before] = after
    free[0, after] = before
    moved = dense[0, n_free - 1]
    dense[0, dense[1, node]] = moved
    dense[1, moved] = dense[1, node]
    dense[1, node] = -1
    return n_free - 1


@compiled
def next_free(
    rule: int, cursor: int, chance: float, n_free: int, free: NDArray[np.int32], dense: NDArray[np.int32]
) -> int:
    """Return the node that a rule takes next; there must be one.

    Parameters
    ----------
    rule
        ``LOWEST_ID``, ``MOST_RECENT``, ``LEAST_RECENT`` or ``RANDOM``.
    cursor
        No node below it is free (lowest id only).
    chance
        Uniform on [0, 1) (random only).
    """
    end = free.shape[1] - 1
    if rule == 0:
        node = cursor
        while dense[1, node] < 0:
            node += 1
        return node
    if rule == 1:
        return int(free[0, end])
    if rule == 2:
        return int(free[1, end])
    return int(dense[0, min(int(chance * n_free), n_free - 1)])
