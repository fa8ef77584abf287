"""Measure the idle nodes of a log in one pass over its batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from os import PathLike
from pathlib import Path

import numpy as np

from bfreplay import checks
from bfreplay.datasets.idleness.bursts import Bursts, BurstTally
from bfreplay.datasets.idleness.figures import Idleness, Origin, StateTime
from bfreplay.datasets.idleness.idle_intervals import (
    CensoredIdleIntervals,
    idle_interval_bins,
    idle_interval_spectrum,
    longer_idle_intervals,
)
from bfreplay.datasets.idleness.observe import check_node_time, longest_idle_intervals, observe
from bfreplay.datasets.idleness.parts import idle_parts
from bfreplay.datasets.idleness.pool import TIMELINE_COLUMNS, PoolSeries, StepColumns, Timeline, WidthTally
from bfreplay.datasets.idleness.quantiles import Counted, quantiles
from bfreplay.datasets.idleness.reasons import IdleReasons, reasons_of, why_idle
from bfreplay.datasets.idleness.week import choose_zone, week_cells, week_of
from bfreplay.datasets.log import log_warnings
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.load import load_events
from bfreplay.datasets.log.states import POOLS, STATE_WORDS, NodeState
from bfreplay.datasets.named_inputs import restrict
from bfreplay.datasets.node_selection import part_of, select_nodes
from bfreplay.datasets.times import HOUR_US, US, iso_utc


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

    def __init__(self, node_events: NodeEvents, zone: tzinfo | None) -> None:
        self.start_us, self.end_us = int(node_events.window_start_us), int(node_events.window_end_us)
        n_nodes, length_us = len(node_events.nodes), self.end_us - self.start_us
        self.level = np.arange(n_nodes + 1)
        self.time_at_us, self.events_at = np.zeros((2, n_nodes + 1), np.int64)
        self.events_of_hour = np.zeros(length_us // HOUR_US, np.int64)
        self.gap_us = Counted()
        self.joins, self.reclaims = BurstTally(n_nodes), BurstTally(n_nodes)
        self.widths = [WidthTally(1 << index, self.start_us) for index in range(n_nodes.bit_length())]
        self._zone = zone
        self.week_cells = np.zeros((2, 7 * 24), np.int64)
        n_columns = min(TIMELINE_COLUMNS, length_us)
        edges_us = [self.start_us + length_us * index // n_columns for index in range(n_columns + 1)]
        self._columns = StepColumns(np.array(edges_us, np.int64))

    def add(self, pool_series: PoolSeries) -> None:
        """Add the next part of the window."""
        self.time_at_us += pool_series.time_at(len(self.level) - 1)
        self.events_at += np.bincount(pool_series.idle[1:], minlength=len(self.level))
        hour, hours = (pool_series.stamp_us - self.start_us) // HOUR_US, len(self.events_of_hour)
        self.events_of_hour += np.bincount(hour[hour < hours], minlength=hours)
        self.gap_us.add(np.diff(pool_series.stamp_us if pool_series.start_us == self.start_us else pool_series.time_us))
        self.joins.add(pool_series.joined, pool_series.idle[1:], pool_series.time_us[1:])
        self.reclaims.add(pool_series.reclaimed, pool_series.idle[:-1], pool_series.time_us[1:])
        for width in self.widths:
            width.add(pool_series)
        if self._zone is not None:
            self.week_cells += week_cells(pool_series, self._zone)
        self._columns.add(np.append(pool_series.time_us, pool_series.end_us), pool_series.idle)

    def timeline(self) -> Timeline:
        """Return the least, the most and the integral of idle nodes over equal parts of the window."""
        columns = self._columns
        of_columns = columns.edge_us, columns.least, columns.most, columns.area_us
        return Timeline(*(tuple(values.tolist()) for values in of_columns))


def describe(
    events: NodeEvents | str | PathLike[str],
    *,
    window: tuple[str, str] | None = None,
    tz: str | None = None,
    pool: str | None = None,
    partition: str | None = None,
    only_nodes: str | None = None,
    without: str | None = None,
    by: str | None = None,
    batch_jobs: str | PathLike[str] | None = None,
) -> Idleness:
    """Describe the idle nodes of a log.

    Parameters
    ----------
    events
        The log, its file, or ``"sample"``.
    window
        Part of the log: two ISO-8601 times (UTC) or epoch seconds.
    tz
        IANA name of the time zone for hours and weekdays; by default that of the log's source where it is known, else
        UTC.
    pool
        Which nodes count as idle: ``"startable"``, or ``"idle"``, planned and reserved ones too; by default as the log
        has them.
    partition, only_nodes, without
        Part of the machine: the nodes of a partition, of a list, or all but those of a list.
    by
        Also the idle time by ``"partition"``, ``"type"``, ``"month"``, ``"weekday"`` or ``"node"``.
    batch_jobs
        The batch jobs of the log, as ``ingest --batch-jobs`` wrote them: also why no job ran.

    Returns
    -------
    Idleness
        Its repr is the text of ``bfreplay describe``; ``to_dict()`` is what that prints with ``--json``.

    Raises
    ------
    InputError
        The log, the window, the time zone or the pool cannot be used.
    """
    whole = restrict(events if isinstance(events, NodeEvents) else load_events(events), window)
    remaining = select_nodes(whole, without=without)
    startable = log = select_nodes(whole, partition, only_nodes, without)
    if pool is not None:
        log = log.counting_as_idle(POOLS[checks.one_of("pool", pool, list(POOLS))])
    return replace(
        characterise(log, tz),
        parts=None if by is None else idle_parts(log, by, tz),
        reasons=None if batch_jobs is None else _reasons(remaining, startable, Path(batch_jobs)),
        left_out_us=0 if without is None else _busy_us(select_nodes(whole, partition, only_nodes), remaining.nodes),
    )


def _reasons(log: NodeEvents, shown: NodeEvents, batch_jobs: Path) -> IdleReasons:
    """Return why no job ran on the nodes of ``shown``, a part of ``log``, where jobs may use all nodes of ``log``."""
    from bfreplay.datasets.batch_jobs import load_waiting_jobs  # pyarrow

    waiting = load_waiting_jobs(batch_jobs, log)
    state_us = observe(shown, id, counts_lengths=False).state_us.tolist()
    groups = why_idle(log, waiting, np.isin(log.nodes, shown.nodes))
    return reasons_of(groups, dict(zip(STATE_WORDS, state_us, strict=True)), waiting, log.metadata.partitions)


def _busy_us(log: NodeEvents, other_nodes: Sequence[str]) -> int:
    """Return the node-time of jobs on the nodes that are not among ``other_nodes``."""
    is_other = ~np.isin(log.nodes, other_nodes)
    left_out = part_of(log, is_other, {}) if is_other.any() else None
    return int(observe(left_out, id, counts_lengths=False).state_us[NodeState.BUSY]) if left_out else 0


def characterise(events: NodeEvents, time_zone: str | None = None) -> Idleness:
    """Measure the idle nodes of ``events`` in one pass over its batches; memory grows with nodes and distinct lengths.

    A node counts as idle in the log's ``idle_states`` only; a change between two other states (busy to down) is not an
    event.

    Parameters
    ----------
    events
        The log.
    time_zone
        IANA name of the zone for hour and weekday; by default that of the log's source if it is such a name, else UTC.

    Raises
    ------
    InputError
        The window has no length or the log no node; there is more node-time than 64 bits can count in microseconds
        (292,000 node-years); the time zone is unknown, or given for a log with relative times.
    """
    clock = choose_zone(time_zone, events.metadata)
    n_nodes = len(events.nodes)
    check_node_time(events.window_start_us, events.window_end_us, n_nodes)
    tally = PoolTally(events, None if clock is None else clock[1])
    observed = observe(events, tally.add)
    window_us = tally.end_us - tally.start_us
    idle_node_us = int(observed.state_us[NodeState.IDLE])
    cut_us = observed.cut_at_start_us, observed.cut_at_end_us, observed.cut_at_both_us
    n_at_start, n_at_end, n_at_both = map(len, cut_us)
    incomplete_us = np.concatenate(cut_us)
    complete, incomplete = observed.complete_us, Counted(incomplete_us)
    return Idleness(
        window_start_us=tally.start_us,
        window_end_us=tally.end_us,
        n_nodes=n_nodes,
        nodes_ever_idle=observed.nodes_ever_idle,
        idle_node_us=idle_node_us,
        idle_nodes=quantiles(tally.level, tally.time_at_us),
        share_without_idle=int(tally.time_at_us[0]) / window_us,
        n_pool_events=int(tally.events_at.sum()),
        joins=tally.joins.n_nodes,
        reclaims=tally.reclaims.n_nodes,
        idle_nodes_per_event=quantiles(tally.level, tally.events_at),
        events_per_hour=quantiles(np.sort(tally.events_of_hour)),
        gap_s=tally.gap_us.quantiles(US),
        idle_intervals=complete.total,
        idle_interval_length_s=complete.quantiles(US),
        idle_interval_bins=idle_interval_bins(complete),
        censored=CensoredIdleIntervals(n_at_start, n_at_end, n_at_both, int(incomplete_us.sum())),
        join_bursts=tally.joins.bursts(window_us),
        reclaim_bursts=tally.reclaims.bursts(window_us),
        origin=Origin(
            cluster=events.metadata.cluster,
            time_origin=events.metadata.time_origin,
            node_inventory=events.metadata.node_inventory,
            log_warnings=events.metadata.log_warnings,
            idle_hours_by_rule=_idle_hours_by_rule(events),
            selection=dict(events.selection),
            unit=events.metadata.unit,
        ),
        states=tuple(
            StateTime(*state_figures, n_nodes * window_us)
            for state_figures in zip(STATE_WORDS, observed.state_us.tolist(), strict=True)
        ),
        longer_idle_intervals=longer_idle_intervals(complete, incomplete, idle_node_us, window_us),
        longest_idle_intervals=longest_idle_intervals(events.nodes, observed),
        idle_interval_spectrum=idle_interval_spectrum(complete, incomplete),
        widths=tuple(width.width(tally.end_us) for width in tally.widths),
        week=None if clock is None else week_of(tally.week_cells, clock[0], clock[2]),
        timeline=tally.timeline(),
    )


def reclaim_bursts(events: NodeEvents) -> Bursts:
    """Return the bursts of reclaims of ``events``, in one pass over its batches."""
    tally = BurstTally(len(events.nodes))

    def take(part: PoolSeries) -> None:
        tally.add(part.reclaimed, part.idle[:-1], part.time_us[1:])

    observe(events, take, counts_lengths=False)
    return tally.bursts(int(events.window_end_us) - int(events.window_start_us))


def _idle_hours_by_rule(events: NodeEvents) -> tuple[tuple[str, float], ...]:
    """Return the figures of the import if they are of this window: a part of the log has others."""
    match events.metadata.notes.get("ingest"):
        case {"window": {"start": start, "end": end}, "facts": {log_warnings.IDLE_BY_RULE: Mapping() as hours_by_rule}}:
            if [start, end] == [iso_utc(events.window_start_us), iso_utc(events.window_end_us)]:
                numbers = [(rule, hours) for rule, hours in hours_by_rule.items() if isinstance(hours, int | float)]
                return tuple(sorted((rule, float(hours)) for rule, hours in numbers))
    return ()
