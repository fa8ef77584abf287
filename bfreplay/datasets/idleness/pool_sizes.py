"""When the number of idle nodes changes, and what it is then: the log as one who knows the future sees it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.states import NodeState

_IDLE = int(NodeState.IDLE)


@dataclass(frozen=True, slots=True, eq=False)
class PoolSizes:
    """The pool at the start of the window, then after each of E pool events.

    Parameters
    ----------
    time_us : (E + 1,) int64
        Start of the window, then the events, ascending.
    idle : (E + 1,) int64
        Idle nodes from then on.
    reclaimed : (E + 1,) int64
        Nodes that left the pool then.
    end_us
        End of the window.
    """

    time_us: NDArray[np.int64]
    idle: NDArray[np.int64]
    reclaimed: NDArray[np.int64]
    end_us: int

    @classmethod
    def of(cls, events: NodeEvents) -> PoolSizes:
        """Read ``events`` once; memory grows with its pool events, not with its nodes' changes."""
        batches = iter(events.batches())
        is_idle = next(batches).state == _IDLE  # the snapshot, a row for each node in the order of the nodes
        n_idle = int(is_idle.sum())
        times, joins, leaves = [np.array([events.window_start_us])], [np.array([n_idle])], [np.zeros(1, np.int64)]
        for batch in batches:
            time_us, joined, left = np.empty((3, len(batch)), np.int64)
            n_events = _changes(batch.time_us, batch.node, batch.state, is_idle, time_us, joined, left)
            for kept, seen in ((times, time_us), (joins, joined), (leaves, left)):
                kept.append(seen[:n_events].copy())
        reclaimed = np.concatenate(leaves)
        idle = np.cumsum(np.concatenate(joins) - reclaimed)
        return cls(np.concatenate(times), idle, reclaimed, events.window_end_us)


@compiled
def _changes(
    at_us: NDArray[np.int64],
    node: NDArray[np.int32],
    after: NDArray[np.int8],
    is_idle: NDArray[np.bool_],
    time_us: NDArray[np.int64],
    joined: NDArray[np.int64],
    left: NDArray[np.int64],
) -> int:
    """Advance ``is_idle (N,)`` over one batch; fill in time, joins and leaves of each pool event, return how many."""
    n_events, row = 0, 0
    while row < node.size:
        now, joins, leaves = at_us[row], 0, 0
        while row < node.size and at_us[row] == now:
            becomes = after[row] == _IDLE
            if becomes and not is_idle[node[row]]:
                joins += 1
            elif is_idle[node[row]] and not becomes:
                leaves += 1
            is_idle[node[row]] = becomes
            row += 1
        if joins + leaves > 0:
            time_us[n_events], joined[n_events], left[n_events] = now, joins, leaves
            n_events += 1
    return n_events
