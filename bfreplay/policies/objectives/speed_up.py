"""Speed-up over one node, of all jobs together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.objectives.curves import first_node_rate, in_units_of
from bfreplay.policies.policy import PolicyState


def speed_up(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``weight x P(n) / P(1)``, in nodes' worth (BFTrainer's "scaling efficiency", the published ``spdup`` job sets).

    Where ``P(1)`` is 0: over ``P(m) / m`` at the smallest count ``m`` that has a rate. A job without any rate is worth
    nothing. Use it for jobs of different models: nodes go to those that make the most of another one.
    """
    return state.weight[:, None] * in_units_of(state.throughput, first_node_rate(state))
