"""What every pair of values of the grid gave in one part of the log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
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


def surface_of(results: pa.Table, grid: Grid, *, unlimited_work: bool, start_us: int) -> Surface:
    """The results of a sweep for one part, in the order of ``grid``: t_fwd outside, max_parallel inside.

    Parameters
    ----------
    results
        Rows of ``SweepResult.results``, all finished.
    grid
        What they stand for.
    unlimited_work
        Jobs never end, so samples are what is measured.
    start_us
        Start of the part.
    """
    shape = len(grid.t_fwd), len(grid.max_parallel)
    samples, last_finish, bound, grown, shrunk, n_events, idle_nodes = (
        results[name].to_pylist()
        for name in (
            "samples", "last_finish", "share_of_bound", "n_grown", "n_shrunk", "n_pool_events", "equivalent_nodes",
        )
    )  # fmt: skip
    done = not unlimited_work and None not in last_finish
    value = [(microseconds_of(time) - start_us) / 1e6 for time in last_finish] if done else samples
    return Surface(
        FINISH if done else SAMPLES,
        np.array(value, dtype=np.float64).reshape(shape),
        (np.array(grown, dtype=np.int64) + np.array(shrunk, dtype=np.int64)).reshape(shape),
        np.array(bound, dtype=np.float64).reshape(shape),
        int(n_events[0]),
        float(idle_nodes[0]),
    )
