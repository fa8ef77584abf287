"""Numbers of answers as people read them."""

from __future__ import annotations

import math

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
