"""The numbers that the pictures of a log's idle nodes show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.idleness import Idleness
from bfreplay.datasets.idleness.bursts import Bursts
from bfreplay.report.figures.axes import DAY_US

_US = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class TimelineBand:
    """C columns: ``edge_days`` (C+1,), and ``least``, ``mean``, ``most`` idle nodes (C,)."""

    edge_days: NDArray[np.float64]
    least: NDArray[np.int64]
    mean: NDArray[np.float64]
    most: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class HoleCurves:
    """Holes by length.

    ``edge_s`` (B+1,), and of each bin between two of them ``of_holes`` and ``of_node_hours`` (B,), shares that sum to 1
    each; and ``longer`` (L,), the share of idle node-hours in holes longer than ``over_s`` (L,), which ascends.
    """

    edge_s: NDArray[np.float64]
    of_holes: NDArray[np.float64]
    of_node_hours: NDArray[np.float64]
    over_s: NDArray[np.float64]
    longer: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WidthCurves:
    """By ``nodes`` (W,) idle at once: ``share`` of time, ``mean_s`` and ``median_s`` of a stretch (NaN: none)."""

    nodes: NDArray[np.int64]
    share: NDArray[np.float64]
    mean_s: NDArray[np.float64]
    median_s: NDArray[np.float64]


def timeline_band(idleness: Idleness) -> TimelineBand:
    """Idle nodes over time; days since 1970-01-01 UTC, since the start of the window where times are relative."""
    line = idleness.timeline
    since_us = 0 if idleness.week is not None else line.edges_us[0]
    edges = np.array([edge - since_us for edge in line.edges_us], dtype=np.float64) / DAY_US
    return TimelineBand(edges, np.array(line.least), np.array(line.mean), np.array(line.most))


def hour_table(idleness: Idleness) -> NDArray[np.float64] | None:
    """Mean idle nodes by weekday and hour, (7, 24), NaN where nothing is covered; ``None`` without a calendar."""
    return None if idleness.week is None else np.array(idleness.week.mean, dtype=np.float64)


def colour_range(table: NDArray[np.float64]) -> tuple[float, float]:
    """Lowest and highest number of nodes that colours tell apart.

    The lowest is 0 where the least cell is near it, at most a quarter of the greatest; else that cell. It stays a tenth
    below the greatest, so that small differences do not look large.
    """
    least, most = float(np.nanmin(table)), max(1e-9, float(np.nanmax(table)))
    return (0.0 if least <= most / 4 else min(least, 0.9 * most)), most


def hole_curves(idleness: Idleness) -> HoleCurves:
    """Fine bins of the lengths of all holes, and the share of node-hours in longer ones at their edges and more."""
    bins = idleness.hole_spectrum
    count, node_us = np.array(bins.count, dtype=np.float64), np.array(bins.node_us, dtype=np.float64)
    edges = np.array(bins.edges_us, dtype=np.float64) / _US
    if not len(count):
        return HoleCurves(edges, count, node_us, edges, edges)
    if edges[0] == 0.0:  # lengths up to the first edge: as wide as the others on a logarithmic axis
        edges[0] = edges[1] / np.sqrt(2)
    above = np.append(np.cumsum(node_us[::-1])[::-1], 0.0)
    points = dict(zip(edges.tolist(), (above / above[0]).tolist(), strict=True))
    points |= {float(each.over_s): each.share for each in idleness.longer_holes if edges[0] < each.over_s < edges[-1]}
    over = sorted(points)
    return HoleCurves(
        edges, count / count.sum(), node_us / node_us.sum(), np.array(over), np.array([points[s] for s in over])
    )


def width_curves(idleness: Idleness) -> WidthCurves:
    """Of each power of two up to the machine."""
    rows = idleness.widths
    return WidthCurves(
        nodes=np.array([each.nodes for each in rows]),
        share=np.array([each.share_of_time for each in rows]),
        mean_s=np.array([each.mean_s for each in rows], dtype=np.float64),
        median_s=np.array([each.median_s for each in rows], dtype=np.float64),
    )


def bursts_per_day(bursts: Bursts, idleness: Idleness) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nodes at once (1, 2, 4, ...), and how many bursts a day have at least so many."""
    per_day = DAY_US / (idleness.window_end_us - idleness.window_start_us)
    nodes = np.array([nodes for nodes, _ in bursts.at_least], dtype=np.int64)
    return nodes, np.array([count * per_day for _, count in bursts.at_least], dtype=np.float64)
