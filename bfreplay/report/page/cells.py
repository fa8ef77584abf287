"""Tables as the template takes them: cells with text and value, and the rows beyond the first packed away."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay.report.page.packed import packed_document
from bfreplay.report.tables import Column, ShownTable, exact, written

FIRST_ROWS = 50
"""Rows of a long table that the page has as they are; its script pages through all of them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``value`` is exact, as text: what tests read and the page sorts by; empty where there is none."""

    value: str
    text: str


@dataclass(frozen=True, slots=True)
class PageTable:
    """``rest`` holds all rows, ``[value, text]`` a cell, packed; ``None`` where ``rows`` are all there are."""

    caption: str
    columns: tuple[Column, ...]
    rows: list[list[Cell]]
    rest: str | None


def page_table(table: ShownTable) -> PageTable:
    """Write every cell."""
    rows = [
        [Cell(exact(value), written(value, column.kind)) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    if len(rows) <= FIRST_ROWS:
        return PageTable(table.caption, table.columns, rows, None)
    rest = packed_document([[[cell.value, cell.text] for cell in row] for row in rows])
    return PageTable(table.caption, table.columns, rows[:FIRST_ROWS], rest)
