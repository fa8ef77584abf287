"""What a recommendation is worth on the part of the log that it does not know, and why it may be worth less."""

from __future__ import annotations

import numpy as np

from bfreplay.datasets.times import iso_utc
from bfreplay.experiments.tuning.grid import Grid
from bfreplay.experiments.tuning.parts import Part
from bfreplay.experiments.tuning.recommendation import Recommendation
from bfreplay.experiments.tuning.surface import Surface
from bfreplay.experiments.tuning.words import percent, said, seconds
from bfreplay.result_folders.tuning import Validation
from bfreplay.wording import amount, count

FEW_EVENTS = 50
"""A part with fewer pool events tells next to nothing."""

UNLIKE = 1.5
"""Parts whose idle nodes, or events an hour, differ by more than this factor are told apart."""


def validated(grid: Grid, found: Recommendation, surface: Surface) -> Validation | None:
    """Look up what was recommended; ``None`` where nothing was processed there."""
    share = surface.share
    if not share.any():
        return None
    row, column = found.at
    mine, beside = float(share[row, column]), share[:, column]
    best_row = row if mine >= beside.max() else int(beside.argmax())
    best = divmod(int(share.argmax()), share.shape[1])
    bound = float(surface.share_of_bound[row, column])
    return Validation(
        share_of_bound=None if np.isnan(bound) else bound,
        loss=0.0 if beside.max() == 0 else 1 - mine / float(beside.max()),
        best_t_fwd=grid.t_fwd[best_row],
        loss_of_grid=1 - mine,
        best_pair=(grid.t_fwd[best[0]], grid.max_parallel[best[1]]),
    )


def cautions(
    grid: Grid, found: Recommendation, parts: tuple[Part, Part], surfaces: tuple[Surface, Surface], tolerance: float
) -> list[str]:
    """Sentences on what a reader should not trust: edges of the grid, parts that are unlike, a log that is short."""
    return [
        *_short(surfaces), *_flatness(grid, surfaces[0]), *_edges(grid, found, surfaces[0], tolerance),
        *_unlike(parts, surfaces),
    ]  # fmt: skip


def _short(surfaces: tuple[Surface, Surface]) -> list[str]:
    n = [surface.n_pool_events for surface in surfaces]
    if min(n) >= FEW_EVENTS:
        return []
    return [
        f"The log is short: {count(n[0], 'pool event')} to tune on and {n[1]:,} to validate on. This is a guess; "
        f"{FEW_EVENTS} in each part are the least that tells something."
    ]


def _flatness(grid: Grid, surface: Surface) -> list[str]:
    if len(grid.t_fwd) > 1 and (surface.value == surface.value[0]).all():
        return ["T_fwd changes nothing here: every value gave the same. Either this policy does not look at it, or "
                "there was nothing to decide."]  # fmt: skip
    return []


def _edges(grid: Grid, found: Recommendation, surface: Surface, tolerance: float) -> list[str]:
    row, column = found.at
    share = surface.share
    fixed = [each for each in grid.t_fwd if not isinstance(each, str)]
    warnings = []
    edges = {0: "below", len(fixed) - 1: "above"}
    if not isinstance(found.t_fwd, str) and len(fixed) > 1 and row in edges:
        next_row = 1 if row == 0 else row - 1
        if share[row, column] > share[next_row, column]:
            warnings.append(
                f"{seconds(found.t_fwd)} is at the edge of the T_fwd that were tried, and the best of them: try values "
                f"{edges[row]} it with --t-fwd."
            )
    numbers = grid.max_parallel
    best = share.max(axis=0)
    if len(numbers) > 1 and column == len(numbers) - 1 and not grid.takes_all_jobs:
        gain = best[-1] / best[-2] - 1 if best[-2] > 0 else np.inf
        if gain > tolerance:
            warnings.append(
                f"{numbers[-1]:,} is the most jobs at once that was tried, and {percent(gain)} % better than "
                f"{numbers[-2]:,}: try more with --max-parallel."
            )
    return warnings


def _unlike(parts: tuple[Part, Part], surfaces: tuple[Surface, Surface]) -> list[str]:
    idle = [surface.idle_nodes for surface in surfaces]
    per_hour = [surface.n_pool_events / part.duration_s * 3600 for surface, part in zip(surfaces, parts, strict=True)]
    unlike = []
    if max(idle) > UNLIKE * min(idle):
        unlike.append(f"{amount(idle[0])} and {amount(idle[1])} idle nodes on average")
    if max(per_hour) > UNLIKE * min(per_hour):
        unlike.append(f"{amount(per_hour[0])} and {amount(per_hour[1])} pool events an hour")
    if not unlike:
        return []
    return [
        f"The two parts are unlike ({said(unlike)}; the border is at {iso_utc(parts[0].end_us)}): what is best may "
        "change with time here, and the validation tells that, too."
    ]
