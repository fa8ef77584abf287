"""What curves are measured by: the rate of a first node, and the best rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.policy import PolicyState

NO_RATE = 1e-100
"""In samples/s; a rate up to this is none. Ratios to it would leave the range of floating-point numbers."""


def first_node_rate(state: PolicyState) -> NDArray[np.float64]:
    """``(J,)`` samples/s on one node; where that is 0, per node of the smallest count that has a rate.

    0 for a job without any rate up to its ``max_nodes``.
    """
    throughput = state.throughput
    rate = throughput[:, 1].copy()
    for j in np.flatnonzero(rate <= NO_RATE).tolist():
        with_rate = np.flatnonzero(throughput[j, : state.max_nodes[j] + 1] > NO_RATE)
        rate[j] = throughput[j, with_rate[0]] / with_rate[0] if with_rate.size else 0.0
    return rate


def best_rate(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``(J,)`` samples/s at the best count from ``min_nodes`` to ``max_nodes``, idle or not; 0 without any rate."""
    runs = (counts >= state.min_nodes[:, None]) & (counts <= state.max_nodes[:, None])
    best: NDArray[np.float64] = np.where(runs & (state.throughput > NO_RATE), state.throughput, 0.0).max(axis=1)
    return best


def in_units_of(rates: NDArray[np.float64], unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """``rates (J, K + 1)`` by ``unit (J,)``; 0 where the unit is no rate."""
    shares: NDArray[np.float64] = rates / np.where(unit > NO_RATE, unit, np.inf)[:, None]
    return shares
