"""Two logs of the same nodes, merged into spans in which neither changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.states import EventBatch


@dataclass(frozen=True, slots=True, eq=False)
class JointSpans:
    """Spans of the same state in log A and the same state in log B, sorted by node and time.

    Each node has at least one span; its spans cover the window without gaps.

    Attributes
    ----------
    node : (S,) int64
        Index of the node.
    start_us, end_us : (S,) int64
        From and to, microseconds since the epoch; never of no length.
    a, b : (S,) int8
        ``NodeState`` in A and in B.
    """

    node: NDArray[np.int64]
    start_us: NDArray[np.int64]
    end_us: NDArray[np.int64]
    a: NDArray[np.int8]
    b: NDArray[np.int8]

    @property
    def length_us(self) -> NDArray[np.int64]:
        """Lengths, ``(S,)``."""
        return self.end_us - self.start_us


def joint_spans(a: NodeEvents, b: NodeEvents, nodes: Sequence[str]) -> JointSpans:
    """Merge two logs of one window over ``nodes``, which both have; reads each log once, and holds its changes."""
    changes = [_changes_by_node(log, nodes) for log in (a, b)]
    lengths = [len(times) for _, times, _ in changes]
    node, time_us, state = (np.concatenate(columns) for columns in zip(*changes, strict=True))
    is_b = np.repeat([False, True], lengths)
    order = np.lexsort((time_us, node))  # stable: of one time, A first
    node, time_us, state, is_b = node[order], time_us[order], state[order], is_b[order]
    position = np.arange(len(node))
    # both logs begin each node with its state at the start, so that no state is carried over from the node before
    of_a, of_b = (state[np.maximum.accumulate(np.where(is_b == of_log, position, 0))] for of_log in (False, True))
    end_us = np.append(time_us[1:], a.window_end_us)
    end_us[:-1][node[1:] != node[:-1]] = a.window_end_us
    kept = end_us > time_us
    return JointSpans(node[kept], time_us[kept], end_us[kept], of_a[kept], of_b[kept])


def _changes_by_node(
    log: NodeEvents, nodes: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """Return node, time and state of the start and of every true change, sorted by node and time."""
    places = {node: place for place, node in enumerate(nodes)}
    place_of = np.array([places.get(node, -1) for node in log.nodes], np.int64)
    events = EventBatch.joined(list(log.batches()))
    events = events.take(place_of[events.node] >= 0)
    node = place_of[events.node]
    order = np.argsort(node, kind="stable")
    node, events = node[order], events.take(order)
    is_change = np.append(True, (node[1:] != node[:-1]) | (events.state[1:] != events.state[:-1]))
    return node[is_change], events.time_us[is_change], events.state[is_change]
