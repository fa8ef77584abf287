"""Holes (one node idle without a break) by their length: how many, and how much of them jobs held."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.idleness.holes import SPECTRUM_OVER_US

HOLE_BIN = np.dtype(
    [
        ("over_us", np.int64),  # lengths over this, and up to that of the next bin
        ("n_holes", np.int64),
        ("n_cut", np.int64),  # of them: by an edge of the window
        ("n_held", np.int64),  # of them: some job held the node for a time
        # node-microseconds: so many, and so many times CARRIED_US
        ("idle_us", np.int64),
        ("idle_carried", np.int64),
        ("held_us", np.int64),
        ("held_carried", np.int64),
    ],
    align=True,
)

CARRIED_US = 2**62
"""Node time of one bin is carried at this: decades of many thousand nodes leave 64 bits."""


def no_holes() -> NDArray[np.void]:
    """The bins of the idleness report's spectrum, all empty: ``(B,)`` of ``HOLE_BIN``."""
    bins: NDArray[np.void] = np.zeros(SPECTRUM_OVER_US.size, dtype=HOLE_BIN)
    bins["over_us"] = SPECTRUM_OVER_US
    return bins


@compiled
def count_hole(bins: NDArray[np.void], length_us: int, held_us: int, is_cut: bool) -> None:
    """Add one hole; one of no length, which begins with the window's end, is none."""
    if length_us <= 0:
        return
    b = np.searchsorted(bins["over_us"], length_us) - 1
    bins[b]["n_holes"] += 1
    if is_cut:
        bins[b]["n_cut"] += 1
    bins[b]["idle_us"] += length_us
    if bins[b]["idle_us"] >= CARRIED_US:
        bins[b]["idle_us"] -= CARRIED_US
        bins[b]["idle_carried"] += 1
    if held_us > 0:
        bins[b]["n_held"] += 1
        bins[b]["held_us"] += held_us
        if bins[b]["held_us"] >= CARRIED_US:
            bins[b]["held_us"] -= CARRIED_US
            bins[b]["held_carried"] += 1


def idle_and_held_us(bins: NDArray[np.void]) -> tuple[list[int], list[int]]:
    """Idle and held node time of each bin, in whole numbers of Python."""
    idle, held = (
        [
            low + CARRIED_US * carried
            for low, carried in zip(bins[f"{what}_us"].tolist(), bins[f"{what}_carried"].tolist(), strict=True)
        ]
        for what in ("idle", "held")
    )
    return idle, held
