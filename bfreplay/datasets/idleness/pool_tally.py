"""Tallies of the number of idle nodes over time, part of the window by part: memory does not grow with the log."""

from __future__ import annotations

from datetime import tzinfo

import numpy as np

from bfreplay.datasets.idleness.bursts import BurstTally
from bfreplay.datasets.idleness.pool import TIMELINE_COLUMNS, PoolSeries, StepColumns, Timeline, WidthTally
from bfreplay.datasets.idleness.quantiles import Counted
from bfreplay.datasets.idleness.week import week_cells
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.times import HOUR_US


class PoolTally:
    """Sums over the pool events of a log; ``zone`` is the clock of its hours and weekdays, if it has them.

    Attributes
    ----------
    start_us, end_us
        The window.
    level : (N+1,) int64
        Numbers of idle nodes: 0 to N.
    time_at_us, events_at : (N+1,) int64
        Microseconds with each number, and pool events that led to it.
    events_of_hour : (H,) int64
        Pool events in each whole hour since the start of the window.
    gap_us
        Microseconds from one pool event to the next.
    joins, reclaims, widths, week_cells
        The others, each with the figures that it makes.
    """

    def __init__(self, log: NodeEvents, zone: tzinfo | None) -> None:
        self.start_us, self.end_us = int(log.window_start_us), int(log.window_end_us)
        n_nodes = len(log.nodes)
        self.level = np.arange(n_nodes + 1)
        self.time_at_us, self.events_at = np.zeros((2, n_nodes + 1), np.int64)
        self.events_of_hour = np.zeros((self.end_us - self.start_us) // HOUR_US, np.int64)
        self.gap_us = Counted()
        self.joins, self.reclaims = BurstTally(n_nodes), BurstTally(n_nodes)
        self.widths = [WidthTally(1 << k, self.start_us) for k in range(n_nodes.bit_length())]
        self._zone = zone
        self.week_cells = np.zeros((2, 7 * 24), np.int64)
        length_us = self.end_us - self.start_us
        n = min(TIMELINE_COLUMNS, length_us)
        self._columns = StepColumns(np.array([self.start_us + length_us * k // n for k in range(n + 1)], np.int64))

    def add(self, pool: PoolSeries) -> None:
        """Add the next part of the window."""
        self.time_at_us += pool.time_at(len(self.level) - 1)
        self.events_at += np.bincount(pool.idle[1:], minlength=len(self.level))
        hour, hours = (pool.stamp_us - self.start_us) // HOUR_US, len(self.events_of_hour)
        self.events_of_hour += np.bincount(hour[hour < hours], minlength=hours)
        self.gap_us.add(np.diff(pool.stamp_us if pool.start_us == self.start_us else pool.time_us))
        self.joins.add(pool.joined, pool.idle[1:])
        self.reclaims.add(pool.reclaimed, pool.idle[:-1])
        for width in self.widths:
            width.add(pool)
        if self._zone is not None:
            self.week_cells += week_cells(pool, self._zone)
        self._columns.add(np.append(pool.time_us, pool.end_us), pool.idle)

    def timeline(self) -> Timeline:
        """Return the least, the most and the integral of idle nodes over equal parts of the window."""
        found = self._columns
        return Timeline(*(tuple(each.tolist()) for each in (found.edge_us, found.least, found.most, found.area_us)))
