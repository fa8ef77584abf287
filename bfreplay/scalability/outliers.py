"""Measurements that lie far from the repeats beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bfreplay.scalability.measurements import Measurements

FAR_TIMES = 8.0
"""A repeat is far off beyond this many times the scatter of repeats ..."""
FAR_AT_LEAST = 0.20
"""... and by at least this factor less 1: what is closer changes no curve much."""
_NORMAL = 1.4826
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Outlier:
    """A measurement far from its repeats.

    Parameters
    ----------
    row
        Where it stands, as `Measurements.rows` says.
    nodes, rate
        What was measured, samples/s.
    siblings
        The other rates measured at that count, in the order of the file. Of two that lie apart none is the bad one for
        sure: both are told, each as the sibling of the other.
    scatter
        Of the repeats at all counts, as a standard deviation of log rates, robustly.
    """

    row: int | str
    nodes: int
    rate: float
    siblings: tuple[float, ...]
    scatter: float

    @property
    def middle(self) -> float:
        """Median of the siblings."""
        return float(np.exp(np.median(np.log(self.siblings))))


def outliers(measurements: Measurements) -> tuple[Outlier, ...]:
    """Return the measurements far from the median of their count, in the order of counts.

    Far is a log rate that lies off by more than log 1.2, and by more than 8 times the scatter of repeats: 1.4826 times
    the (lower) median of such distances over all counts with repeats, which a few bad measurements do not move (P. J.
    Rousseeuw and C. Croux, JASA 88 (1993) 1273). A median that is itself a measurement has no distance to count. With
    normal scatter of log rates there is a false alarm in at most 2 of 100 tables with 3 repeats at 4 counts or more,
    4 of 100 with 2 at 4; and almost none where repeats agree to 10 %.
    """
    nodes, logs = np.asarray(measurements.nodes), np.log(measurements.rates)
    off = np.zeros(len(nodes))
    distances: list[float] = []
    for count in measurements.counts:
        here = nodes == count
        off[here] = logs[here] - np.median(logs[here])
        distances += np.sort(np.abs(off[here]))[int(here.sum()) % _PAIR :].tolist()
    if not distances:
        return ()
    scatter = _NORMAL * sorted(distances)[(len(distances) - 1) // 2]
    far = max(math.log1p(FAR_AT_LEAST), FAR_TIMES * scatter)
    return tuple(
        Outlier(
            measurements.rows[i],
            int(nodes[i]),
            measurements.rates[i],
            tuple(measurements.rates[j] for j in np.flatnonzero(nodes == nodes[i]) if j != i),
            float(scatter),
        )
        for i in np.flatnonzero(np.abs(off) > far)
    )
