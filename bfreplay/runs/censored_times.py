"""Kaplan-Meier estimate of times of which some are censored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def censored_quantiles(
    seconds: NDArray[np.float64], is_done: NDArray[np.bool_], shares: tuple[float, ...]
) -> tuple[float | None, ...]:
    """Return the Kaplan-Meier quantile for each of ``shares``: the first time by which that share is done.

    Parameters
    ----------
    seconds : (N,) float64
        Time until done; or, where ``is_done`` is false, a time that was too short.
    is_done : (N,) bool
        False for a censored time.
    shares
        Between 0 and 1; the quantile is ``None`` if it lies beyond what was observed.

    Notes
    -----
    A start censored at the time at which another one is done was still at risk then. Kaplan and Meier, "Nonparametric
    estimation from incomplete observations", J. Am. Stat. Assoc. 53 (1958).
    """
    times, share_done = done_by(seconds, is_done)
    position = np.searchsorted(share_done, np.array(shares) - 1e-12)  # the share is a product: it rounds
    return tuple(float(times[time_index]) if time_index < times.size else None for time_index in position.tolist())


def done_by(
    seconds: NDArray[np.float64], is_done: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the Kaplan-Meier estimate: times at which starts are done, and the share done by each, both ``(K,)``."""
    times, n_done = np.unique(seconds[is_done], return_counts=True)
    at_risk = seconds.size - np.searchsorted(np.sort(seconds), times)
    share = np.asarray(1.0 - np.cumprod(1.0 - n_done / at_risk), np.float64)
    return times, share
