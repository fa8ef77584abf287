"""Cost of a change of a job's nodes: the one rule, which every other module calls.

The rule is BFTrainer's (arXiv:2106.12091, section III): a job that gains nodes gives up ``scale_up_cost_s`` seconds of
the rate that it had before, and a job that loses nodes ``scale_down_cost_s`` seconds of it, by a decision or by a
reclaim alike. Without nodes its rate is 0, so a start is free. A job that keeps its count is charged nothing.

Rates are in samples or in units of an objective, per second; the cost is in the same unit. At a rate of 1 it is the
seconds of the pause. Compiled loops may call every function but the last two, which are for arrays.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import callable_when_compiled, compiled

START, UP, DOWN, RECLAIM = range(4)
"""Kinds of changes, rows of a table of costs: a start; gaining and losing nodes by a decision; a reclaim."""

_Floats = NDArray[np.float64]
_Counts = NDArray[np.int64]
_Real = TypeVar("_Real", float, _Floats)


@callable_when_compiled
def scale_up_cost(rate_before: _Real, scale_up_cost_s: _Real) -> _Real:
    """Cost of gaining nodes, however many."""
    return rate_before * scale_up_cost_s


@callable_when_compiled
def scale_down_cost(rate_before: _Real, scale_down_cost_s: _Real) -> _Real:
    """Cost of losing nodes by a decision, however many."""
    return rate_before * scale_down_cost_s


@callable_when_compiled
def preemption_cost(rate_before: _Real, scale_down_cost_s: _Real) -> _Real:
    """Cost of losing nodes to a reclaim, however many go at once."""
    return scale_down_cost(rate_before, scale_down_cost_s)


def preemption_pause_s(scale_down_cost_s: _Floats, notice_s: float) -> _Floats:
    """Seconds for ``preemption_cost`` of a job that is told ``notice_s`` before its nodes have to be clear.

    It saves its state in that time, on nodes that are no longer its own.
    """
    return np.maximum(0.0, scale_down_cost_s - notice_s)


@callable_when_compiled
def move_cost(growth: _Real, shrink: _Real) -> _Real:
    """Cost of moving to nodes of another type, from the costs of gaining and of losing some: the job does both."""
    return growth + shrink


@callable_when_compiled
def charged_rate(rate: float, count: int, min_nodes: int, is_published: bool = False) -> float:
    """Rate by which a job on ``count`` nodes is charged, if its curve says ``rate`` there.

    A job left with fewer than ``min_nodes`` by a reclaim makes nothing, so nothing is charged; the published accounting
    charges its curve at that count all the same.
    """
    return rate if is_published or count >= min_nodes else 0.0


@callable_when_compiled
def rescale_cost(rate_before: float, before: int, after: int, up_s: float, down_s: float) -> float:
    """Cost of a decision that takes a job from ``before`` nodes to ``after``."""
    if after > before:
        return scale_up_cost(rate_before, up_s)
    return scale_down_cost(rate_before, down_s) if after < before else 0.0


@callable_when_compiled
def change_cost(
    pauses: bool,
    rate_before: float,
    rate_after: float,
    before: int,
    after: int,
    min_nodes: int,
    start_s: float,
    up_s: float,
    down_s: float,
) -> float:
    """Cost of a change from ``before`` to ``after`` nodes of a job that pays by pauses, or is charged.

    A job that begins to run, from fewer than ``min_nodes``, pays ``start_s`` at the rate after, and nothing else. A
    pause is paid at the rate after, as nothing is made then; a charge at the rate before.
    """
    cost = 0.0 if pauses else rescale_cost(rate_before, before, after, up_s, down_s)
    if before < min_nodes <= after:
        return cost + rate_after * start_s
    if pauses and min_nodes <= after != before:
        return rate_after * (up_s if after > before else down_s)
    return cost


@compiled
def losses(
    current: NDArray[np.int64],
    min_nodes: NDArray[np.int64],
    given_up: NDArray[np.float64],
    throughput_now: NDArray[np.float64],
    seconds: NDArray[np.float64],
    pauses: NDArray[np.int64],
    pause_left_s: NDArray[np.float64],
    unsaved_samples: NDArray[np.float64],
    allowed: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return what each job gives up by going to each count, (J, K + 1), ``inf`` where it may not go.

    ``given_up (J, K + 1)`` is what it makes on each count, per second, in the unit of the result;
    ``throughput_now (J,)`` the samples/s of that on ``current``. A job that stays gives up the rest of its pause; one
    that changes pays as it will be charged, and its unsaved work. The rest is as in ``policies.state.ChangeCosts``.
    """
    loss = np.empty(given_up.shape, np.float64)
    for j in range(current.shape[0]):
        before = current[j]
        rate_now = given_up[j, before] if before >= min_nodes[j] else 0.0
        work = 0.0
        if rate_now > 0.0 and throughput_now[j] > 0.0:
            work = unsaved_samples[j] * rate_now / throughput_now[j]
        for n in range(given_up.shape[1]):
            if n == before:
                loss[j, n] = pause_left_s[j] * rate_now
                continue
            if not allowed[j, min(n, allowed.shape[1] - 1)]:
                loss[j, n] = np.inf
                continue
            column = min(n, seconds.shape[2] - 1)
            start_s, up_s, down_s = seconds[j, START, column], seconds[j, UP, column], seconds[j, DOWN, column]
            loss[j, n] = work + change_cost(
                pauses[j] > 0, rate_now, given_up[j, n], before, n, min_nodes[j], start_s, up_s, down_s
            )
    return loss


def charged_rates(rate: _Floats, count: _Counts, min_nodes: _Counts) -> _Floats:
    """``charged_rate`` of many jobs, (J,)."""
    return np.where(count >= min_nodes, rate, 0.0)


def rescale_costs(rate_before: _Floats, before: _Counts, after: _Counts, up_s: _Floats, down_s: _Floats) -> _Floats:
    """``rescale_cost`` of arrays that fit together, such as (J, 1) and (K + 1,)."""
    shrinking = np.where(after < before, scale_down_cost(rate_before, down_s), 0.0)
    return np.where(after > before, scale_up_cost(rate_before, up_s), shrinking)
