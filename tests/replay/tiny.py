"""Logs and jobs small enough to follow by hand, and hypothesis strategies that make random ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st

from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet

SECOND = 1_000_000


def log(
    n_nodes: int, changes: Iterable[tuple[float, int, bool]], end_s: float, idle_first: Iterable[int] = ()
) -> NodeEvents:
    """Nodes n0, n1, ... from 0 to ``end_s``; ``changes`` are (seconds, node, is idle); the others start busy."""
    rows = sorted((round(t * SECOND), node, idle) for t, node, idle in changes)
    start = np.full(n_nodes, NodeState.BUSY, dtype=np.int8)
    start[list(idle_first)] = NodeState.IDLE
    return NodeEvents.from_arrays(
        [f"n{k}" for k in range(n_nodes)],
        start,
        [t for t, _, _ in rows],
        [node for _, node, _ in rows],
        [NodeState.IDLE if idle else NodeState.BUSY for _, _, idle in rows],
        0,
        round(end_s * SECOND),
    )


def job(
    name: str = "job",
    *,
    work: float = 1e9,
    rates: tuple[float, ...] = (0.0, 10.0, 20.0, 30.0, 40.0),
    submit_s: float = 0.0,
    min_nodes: int = 1,
    up_s: float = 0.0,
    down_s: float = 0.0,
) -> ElasticJob:
    """Linear curve of 10 samples/s a node up to 4 nodes, free rescaling, unless told otherwise."""
    curve = TabulatedCurve(range(len(rates)), rates)
    return ElasticJob(name, round(submit_s * SECOND), min_nodes, len(rates) - 1, up_s, down_s, work, curve)


@st.composite
def logs(draw: st.DrawFn) -> NodeEvents:
    """Up to 8 nodes whose states change at up to 25 instants over 300 s, its end included, several at once at times."""
    n_nodes = draw(st.integers(1, 8))
    end_s = 300.0
    times = draw(st.lists(st.integers(1, 300_000), min_size=0, max_size=25, unique=True))
    idle = set(draw(st.sets(st.integers(0, n_nodes - 1))))
    first = sorted(idle)
    changes = []
    for milliseconds in sorted(times):
        for node in sorted(draw(st.sets(st.integers(0, n_nodes - 1), min_size=1, max_size=n_nodes))):
            idle ^= {node}
            changes.append((milliseconds / 1e3, node, node in idle))
    return log(n_nodes, changes, end_s, first)


@st.composite
def job_sets(draw: st.DrawFn) -> JobSet:
    """Up to 6 jobs with arbitrary curves (neither concave nor increasing), bounds, costs and work."""
    jobs = []
    for k in range(draw(st.integers(1, 6))):
        width = draw(st.integers(1, 6))
        rates = (0.0, *draw(st.lists(st.floats(0.0, 100.0), min_size=width, max_size=width)))
        jobs.append(
            job(
                f"job{k}",
                work=draw(st.floats(1.0, 5e3)),
                rates=rates,
                submit_s=draw(st.integers(0, 320)),
                min_nodes=draw(st.integers(1, width)),
                up_s=draw(st.floats(0.0, 20.0)),
                down_s=draw(st.floats(0.0, 20.0)),
            )
        )
    return JobSet(jobs)
