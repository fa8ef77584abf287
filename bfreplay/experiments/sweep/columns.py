"""Columns of the tables of a sweep, and their cells."""

from __future__ import annotations

from bfreplay.runs.headline_metrics import COLUMNS
from bfreplay.runs.run_record import Seconds

OF_STATE = ("id", "status", "error")

RESULT_COLUMNS = frozenset((*OF_STATE, *COLUMNS, "warnings"))
"""Columns of the results, without those of options that vary."""

SECONDS = tuple(name for name in Seconds.__struct_fields__ if name not in ("isolated_s", "ideal_s"))
"""Measured seconds of each run."""


Cell = str | float | int | bool | None


def cell_of(value: object) -> Cell:
    """Return the value of an option as one cell."""
    if isinstance(value, tuple):  # a window, as ISO-8601 writes an interval; or a range of jobs
        return ("/" if any(isinstance(each, str) for each in value) else ":").join(map(str, value))
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def text_of(cell: Cell) -> str:
    """Return a cell as text: ``60``, ``0.5``, ``true``, ``auto``; empty for ``None``."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return repr(cell).removesuffix(".0")
    return str(cell)
