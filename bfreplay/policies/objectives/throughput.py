"""Samples per second, of all jobs together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.policy import PolicyState


def throughput(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``weight x P(n)``, samples/s (BFTrainer's "throughput").

    Use it when a sample is a sample, whoever trains on it: jobs of one model. Among different models those that are
    fast by nature take the nodes.
    """
    value: NDArray[np.float64] = state.weight[:, None] * state.throughput
    return value
