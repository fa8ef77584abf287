"""One checked pass over a log: from rows of a source to a snapshot and sorted batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.located import first_true
from bfreplay.datasets.log.sources import EventSource, RowChunk
from bfreplay.datasets.log.states import EventBatch
from bfreplay.datasets.times import iso_span, iso_utc
from bfreplay.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

VALID, TWICE, IDLE_ALREADY, NEVER_IDLE = range(4)
UNSET = -1


@compiled
def apply_events(
    time_us: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.int8],
    states: NDArray[np.int8],
    alternating: bool,
) -> tuple[int, int]:
    """Apply events sorted by (time, node) to ``states`` and stop at the first invalid one.

    Parameters
    ----------
    time_us, node, state
        The events, shape ``(E,)``.
    states
        State of each node before them, shape ``(N,)``; changed in place. ``UNSET`` if not known yet.
    alternating
        A node can only go from idle to not idle and back (the two-state form).

    Returns
    -------
    tuple
        The fault (``VALID`` for none) and the index of its event.
    """
    for i in range(time_us.shape[0]):
        n = node[i]
        if i > 0 and time_us[i] == time_us[i - 1] and n == node[i - 1]:
            return 1, i
        state_before = states[n]
        state_after = state[i]
        if state_before == 0 and state_after == 0:
            return 2, i
        if alternating and state_before > 0 and state_after != 0:
            return 3, i
        states[n] = state_after
    return 0, -1


def time_runs_backwards(time_us: int, before_us: int, file: Path | None, row_number: int) -> InputError:
    """Return the error for a row that is earlier than the one before it."""
    return InputError(
        "time runs backwards",
        file=file,
        row=row_number,
        column="time",
        value=iso_utc(time_us),
        expected=f"{iso_utc(before_us)} or later, the time of the row before",
        fix="sort the log by time",
    )


def check_batches(
    nodes: Sequence[str], source: EventSource, log_us: tuple[int, int], window_us: tuple[int, int], rows: int
) -> Iterator[EventBatch]:
    """Yield the snapshot at the start of the window, then its events; see ``NodeEvents.batches``.

    Parameters
    ----------
    nodes
        Sorted inventory, N names.
    source
        Source of the rows.
    log_us, window_us
        First and last instant of the log, and of the part to read.
    rows
        Approximate rows to hold at a time.
    """
    if rows < 1:
        raise InputError("a batch needs at least one row", value=rows, expected="rows >= 1")
    start_us, end_us = window_us
    states = source.start.copy()
    has_first = False
    for chunk in _whole_times(source, rows, len(nodes), end_us):
        _check_inside(chunk, source, log_us)
        chunk, order = _by_node(chunk, len(nodes))
        first, last = np.searchsorted(chunk.time_us, window_us, side="right").tolist()
        if not has_first:
            _apply(chunk, order, slice(0, first), states, nodes, source)
        if not has_first and first < len(chunk):
            yield _snapshot(states, start_us, nodes, source, log_us)
            has_first = True
        if first < last:
            _apply(chunk, order, slice(first, last), states, nodes, source)
            yield chunk.take(slice(first, last))
    if not has_first:
        yield _snapshot(states, start_us, nodes, source, log_us)


def _whole_times(source: EventSource, rows: int, n_nodes: int, end_us: int) -> Iterator[RowChunk]:
    """Regroup the source's chunks so that all rows of a time stamp are in one; check that time runs forwards."""
    pending: RowChunk | None = None
    for chunk in source.chunks(rows):
        for begin in range(0, len(chunk), rows):
            piece = chunk.part(begin, begin + rows)
            if pending is not None:
                piece = RowChunk(*EventBatch.joined([pending, piece]).columns, pending.first_row)
            pending = piece
            backwards_at = first_true(pending.time_us[1:] < pending.time_us[:-1])
            if backwards_at is not None:
                before_us, now_us = pending.time_us[backwards_at : backwards_at + 2].tolist()
                raise time_runs_backwards(now_us, before_us, source.file, pending.first_row + backwards_at + 1)
            last_us = pending.time_us[-1]
            boundary = int(np.searchsorted(pending.time_us, last_us, side="left"))
            if boundary:
                yield pending.part(0, boundary)
                pending = pending.part(boundary)
            if last_us > end_us:
                yield pending
                return
            if len(pending) > n_nodes:  # some node is twice in it: let the checks find which
                yield pending
    if pending is not None:
        yield pending


def _by_node(chunk: RowChunk, n_nodes: int) -> tuple[RowChunk, NDArray[np.int64] | None]:
    """Sort the rows of each time stamp by node; return also the original positions, ``None`` if nothing moved."""
    instant = np.cumsum(np.diff(chunk.time_us, prepend=chunk.time_us[:1]) > 0)
    sort_key = instant * n_nodes + chunk.node
    if bool(np.all(sort_key[1:] >= sort_key[:-1])):
        return chunk, None
    order = np.argsort(sort_key, kind="stable")
    return RowChunk(chunk.time_us, chunk.node[order], chunk.state[order], chunk.first_row), order


def _apply(
    chunk: RowChunk,
    order: NDArray[np.int64] | None,
    part: slice,
    states: NDArray[np.int8],
    nodes: Sequence[str],
    source: EventSource,
) -> None:
    problem, index = apply_events(chunk.time_us[part], chunk.node[part], chunk.state[part], states, source.alternating)
    if problem == VALID:
        return
    index += part.start
    node, time_text = nodes[int(chunk.node[index])], iso_utc(int(chunk.time_us[index]))
    column, value = "idle" if source.alternating else "state", source.state_text(int(chunk.state[index]))
    if problem == TWICE:
        column, value = "node", node
        sentence = f"node {node!r} has two rows at {time_text}"
        expected = "one row for each node and time: the state after everything that happened then"
        fix = "keep the last of the two rows"
    elif problem == IDLE_ALREADY:
        sentence = f"node {node!r} becomes idle at {time_text} but is idle already"
        expected = "a row that reclaims the node between two rows that free it"
        fix = "drop the repeated row, or restore the missing one before it"
    else:
        sentence = f"node {node!r} is reclaimed at {time_text} but was never idle"
        expected = "nodes busy before their first row, then idle and not idle in turn"
        fix = "add the row in which the node became idle, or drop this one"
    row_number = chunk.first_row + (index if order is None else int(order[index]))
    raise InputError(sentence, file=source.file, row=row_number, column=column, value=value, expected=expected, fix=fix)


def _snapshot(
    states: NDArray[np.int8], start_us: int, nodes: Sequence[str], source: EventSource, log_us: tuple[int, int]
) -> EventBatch:
    missing = np.flatnonzero(states == UNSET)
    if missing.size:
        raise InputError(
            f"{missing.size} of {len(nodes)} nodes have no state at the start of the log",
            file=source.file,
            column="node",
            value=nodes[int(missing[0])],
            expected=f"a row for each node at {iso_utc(log_us[0])}, as write_events writes them",
            fix="write the file again; it may have been cut, or edited without its metadata",
        )
    return EventBatch.of_states(start_us, states)


def _check_inside(chunk: RowChunk, source: EventSource, log_us: tuple[int, int]) -> None:
    row_index = first_true((chunk.time_us < log_us[0]) | (chunk.time_us > log_us[1]))
    if row_index is not None:
        raise InputError(
            "a row lies outside the window of its log",
            file=source.file,
            row=chunk.first_row + row_index,
            column="time",
            value=iso_utc(int(chunk.time_us[row_index])),
            expected=f"{iso_span(log_us[0], log_us[1])}{'' if source.file is None else ', as the metadata say'}",
            fix=f"drop the row, or correct the window{'' if source.file is None else ' in the metadata'}"
            + source.other_log_hint,
        )
