"""Sets of free nodes for a job, chosen by what it would make there between reclaims."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import callable_when_compiled, compiled
from bfreplay.policies.reclaims.memory import frequency
from bfreplay.policies.state import LARGEST_GAP

BEYOND = 1.0
"""Reclaims a second of counts that are not worth it: nothing is made there."""


@callable_when_compiled
def useful_share(reclaims_per_s: float, every_s: float, restart_s: float) -> float:
    """Return the share of its time in which a job makes progress that is kept.

    With reclaims at random at the rate ``L``, a checkpoint every ``c`` seconds from each restart on, and a restart
    within the first of them that takes ``R`` seconds: ``L (c / (exp(L c) - 1) - R exp(-L c))``, by the expected number
    of checkpoints between two reclaims; ``exp(-L R)`` where all is saved at all times.
    """
    if every_s <= 0.0:
        return math.exp(-reclaims_per_s * restart_s)
    exponent = min(reclaims_per_s * every_s, 50.0)
    if exponent <= 0.0:
        return 1.0
    return max(0.0, reclaims_per_s * (every_s / math.expm1(exponent) - restart_s * math.exp(-exponent)))


@compiled
def runs_of(places: NDArray[np.int64], nodes: NDArray[np.int64], is_free: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the runs of the free nodes, (R, 2): the rows of the first and the last node of each.

    Rows are those of ``places`` among the idle nodes and of ``nodes``, both ascending. A run is of neighbours: no idle
    node lies between them, and fewer than ``LARGEST_GAP`` others.
    """
    runs = np.empty((places.shape[0], 2), np.int64)
    n_runs = 0
    previous = -1
    for row in range(places.shape[0]):
        if not is_free[row]:
            continue
        is_next = previous == row - 1 and places[row] == places[row - 1] + 1
        if previous >= 0 and is_next and nodes[row] - nodes[row - 1] <= LARGEST_GAP:
            runs[n_runs - 1, 1] = row
        else:
            runs[n_runs] = row
            n_runs += 1
        previous = row
    return runs[:n_runs].copy()


@compiled
def choose_nodes(
    rate: NDArray[np.float64],
    least: int,
    most: int,
    takes_all: bool,
    n_held: int,
    is_hit: NDArray[np.bool_],
    runs: NDArray[np.int64],
    places: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    seconds: float,
    every_s: float,
    restart_s: NDArray[np.float64],
    is_chosen: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Choose nodes for a job, from run to run what adds most to ``rate`` times ``useful_share``, as long as it adds.

    Parameters
    ----------
    rate : (K + 1,) float64
        What the job makes on each count.
    least, most
        Its bounds; ``most`` includes the ``n_held`` nodes that it keeps, which reclaims hit as ``is_hit (M,)`` says.
    takes_all
        It goes on to ``most`` also where that adds nothing.
    runs : (R, 2) int64
        Of the free nodes, which are at ``places`` of the idle ones; a job takes a part of a run from either end.
    first, last, seconds
        The M remembered reclaims, see ``memory.Stretches``.
    every_s, restart_s
        Checkpoint interval, and seconds of a restart by count, (K + 1,).
    is_chosen : (F,) bool
        Written: which of the free nodes it takes.

    Returns
    -------
    reclaims_per_s : (K + 1,) float64
        Frequency of reclaims on each count on the way, ``BEYOND`` on others.
    """
    lower, upper = runs[:, 0].copy(), runs[:, 1]
    hits = is_hit.copy()
    n_nodes = n_held
    on_count = np.full(rate.shape[0], BEYOND)
    n_hit = 0
    for k in range(hits.shape[0]):
        n_hit += hits[k]
    on_count[n_nodes] = frequency(n_hit, seconds)
    worth = 0.0
    if n_nodes >= least:
        worth = rate[n_nodes] * useful_share(on_count[n_nodes], every_s, restart_s[n_nodes])
    while n_nodes < most:
        best_run, best_begin, best_end = -1, 0, 0
        best = -np.inf
        for run in range(lower.shape[0]):
            size = min(upper[run] - lower[run] + 1, most - n_nodes)
            for side in range(2 if size < upper[run] - lower[run] + 1 else min(size, 1)):
                begin = lower[run] if side == 0 else upper[run] - size + 1
                n_hit = 0
                for k in range(hits.shape[0]):
                    n_hit += hits[k] or (first[k] <= places[begin + size - 1] and last[k] >= places[begin])
                score = -float(n_hit) / size  # too few to run: the safest first
                if n_nodes + size >= least:
                    frequency_there = frequency(n_hit, seconds)
                    score = rate[n_nodes + size] * useful_share(frequency_there, every_s, restart_s[n_nodes + size])
                if score > best:
                    best, best_run, best_begin, best_end = score, run, begin, begin + size
        n_after = n_nodes + best_end - best_begin
        if best_run < 0 or (n_after >= least and best <= worth and not takes_all):
            break
        n_hit = 0
        for k in range(hits.shape[0]):
            hits[k] |= first[k] <= places[best_end - 1] and last[k] >= places[best_begin]
            n_hit += hits[k]
        for n in range(n_nodes + 1, n_after + 1):
            on_count[n] = frequency(n_hit, seconds)
        for row in range(best_begin, best_end):
            is_chosen[row] = True
        worth = best if n_after >= least else 0.0
        n_nodes = n_after
        lower[best_run] = upper[best_run] + 1  # all of it is taken, or the job has all that it may have
    return on_count
