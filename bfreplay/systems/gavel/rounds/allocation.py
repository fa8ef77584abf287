"""Choice of the entries that run, from the highest priority down, of their nodes, and of their steps in a round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled

NEVER_RAN = 1e9
"""Priority, per share, of an entry that has received no time."""


class _Queue(NamedTuple):
    """Places of a queue, and their sort keys."""

    entry: NDArray[np.int64]  # of each place
    kind: NDArray[np.int64]  # type on which it would run
    priority: NDArray[np.float64]  # (e, n), as the next two
    deficit_s: NDArray[np.float64]
    share: NDArray[np.float64]


def priorities(
    share: NDArray[np.float64], can_run: NDArray[np.bool_], time_s: NDArray[np.float64], total_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the priorities, (e, n): ``X_ij`` over entry i's fraction of the time that all ran on type j (section 5).

    0 for an entry without share there or that cannot run there. Time is per entry, not per node.
    """
    counts = (share > 0.0) & can_run
    part = np.divide(time_s, total_s, out=np.zeros_like(share), where=counts)
    priority = np.divide(share, part, out=share * NEVER_RAN, where=part > 0.0)
    return np.where(counts, priority, 0.0)


class Candidates(NamedTuple):
    """Entries that may run.

    Parameters
    ----------
    priority, deficit_s, share : (e, n) float64
    can_run : (e, n) bool
    member_row : (e, 2) int64
        Rows of the m jobs, negative second for a job alone.
    gang : (e,) int64
    """

    priority: NDArray[np.float64]
    deficit_s: NDArray[np.float64]
    share: NDArray[np.float64]
    can_run: NDArray[np.bool_]
    member_row: NDArray[np.int64]
    gang: NDArray[np.int64]


@compiled
def choose_entries(
    candidates: Candidates,
    n_free: NDArray[np.int64],
    is_busy: NDArray[np.bool_],
    types: NDArray[np.int64],
    global_queue: bool,
    only_positive: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the entries that run and their types, in the order of their choice (section 5, Algorithm 1).

    Entries are ordered by priority, then deficit, then share, all descending, then by position. An entry is chosen
    unless a member runs already or it needs more nodes than are left; then the next one may (back-filling).

    Parameters
    ----------
    n_free : (n,) int64
        Unallocated nodes of each type. Updated.
    is_busy : (m,) bool
        Jobs that run already. Updated.
    types : (at most n,) int64
        Types in the order in which they are filled.
    global_queue
        One queue for all types, instead of type after type.
    only_positive
        Entries of priority 0 do not run.
    """
    priority, deficit_s, share, can_run, member_row, gang = candidates
    e = priority.shape[0]
    n_queues = 1 if global_queue else types.shape[0]
    types_each = types.shape[0] if global_queue else 1
    chosen = np.empty(is_busy.shape[0], np.int64)
    chosen_type = np.empty(is_busy.shape[0], np.int64)
    k = 0
    entry = np.empty(e * types_each, np.int64)
    kind = np.empty(e * types_each, np.int64)
    for q in range(n_queues):
        size = 0
        left = 0
        for j in types[q * types_each : (q + 1) * types_each]:
            left += n_free[j]
            if n_free[j] == 0:
                continue
            for i in range(e):
                a, b = member_row[i, 0], member_row[i, 1]
                if (
                    can_run[i, j]
                    and gang[i] <= n_free[j]
                    and not is_busy[a]
                    and not (b >= 0 and is_busy[b])
                    and (priority[i, j] > 0.0 or not only_positive)
                ):
                    entry[size] = i
                    kind[size] = j
                    size += 1
        # a heap: nodes run out before most of a queue is examined
        queue = _Queue(entry, kind, priority, deficit_s, share)
        heap = np.arange(size)
        for at in range(size // 2 - 1, -1, -1):
            _sift_down(heap, size, at, queue)
        while size > 0 and left > 0:
            first = heap[0]
            size -= 1
            heap[0] = heap[size]
            _sift_down(heap, size, 0, queue)
            i, j = entry[first], kind[first]
            a, b = member_row[i, 0], member_row[i, 1]
            if gang[i] > n_free[j] or is_busy[a] or (b >= 0 and is_busy[b]):
                continue
            is_busy[a] = True
            if b >= 0:
                is_busy[b] = True
            n_free[j] -= gang[i]
            left -= gang[i]
            chosen[k] = i
            chosen_type[k] = j
            k += 1
    return chosen[:k].copy(), chosen_type[:k].copy()


@compiled
def _goes_first(x: int, y: int, queue: _Queue) -> bool:
    """Return whether place ``x`` of a queue goes before place ``y``."""
    i, j, u, v = queue.entry[x], queue.kind[x], queue.entry[y], queue.kind[y]
    if queue.priority[i, j] != queue.priority[u, v]:
        return bool(queue.priority[i, j] > queue.priority[u, v])
    if queue.deficit_s[i, j] != queue.deficit_s[u, v]:
        return bool(queue.deficit_s[i, j] > queue.deficit_s[u, v])
    if queue.share[i, j] != queue.share[u, v]:
        return bool(queue.share[i, j] > queue.share[u, v])
    return x < y


@compiled
def _sift_down(heap: NDArray[np.int64], size: int, at: int, queue: _Queue) -> None:
    """Move the place at ``at`` of the heap down until it goes before both below it."""
    while True:
        below = 2 * at + 1
        if below >= size:
            return
        if below + 1 < size and _goes_first(heap[below + 1], heap[below], queue):
            below += 1
        if _goes_first(heap[at], heap[below], queue):
            return
        heap[at], heap[below] = heap[below], heap[at]
        at = below


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
