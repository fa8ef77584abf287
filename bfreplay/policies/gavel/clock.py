"""Microseconds of the replay and seconds of the round mechanism."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

US_PER_S = 1e6


def seconds_after(time_us: int, start_us: int) -> float:
    """Seconds of the mechanism's clock, which starts with the window."""
    return (time_us - start_us) / US_PER_S


def whole_us(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """The microsecond at or after each span, as the replay rounds the end of a job."""
    return np.ceil(np.maximum(seconds, 0.0) * US_PER_S).astype(np.int64)
