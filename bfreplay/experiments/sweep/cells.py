"""Cells of what varies in a sweep, and how they are written."""

from __future__ import annotations

Cell = str | float | int | bool | None


def cell_of(value: object) -> Cell:
    """The value of an option as one cell."""
    if isinstance(value, tuple):  # a window, as ISO-8601 writes an interval; or a range of jobs
        return ("/" if any(isinstance(each, str) for each in value) else ":").join(map(str, value))
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def text_of(cell: Cell) -> str:
    """A cell as people write it: ``60``, ``0.5``, ``true``, ``auto``; empty where there is none."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return repr(cell).removesuffix(".0")
    return str(cell)
