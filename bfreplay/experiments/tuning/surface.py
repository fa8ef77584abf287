"""What every pair of values of the grid gave in one part of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import microseconds_of
from bfreplay.experiments.tuning.grid import Grid

SAMPLES, FINISH = "samples", "finish"
"""What is measured: samples processed in the part; or, where every run did all the work, when it was done."""


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Of one part of the log. Arrays are (T, M): a row for each t_fwd, a column for each max_parallel.

    Parameters
    ----------
    measure
        ``"samples"`` or ``"finish"``.
    value : float64
        Samples; or seconds from the start of the part to when all work was done.
    rescales : int64
        Jobs grown and shrunk by decision.
    share_of_bound : float64
        Samples over the upper bound; nan where there is none.
    n_pool_events
        Events of the part.
    idle_nodes
        Their mean.
    """

    measure: str
    value: NDArray[np.float64]
    rescales: NDArray[np.int64]
    share_of_bound: NDArray[np.float64]
    n_pool_events: int
    idle_nodes: float

    @property
    def share(self) -> NDArray[np.float64]:
        """How near each pair comes to the best of the grid, 0 to 1: samples over most samples, or least time over time.

        0 everywhere where none processed anything.
        """
        value = self.value
        if self.measure == SAMPLES:
            most = value.max()
            return value / most if most > 0 else np.zeros_like(value)
        share = np.ones_like(value)  # jobs without work are done at once
        np.divide(value.min(), value, out=share, where=value > 0)
        return share


def surface_of(rows: Sequence[Mapping[str, Any]], grid: Grid, *, unlimited_work: bool, start_us: int) -> Surface:
    """The results of a sweep's rows for one part, in the order of ``grid``: t_fwd outside, max_parallel inside.

    Parameters
    ----------
    rows
        As ``SweepResult.results`` has them, all finished.
    grid
        What they stand for.
    unlimited_work
        Jobs never end, so samples are what is measured.
    start_us
        Start of the part.
    """
    shape = len(grid.t_fwd), len(grid.max_parallel)
    done = not unlimited_work and all(row["last_finish"] is not None for row in rows)
    value = [(microseconds_of(row["last_finish"]) - start_us) / 1e6 if done else row["samples"] for row in rows]
    bound = [np.nan if row["share_of_bound"] is None else row["share_of_bound"] for row in rows]
    return Surface(
        FINISH if done else SAMPLES,
        np.array(value, dtype=np.float64).reshape(shape),
        np.array([row["n_grown"] + row["n_shrunk"] for row in rows], dtype=np.int64).reshape(shape),
        np.array(bound, dtype=np.float64).reshape(shape),
        int(rows[0]["n_pool_events"]),
        float(rows[0]["equivalent_nodes"]),
    )
