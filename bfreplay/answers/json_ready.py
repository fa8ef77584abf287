"""Data frames as JSON has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bfreplay.datasets.times import iso_utc

if TYPE_CHECKING:
    import pandas as pd


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One object a row: times as ISO-8601 UTC, no value (NaN, NaT) and no end (infinite work) as ``None``."""
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    if value is None or value != value or value in (math.inf, -math.inf):
        return None
    if hasattr(value, "value"):  # a pandas Timestamp: nanoseconds
        return iso_utc(int(value.value) // 1000)
    return value.item() if hasattr(value, "item") else value
