"""Bursts: the nodes that join the idle nodes, or are reclaimed from them, at one time stamp."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness.quantiles import Quantiles, by_percentile, quantiles
from bfreplay.datasets.times import DAY_US, US
from bfreplay.documents import Json, pick

BURST_SHARES: tuple[tuple[int, int], ...] = ((1, 10), (1, 4), (1, 2))
"""Shares of the idle nodes that a burst may reach, as numerator and denominator."""

SETTLE_S = 0.3
"""Within so many seconds one batch job takes its nodes."""


@dataclass(frozen=True, slots=True)
class LargeBursts:
    """Bursts of at least ``share`` of the idle nodes (as text in ``label``: ``"1/10"``)."""

    label: str
    share: float
    count: int
    nodes: int
    window_us: int

    @property
    def per_day(self) -> float:
        """Bursts per day of the window."""
        return self.count * DAY_US / self.window_us

    @property
    def mean_nodes(self) -> float:
        """Mean nodes in a burst; 0 if there is none."""
        return self.nodes / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bursts of nodes that change at one time stamp.

    Parameters
    ----------
    count, mean_nodes, nodes
        Time stamps with such a change; mean and quantiles of the nodes at each.
    at_least
        (n, time stamps with at least n nodes) for n = 1, 2, 4, ... up to the largest burst.
    large
        Bursts by their share of the idle nodes: for reclaims right before, for joins right after.
    soon
        Time stamps with such a change that follow another one within ``SETTLE_S``.
    """

    count: int
    mean_nodes: float
    nodes: Quantiles
    at_least: tuple[tuple[int, int], ...]
    large: tuple[LargeBursts, ...]
    soon: int

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        return {
            "events": self.count,
            "mean_nodes": self.mean_nodes,
            "nodes": by_percentile(self.nodes),
            **({f"events_within_{SETTLE_S:g}_s_of_another": self.soon} if self.soon else {}),
            "at_least": [{"nodes": nodes, "events": count} for nodes, count in self.at_least],
            "of_idle_nodes": [
                {
                    "at_least": burst.label,
                    "share": burst.share,
                    "events": burst.count,
                    **pick(burst, "per_day", "mean_nodes"),
                }
                for burst in self.large
            ],
        }


class BurstTally:
    """Counts bursts on a machine of ``n_nodes``, part of the window by part."""

    def __init__(self, n_nodes: int) -> None:
        self._of_size = np.zeros(n_nodes + 1, np.int64)
        self._large = np.zeros((len(BURST_SHARES), 2), np.int64)  # bursts, and nodes in them
        self._soon = 0
        self._last_us = np.empty(0, np.int64)  # of the last burst, if there was one

    def add(self, changes: NDArray[np.int64], idle: NDArray[np.int64], time_us: NDArray[np.int64]) -> None:
        """Count the ``changes`` nodes at each pool event, ``(E,)``, out of ``idle`` nodes, ``(E,)``."""
        is_burst = changes > 0
        burst_us = np.append(self._last_us, time_us[is_burst])
        self._soon += int(np.count_nonzero(np.diff(burst_us) <= SETTLE_S * US))
        self._last_us = burst_us[-1:]
        burst_size, n_idle = changes[is_burst], idle[is_burst]
        self._of_size += np.bincount(burst_size, minlength=len(self._of_size))
        for share_index, (above, below) in enumerate(BURST_SHARES):
            large_sizes = burst_size[burst_size * below >= n_idle * above]
            self._large[share_index] += len(large_sizes), large_sizes.sum()

    @property
    def n_nodes(self) -> int:
        """Nodes in all bursts so far."""
        return int(self._of_size @ np.arange(len(self._of_size)))

    def bursts(self, window_us: int) -> Bursts:
        """Return the figures of all bursts so far."""
        burst_size = np.arange(len(self._of_size))
        count = int(self._of_size.sum())
        at_least = np.cumsum(self._of_size[::-1])[::-1]
        powers = [1 << index for index in range(int(burst_size[at_least > 0][-1]).bit_length())] if count else []
        large = [
            LargeBursts(f"{above}/{below}", above / below, number, n_nodes, window_us)
            for (above, below), (number, n_nodes) in zip(BURST_SHARES, self._large.tolist(), strict=True)
        ]
        return Bursts(
            count=count,
            mean_nodes=self.n_nodes / count if count else 0.0,
            nodes=quantiles(burst_size, self._of_size),
            at_least=tuple((number, int(at_least[number])) for number in powers),
            large=tuple(large),
            soon=self._soon,
        )
