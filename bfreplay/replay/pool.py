"""The pool of idle nodes: who holds which, and the rule by which nodes are placed.

A job keeps the nodes it has. It gives back the ones it gained last first. Free nodes are taken lowest node order
first, jobs in order of admission.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.replay.active import ActiveJobs

NOT_IDLE = -2
FREE = -1
_IDLE_STATE = 0  # datasets.NodeState.IDLE, as a plain number for compiled code


@compiled
def _leave(
    node: NDArray[np.int32],
    state: NDArray[np.int8],
    now_us: int,
    holder: NDArray[np.int32],
    idle_since_us: NDArray[np.int64],
    records: NDArray[np.void],
    held: NDArray[np.int32],
    row_of_job: NDArray[np.int32],
    n_active: int,
) -> tuple[int, int, int]:
    """Take back nodes that leave idle. Returns (nodes that left, those of them that a job held, idle time)."""
    for j in range(n_active):
        records[j]["lost"] = 0
    left = 0
    taken = 0
    idle_time = 0
    for e in range(node.shape[0]):
        k = node[e]
        if state[e] == _IDLE_STATE or holder[k] == NOT_IDLE:
            continue
        left += 1
        idle_time += now_us - idle_since_us[k]
        if holder[k] != FREE:
            row = row_of_job[holder[k]]
            count = records[row]["count"]
            position = 0
            while held[row, position] != k:
                position += 1
            for p in range(position, count - 1):
                held[row, p] = held[row, p + 1]
            records[row]["count"] = count - 1
            records[row]["lost"] += 1
            taken += 1
        holder[k] = NOT_IDLE
    return left, taken, idle_time


@compiled
def _join(
    node: NDArray[np.int32],
    state: NDArray[np.int8],
    now_us: int,
    holder: NDArray[np.int32],
    idle_since_us: NDArray[np.int64],
) -> int:
    """Add nodes that became idle. Returns how many."""
    joined = 0
    for e in range(node.shape[0]):
        k = node[e]
        if state[e] == _IDLE_STATE and holder[k] == NOT_IDLE:
            holder[k] = FREE
            idle_since_us[k] = now_us
            joined += 1
    return joined


@compiled
def _place(
    counts: NDArray[np.int64], records: NDArray[np.void], held: NDArray[np.int32], holder: NDArray[np.int32]
) -> None:
    """Give every job its count: releases first, then the lowest free nodes."""
    wanted = 0
    for j in range(counts.shape[0]):
        count = records[j]["count"]
        while count > counts[j]:
            count -= 1
            holder[held[j, count]] = FREE
        records[j]["count"] = count
        wanted += counts[j] - count
    if wanted == 0:
        return
    k = 0
    for j in range(counts.shape[0]):
        count = records[j]["count"]
        while count < counts[j]:
            while holder[k] != FREE:
                k += 1
            holder[k] = records[j]["job"]
            held[j, count] = k
            count += 1
        records[j]["count"] = count


class NodePool:
    """Idle nodes and their holders. ``holder (N,)``: job index, ``FREE`` or ``NOT_IDLE``."""

    def __init__(self, n_nodes: int, active: ActiveJobs) -> None:
        self.active = active
        self.holder = np.full(n_nodes, NOT_IDLE, dtype=np.int32)
        self.idle_since_us = np.zeros(n_nodes, dtype=np.int64)
        self.n_idle = 0
        self.idle_node_us = 0  # closed idle intervals, in node-microseconds

    def leave(self, node: NDArray[np.int32], state: NDArray[np.int8], now_us: int) -> tuple[int, int]:
        """Reclaim nodes; ``records["lost"]`` says from whom. Returns (nodes reclaimed, those that a job held)."""
        active = self.active
        left, taken, idle_time = _leave(
            node, state, now_us, self.holder, self.idle_since_us,
            active.records, active.held, active.row_of_job, active.n,
        )  # fmt: skip
        self.n_idle -= int(left)
        self.idle_node_us += int(idle_time)
        return int(left), int(taken)

    def join(self, node: NDArray[np.int32], state: NDArray[np.int8], now_us: int) -> int:
        """Add nodes that became idle, free. Returns how many."""
        joined = int(_join(node, state, now_us, self.holder, self.idle_since_us))
        self.n_idle += joined
        return joined

    def place(self, counts: NDArray[np.int64]) -> None:
        """Realise ``counts`` by the placement rule."""
        _place(counts, self.active.records, self.active.held, self.holder)

    def why_not_assignable(self, counts: NDArray[np.int64], assigned: Sequence[NDArray[np.int64]]) -> str:
        """What is wrong with the nodes that a policy chose for its counts; empty when nothing is."""
        if len(assigned) != len(counts):
            return f"nodes for {len(assigned)} of {len(counts)} jobs"
        if any(len(nodes) != count for nodes, count in zip(assigned, counts.tolist(), strict=True)):
            return f"{[len(nodes) for nodes in assigned]} nodes, which are not its counts"
        chosen = np.concatenate([np.zeros(0, np.int64), *(np.asarray(nodes) for nodes in assigned)])
        outside = (chosen < 0) | (chosen >= self.holder.size)
        if outside.any():
            return f"node {chosen[outside][0]} of {self.holder.size}"
        busy = self.holder[chosen.astype(np.int64)] == NOT_IDLE
        if busy.any():
            return f"node {chosen[busy][0]}, which is not idle"
        values, uses = np.unique(chosen, return_counts=True)
        if (uses > 1).any():
            return f"node {values[uses > 1][0]} twice"
        return ""

    def assign(self, assigned: Sequence[NDArray[np.int64]]) -> None:
        """Give every job exactly the nodes that a policy chose for it; see ``why_not_assignable``."""
        active = self.active
        for j in range(active.n):
            self.holder[active.held[j, : active.records[j]["count"]]] = FREE
        for j, nodes in enumerate(assigned):
            self.holder[nodes] = active.records[j]["job"]
            active.held[j, : len(nodes)] = nodes
            active.records[j]["count"] = len(nodes)

    def release(self, row: int) -> None:
        """Free the nodes of a job that gives all of them up."""
        count = int(self.active.records[row]["count"])
        self.holder[self.active.held[row, :count]] = FREE
        self.active.records[row]["count"] = 0

    def idle_node_us_until(self, now_us: int) -> int:
        """Idle node time of the whole log up to ``now_us``, summed node by node."""
        since: list[int] = self.idle_since_us[self.holder != NOT_IDLE].tolist()
        # whole numbers of Python: decades of many thousand nodes leave 64 bits
        return self.idle_node_us + len(since) * now_us - sum(since)
