"""Checks on consecutive events that only a pass with the state of every node can make."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.times import iso_utc
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
    """Carry events sorted by (time, node) into ``states`` and stop at the first that cannot be.

    Parameters
    ----------
    time_us, node, state
        The events, shape ``(E,)``.
    states
        State of each node before them, shape ``(N,)``; changed in place. ``UNSET`` where none is known yet.
    alternating
        A node can only go from idle to not idle and back (the two-state form).

    Returns
    -------
    tuple
        What is wrong (``VALID`` for nothing) and the index of the event it is wrong at.
    """
    for i in range(time_us.shape[0]):
        n = node[i]
        if i > 0 and time_us[i] == time_us[i - 1] and n == node[i - 1]:
            return 1, i
        before = states[n]
        after = state[i]
        if before == 0 and after == 0:
            return 2, i
        if alternating and before > 0 and after != 0:
            return 3, i
        states[n] = after
    return 0, -1


def refuse_event(
    problem: int, *, node: str, time_us: int, value: object, column: str, file: Path | None, row: int
) -> NoReturn:
    """Raise the error for what ``apply_events`` found.

    Parameters
    ----------
    problem
        Its return code.
    node, time_us, value, column
        The event; ``value`` as it would be written in the file, in ``column``.
    file, row
        Where it stands.
    """
    at = iso_utc(time_us)
    if problem == TWICE:
        column, value = "node", node
        sentence = f"node {node!r} has two rows at {at}"
        expected = "one row for each node and time: the state after everything that happened then"
        fix = "keep the last of the two rows"
    elif problem == IDLE_ALREADY:
        sentence = f"node {node!r} becomes idle at {at} but is idle already"
        expected = "a row that takes the node back between two rows that free it"
        fix = "drop the repeated row, or restore the missing one before it"
    else:
        sentence = f"node {node!r} is reclaimed at {at} but was never idle"
        expected = "nodes busy before their first row, then idle and not idle in turn"
        fix = "add the row in which the node became idle, or drop this one"
    raise InputError(sentence, file=file, row=row, column=column, value=value, expected=expected, fix=fix)


def time_runs_backwards(time_us: int, before_us: int, file: Path | None, row: int) -> InputError:
    """Return the error for a row that is earlier than the one before it."""
    return InputError(
        "time runs backwards",
        file=file,
        row=row,
        column="time",
        value=iso_utc(time_us),
        expected=f"{iso_utc(before_us)} or later, the time of the row before",
        fix="sort the log by time",
    )
