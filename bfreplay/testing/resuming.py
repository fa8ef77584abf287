"""Check that a run can be cut after any instant, saved, and resumed by another process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bfreplay.replay.engine import Engine
from bfreplay.runs import ReplaySession, RunResult

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
