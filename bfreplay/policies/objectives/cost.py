"""Samples against node-hours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.policies.objectives.objective import Rates
from bfreplay.policies.objectives.speed_up import speed_up
from bfreplay.policies.policy import PolicyState


def cost(state: PolicyState, counts: NDArray[np.int64], *, price: float = 0.5) -> Rates:
    """``weight x P(n) / P(1) - price x n``, in nodes' worth.

    ``price`` is what a node costs, in what a job makes of its first one: a job of weight 1 holds a node only while it
    adds at least that share of what the first added, and idle nodes stay idle rather than be used badly. A rescaling
    job gives up what it makes; its nodes cost the same. Use it when node-hours are billed, or wanted by others.
    """
    checks.number("price", price, least=0.0)
    made = speed_up(state, counts)
    return Rates(value=made - price * counts, given_up=made)
