"""Choice of the entries that run, from the highest priority down, of their nodes, and of their steps in a round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled, copy_into

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
    time_fraction = np.divide(time_s, total_s, out=np.zeros_like(share), where=counts)
    priority = np.divide(share, time_fraction, out=share * NEVER_RAN, where=time_fraction > 0.0)
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
    n_entries = priority.shape[0]
    n_queues = 1 if global_queue else types.shape[0]
    types_each = types.shape[0] if global_queue else 1
    chosen = np.empty(is_busy.shape[0], np.int64)
    chosen_type = np.empty(is_busy.shape[0], np.int64)
    n_chosen = 0
    queue_entry = np.empty(n_entries * types_each, np.int64)
    on_type = np.empty(n_entries * types_each, np.int64)
    for queue_number in range(n_queues):
        size = 0
        n_left = 0
        for node_type in types[queue_number * types_each : (queue_number + 1) * types_each]:
            n_left += n_free[node_type]
            if n_free[node_type] == 0:
                continue
            for entry_row in range(n_entries):
                first_job, second_job = member_row[entry_row, 0], member_row[entry_row, 1]
                if (
                    can_run[entry_row, node_type]
                    and gang[entry_row] <= n_free[node_type]
                    and not is_busy[first_job]
                    and not (second_job >= 0 and is_busy[second_job])
                    and (priority[entry_row, node_type] > 0.0 or not only_positive)
                ):
                    queue_entry[size] = entry_row
                    on_type[size] = node_type
                    size += 1
        # a heap: nodes run out before most of a queue is examined
        queue = _Queue(queue_entry, on_type, priority, deficit_s, share)
        heap = np.arange(size)
        for position in range(size // 2 - 1, -1, -1):
            _sift_down(heap, size, position, queue)
        while size > 0 and n_left > 0:
            top = heap[0]
            size -= 1
            heap[0] = heap[size]
            _sift_down(heap, size, 0, queue)
            entry_row, node_type = queue_entry[top], on_type[top]
            first_job, second_job = member_row[entry_row, 0], member_row[entry_row, 1]
            if gang[entry_row] > n_free[node_type] or is_busy[first_job] or (second_job >= 0 and is_busy[second_job]):
                continue
            is_busy[first_job] = True
            if second_job >= 0:
                is_busy[second_job] = True
            n_free[node_type] -= gang[entry_row]
            n_left -= gang[entry_row]
            chosen[n_chosen] = entry_row
            chosen_type[n_chosen] = node_type
            n_chosen += 1
    return chosen[:n_chosen].copy(), chosen_type[:n_chosen].copy()


@compiled
def _goes_first(place: int, other: int, queue: _Queue) -> bool:
    """Return whether place ``place`` of a queue goes before place ``other``."""
    entry, node_type, rival, rival_type = queue.entry[place], queue.kind[place], queue.entry[other], queue.kind[other]
    if queue.priority[entry, node_type] != queue.priority[rival, rival_type]:
        return bool(queue.priority[entry, node_type] > queue.priority[rival, rival_type])
    if queue.deficit_s[entry, node_type] != queue.deficit_s[rival, rival_type]:
        return bool(queue.deficit_s[entry, node_type] > queue.deficit_s[rival, rival_type])
    if queue.share[entry, node_type] != queue.share[rival, rival_type]:
        return bool(queue.share[entry, node_type] > queue.share[rival, rival_type])
    return place < other


@compiled
def _sift_down(heap: NDArray[np.int64], size: int, position: int, queue: _Queue) -> None:
    """Move the place at ``position`` of the heap down until it goes before both below it."""
    while True:
        child = 2 * position + 1
        if child >= size:
            return
        if child + 1 < size and _goes_first(heap[child + 1], heap[child], queue):
            child += 1
        if _goes_first(heap[position], heap[child], queue):
            return
        heap[position], heap[child] = heap[child], heap[position]
        position = child


class NodeLists(NamedTuple):
    """Nodes of k micro-tasks: those of micro-task i are ``node[offset[i]:offset[i + 1]]``, increasing."""

    offset: NDArray[np.int64]  # (k + 1,)
    node: NDArray[np.int64]


@compiled
def place_entries(
    gang: NDArray[np.int64],
    on_type: NDArray[np.int64],
    task: NDArray[np.int64],
    last_type: NDArray[np.int64],
    last_nodes: NodeLists,
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
    gang, on_type, task : (k,) int64
        Nodes to find, node type, and micro-task in the last assignment, -1 for none.
    last_type, last_nodes
        Types and nodes of the last assignment.
    node_type : (N,)
    is_free : (N,) bool
        Updated: allocated nodes are no longer free.
    n_types
        Number n of types.
    """
    n_entries = gang.shape[0]
    offset = np.zeros(n_entries + 1, np.int64)
    for entry in range(n_entries):
        offset[entry + 1] = offset[entry] + gang[entry]
    node = np.empty(offset[n_entries], np.int64)
    has_nodes = np.zeros(n_entries, np.bool_)
    # by type: no node before this one is free
    first = np.zeros(n_types, np.int64)
    size = gang.max() if n_entries else 0
    while size > 0:
        for entry in range(n_entries):
            if gang[entry] != size or task[entry] < 0 or last_type[task[entry]] != on_type[entry]:
                continue
            previous_nodes = last_nodes.node[last_nodes.offset[task[entry]] : last_nodes.offset[task[entry] + 1]]
            are_free = True
            for number in previous_nodes:
                are_free = are_free and is_free[number]
            if are_free:
                has_nodes[entry] = True
                copy_into(node[offset[entry] :], previous_nodes)
                for number in previous_nodes:
                    is_free[number] = False
        smaller = 0
        for entry in range(n_entries):
            if gang[entry] < size:
                smaller = max(smaller, gang[entry])
            if gang[entry] != size or has_nodes[entry]:
                continue
            number = first[on_type[entry]]
            for position in range(offset[entry], offset[entry + 1]):
                while not (is_free[number] and node_type[number] == on_type[entry]):
                    number += 1
                node[position] = number
                is_free[number] = False
            first[on_type[entry]] = number
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
    restart_s_of = restart_s * restarts
    possible = rate * np.maximum(length_s - restart_s_of, 0.0)
    whole = np.floor(possible)
    steps = np.where(is_present, np.minimum(np.where(whole > 0.0, whole, possible), steps_left[member_row]), 0.0)
    run_s = np.divide(steps, rate, out=np.zeros_like(steps), where=is_present)
    finish = np.where(is_present, start_s + restart_s_of + run_s, start_s).max(axis=1)
    return steps, finish, restarts


@compiled
def same_nodes(
    before: NDArray[np.int64], last_nodes: NodeLists, now: NDArray[np.int64], nodes: NodeLists
) -> NDArray[np.bool_]:
    """Return whether each of x jobs or entries has the same nodes in two assignments, (x,).

    Parameters
    ----------
    before, now : (x,) int64
        Its micro-task in the last assignment and in this one, -1 for none.
    last_nodes, nodes
        Nodes of the micro-tasks of the two; a job has as many in both.
    """
    n_entries = before.shape[0]
    is_same = np.zeros(n_entries, np.bool_)
    for entry in range(n_entries):
        if before[entry] < 0 or now[entry] < 0:
            continue
        previous_nodes = last_nodes.node[last_nodes.offset[before[entry]] : last_nodes.offset[before[entry] + 1]]
        new_nodes = nodes.node[nodes.offset[now[entry]] : nodes.offset[now[entry] + 1]]
        equal = True
        for position in range(previous_nodes.shape[0]):
            equal = equal and previous_nodes[position] == new_nodes[position]
        is_same[entry] = equal
    return is_same
