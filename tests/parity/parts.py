"""All parts of the comparison, by published system."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.parity import bftrainer, elasticflow, gavel, shockwave
from tests.parity.comparison import Table

SYSTEMS: dict[str, ModuleType] = {
    "bftrainer": bftrainer,
    "gavel": gavel,
    "shockwave": shockwave,
    "elasticflow": elasticflow,
}
"""Modules with the rows of the table (``ROWS``), functions that fill them (``PARTS``), and the long ones of these
(``SLOW``, ``THOROUGH``)."""


@cache
def table_of_part(shared: Path, system: str, part: str) -> Table:
    """Return the table of one part, compared once."""
    table = Table()
    SYSTEMS[system].PARTS[part](table, shared)
    return table


def table_of(shared: Path, system: str) -> Table:
    """Return the whole table of a system, with its rows in order."""
    module, table = SYSTEMS[system], Table()
    for row in module.ROWS:
        table.of(row)
    for part in module.PARTS:
        table.add(table_of_part(shared, system, part))
    return table


def parts_of(system: str) -> list[object]:
    """Return the parts of a system as parameters of a test, the long ones marked."""
    module = SYSTEMS[system]
    marks = dict.fromkeys(module.SLOW, pytest.mark.slow) | dict.fromkeys(module.THOROUGH, pytest.mark.thorough)
    return [pytest.param(part, marks=marks.get(part, ())) for part in module.PARTS]


def check_part(shared: Path, system: str, part: str) -> Table:
    """Compare one part: every item agrees, or differs for a known reason."""
    table = table_of_part(shared, system, part)
    assert [f"{row.what}: {item}" for row, tally in table.tallies.items() for item in tally.unexplained] == []
    assert table.tallies
    assert not any(tally.has_failed for tally in table.tallies.values())
    assert set(table.tallies) <= set(SYSTEMS[system].ROWS)
    return table
