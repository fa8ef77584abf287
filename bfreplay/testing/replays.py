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
    for k in node.tolist():
        is_idle[k] = not is_idle[k]
        states.append(NodeState.IDLE if is_idle[k] else NodeState.BUSY)
    names = [f"n{k:03d}" for k in range(n_nodes)]
    opening = np.full(n_nodes, NodeState.IDLE, dtype=np.int8)
    end_us = start_us + length_s * SECOND
    return NodeEvents.from_arrays(names, opening, times, node, states, start_us, end_us, node_types=node_types)


MEASURED = "timings"
"""Table that may differ."""


class _CutError(Exception):
    pass


def check_resumes(make: Callable[[], ReplaySession], n_cuts: int = 5, seed: int = 0) -> None:
    """Assert that a run which is cut and resumed ends as an unbroken one: the same record, the same tables.

    Parameters
    ----------
    make
        Makes the session, each time with new objects: the policy, the job source.
    n_cuts, seed
        Number of instants to cut it after, drawn at random.
    """
    whole, n_instants = _run(make, None, Path())
    generator = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="bfreplay-contract-") as folder:
        state = Path(folder, "state")
        for after in sorted(generator.choice(np.arange(1, n_instants), min(n_cuts, n_instants - 1), replace=False)):
            try:
                _run(make, int(after), state)
            except _CutError:
                with make() as session:
                    session.restore(state)
                    _check_same(session.run(), whole, f"cut after {after} of {n_instants} instants")


def _run(make: Callable[[], ReplaySession], after: int | None, state: Path) -> tuple[RunResult, int]:
    """Run it, or cut it after so many instants and save its state."""
    n_instants = 0

    def count(_: Engine) -> None:
        nonlocal n_instants
        n_instants += 1
        if n_instants == after:
            session.save(state)
            raise _CutError

    with make() as session:
        session.engine.after_instant = count
        return session.run(), n_instants


def _check_same(here: RunResult, whole: RunResult, where: str) -> None:
    assert here.record == whole.record, f"{where}: another record"
    for name in whole.tables:
        assert name == MEASURED or here.table(name).equals(whole.table(name)), f"{where}: another table {name}"
