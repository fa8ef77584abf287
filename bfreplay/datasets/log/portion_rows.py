"""Rows of one portion of a log, as people and programs give them: triples, a data frame, or arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bfreplay import checks
from bfreplay.datasets.hints import did_you_mean
from bfreplay.datasets.log.events import LAST_US, time_us_of
from bfreplay.datasets.log.states import STATE_WORDS, EventBatch, NodeState
from bfreplay.errors import InputError
from bfreplay.registry import one_line

if TYPE_CHECKING:
    import pandas as pd

Rows: TypeAlias = "EventBatch | Iterable[tuple[Any, Any, Any]] | pd.DataFrame"
"""Events: (time, node, state) for each, or a data frame with these columns."""

_DTYPES = (np.int64, np.int32, np.int8)
_STATES: Mapping[Any, int] = {
    **{word: code for code, word in enumerate(STATE_WORDS)},
    **{int(node_state): int(node_state) for node_state in NodeState},
}


def read_rows(rows: Rows, number_of: Mapping[str, int], *, may_appear: bool) -> tuple[EventBatch, list[str]]:
    """Return the rows as events, in the order in which they were given, and the names of nodes that appear in them.

    Parameters
    ----------
    rows
        A time is microseconds since 1970 as a whole number, ISO-8601 text or ``datetime``, a state a ``NodeState``,
        its number or its word.
    number_of
        Numbers of the known nodes.
    may_appear
        Others may appear: they are numbered after all known ones, by the time of their first row, then by name.

    Raises
    ------
    InputError
        A row cannot be used; the message says which.
    """
    appeared: dict[str, int] | None = {} if may_appear else None
    try:
        events = _checked(rows, len(number_of)) if isinstance(rows, EventBatch) else _events(rows, number_of, appeared)
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(
            f"a portion has no rows: {one_line(error)}",
            value=type(rows).__name__,
            expected="(time, node, state) for each event, or a data frame with these columns",
        ) from error
    if not appeared:
        return events, []
    first_us = {name: int(events.time_us[events.node == number].min()) for name, number in appeared.items()}
    names = sorted(appeared, key=lambda name: (first_us[name], name))
    new_number = np.arange(len(number_of) + len(names), dtype=np.int32)
    new_number[[appeared[name] for name in names]] = np.arange(len(number_of), len(new_number))
    return EventBatch(events.time_us, new_number[events.node], events.state), names


def _checked(rows: EventBatch, n_nodes: int) -> EventBatch:
    """Return rows that are arrays already."""
    columns = [np.asarray(column) for column in rows.columns]
    if not all(column.dtype.kind in "iu" and column.shape == (len(rows),) for column in columns):
        raise ValueError("columns are arrays of whole numbers, of equal lengths")
    ranges = ((-LAST_US, LAST_US), (0, n_nodes - 1), (0, len(STATE_WORDS) - 1))
    for column, column_name, (lowest, highest) in zip(columns, ("time_us", "node", "state"), ranges, strict=True):
        if column.size and not lowest <= int(column.min()) <= int(column.max()) <= highest:
            raise ValueError(f"{column_name} is {lowest} to {highest}")
    return EventBatch(*(column.astype(dtype) for column, dtype in zip(columns, _DTYPES, strict=True)))


def _events(rows: Any, number_of: Mapping[str, int], appeared: dict[str, int] | None) -> EventBatch:
    """Return rows that are triples, or a data frame; unknown nodes are added to ``appeared``."""
    if hasattr(rows, "columns"):
        rows = zip(rows["time"], rows["node"], rows["state"], strict=True)
    events = [_event(row_index, row, number_of, appeared) for row_index, row in enumerate(rows)]
    columns = zip(*events, strict=True) if events else ((), (), ())
    return EventBatch(*(np.array(column, dtype) for column, dtype in zip(columns, _DTYPES, strict=True)))


def _event(
    row_index: int, row: tuple[Any, Any, Any], number_of: Mapping[str, int], appeared: dict[str, int] | None
) -> tuple[int, int, int]:
    try:
        time, node, state = row
        time_us = time_us_of(time)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"row {row_index} of a portion is no event: {error}",
            value=row,
            expected="(time, node, state)",
            fix="give the time as ISO-8601 text, a datetime, or whole microseconds since 1970 UTC",
        ) from error
    node_index = number_of.get(node) if isinstance(node, str) else None
    if node_index is None and appeared is not None and isinstance(node, str):
        checks.name("node", node, "node")
        node_index = appeared.setdefault(node, len(number_of) + len(appeared))
    if node_index is None:
        raise InputError(
            f"row {row_index} of a portion names an unknown node",
            column="node",
            value=node,
            expected="a node of the log" if appeared is None else "the name of a node",
            fix=did_you_mean([str(node)], list(number_of)) or "add it to the nodes",
        )
    is_state = isinstance(state, str | int | np.integer) and not isinstance(state, bool)
    code = _STATES.get(state) if is_state else None
    if code is None:
        raise InputError(
            f"row {row_index} of a portion has an unknown state",
            column="state",
            value=state,
            expected=", ".join(STATE_WORDS),
        )
    return time_us, node_index, code
