"""The users' weights alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.objectives.curves import best_rate, in_units_of
from bfreplay.policies.policy import PolicyState


def priority(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``weight x P(n) / max P``, the weight times the share of the job's own best rate from ``min`` to ``max_nodes``.

    A job at its best is worth its weight, however fast its model is. Use it when weights are priorities and are to
    decide.
    """
    return state.weight[:, None] * in_units_of(state.throughput, best_rate(state, counts))
