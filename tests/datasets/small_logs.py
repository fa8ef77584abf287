"""Small logs that a person can check by hand, and one way to look at what a pass gives."""

import numpy as np
from hypothesis import strategies as st

from bfreplay.datasets import EventsMetadata, NodeEvents, NodeState

SECOND = 1_000_000
IDLE, BUSY, DOWN = NodeState.IDLE, NodeState.BUSY, NodeState.DOWN


def rows_of(events, rows=131_072):
    """[(time, node name, state)] of a pass, snapshot first."""
    return [
        (int(time_us), events.nodes[node], NodeState(state))
        for batch in events.batches(rows)
        for time_us, node, state in zip(batch.time_us, batch.node, batch.state, strict=True)
    ]


def log(initial, rows, end=100, nodes=("a", "b", "c"), metadata=None):
    """A log in memory: states of the nodes at 0 s, then (seconds, node name, state)."""
    times, names, states = zip(*rows, strict=True) if rows else ((), (), ())
    return NodeEvents.from_arrays(
        nodes,
        initial,
        (np.array(times, dtype=float) * SECOND).round(),
        [nodes.index(name) for name in names],
        states,
        0,
        round(end * SECOND),
        metadata or EventsMetadata(),
    )


@st.composite
def logs(draw):
    """Valid logs: random times (many equal), any states, no idle after idle."""
    n_nodes = draw(st.integers(1, 5))
    initial = draw(st.lists(st.integers(0, 6), min_size=n_nodes, max_size=n_nodes))
    now, state, rows = 0, list(initial), []
    for _ in range(draw(st.integers(0, 12))):
        now += draw(st.sampled_from([0, 1, 999_999, 1_000_000, 86_400_000_000]))
        for node in draw(st.permutations(range(n_nodes)))[: draw(st.integers(1, n_nodes))]:
            after = draw(st.integers(0, 6))
            if (state[node] == 0 and after == 0) or any(row[:2] == (now, node) for row in rows):
                continue
            state[node] = after
            rows.append((now, node, after))
    start = draw(st.sampled_from([0, 1_612_915_732_000_000, -5_000_000_123]))
    times, nodes, states = zip(*rows, strict=True) if rows else ((), (), ())
    return NodeEvents.from_arrays(
        [f"n{i}" for i in range(n_nodes)],
        initial,
        np.array(times, dtype=np.int64) + start,
        nodes,
        states,
        start,
        start + now + draw(st.integers(1, 10)),
    )
