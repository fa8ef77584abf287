"""What the user says of columns: ``--map ROLE=COLUMN`` and ``--map ROLE=COLUMN:UNIT``."""

from __future__ import annotations

import difflib
from collections.abc import Container, Mapping

from bfreplay.datasets.scheduler_logs.table.units import UNITS_OF
from bfreplay.errors import InputError

ROLES = (
    "job", "start", "end", "nodes", "node_count", "processors", "elapsed", "limit", "state", "outage_state",
)  # fmt: skip
"""What a column can be. ``outage_state`` marks a table of outages: a column with words, or one word for all rows."""

WHOLE_MACHINE = "ALL"
"""``--map nodes=ALL``: every outage of a table without a column of nodes is one of the whole machine."""


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Raise ``InputError`` for a role that there is not."""
    for role in mapping:
        if role not in ROLES:
            close = difflib.get_close_matches(role, ROLES, 1)
            raise InputError(
                "there is no such role of a column",
                column="--map",
                value=f"{role}={mapping[role]}",
                expected="one of " + ", ".join(ROLES),
                fix=f"--map {close[0] if close else 'start'}={mapping[role]}",
            )


def split_units(mapping: Mapping[str, str], names: Container[str], file: str) -> tuple[dict[str, str], dict[str, str]]:
    """Role -> column, and role -> unit where one is given; a column whose own name ends in ``:min`` is that column.

    Raises
    ------
    InputError
        The role's numbers cannot have such a unit.
    """
    columns, units = dict(mapping), {}
    for role, text in mapping.items():
        column, sign, unit = text.rpartition(":")
        if role not in UNITS_OF or not sign or text in names:
            continue
        if unit not in UNITS_OF[role]:
            if column not in names:
                continue  # a column that there is not: said as such
            raise InputError(
                f"{role} cannot be in that unit",
                file=file,
                column="--map",
                value=f"{role}={text}",
                expected=f"{role}=COLUMN:UNIT with one of the units {', '.join(UNITS_OF[role])}",
                fix=f"--map {role}={column}:{UNITS_OF[role][0]}",
            )
        columns[role], units[role] = column, unit
    return columns, units
