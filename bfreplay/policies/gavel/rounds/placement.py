"""Which nodes the chosen ones run on: those they had, or the first free ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled


@compiled
def placed(
    gang: NDArray[np.int64],
    kind: NDArray[np.int64],
    task: NDArray[np.int64],
    last_type: NDArray[np.int64],
    last_offset: NDArray[np.int64],
    last_node: NDArray[np.int64],
    node_type: NDArray[np.int16],
    is_free: NDArray[np.bool_],
    n_types: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Nodes of k chosen entries, as offsets (k + 1,) and node numbers (sum of gangs,).

    Larger gangs go first. Among equal ones, first those that ran on the same type in the last assignment keep their
    nodes, if all are free still; the others take the lowest free node numbers of the type, in the order in which they
    were chosen. Nodes of a server have consecutive numbers, so gangs stay together where they can.

    Parameters
    ----------
    gang, kind, task : (k,) int64
        Nodes to find, node type, and micro-task in the last assignment, -1 for none.
    last_type, last_offset, last_node
        The last assignment.
    node_type : (N,)
    is_free : (N,) bool
        Updated: nodes that are given away are no longer free.
    n_types
        n.
    """
    k = gang.shape[0]
    offset = np.zeros(k + 1, np.int64)
    for i in range(k):
        offset[i + 1] = offset[i] + gang[i]
    node = np.empty(offset[k], np.int64)
    has_nodes = np.zeros(k, np.bool_)
    # of each type, no node before this one is free
    first = np.zeros(n_types, np.int64)
    size = gang.max() if k else 0
    while size > 0:
        for i in range(k):
            if gang[i] != size or task[i] < 0 or last_type[task[i]] != kind[i]:
                continue
            had = last_node[last_offset[task[i]] : last_offset[task[i] + 1]]
            free = True
            for at in had:
                free = free and is_free[at]
            if free:
                has_nodes[i] = True
                node[offset[i] : offset[i + 1]] = had
                for at in had:
                    is_free[at] = False
        smaller = 0
        for i in range(k):
            if gang[i] < size:
                smaller = max(smaller, gang[i])
            if gang[i] != size or has_nodes[i]:
                continue
            at = first[kind[i]]
            for x in range(offset[i], offset[i + 1]):
                while not (is_free[at] and node_type[at] == kind[i]):
                    at += 1
                node[x] = at
                is_free[at] = False
            first[kind[i]] = at
        size = smaller
    return offset, node


@compiled
def count_free(node_type: NDArray[np.int16], is_free: NDArray[np.bool_], n_types: int) -> NDArray[np.int64]:
    """(n,) free nodes of each type."""
    count = np.zeros(n_types, np.int64)
    for at in range(node_type.shape[0]):
        if is_free[at]:
            count[node_type[at]] += 1
    return count
