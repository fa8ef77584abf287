"""What the chosen entries do in a round: steps, finish, restarts; and who stays on the nodes it had."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled


@compiled
def micro_tasks(
    rate: NDArray[np.float64],
    member_row: NDArray[np.int64],
    steps_left: NDArray[np.float64],
    stays: NDArray[np.bool_],
    start_s: float,
    length_s: float,
    restart_s: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Steps (k, 2), finish (k,) and restarts (k, 2) of k micro-tasks that begin at ``start_s``.

    Whole steps that fit, at most those left: ``min(int(rate * seconds), steps left)``. A job so slow that not one does
    makes a part of a step, so that no round leaves it where it was.

    Parameters
    ----------
    rate : (k, 2) float64
        Steps/s of the members.
    member_row : (k, 2) int64
        Rows of the m jobs, negative second for a job alone.
    steps_left : (m,) float64
    stays : (m,) bool
        Whether a job has the nodes that it had before; the others lose ``restart_s``.
    start_s, length_s
        Of the round.
    """
    k = rate.shape[0]
    steps = np.zeros((k, 2))
    finish = np.full(k, start_s)
    restarts = np.zeros((k, 2), np.bool_)
    for i in range(k):
        for side in range(2):
            job = member_row[i, side]
            if job < 0:
                continue
            lost_s = 0.0
            if not stays[job]:
                restarts[i, side] = True
                lost_s = restart_s
            fit = rate[i, side] * max(length_s - lost_s, 0.0)
            whole = np.floor(fit)
            steps[i, side] = min(whole if whole > 0.0 else fit, steps_left[job])
            finish[i] = max(finish[i], start_s + lost_s + steps[i, side] / rate[i, side])
    return steps, finish, restarts


@compiled
def same_nodes(
    before: NDArray[np.int64],
    last_offset: NDArray[np.int64],
    last_node: NDArray[np.int64],
    now: NDArray[np.int64],
    offset: NDArray[np.int64],
    node: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """(x,) whether each of x jobs or entries has the very same nodes in two assignments.

    Parameters
    ----------
    before, now : (x,) int64
        Its micro-task in the last assignment and in this one, -1 for none.
    last_offset, last_node, offset, node
        Nodes of micro-tasks, increasing in each; a job has as many in both.
    """
    x = before.shape[0]
    same = np.zeros(x, np.bool_)
    for i in range(x):
        if before[i] < 0 or now[i] < 0:
            continue
        had = last_node[last_offset[before[i]] : last_offset[before[i] + 1]]
        has = node[offset[now[i]] : offset[now[i] + 1]]
        equal = True
        for at in range(had.shape[0]):
            equal = equal and had[at] == has[at]
        same[i] = equal
    return same
