"""Samples against energy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.policies.objectives.curves import first_node_rate, in_units_of
from bfreplay.policies.objectives.objective import Rates
from bfreplay.policies.policy import PolicyState


def energy(
    state: PolicyState,
    counts: NDArray[np.int64],
    *,
    price: float = 0.5,
    idle_w: float = 600.0,
    wait_w: float = 1000.0,
    busy_w: float = 2000.0,
) -> Rates:
    """``weight x S(n) - price x n x ((wait - idle) + (busy - wait) x S(n) / n) / (busy - idle)``, in nodes' worth.

    ``S(n) = P(n) / P(1)``, and ``S(n) / n`` is the efficiency: the share of its time that a node computes. A node draws
    ``busy_w`` then, ``wait_w`` while it waits for the others or rescales, and ``idle_w`` without a job, which is not
    charged. ``price`` is what the extra energy of one busy node costs, in what a job makes of its first one. The
    defaults are round figures for a node with six GPUs of 300 W, such as Summit's, not measured ones: set your own. A
    rescaling job gives up what it makes, less the energy between ``busy_w`` and ``wait_w`` that it saves. Use it when
    power is what is short: jobs that scale badly keep few nodes, as with ``cost``, but pay less for waiting ones.
    """
    checks.number("price", price, least=0.0)
    if not 0.0 <= idle_w <= wait_w <= busy_w or not idle_w < busy_w:
        raise InputError(
            "the powers of a node are out of order",
            column="idle_w, wait_w, busy_w",
            value=(idle_w, wait_w, busy_w),
            expected="0 <= idle_w <= wait_w <= busy_w, and idle_w < busy_w",
        )
    speed_up = in_units_of(state.throughput, first_node_rate(state))
    waiting, computing = (wait_w - idle_w) / (busy_w - idle_w), (busy_w - wait_w) / (busy_w - idle_w)
    given_up = state.weight[:, None] * speed_up - (price * computing) * speed_up
    return Rates(value=given_up - (price * waiting) * counts, given_up=given_up)
