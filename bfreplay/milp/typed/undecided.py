"""What is left undecided, as a MILP: for decisions on which the core's states are too many."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends.backend import SolveOptions
from bfreplay.milp.backends.highs import Highs
from bfreplay.milp.formulations.entries import Columns, Rows
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus
from bfreplay.milp.typed.choices import Choices
from bfreplay.registry import one_line


class Settled(NamedTuple):
    """What HiGHS found.

    Parameters
    ----------
    chosen : (J,) int64
        Choices; the incumbent's where it found none.
    least_loss
        No answer loses less, it says.
    is_proven
        It says that ``chosen`` loses least.
    message
        Why not.
    """

    chosen: NDArray[np.int64]
    least_loss: float
    is_proven: bool
    message: str


def undecided_model(
    choices: Choices,
    loss: NDArray[np.float64],
    incumbent: NDArray[np.int64],
    capacity: NDArray[np.int64],
    price: NDArray[np.float64],
    allowance: float,
) -> tuple[LinearModel, NDArray[np.int64]]:
    """The model of the choices that lose at most ``allowance`` by themselves, and which they are, ``(C,)``.

    Variables: ``y[j, t, n]`` binary, job j gets n nodes of type t; ``unused[t]``. Maximise
    ``- sum loss y - sum price unused``, so that the numbers are of the size of what is undecided, subject to
    ``sum y[j, t, n] = 1`` for each job (``one[j]``) and ``sum n y[j, t, n] + unused[t] = capacity[t]`` (``nodes[t]``).
    """
    n_jobs = incumbent.size
    kept = loss <= allowance
    kept[incumbent] = True
    left = np.flatnonzero(kept)
    job = np.repeat(np.arange(n_jobs), np.diff(choices.offset))[left]
    columns, rows = Columns(), Rows()
    y = columns.add("y", job, choices.kind[left], choices.nodes[left], objective=-loss[left])
    types = np.arange(capacity.size)
    room = capacity.astype(np.float64)
    unused = columns.add("unused", types, objective=-price, upper=room, integer=False)
    rows.put(rows.add("one", n_jobs, 1.0, 1.0) + job, y, 1.0)
    nodes = rows.add("nodes", capacity.size, room, room)
    rows.put(nodes + choices.kind[left], y, choices.nodes[left].astype(np.float64))
    rows.put(nodes + types, unused, 1.0)
    is_chosen = np.isin(left, incumbent)
    used = np.bincount(choices.kind[incumbent], choices.nodes[incumbent].astype(np.float64), capacity.size)
    start = np.concatenate([is_chosen.astype(np.float64), room - used])
    return rows.model_of(columns, start=start), left


def settle(
    choices: Choices,
    loss: NDArray[np.float64],
    incumbent: NDArray[np.int64],
    capacity: NDArray[np.int64],
    price: NDArray[np.float64],
    allowance: float,
    time_limit_s: float,
) -> Settled:
    """Ask HiGHS for the choices that lose least. Never raises for its failure: then nothing is proven."""
    try:
        import_module("highspy")
        model, left = undecided_model(choices, loss, incumbent, capacity, price, allowance)
        answer = Highs().solve(model, SolveOptions(time_limit_s))
    except (ImportError, RuntimeError, ValueError) as error:
        return Settled(incumbent, 0.0, False, f"HiGHS cannot be asked: {one_line(error)}")
    chosen = incumbent
    if answer.x is not None:
        taken = left[np.rint(answer.x[: left.size]) == 1]
        job = np.searchsorted(choices.offset, taken, side="right") - 1
        if np.array_equal(job, np.arange(incumbent.size)):
            chosen = taken
    is_proven = answer.solver_status is SolverStatus.OPTIMAL and answer.x is not None
    return Settled(chosen, max(-answer.bound, 0.0), is_proven, "" if is_proven else answer.message)
