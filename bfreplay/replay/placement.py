"""Placement: the idle nodes that a job gets, where the policy decides only how many.

Two rules (``--placement``). By both a job gives back the nodes that it gained last first.

``PlacementRule.LOWEST_ID``: a job keeps its nodes. Free nodes are taken lowest number first, jobs in order of
admission.

``PlacementRule.RUNS``: nodes of neighbouring numbers leave the pool together, so a job on few runs of neighbours loses
nodes less often than one whose nodes are scattered. A decision is placed in four steps; the number of a node is its
position in the log's inventory.

1. A job that lost nodes to a reclaim since the last decision is *hit*: it restarts anyway, so all its nodes are free to
   be given out anew, to itself or to others. Every other job keeps its nodes, or gives back those that it has too many.
2. The free nodes, sorted by number, are split into runs: two consecutive free nodes whose numbers differ by more than
   ``LARGEST_GAP`` belong to two runs. Nodes that are held, or not idle, split nothing by themselves.
3. A run is *beside* a job if a node that the job held before this decision lies between its first and its last node,
   or is at most ``LARGEST_GAP`` numbers from one of them. This does not change while nodes are given out. A hit job
   held before what the reclaim left it, which lies in the runs themselves; another that needs nodes, what it keeps.
4. Jobs take in order of the nodes that they need, most first, in order of admission where they need as many; a hit job
   needs its whole count. A job takes from the run beside it with the most nodes left; when no run beside it has any,
   from the run with the most nodes left; of equal runs from that with lower numbers. It takes the lowest numbers of a
   run first, until it has its count or the run is empty, and then chooses the next run by the same rule.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import ascending, compiled
from bfreplay.policies.state import LARGEST_GAP


class PlacementRule(StrEnum):
    """Rule by which jobs get their nodes."""

    LOWEST_ID = "lowest-id"
    RUNS = "runs"


NOT_IDLE = -4
YOUNG = -3
RESERVED = -2
FREE = -1
"""Holder of a node without a job: not idle; idle, but left alone; or free for jobs."""

_BLOCK = 64  # nodes


@compiled
def _skip_blocks(holder: NDArray[np.int32], first: int) -> int:
    """Return the first block of nodes with a free one, from that at ``first`` on."""
    while first + _BLOCK <= holder.shape[0]:
        n_free = 0
        # without a question at each node: the compiler takes several at once
        for node in range(first, first + _BLOCK):
            n_free += holder[node] == FREE
        if n_free > 0:
            break
        first += _BLOCK
    return first


@compiled
def place_lowest(
    counts: NDArray[np.int64],
    now_us: int,
    records: NDArray[np.void],
    nodes_of_job: NDArray[np.int32],
    holder: NDArray[np.int32],
    nodes: NDArray[np.void],
) -> None:
    """Give every job its count: releases first, then the lowest free nodes."""
    n_wanted = 0
    for job_row in range(counts.shape[0]):
        count = records[job_row]["count"]
        while count > counts[job_row]:
            count -= 1
            node_index = nodes_of_job[job_row, count]
            holder[node_index] = FREE
            nodes[node_index]["held_us"] += now_us - nodes[node_index]["held_since_us"]
        records[job_row]["count"] = count
        records[job_row]["lost_nodes"] = 0
        n_wanted += counts[job_row] - count
    if n_wanted == 0:
        return
    lowest_free = _skip_blocks(holder, 0)
    for job_row in range(counts.shape[0]):
        count = records[job_row]["count"]
        while count < counts[job_row]:
            while holder[lowest_free] != FREE:
                lowest_free += 1
                if lowest_free % _BLOCK == 0:
                    lowest_free = _skip_blocks(holder, lowest_free)
            holder[lowest_free] = records[job_row]["job"]
            nodes[lowest_free]["held_since_us"] = now_us
            nodes_of_job[job_row, count] = lowest_free
            count += 1
        records[job_row]["count"] = count


@compiled
def place_on_runs(
    counts: NDArray[np.int64],
    now_us: int,
    records: NDArray[np.void],
    nodes_of_job: NDArray[np.int32],
    holder: NDArray[np.int32],
    nodes: NDArray[np.void],
) -> None:
    """Give every job its count, on runs of neighbouring nodes (see the module)."""
    n_jobs = counts.shape[0]
    needed = np.zeros(n_jobs)
    count_before = np.zeros(n_jobs, np.int64)
    n_wanted = 0
    for job_row in range(n_jobs):
        count = records[job_row]["count"]
        count_before[job_row] = count
        n_kept = 0 if records[job_row]["lost_nodes"] > 0 else min(count, counts[job_row])
        for slot in range(n_kept, count):
            node_index = nodes_of_job[job_row, slot]
            holder[node_index] = FREE
            nodes[node_index]["held_us"] += now_us - nodes[node_index]["held_since_us"]
        records[job_row]["count"] = n_kept
        records[job_row]["lost_nodes"] = 0
        needed[job_row] = counts[job_row] - n_kept
        n_wanted += counts[job_row] - n_kept
    if n_wanted == 0:
        return
    free = np.flatnonzero(holder == FREE)
    breaks = np.flatnonzero(np.diff(free) > LARGEST_GAP) + 1
    # of each run, the first that is left and the end: positions in ``free``
    next_free = np.append(np.zeros(1, np.int64), breaks)
    run_ends = np.append(breaks, free.size)
    first_nodes, last_nodes = free[next_free], free[run_ends - 1]
    job_beside = np.full(run_ends.size, -1)
    for job_row in ascending(-needed):
        count = records[job_row]["count"]
        if count == counts[job_row]:
            break  # nor does anybody after it need nodes
        for slot in range(count_before[job_row]):
            node_index = nodes_of_job[job_row, slot]
            # it is in or near two runs at most: the last ones that do not begin too far above it
            end = np.searchsorted(first_nodes, node_index + LARGEST_GAP, side="right")
            for run in range(max(0, end - 2), end):
                if last_nodes[run] >= node_index - LARGEST_GAP:
                    job_beside[run] = job_row
        while count < counts[job_row]:
            run = _choose_run(next_free, run_ends, job_row, job_beside)
            while count < counts[job_row] and next_free[run] < run_ends[run]:
                node_index = free[next_free[run]]
                next_free[run] += 1
                holder[node_index] = records[job_row]["job"]
                nodes[node_index]["held_since_us"] = now_us
                nodes_of_job[job_row, count] = node_index
                count += 1
        records[job_row]["count"] = count


@compiled
def _choose_run(
    next_free: NDArray[np.int64], run_ends: NDArray[np.int64], job_row: int, job_beside: NDArray[np.int64]
) -> int:
    """Return the run that a job takes from next: beside it, then with the most nodes left, then the lowest."""
    best_run, best_rank = 0, 0
    for run in range(next_free.shape[0]):
        n_left = run_ends[run] - next_free[run]
        rank = n_left
        if n_left > 0 and job_beside[run] == job_row:
            rank += run_ends[-1]  # more than any other run has
        if rank > best_rank:
            best_run, best_rank = run, rank
    return best_run
