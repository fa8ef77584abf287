"""Idle time by part: by partition, node type, month, weekday or node. The parts add up to the whole log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay._compiled import compiled
from bfreplay.datasets.idleness.quantiles import MEDIAN, Counted, quantiles
from bfreplay.datasets.idleness.week import WEEKDAYS, choose_zone
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.metadata import PARTITIONS_BY_JOBS
from bfreplay.datasets.log.node_types import NodeTypes
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import EPOCH, HOUR_US, MICROSECOND, US
from bfreplay.documents import Json, pick
from bfreplay.errors import InputError

BY = ("partition", "type", "month", "weekday", "node")
NO_PARTITION = "no partition"
_IDLE, _BUSY = int(NodeState.IDLE), int(NodeState.BUSY)


@dataclass(frozen=True, slots=True)
class Part:
    """Idle time of some of the nodes, or of all of them in some of the time.

    Parameters
    ----------
    name
        Partitions (``batch + gpu`` for nodes in both), type, month, weekday or node.
    n_nodes, node_us, idle_node_us
        Its nodes, their node-time, and how much of that they were idle.
    idle_intervals
        Idle intervals of its nodes, or that begin in its time; censored ones too.
    median_s, longest_s
        Of their lengths, as far as seen; ``None`` without any, the median also by node.
    unused
        Nodes on which no job ran; empty for a part of the time.
    """

    name: str
    n_nodes: int
    node_us: int
    idle_node_us: int
    idle_intervals: int
    median_s: float | None
    longest_s: float | None
    unused: tuple[str, ...]

    @property
    def idle_node_hours(self) -> float:
        """Idle node-hours."""
        return self.idle_node_us / HOUR_US

    @property
    def idle_share(self) -> float:
        """Share of its node-time that was idle."""
        return self.idle_node_us / self.node_us

    @property
    def mean_idle_nodes(self) -> float:
        """Mean idle nodes over its time."""
        return self.idle_share * self.n_nodes

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        figures = pick(self, "name", "n_nodes", "idle_node_us", "idle_node_hours", "idle_share", "mean_idle_nodes")
        return {**figures, **pick(self, "idle_intervals", "median_s", "longest_s"), "unused_nodes": list(self.unused)}


@dataclass(frozen=True, slots=True)
class IdleParts:
    """Idle time ``by`` one of ``BY``.

    ``time_zone`` is that of months and weekdays. ``is_by_jobs``: a partition is the nodes on which its jobs ran.
    """

    by: str
    time_zone: str | None
    parts: tuple[Part, ...]
    is_by_jobs: bool = False

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        return {"by": self.by, "time_zone": self.time_zone, "parts": [part.to_dict() for part in self.parts]}


def idle_parts(log: NodeEvents, by: str, time_zone: str | None = None) -> IdleParts:
    """Return the idle time of a log by part, in one pass over its batches.

    Raises
    ------
    InputError
        ``by`` is none of ``BY``, or the log has no partitions, types or calendar.
    """
    checks.one_of("by", by, list(BY))
    window_us = log.window_start_us, log.window_end_us
    if by in ("month", "weekday"):
        clock = choose_zone(time_zone, log.metadata)
        if clock is None:
            raise InputError(
                f"the log has no {by}s: its times are relative",
                file=log.file,
                column="--by",
                value=by,
                expected="partition, type or node",
            )
        edges_us, of_edges = _periods(*window_us, clock[1], by)
        names, n_nodes = list(dict.fromkeys(of_edges)), len(log.nodes)
        of_period = np.array([names.index(name) for name in of_edges])
        length_us = np.zeros(len(names), np.int64)
        np.add.at(length_us, of_period, np.diff(edges_us))
        tally = _Tally(log, of_period, edges_us, has_lengths=True)
        parts = tally.parts(names, [n_nodes] * len(names), (length_us * n_nodes).tolist())
        return IdleParts(by, clock[0], _in_week(parts) if by == "weekday" else parts)
    names, of_node = node_groups(log, by)
    tally = _Tally(log, of_node, None, has_lengths=by != "node")
    counts = np.bincount(of_node, minlength=len(names))
    span_us = window_us[1] - window_us[0]
    parts = tally.parts(names, counts.tolist(), (counts * span_us).tolist(), tally.unused(log, of_node, len(names)))
    is_by_jobs = by == "partition" and bool(log.metadata.notes.get("ingest", {}).get(PARTITIONS_BY_JOBS))
    return IdleParts(by, None, tuple(sorted(parts, key=lambda part: (-part.idle_node_us, part.name))), is_by_jobs)


def node_groups(log: NodeEvents, by: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the groups of nodes by partition (each set of partitions is one), type or node, and that of each node."""
    if by == "node":
        return list(log.nodes), np.arange(len(log.nodes))
    if by == "type" and (log.node_types.has_type_names or log.metadata.hardware_types):
        types = log.node_types
        if not types.has_type_names:
            types = NodeTypes.of(log.nodes, log.metadata.hardware_types, log.file)
        return list(types.names), types.of_node.astype(np.int64)
    if by == "type" or not log.metadata.partitions:
        raise InputError(
            f"the log does not say which {by} its nodes are of",
            file=log.file,
            column="--by",
            value=by,
            expected=f"a log whose nodes have {by}s",
            fix="import it again with --units FILE, a table of nodes"
            + ("" if by == "type" else ", or with the column Partition of its jobs"),
        )
    sets, of_node = partition_sets(log)
    return [" + ".join(map(_quoted, of_set)) or NO_PARTITION for of_set in sets], of_node


def partition_sets(log: NodeEvents) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
    """Return the sets of partitions that nodes are in, in order, and the set of each node, ``(N,)``."""
    partitions_of: dict[str, list[str]] = {node: [] for node in log.nodes}
    for partition, nodes in sorted(log.metadata.partitions.items()):
        for node in dict.fromkeys(nodes):
            partitions_of[node].append(partition)
    set_of = [*map(tuple, partitions_of.values())]
    number = {of_set: index for index, of_set in enumerate(sorted(set(set_of)))}
    return list(number), np.array([number[of_set] for of_set in set_of])


def _quoted(partition: str) -> str:
    """Return the name of a partition, in quotes if it could be taken for several, or for none."""
    return f"'{partition}'" if " + " in partition or partition == NO_PARTITION else partition


def _periods(start_us: int, end_us: int, zone: tzinfo, by: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return the edges of the months or days in a window, on the clock of ``zone``, and the name of each."""
    first = (EPOCH + timedelta(microseconds=start_us)).astimezone(zone)
    begin, edges_us, names = first.replace(hour=0, minute=0, second=0, microsecond=0, fold=0), [start_us], []
    while edges_us[-1] < end_us:
        name = f"{begin.year:04}-{begin.month:02}" if by == "month" else WEEKDAYS[begin.weekday()]
        try:
            # the clock of the next day, or of a day in the next month
            later = begin.date() + timedelta(days=1 if by == "weekday" else 32 - begin.day)
            begin = datetime(later.year, later.month, later.day if by == "weekday" else 1, tzinfo=zone)
            edge_us = min((begin - EPOCH) // MICROSECOND, end_us)
        except OverflowError:  # the calendar ends with the year 9999
            edge_us = end_us
        if edge_us > edges_us[-1]:  # where clocks skip a day, that day has no time
            edges_us.append(edge_us)
            names.append(name)
    return np.array(edges_us), names


def _in_week(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: WEEKDAYS.index(part.name)))


class _Tally:
    """Sums over all idle intervals of a log: by group of their node, or by period between ``edges_us``."""

    def __init__(
        self, log: NodeEvents, group_of: NDArray[np.int64], edges_us: NDArray[np.int64] | None, *, has_lengths: bool
    ) -> None:
        self._group_of, self._edges_us = group_of, edges_us
        self._n_groups = int(group_of.max()) + 1
        self.idle_us, self.count, self.longest_us = np.zeros((3, self._n_groups), np.int64)
        self._lengths = Counted() if has_lengths else None
        batches = iter(log.batches())
        states = next(batches).state.copy()
        self.was_busy = states == _BUSY
        since_us = np.full(len(states), log.window_start_us)
        for batch in batches:
            ended: tuple[NDArray[np.int64], ...] = tuple(np.empty((3, len(batch)), np.int64))
            n_ended = close_idle_intervals(batch.columns, states, since_us, self.was_busy, ended)
            self._add(*(column[:n_ended] for column in ended))
        nodes = np.flatnonzero(states == _IDLE)
        nodes = nodes[since_us[nodes] < log.window_end_us]
        self._add(nodes, since_us[nodes], np.full(len(nodes), log.window_end_us))

    def _add(self, node: NDArray[np.int64], since_us: NDArray[np.int64], until_us: NDArray[np.int64]) -> None:
        """Add idle intervals, ``(I,)`` each."""
        length_us, edges_us = until_us - since_us, self._edges_us
        if edges_us is None:
            group = self._group_of[node]
            np.add.at(self.idle_us, group, length_us)
        else:
            period = np.searchsorted(edges_us, since_us, side="right") - 1
            group = self._group_of[period]
            while len(period):  # the part of each interval in its period, then of those that go on in the next one
                end_us = np.minimum(until_us, edges_us[period + 1])
                np.add.at(self.idle_us, self._group_of[period], end_us - since_us)
                goes_on = end_us < until_us
                since_us, until_us, period = end_us[goes_on], until_us[goes_on], period[goes_on] + 1
        np.add.at(self.count, group, 1)
        np.maximum.at(self.longest_us, group, length_us)
        if self._lengths is not None:
            self._lengths.add(length_us * self._n_groups + group)

    def unused(self, log: NodeEvents, of_node: NDArray[np.int64], n_groups: int) -> list[tuple[str, ...]]:
        """Return the nodes of each group on which no job ran."""
        names: list[list[str]] = [[] for _ in range(n_groups)]
        for node in np.flatnonzero(~self.was_busy).tolist():
            names[of_node[node]].append(log.nodes[node])
        return [*map(tuple, names)]

    def parts(
        self,
        names: Sequence[str],
        n_nodes: Sequence[int],
        node_us: Sequence[int],
        unused: Sequence[tuple[str, ...]] | None = None,
    ) -> tuple[Part, ...]:
        """Return the parts with these names, nodes and node-time."""
        median_s = self._medians()
        return tuple(
            Part(
                name=name,
                n_nodes=n_nodes[group],
                node_us=node_us[group],
                idle_node_us=int(self.idle_us[group]),
                idle_intervals=int(self.count[group]),
                median_s=median_s(group),
                longest_s=float(self.longest_us[group]) / US if self.count[group] else None,
                unused=() if unused is None else unused[group],
            )
            for group, name in enumerate(names)
        )

    def _medians(self) -> Callable[[int], float | None]:
        if self._lengths is None:
            return lambda _group: None
        lengths = self._lengths.merge()
        length_us, group_of = np.divmod(lengths.values, self._n_groups)

        def median_s(group: int) -> float | None:
            is_of_group = group_of == group
            of_group = quantiles(length_us[is_of_group], lengths.counts[is_of_group], US)
            return of_group[MEDIAN] if of_group else None

        return median_s


@compiled
def close_idle_intervals(
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]],
    states: NDArray[np.int8],
    since_us: NDArray[np.int64],
    was_busy: NDArray[np.bool_],
    ended: tuple[NDArray[np.int64], ...],
) -> int:
    """Advance the states of nodes over one batch; return the number of idle intervals that end, written to ``ended``.

    ``ended`` has their nodes, starts and ends. ``since_us (N,)`` is the start of each idle node's interval; ``was_busy
    (N,)`` marks nodes on which a job ran.
    """
    time_us, node, states_after = rows
    ended_node, ended_since_us, ended_until_us = ended[0], ended[1], ended[2]
    n_ended = 0
    for row in range(len(node)):
        n, state_after = node[row], states_after[row]
        if states[n] == _IDLE and state_after != _IDLE:
            ended_node[n_ended], ended_since_us[n_ended], ended_until_us[n_ended] = n, since_us[n], time_us[row]
            n_ended += 1
        elif states[n] != _IDLE and state_after == _IDLE:
            since_us[n] = time_us[row]
        was_busy[n] |= state_after == _BUSY
        states[n] = state_after
    return n_ended
