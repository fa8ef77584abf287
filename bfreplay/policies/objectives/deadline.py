"""Deadlines: the rate that each needs comes first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.policies.objectives.curves import best_rate, in_units_of
from bfreplay.policies.policy import NO_DEADLINE_US, PolicyState


def deadline(
    state: PolicyState, counts: NDArray[np.int64], *, margin: float = 1.0, background: float = 0.1
) -> NDArray[np.float64]:
    """``weight x (min(1, P(n) / R) + background x P(n) / max P)``, no unit.

    ``R`` = ``margin`` x samples left / seconds left to the deadline, at most ``max P``; with a margin of 1 it is the
    rate that the job needs from now on. Up to it a job is worth a full weight; beyond it, only as ``background`` work.
    So is a job without a deadline or without an end, and one that is late: its deadline has passed, or not even
    ``max P`` would meet it. Use it when jobs have due times. Nodes that will be reclaimed are allowed for by the margin
    alone.
    """
    checks.number("margin", margin, least=1.0)
    checks.number("background", background, least=0.0)
    best = best_rate(state, counts)
    left = state.work - state.progress
    # as floats: a time before 1970 and no deadline are further apart than int64 reaches
    left_s = (state.deadline_us.astype(np.float64) - state.time_us) * 1e-6
    has_one = (state.deadline_us != NO_DEADLINE_US) & (left_s > 0.0) & (left > 0.0)
    needed = np.where(has_one, left, np.inf) / np.where(has_one, left_s, 1.0)
    can_be_met = needed <= best
    paced = np.minimum(margin * np.where(can_be_met, needed, 0.0), best)
    urgency = np.minimum(in_units_of(state.throughput, paced), 1.0)
    return state.weight[:, None] * (urgency + background * in_units_of(state.throughput, best))
