"""Columns of the tables of a sweep."""

from __future__ import annotations

from bfreplay.replay.metrics import COLUMNS
from bfreplay.replay.run_record import Seconds

OF_STATE = ("id", "status", "error")

RESULT_COLUMNS = frozenset((*OF_STATE, *COLUMNS, "warnings"))
"""Every column of the results but those of what varies."""

SECONDS = tuple(name for name in Seconds.__struct_fields__ if name != "isolated_s")
"""Of what was measured of each run."""
