"""NodeEvents: the neutral log of nodes becoming idle and being reclaimed."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bfreplay import checks
from bfreplay._compiling import expect_rows
from bfreplay.datasets.log.metadata import EventsMetadata, SourceFile
from bfreplay.datasets.log.node_types import NodeTypes
from bfreplay.datasets.log.sources import EventSource, MemorySource, RowChunk, RowsToCome
from bfreplay.datasets.log.states import STATE_WORDS, EventBatch, NodeState
from bfreplay.datasets.times import in_calendar, iso_span, parse_time_us
from bfreplay.documents import html_table
from bfreplay.errors import InputError

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import pandas as pd

DEFAULT_BATCH_ROWS = 131_072
_MORE_NODES = 1000
LAST_US = parse_time_us("9999-12-31T23:59:59Z")
"""End of a window whose end is not known."""


class NodeEvents:
    """Log of node states over a window of time, read in batches as often as wanted.

    A log from a file is not held in memory: each pass reads it again, and checks it on the way.
    Make one with ``load_events``, ``from_arrays`` or ``between``.

    Attributes
    ----------
    nodes
        Names of all nodes, sorted; this is the node order everywhere. In a log that was followed only the first
        ``metadata.n_nodes_at_start`` are sorted: those that appeared later come after them, in order of appearance.
    window_start_us, window_end_us
        Time that the log covers, microseconds since the epoch (UTC).
    metadata
        Origin of the log.
    node_types
        Type of each node; one type for all if the metadata names none.
    sources
        The files that are read on each pass, with their digests, for the run record.
    idle_states
        States that count as idle: ``batches`` have them as ``IDLE``.
    selection
        Of a part of a log (``select_nodes``): the options that chose its nodes.
    node_place
        Number of each node of the whole log in ``nodes``, ``(A,) int32``, -1 for one that was not chosen; ``None`` for
        a whole log. ``log_nodes`` are the names of these A nodes.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        source: EventSource,
        window_start_us: int,
        window_end_us: int,
        metadata: EventsMetadata,
        sources: Iterable[SourceFile] = (),
    ) -> None:
        """Wrap a source whose rows index ``nodes``, which must be in order."""
        self.nodes: tuple[str, ...] = tuple(nodes)
        self._source = source
        self.window_start_us = self._log_start_us = int(window_start_us)
        self.window_end_us = self._log_end_us = int(window_end_us)
        self.metadata = metadata
        self.sources: tuple[SourceFile, ...] = tuple(sources)
        self.idle_states: tuple[NodeState, ...] = (NodeState.IDLE,)
        self.selection: Mapping[str, str] = {}
        self.node_place: NDArray[np.int32] | None = None
        self.log_nodes = self.nodes
        check_nodes(self.nodes, source.file, metadata.n_nodes_at_start)
        self.node_types = NodeTypes.of(self.nodes, metadata.node_types, source.file)
        _check_partitions(self.nodes, metadata.partitions, source.file)
        if self.window_start_us >= self.window_end_us:
            raise InputError(
                "the log covers no time: its window ends where it starts, or before",
                file=source.file,
                column="time",
                value=iso_span(window_start_us, window_end_us),
                expected="a window of positive length",
                fix="give a longer log",
            )
        for time_us in (self.window_start_us, self.window_end_us):
            if not in_calendar(time_us):
                raise InputError(
                    "the log leaves the calendar",
                    file=source.file,
                    column="time",
                    value=time_us,
                    expected="microseconds since 1970-01-01 UTC, in the years 1 to 9999",
                    fix="check the unit of the times",
                )

    @classmethod
    def from_arrays(
        cls,
        nodes: Sequence[str],
        initial_state: ArrayLike,
        time_us: ArrayLike,
        node: ArrayLike,
        state: ArrayLike,
        window_start_us: int | str | datetime,
        window_end_us: int | str | datetime,
        metadata: EventsMetadata | None = None,
        sources: Iterable[SourceFile] = (),
        *,
        node_types: Sequence[str] | None = None,
    ) -> NodeEvents:
        """Return a log held in memory.

        Parameters
        ----------
        nodes
            N unique names, in any order (they are sorted, and ``initial_state`` and ``node`` with them). With
            ``metadata.n_nodes_at_start`` they stay in their order.
        initial_state
            ``NodeState`` of each node at ``window_start_us``, before any row of that instant: shape ``(N,)``.
        time_us, node, state
            The rows, shape ``(E,)`` each, sorted by time; ``node`` indexes ``nodes`` as given.
        window_start_us, window_end_us
            Time that the log covers, as for ``between``; no row may lie outside.
        metadata, sources
            Origin of the log.
        node_types
            Type of each node, N names; types are in the order in which they first appear.

        Raises
        ------
        InputError
            Shapes that do not fit, an index or state out of range, names that are not unique.
            Errors of rows are raised by the pass that reads them.
        """
        names = np.array(nodes, dtype=object)
        metadata = metadata or EventsMetadata()
        is_followed = metadata.n_nodes_at_start is not None
        order = np.arange(len(names)) if is_followed else np.argsort(names, kind="stable")
        position = np.argsort(order).astype(np.int32)
        start = _codes("initial_state", initial_state, len(NodeState), (len(names),))
        # writable and contiguous like the batches of files, so that compiled loops meet one type only
        times = np.require(_whole_numbers("time_us", time_us), requirements=["C", "W"])
        node_index = _codes("node", node, len(names), times.shape)
        new_state = _codes("state", state, len(NodeState), times.shape)
        expect_rows(len(times))
        rows = RowChunk(times, position[node_index], new_state.astype(np.int8), first_row=1)
        source = MemorySource(rows, start=start[order].astype(np.int8))
        if node_types is not None:
            metadata = replace(metadata, node_types=_nodes_by_type(names.tolist(), node_types))
        start_us, end_us = bound_us("start", window_start_us), bound_us("end", window_end_us)
        return cls(names[order].tolist(), source, start_us, end_us, metadata, sources)

    @classmethod
    def to_come(
        cls,
        nodes: Sequence[str],
        start: int | str | datetime,
        end: int | str | datetime | None = None,
        *,
        initial_state: NodeState | ArrayLike = NodeState.BUSY,
        node_types: Sequence[str] | None = None,
        n_nodes_at_start: int | None = None,
    ) -> NodeEvents:
        """Return a log whose events are still to come, portion by portion (``ReplaySession.advance``).

        Parameters
        ----------
        nodes, node_types
            As for ``from_arrays``.
        start, end
            The window, as for ``between``; ``None`` for an end that is not known yet.
        initial_state
            State of all nodes at the start, or of each: shape ``(N,)``.
        n_nodes_at_start
            For the log of a followed cluster that goes on: ``nodes`` stay in their order, and only so many are sorted.

        Raises
        ------
        InputError
            As ``from_arrays``.
        """
        initial = np.asarray(initial_state)
        if initial.dtype.kind not in "iu" or initial.shape not in ((), (len(nodes),)):
            raise InputError(
                "the initial state is none",
                column="initial_state",
                value=initial_state,
                expected="a NodeState, or one for each node",
            )
        states = np.broadcast_to(initial, (len(nodes),))
        end_us = LAST_US if end is None else bound_us("end", end)
        metadata = EventsMetadata(n_nodes_at_start=n_nodes_at_start)
        start_us = bound_us("start", start)
        log = cls.from_arrays(nodes, states, [], [], [], start_us, end_us, metadata, node_types=node_types)
        log._source = RowsToCome(start=log.first_states())
        return log

    @property
    def file(self) -> Path | None:
        """File that each pass reads; ``None`` for a log in memory."""
        return self._source.file

    @property
    def is_to_come(self) -> bool:
        """True if the events are still to come, portion by portion."""
        return isinstance(self._source, RowsToCome)

    @property
    def most_nodes(self) -> int:
        """Most nodes that a job can ever have; in a log that is followed some may still appear."""
        n_at_start = self.metadata.n_nodes_at_start
        return len(self.nodes) if n_at_start is None else 2 * n_at_start + _MORE_NODES

    def followed(self) -> NodeEvents:
        """Return the same log, marked as one that is followed: nodes may appear in it."""
        log = copy.copy(self)
        log.metadata = replace(self.metadata, n_nodes_at_start=self.metadata.n_nodes_at_start or len(self.nodes))
        return log

    def with_inventory(
        self, nodes: Sequence[str], n_at_start: int, node_types: Mapping[str, Sequence[str]]
    ) -> NodeEvents:
        """Return the same log to come with other nodes: those of another part of it, ``n_at_start`` at its start."""
        log = copy.copy(self)
        log.nodes = log.log_nodes = tuple(nodes)
        log.metadata = replace(self.metadata, n_nodes_at_start=n_at_start, node_types=dict(node_types))
        log.node_types = NodeTypes.of(log.nodes, log.metadata.node_types)
        log._source = RowsToCome(start=np.full(len(nodes), NodeState.UNKNOWN, np.int8))
        return log

    def with_more_nodes(self, names: Sequence[str], node_types: Mapping[str, str] | None = None) -> NodeEvents:
        """Return the same log to come, with nodes after all others; their state was unknown until now.

        Parameters
        ----------
        names
            Of the nodes, in order of appearance.
        node_types
            Type of each; may be left out in a log with one type only.

        Raises
        ------
        InputError
            A node has no type, or one that the log does not have.
        """
        by_type = {type_name: list(members) for type_name, members in self.metadata.node_types.items()}
        for name in names if by_type else ():
            type_name = (node_types or {}).get(name, self.node_types.names[0] if len(by_type) == 1 else None)
            if type_name not in by_type:
                fault = "appears, and has no type" if type_name is None else "is of a type that the log does not have"
                raise InputError(
                    f"node {name!r} {fault}",
                    column="node_types",
                    value=type_name,
                    expected=" or ".join(by_type),
                    fix=f"give the types of new nodes: node_types={{{name!r}: {self.node_types.names[0]!r}}}",
                )
            by_type[type_name].append(name)
        n_at_start = self.metadata.n_nodes_at_start or len(self.nodes)
        log = self.with_inventory((*self.nodes, *names), n_at_start, by_type)
        unknown = np.full(len(names), NodeState.UNKNOWN, np.int8)
        log._source = RowsToCome(start=np.concatenate([self.first_states(), unknown]))
        return log

    def __repr__(self) -> str:
        return f"<NodeEvents: {len(self.nodes)} nodes, {iso_span(self.window_start_us, self.window_end_us)}>"

    def _repr_html_(self) -> str:
        window, n_nodes = iso_span(self.window_start_us, self.window_end_us), f"{len(self.nodes):,}"
        types = self.node_types.names if self.node_types.has_type_names else ()
        place = ", ".join(source.name for source in self.sources) or "in memory"
        rows = [("cluster", self.metadata.cluster), ("window", window), ("nodes", n_nodes), ("types", ", ".join(types))]
        return html_table("Log of node states", rows, place)

    def first_states(self) -> NDArray[np.int8]:
        """Return the states of the nodes at the start of the window, ``(N,)``: all that is known of a log to come."""
        if isinstance(self._source, RowsToCome):
            return self._source.start.copy()
        return next(iter(self.batches())).state.copy()

    def batches(self, rows: int = DEFAULT_BATCH_ROWS) -> Iterator[EventBatch]:
        """Return checked events in order; memory is O(nodes + rows).

        The first batch has exactly one row for each node: its state at ``window_start_us``, events of
        that instant included. Later batches have ``window_start_us < time <= window_end_us``.

        Parameters
        ----------
        rows
            Approximate rows in a batch; one time stamp is never split, so it may have more.

        Raises
        ------
        InputError
            The first invalid row: time runs backwards, a second row for one node and time, a node that
            becomes idle while idle, a row outside the window, or a defect of the file format. Rows after
            ``window_end_us`` are not checked.
        """
        from bfreplay.datasets.log.passes import check_batches  # numba: not before a log is read

        batches = check_batches(
            self.log_nodes,
            self._source,
            (self._log_start_us, self._log_end_us),
            (self.window_start_us, self.window_end_us),
            rows,
        )
        if self.node_place is not None:
            place, all_batches = self.node_place, batches
            batches = (part for batch in all_batches if len(part := batch.of_nodes(place)))
        if self.idle_states == (NodeState.IDLE,):
            yield from batches
            return
        states = np.full(len(self.nodes), NodeState.BUSY, np.int8)
        for batch in batches:
            yield batch.counting_as_idle(self.idle_states, states)
            states[batch.node] = batch.state  # of several the last

    def counting_as_idle(self, states: Iterable[NodeState]) -> NodeEvents:
        """Return the same log with these states as ``IDLE``; a node that goes from one to another stays idle."""
        log = copy.copy(self)
        log.idle_states = tuple(sorted({NodeState.IDLE, *states}))
        return log

    def to_frame(self) -> pd.DataFrame:
        """One row an event: ``time`` (UTC), ``node`` and ``state``, the state of every node at the start first.

        It holds the whole window in memory: ``between`` first for a part of a large log.
        """
        import pandas as pd

        events = EventBatch.joined(list(self.batches()))
        return pd.DataFrame(
            {
                "time": pd.to_datetime(events.time_us, unit="us", utc=True),
                "node": pd.Categorical.from_codes(events.node, pd.Index(self.nodes)),
                "state": pd.Categorical.from_codes(events.state, pd.Index(STATE_WORDS)),
            }
        )

    def with_rows_to_come(self) -> NodeEvents:
        """Return the same log, which may have rows after its window: a program is still writing them."""
        part = copy.copy(self)
        part._log_end_us = LAST_US
        return part

    def between(self, start: int | str | datetime, end: int | str | datetime) -> NodeEvents:
        """Return the same log restricted to a window; the snapshot is then the state at its start.

        Parameters
        ----------
        start, end
            Microseconds since 1970-01-01 UTC as whole numbers (like ``window_start_us``); or ISO-8601 texts,
            ``datetime`` or ``pandas.Timestamp``, in UTC if they have no zone. A text that is a number is seconds.

        Raises
        ------
        InputError
            The window is empty, or reaches outside this one, or a bound is not a time.
        """
        start_us, end_us = bound_us("start", start), bound_us("end", end)
        inside = self.window_start_us <= start_us < end_us <= self.window_end_us
        if not inside:
            raise InputError(
                "the window is empty: its end is not after its start"
                if start_us >= end_us
                else "the window reaches outside the log"
                if start_us < self.window_end_us and end_us > self.window_start_us
                else "the window lies outside the log",
                file=self._source.file,
                value=iso_span(start_us, end_us),
                expected=f"start before end, within {iso_span(self.window_start_us, self.window_end_us)}",
                fix="swap the two times" if start_us > end_us else "choose a window inside the log",
            )
        part = copy.copy(self)
        part.window_start_us, part.window_end_us = start_us, end_us
        return part


def _nodes_by_type(nodes: Sequence[str], node_types: Sequence[str]) -> dict[str, list[str]]:
    if len(node_types) != len(nodes):
        raise InputError(
            "the number of types differs from the number of nodes",
            column="node_types",
            value=len(node_types),
            expected=f"{len(nodes)} names",
        )
    by_type: dict[str, list[str]] = {type_name: [] for type_name in node_types}
    for node, type_name in zip(nodes, node_types, strict=True):
        by_type[type_name].append(node)
    return by_type


def bound_us(which: str, time_value: Any) -> int:
    """Return a bound of ``between`` in microseconds: whole numbers as they are, anything else parsed."""
    try:
        return time_us_of(time_value)
    except ValueError as error:
        raise InputError(
            f"the {which} of the window is not a time: {error}",
            value=time_value,
            expected="ISO-8601 such as 2021-02-10T00:48:48Z, a datetime, or whole microseconds since 1970-01-01 UTC",
            fix="write the time as ISO-8601 text",
        ) from error


def time_us_of(time_value: Any) -> int:
    """Return the microseconds of a whole number of them, an ISO-8601 text or a ``datetime``.

    Raises
    ------
    ValueError
        It is another number, no time, or beyond the year 9999.
    """
    if isinstance(time_value, float | np.floating | Decimal):
        raise ValueError("a number here is whole microseconds")
    is_whole = isinstance(time_value, int | np.integer) and not isinstance(time_value, bool)
    time_us = int(time_value) if is_whole else parse_time_us(time_value)
    if abs(time_us) > LAST_US:
        raise ValueError("not a time before the year 10000")
    return time_us


def check_nodes(nodes: Sequence[str], file: Path | None, n_sorted: int | None = None) -> None:
    """Refuse an inventory that is empty, unsorted, not unique, or has unusable names; ``n_sorted``: of a followed log.

    Those after the first ``n_sorted`` nodes are in order of appearance.
    """
    if not nodes:
        raise InputError("the log has no nodes", file=file, column="node", expected="at least one node")
    for node_name in nodes:
        checks.name("node", node_name, "node", file)
    if n_sorted is not None and n_sorted > len(nodes):
        raise InputError(
            "the log has fewer nodes than it had at its start",
            file=file,
            column="n_nodes_at_start",
            value=n_sorted,
            expected=f"{len(nodes)} at most",
        )
    in_order = sorted(nodes)
    if twice := next((first for first, second in itertools.pairwise(in_order) if first == second), None):
        raise InputError(
            f"two nodes are called {twice!r}", file=file, column="node", value=twice, expected="unique names"
        )
    if (at_start := list(nodes[:n_sorted])) != sorted(at_start):
        raise InputError(
            "the nodes are not sorted by name",
            file=file,
            column="node",
            value=next(second for first, second in itertools.pairwise(at_start) if first > second),
            expected="names in sorted order",
        )


def _check_partitions(nodes: Sequence[str], partitions: Mapping[str, Sequence[str]], file: Path | None) -> None:
    """Refuse partitions with nodes that the log does not have."""
    known = set(nodes)
    for partition, members in partitions.items():
        checks.name("partition", partition, "partitions", file)
        if strange := next((node for node in members if node not in known), None):
            raise InputError(
                f"node {strange!r} of partition {partition!r} is not in the log",
                file=file,
                column="partitions",
                value=partition,
                expected="nodes of the log",
                fix="write the log again",
            )


_FIXES = {
    "time_us": "give microseconds: (seconds * 1e6).round(), or times as datetime64[us] with .astype(int)",
    "node": "give the position of each node in nodes, such as pandas.factorize does",
}


def _whole_numbers(column_name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values).reshape(-1)
    if array.dtype == object:
        array = np.array(array.tolist())
    if array.size and not (array.dtype.kind in "iu" or (array.dtype.kind == "f" and (array % 1 == 0).all())):
        raise InputError(
            f"{column_name} has other values than whole numbers",
            column=column_name,
            value=array.dtype.name,
            expected="whole numbers",
            fix=_FIXES.get(column_name, "give NodeState.IDLE, NodeState.BUSY or another, or its number"),
        )
    return array.astype(np.int64, copy=False)


def _codes(column_name: str, values: ArrayLike, limit: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
    array = _whole_numbers(column_name, values)
    if array.shape != shape:
        raise InputError(
            f"{column_name} does not have one value for each {'node' if column_name == 'initial_state' else 'row'}",
            column=column_name,
            value=array.shape,
            expected=f"shape {shape}",
        )
    invalid = np.flatnonzero((array < 0) | (array >= limit))
    if invalid.size:
        raise InputError(
            f"{column_name} is out of range",
            row=int(invalid[0]) + 1,
            column=column_name,
            value=int(array[invalid[0]]),
            expected=f"0 to {limit - 1}",
        )
    return array


def with_node_types(log: NodeEvents, by_type: Mapping[str, Sequence[str]]) -> NodeEvents:
    """Return the same log with types of its nodes.

    Parameters
    ----------
    log
        A log without node types.
    by_type
        Names of the nodes of each type, each node once.

    Raises
    ------
    InputError
        The log has types already, or a node has no type or two.
    """
    if log.node_types.has_type_names:
        raise InputError(
            "the log has node types already",
            column="node_types",
            value=", ".join(by_type),
            expected=", ".join(log.node_types.names),
            fix="omit --node-type",
        )
    copy_with_types = copy.copy(log)
    copy_with_types.metadata = replace(log.metadata, node_types={name: list(nodes) for name, nodes in by_type.items()})
    copy_with_types.node_types = NodeTypes.of(log.nodes, copy_with_types.metadata.node_types)
    return copy_with_types
