"""What to use: a pure function of the part of the log that is tuned on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.experiments.tuning.grid import ForwardTime, Grid
from bfreplay.result_folders.tuning import Column

AS_GOOD = 0.001
"""Values of t_fwd whose samples differ by no more than this are taken as equally good."""

FLAT = (0.005, 0.01)
"""How far below the best still counts as flat."""

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use.

    Parameters
    ----------
    t_fwd, max_parallel
        Values of the grid.
    columns
        One for each max_parallel of the grid.
    at
        Row and column in the arrays of the grid.
    """

    t_fwd: ForwardTime
    max_parallel: int
    columns: tuple[Column, ...]
    at: tuple[int, int]


def recommend(
    grid: Grid, share: NDArray[np.float64], rescales: NDArray[np.int64], *, tolerance: float = 0.01
) -> Recommendation:
    """The smallest max_parallel whose best share is within ``tolerance`` of the best, with its t_fwd.

    Parameters
    ----------
    grid
        T values of t_fwd and M of max_parallel.
    share : (T, M)
        Of the best, 0 to 1; at least one is 1.
    rescales : (T, M)
        Of equally good values of t_fwd the one with the fewest is taken; then the better one; then the smaller one.
    tolerance
        Relative; 0 takes the best number whatever it costs the jobs.

    Raises
    ------
    InputError
        ``tolerance`` is no number from 0 to below 1.
    """
    checks.number("tolerance", tolerance, least=0, most=np.nextafter(1, 0))
    best = share.max(axis=0)
    column = int(np.flatnonzero(best >= (1 - tolerance) * best.max() - _ROUNDING)[0])
    rows = [_row(share[:, m], rescales[:, m]) for m in range(len(grid.max_parallel))]
    columns = tuple(
        Column(
            max_parallel=number,
            t_fwd=grid.t_fwd[rows[m]],
            best_t_fwd=grid.t_fwd[int(share[:, m].argmax())],
            share=float(best[m]),
            flat=tuple(_flat(grid.t_fwd, share[:, m], within) for within in FLAT),
        )
        for m, number in enumerate(grid.max_parallel)
    )
    return Recommendation(grid.t_fwd[rows[column]], grid.max_parallel[column], columns, (rows[column], column))


def _row(share: NDArray[np.float64], rescales: NDArray[np.int64]) -> int:
    as_good = np.flatnonzero(share >= (1 - AS_GOOD) * share.max() - _ROUNDING).tolist()
    return int(min(as_good, key=lambda t: (rescales[t], -share[t], t)))


def _flat(t_fwd: Sequence[ForwardTime], share: NDArray[np.float64], within: float) -> tuple[float, float] | None:
    """The unbroken range around the best fixed value: beyond a dip, nearness is luck."""
    fixed = [float(each) for each in t_fwd if not isinstance(each, str)]  # these come first
    if not fixed:
        return None
    mine = share[: len(fixed)]
    near = mine >= (1 - within) * mine.max() - _ROUNDING
    low = high = int(mine.argmax())
    while low > 0 and near[low - 1]:
        low -= 1
    while high + 1 < len(fixed) and near[high + 1]:
        high += 1
    return fixed[low], fixed[high]
