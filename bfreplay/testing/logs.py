"""Logs for replays of the contract tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bfreplay.datasets import NodeEvents, NodeState

SECOND = 1_000_000


def toggling_log(
    n_nodes: int, n_events: int, length_s: int, *, start_us: int = 0, node_types: Sequence[str] | None = None
) -> NodeEvents:
    """Nodes that are all idle at first, and then are reclaimed and come back, one at a time."""
    generator = np.random.default_rng(0)
    times = np.sort(generator.choice(np.arange(1, length_s), n_events, replace=False)) * SECOND + start_us
    node = generator.integers(0, n_nodes, n_events)
    is_idle = np.ones(n_nodes, dtype=np.bool_)
    states = []
    for k in node.tolist():
        is_idle[k] = not is_idle[k]
        states.append(NodeState.IDLE if is_idle[k] else NodeState.BUSY)
    names = [f"n{k:03d}" for k in range(n_nodes)]
    opening = np.full(n_nodes, NodeState.IDLE, dtype=np.int8)
    end_us = start_us + length_s * SECOND
    return NodeEvents.from_arrays(names, opening, times, node, states, start_us, end_us, node_types=node_types)
