"""Recommendation from the part of the log tuned on, and its result on the other part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.experiments.tuning.grid import SAMPLES, ForwardTime, Grid, LogPart, Surface, seconds
from bfreplay.result_folders.tuning import Column, Validation
from bfreplay.wording import amount, count, percent

AS_GOOD = 0.001
"""Relative difference of samples up to which values of t_fwd count as equally good."""

FLAT = (0.005, 0.01)
"""Distances below the best that count as flat."""

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Recommended values.

    Parameters
    ----------
    t_fwd, max_parallel
        Values of the grid.
    columns
        Result of each max_parallel of the grid.
    at
        Row and column of the pair in the arrays of the grid.
    """

    t_fwd: ForwardTime
    max_parallel: int
    columns: tuple[Column, ...]
    at: tuple[int, int]


def recommend(
    grid: Grid, share: NDArray[np.float64], rescales: NDArray[np.int64], *, tolerance: float = 0.01
) -> Recommendation:
    """Return the smallest max_parallel whose best share is within ``tolerance`` of the best, with its t_fwd.

    Parameters
    ----------
    grid
        T values of t_fwd and M of max_parallel.
    share : (T, M)
        Share of the best, 0 to 1; at least one is 1.
    rescales : (T, M)
        Among equally good values of t_fwd the fewest rescales win; then the better one; then the smaller one.
    tolerance
        Relative; 0 recommends the best number.
    """
    best_share = share.max(axis=0)
    column = int(np.flatnonzero(best_share >= (1 - tolerance) * best_share.max() - _ROUNDING)[0])
    rows = list(map(_row, share.T, rescales.T))
    columns = tuple(
        Column(
            max_parallel=n_at_once,
            t_fwd=grid.t_fwd[row],
            best_t_fwd=grid.t_fwd[int(column_share.argmax())],
            share=float(column_share.max()),
            flat=tuple(_flat(grid.t_fwd, column_share, within) for within in FLAT),
        )
        for n_at_once, row, column_share in zip(grid.max_parallel, rows, share.T, strict=True)
    )
    return Recommendation(grid.t_fwd[rows[column]], grid.max_parallel[column], columns, (rows[column], column))


def _row(share: NDArray[np.float64], rescales: NDArray[np.int64]) -> int:
    as_good = np.flatnonzero(share >= (1 - AS_GOOD) * share.max() - _ROUNDING).tolist()
    return int(min(as_good, key=lambda row_index: (rescales[row_index], -share[row_index], row_index)))


def _flat(t_fwd: Sequence[ForwardTime], share: NDArray[np.float64], within: float) -> tuple[float, float] | None:
    """Return the unbroken range around the best fixed value; values beyond a dip do not count."""
    fixed_s = [float(value) for value in t_fwd if not isinstance(value, str)]  # these come first
    if not fixed_s:
        return None
    share = share[: len(fixed_s)]
    far = np.flatnonzero(share < (1 - within) * share.max() - _ROUNDING)
    best = share.argmax()
    return fixed_s[far[far < best].max(initial=-1) + 1], fixed_s[far[far > best].min(initial=len(fixed_s)) - 1]


FEW_EVENTS = 50
"""Fewest pool events of a part for a credible result."""

UNLIKE = 1.5
"""Factor between the idle nodes, or events an hour, of two parts from which they count as unlike."""


def validate(grid: Grid, recommendation: Recommendation, surface: Surface) -> Validation | None:
    """Look up the recommended pair; ``None`` if no run processed anything there."""
    share = surface.share
    if not share.any():
        return None
    row, column = recommendation.at
    own_share, others = float(share[row, column]), share[:, column]
    best_row = row if own_share >= others.max() else int(others.argmax())
    best_pair = divmod(int(share.argmax()), share.shape[1])
    bound = float(surface.share_of_bound[row, column])
    return Validation(
        share_of_bound=None if np.isnan(bound) else bound,
        loss=0.0 if others.max() == 0 else 1 - own_share / float(others.max()),
        best_t_fwd=grid.t_fwd[best_row],
        loss_of_grid=1 - own_share,
        best_pair=(grid.t_fwd[best_pair[0]], grid.max_parallel[best_pair[1]]),
    )


def cautions(
    grid: Grid,
    recommendation: Recommendation,
    parts: tuple[LogPart, LogPart],
    surfaces: tuple[Surface, Surface],
    tolerance: float,
) -> list[str]:
    """Return warnings: best values at an edge of the grid, unlike parts, a short log."""
    return [
        *_short(surfaces),
        *_flatness(grid, surfaces[0]),
        *_edges(grid, recommendation, surfaces[0], tolerance),
        *_unlike(parts, surfaces),
    ]


def _short(surfaces: tuple[Surface, Surface]) -> Iterator[str]:
    n_events = [surface.n_pool_events for surface in surfaces]
    if min(n_events) < FEW_EVENTS:
        yield (
            f"The log is short: {count(n_events[0], 'pool event')} to tune on and {n_events[1]:,} to validate "
            f"on. The result is a "
            f"guess: each part needs at least {FEW_EVENTS}."
        )


def _flatness(grid: Grid, surface: Surface) -> Iterator[str]:
    if len(grid.t_fwd) > 1 and (surface.value == surface.value[0]).all():
        yield (
            "T_fwd changes nothing here: every value gave the same result. Either this policy does not use it, or "
            "there was nothing to decide."
        )


def _edges(grid: Grid, recommendation: Recommendation, surface: Surface, tolerance: float) -> Iterator[str]:
    row, column = recommendation.at
    share = surface.share
    fixed_s = [value for value in grid.t_fwd if not isinstance(value, str)]
    edges = {0: "below", len(fixed_s) - 1: "above"}
    if not isinstance(recommendation.t_fwd, str) and len(fixed_s) > 1 and row in edges:
        next_row = 1 if row == 0 else row - 1
        if share[row, column] > share[next_row, column]:
            edge_text = f"{seconds(recommendation.t_fwd)} is the best T_fwd, at the edge of the values tried"
            yield f"{edge_text}: try values {edges[row]} it with --t-fwd."
    numbers = grid.max_parallel
    best_share = share.max(axis=0)
    is_last = len(numbers) > 1 and column == len(numbers) - 1 and not grid.takes_all_jobs
    if is_last and best_share[-1] > (1 + tolerance) * best_share[-2]:
        limit_text = f"{numbers[-1]:,} is the largest number of jobs at once tried"
        second = worse(best_share[-2] / best_share[-1], surface.measure)
        yield f"{limit_text}, and {numbers[-2]:,} {second}: try more with --max-parallel."


def worse(share: float, measure: str) -> str:
    """Return how far ``share`` of the best is from it, as in "process 6 % fewer samples"."""
    if measure == SAMPLES:
        return f"process {percent(abs(1 - share))} {'fewer' if share <= 1 else 'more'} samples"
    return f"take {percent(1 / share - 1)} longer" if share <= 1 else f"take {percent(1 - 1 / share)} less time"


def _unlike(parts: tuple[LogPart, LogPart], surfaces: tuple[Surface, Surface]) -> Iterator[str]:
    idle = [surface.idle_nodes for surface in surfaces]
    per_hour = [surface.n_pool_events / part.duration_s * 3600 for surface, part in zip(surfaces, parts, strict=True)]
    unlike = []
    if max(idle) > UNLIKE * min(idle):
        unlike.append(f"{amount(idle[0])} and {amount(idle[1])} idle nodes on average")
    if max(per_hour) > UNLIKE * min(per_hour):
        unlike.append(f"{amount(per_hour[0])} and {amount(per_hour[1])} pool events an hour")
    if unlike:
        yield (
            f"The two parts are unlike ({' and '.join(unlike)}; the border is at {iso_utc(parts[0].end_us)}): the "
            "best values may change over time, and the validation includes that."
        )
