"""Logs for replays of the contract tests, and the check that a run can be cut, saved, and resumed elsewhere."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.replay.engine import Engine
from bfreplay.runs import ReplaySession, RunResult

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
    for node_index in node.tolist():
        is_idle[node_index] = not is_idle[node_index]
        states.append(NodeState.IDLE if is_idle[node_index] else NodeState.BUSY)
    names = [f"n{node_index:03d}" for node_index in range(n_nodes)]
    opening = np.full(n_nodes, NodeState.IDLE, dtype=np.int8)
    end_us = start_us + length_s * SECOND
    return NodeEvents.from_arrays(names, opening, times, node, states, start_us, end_us, node_types=node_types)


MEASURED = "timings"
"""Table that may differ."""


class _CutError(Exception):
    pass


def check_resumes(make: Callable[[], ReplaySession], n_cuts: int = 3, seed: int = 0) -> None:
    """Assert that a run which is cut and resumed ends as an unbroken one: the same record, the same tables.

    Parameters
    ----------
    make
        Makes the session, each time with new objects: the policy, the job source.
    n_cuts, seed
        Number of instants to cut it after, drawn at random.
    """
    unbroken, n_instants = _run(make, None, Path())
    generator = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="bfreplay-contract-") as folder:
        state = Path(folder, "state")
        for cut_after in sorted(generator.choice(np.arange(1, n_instants), min(n_cuts, n_instants - 1), replace=False)):
            try:
                _run(make, int(cut_after), state)
            except _CutError:
                with make() as session:
                    session.restore(state)
                    _check_same(session.run(), unbroken, f"cut after {cut_after} of {n_instants} instants")


def _run(make_session: Callable[[], ReplaySession], cut_after: int | None, state: Path) -> tuple[RunResult, int]:
    """Run it, or cut it after so many instants and save its state."""
    n_instants = 0

    def count(_: Engine) -> None:
        nonlocal n_instants
        n_instants += 1
        if n_instants == cut_after:
            session.save(state)
            raise _CutError

    with make_session() as session:
        session.engine.after_instant = count
        return session.run(), n_instants


def _check_same(resumed: RunResult, unbroken: RunResult, where: str) -> None:
    assert resumed.record == unbroken.record, f"{where}: another record"
    for name in unbroken.tables:
        assert name == MEASURED or resumed.table(name).equals(unbroken.table(name)), f"{where}: another table {name}"
