"""What is believed of one scalability curve from the counts measured so far."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.scalability.quick_fit import quick_usl

_COUNTS_FOR_A_SHAPE = 3


class Shape(NamedTuple):
    """The universal scalability law without its rate on one node."""

    serial: float
    kappa: float

    def relative(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rate on each number of nodes over the rate on one; 0 on none."""
        slowed = 1.0 + self.serial * (nodes - 1.0) + self.kappa * nodes * (nodes - 1.0)
        return np.divide(nodes, slowed, out=np.zeros_like(nodes), where=nodes > 0)


LINEAR = Shape(0.0, 0.0)
"""In proportion to the nodes."""


class Assumed(NamedTuple):
    """What a job is taken to be like of which nothing, or too little, has been measured."""

    rate: float  # samples/s on one node
    worth: float  # objective per second on one node, for a weight of 1
    shape: Shape


class Belief:
    """A curve and its objective: exact where measured, a fitted law elsewhere.

    The law is the universal scalability law through the measured counts (``quick_usl``): Amdahl's after two, with
    coherency from three on. One count tells no shape: an assumed one is put through it. Between two measured counts
    the law is bent to go through both: the ratio of measured rate to law is interpolated, so that a curve that follows
    the law is found exactly. Beyond the smallest and the largest count the ratio stays as it is there.

    The objective is the rate times the ratio of objective to rate, interpolated between measured counts likewise.
    """

    def __init__(self) -> None:
        self._points: dict[int, tuple[int, float, float]] = {}  # count: measurements, mean rate, mean worth
        self._shape: Shape | None = None
        self._is_fitted = False
        self._tables: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self._drawn_with: Assumed | None = None

    def learn(self, count: int, rate: float, worth: float) -> None:
        """One measurement on ``count`` >= 1 nodes: samples/s, and the objective per second for a weight of 1."""
        n, mean_rate, mean_worth = self._points.get(count, (0, 0.0, 0.0))
        known = (mean_rate, mean_worth)
        n += 1
        mean_rate += (rate - mean_rate) / n
        mean_worth += (worth - mean_worth) / n
        self._points[count] = (n, mean_rate, mean_worth)
        if n == 1 or (mean_rate, mean_worth) != known:
            self._is_fitted = False
            self._tables = None

    def point(self, count: int) -> tuple[float, float]:
        """Means of rate and objective measured on ``count`` nodes."""
        _, rate, worth = self._points[count]
        return rate, worth

    @property
    def is_telling(self) -> bool:
        """Whether enough counts are measured to tell others what shape a curve has."""
        return sum(rate > 0 for _, rate, _ in self._points.values()) >= _COUNTS_FOR_A_SHAPE

    @property
    def shape(self) -> Shape | None:
        """The fitted law; ``None`` while fewer than two counts are measured on which the job makes progress."""
        if not self._is_fitted:
            points = [(count, rate, times) for count, (times, rate, _) in sorted(self._points.items()) if rate > 0]
            self._shape = None
            if len(points) > 1:
                _, serial, kappa = quick_usl(*zip(*points, strict=True))
                self._shape = Shape(serial, kappa)
            self._is_fitted = True
        return self._shape

    def tables(self, width: int, assumed: Assumed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rate and objective, for a weight of 1, at 0 to ``width - 1`` nodes."""
        is_known = self._tables is not None and (self.shape is not None or assumed == self._drawn_with)
        if self._tables is None or not is_known or self._tables[0].size < width:
            self._tables = self._drawn(width, assumed)
            self._drawn_with = assumed
        rate, worth = self._tables
        return rate[:width], worth[:width]

    def _drawn(self, width: int, assumed: Assumed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        relative = (self.shape or assumed.shape).relative
        nodes = np.arange(width, dtype=np.float64)
        counts = sorted(self._points)
        at = np.array(counts, dtype=np.float64)
        measured_rate, measured_worth = np.array([self.point(count) for count in counts]).reshape(-1, 2).T
        ran = measured_rate > 0
        if ran.any():
            rate = relative(nodes) * np.interp(nodes, at, measured_rate / relative(at))
            worth = rate * np.interp(nodes, at[ran], measured_worth[ran] / measured_rate[ran])
        else:
            rate, worth = assumed.rate * relative(nodes), assumed.worth * relative(nodes)
        n_inside = int(np.searchsorted(at, width))
        rate[counts[:n_inside]] = measured_rate[:n_inside]
        worth[counts[:n_inside]] = measured_worth[:n_inside]
        return rate, worth
