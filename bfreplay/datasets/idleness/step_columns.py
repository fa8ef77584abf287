"""Least, most and integral of a step function in columns of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Ints = NDArray[np.int64]


class StepColumns:
    """A step function of whole numbers in columns of time, part of the window by part.

    Attributes
    ----------
    edge_us : (C+1,) int64
        Edges of the columns: from the start to the end of the window, strictly increasing.
    least, most, area_us : (C,) int64
        Lowest and highest step that lasts in each column for any time, and integral over the column. A column without
        any has the largest number of 64 bits, -1 and 0.
    """

    def __init__(self, edge_us: _Ints) -> None:
        self.edge_us = edge_us
        n = len(edge_us) - 1
        self.least, self.most = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
        self.area_us = np.zeros(n, np.int64)

    def add(self, edge_us: _Ints, height: _Ints) -> None:
        """Add a part of the window: ``height (T,)`` between ``edge_us (T+1,)``, ascending."""
        edges = np.clip(self.edge_us, edge_us[0], edge_us[-1])
        reached = np.flatnonzero(np.diff(edges))
        first = np.searchsorted(edge_us, edges[reached], side="right") - 1
        last = np.searchsorted(edge_us, edges[reached + 1], side="left")  # exclusive
        pairs = np.column_stack([first, last]).ravel()
        padded = np.append(height, 0)  # reduceat wants every index inside
        self.least[reached] = np.minimum(self.least[reached], np.minimum.reduceat(padded, pairs)[::2])
        self.most[reached] = np.maximum(self.most[reached], np.maximum.reduceat(padded, pairs)[::2])
        area_to_us = np.append(0, np.cumsum(height * np.diff(edge_us)))
        ends = area_to_us[last] - height[last - 1] * (edge_us[last] - edges[reached + 1])
        starts = area_to_us[first] + height[first] * (edges[reached] - edge_us[first])
        self.area_us[reached] += ends - starts
