"""Nodes of the chosen entries, jobs that keep theirs, and the steps of each in a round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled


class NodeLists(NamedTuple):
    """Nodes of k micro-tasks: those of micro-task i are ``node[offset[i]:offset[i + 1]]``, increasing."""

    offset: NDArray[np.int64]  # (k + 1,)
    node: NDArray[np.int64]


@compiled
def place_entries(
    gang: NDArray[np.int64],
    kind: NDArray[np.int64],
    task: NDArray[np.int64],
    last_type: NDArray[np.int64],
    last: NodeLists,
    node_type: NDArray[np.int16],
    is_free: NDArray[np.bool_],
    n_types: int,
) -> NodeLists:
    """Return the nodes of k chosen entries.

    Larger gangs go first. Among equal ones, entries that ran on the same type in the last assignment first keep their
    nodes, if all are still free; the others take the lowest free node numbers of the type, in the order in which they
    were chosen. Nodes of a server have consecutive numbers, so gangs stay together where they can.

    Parameters
    ----------
    gang, kind, task : (k,) int64
        Nodes to find, node type, and micro-task in the last assignment, -1 for none.
    last_type, last
        Types and nodes of the last assignment.
    node_type : (N,)
    is_free : (N,) bool
        Updated: allocated nodes are no longer free.
    n_types
        Number n of types.
    """
    k = gang.shape[0]
    offset = np.zeros(k + 1, np.int64)
    for i in range(k):
        offset[i + 1] = offset[i] + gang[i]
    node = np.empty(offset[k], np.int64)
    has_nodes = np.zeros(k, np.bool_)
    # by type: no node before this one is free
    first = np.zeros(n_types, np.int64)
    size = gang.max() if k else 0
    while size > 0:
        for i in range(k):
            if gang[i] != size or task[i] < 0 or last_type[task[i]] != kind[i]:
                continue
            had = last.node[last.offset[task[i]] : last.offset[task[i] + 1]]
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
    return NodeLists(offset, node)


def micro_tasks(
    rate: NDArray[np.float64],
    member_row: NDArray[np.int64],
    steps_left: NDArray[np.float64],
    stays: NDArray[np.bool_],
    start_s: float,
    length_s: float,
    restart_s: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return steps (k, 2), finish (k,) and restarts (k, 2) of k micro-tasks that begin at ``start_s``.

    Steps are whole: ``min(int(rate * seconds), steps left)``. A job too slow for one makes a part of a step, so that
    every round advances it.

    Parameters
    ----------
    rate : (k, 2) float64
        Steps/s of the members.
    member_row : (k, 2) int64
        Rows of the m jobs, negative second for a job alone.
    steps_left : (m,) float64
    stays : (m,) bool
        Whether a job keeps its nodes; the others lose ``restart_s``.
    start_s, length_s
        Start and length of the round.
    """
    is_present = member_row >= 0
    restarts = is_present & ~stays[member_row]
    lost_s = restart_s * restarts
    fit = rate * np.maximum(length_s - lost_s, 0.0)
    whole = np.floor(fit)
    steps = np.where(is_present, np.minimum(np.where(whole > 0.0, whole, fit), steps_left[member_row]), 0.0)
    takes_s = np.divide(steps, rate, out=np.zeros_like(steps), where=is_present)
    finish = np.where(is_present, start_s + lost_s + takes_s, start_s).max(axis=1)
    return steps, finish, restarts


@compiled
def same_nodes(
    before: NDArray[np.int64], last: NodeLists, now: NDArray[np.int64], nodes: NodeLists
) -> NDArray[np.bool_]:
    """Return whether each of x jobs or entries has the same nodes in two assignments, (x,).

    Parameters
    ----------
    before, now : (x,) int64
        Its micro-task in the last assignment and in this one, -1 for none.
    last, nodes
        Nodes of the micro-tasks of the two; a job has as many in both.
    """
    x = before.shape[0]
    same = np.zeros(x, np.bool_)
    for i in range(x):
        if before[i] < 0 or now[i] < 0:
            continue
        had = last.node[last.offset[before[i]] : last.offset[before[i] + 1]]
        has = nodes.node[nodes.offset[now[i]] : nodes.offset[now[i] + 1]]
        equal = True
        for at in range(had.shape[0]):
            equal = equal and had[at] == has[at]
        same[i] = equal
    return same
