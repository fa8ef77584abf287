"""Numbers of answers as people read them."""

from __future__ import annotations

import math

from bfreplay.datasets.times import iso_utc
from bfreplay.wording import amount, duration

_LARGEST_WHOLE = 1e12


def samples(value: float) -> str:
    """Samples, or amounts of an objective: ``0``, ``0.25``, ``1,234``, ``1.5e+15``."""
    if abs(value) >= _LARGEST_WHOLE:
        return f"{value:.4g}"
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{'-' if value < 0 else ''}{amount(abs(value))}"


def maybe_duration(seconds: float) -> str:
    """A length of time, or a dash where there is none."""
    return "-" if math.isnan(seconds) else duration(seconds)


def time_words(time_us: int, origin_us: int | None) -> str:
    """A time in UTC; ``+407.5`` seconds from ``origin_us`` where the log has no calendar, as ``--at`` takes them."""
    return iso_utc(time_us) if origin_us is None else f"+{(time_us - origin_us) / 1e6:.6f}".rstrip("0").rstrip(".")
