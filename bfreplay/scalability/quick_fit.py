"""The universal scalability law through a few points, in closed form: for callers that fit at every report of a job."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bfreplay.errors import InputError

_COUNTS_FOR_KAPPA = 3
_COUNTS_FOR_SERIAL = 2


def quick_usl(nodes: ArrayLike, rates: ArrayLike, weights: ArrayLike | None = None) -> tuple[float, float, float]:
    """Fit P(n) = rate_1 n / (1 + serial (n-1) + kappa n (n-1)) by weighted non-negative least squares.

    The law is linear in n/P = a + b n + c n (n-1), with rate_1 = 1/(a+b), serial = b/(a+b), kappa = c/(a+b) (N. J.
    Gunther, Guerrilla Capacity Planning, 2007, fits a quadratic through the same transform). What is
    minimised is the sum of w ((fitted n/P - n/P) / (n/P))², relative errors, since rates scatter in proportion to
    their size. Where an exact law goes through all points, that law is returned. For a fit with intervals and a
    choice of laws take `fit`.

    Parameters
    ----------
    nodes
        Node counts of the points, at least 1, shape ``(N,)``; a count may be there several times.
    rates
        Rate at each, above 0, shape ``(N,)``.
    weights
        Weight of each, not negative and not all 0, shape ``(N,)``; all 1 where left out.

    Returns
    -------
    rate_1, serial, kappa
        ``rate_1 > 0``, ``0 <= serial <= 1``, ``0 <= kappa <= 1``. Of two distinct counts (of a weight above 0) kappa is
        0: Amdahl's law. Of one count serial is 0 as well: rates in proportion to nodes, the most that one count allows.

    Raises
    ------
    InputError
        No point of a weight above 0, arrays of different shapes, or a count, rate or weight out of range.
    """
    from scipy.optimize import nnls

    counts = np.asarray(nodes, dtype=np.float64)
    measured = np.asarray(rates, dtype=np.float64)
    weight = np.ones_like(counts) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(counts, measured, weight)
    n_distinct = len(set(counts[weight > 0].tolist()))
    per_node = measured / counts
    pairs = counts * (counts - 1.0)
    # bounds are built in: every law within them is a sum, with factors >= 0, of the laws at the corners of the bounds
    if n_distinct >= _COUNTS_FOR_KAPPA:
        columns = np.stack([np.ones_like(counts), counts, 1.0 + pairs, counts + pairs], axis=1)
    elif n_distinct == _COUNTS_FOR_SERIAL:
        columns = np.stack([np.ones_like(counts), counts], axis=1)
    else:
        columns = np.ones((len(counts), 1))
    root = np.sqrt(weight)
    scaled = columns * (root * per_node)[:, None]
    size = np.sqrt(np.einsum("ij,ij->j", scaled, scaled))
    found = np.zeros(4)
    found[: columns.shape[1]] = nnls(scaled / size, root)[0] / size
    per_rate = float(found.sum())
    return 1.0 / per_rate, float(found[1] + found[3]) / per_rate, float(found[2] + found[3]) / per_rate


def _check(counts: np.ndarray, rates: np.ndarray, weights: np.ndarray) -> None:
    if counts.ndim != 1 or counts.shape != rates.shape or counts.shape != weights.shape:
        raise InputError(
            "nodes, rates and weights do not belong together",
            value=(counts.shape, rates.shape, weights.shape),
            expected="three arrays of one length",
        )
    for column, array, good, expected in (
        ("nodes", counts, counts >= 1, "node counts >= 1"),
        ("rates", rates, rates > 0, "rates > 0"),
        ("weights", weights, weights >= 0, "weights >= 0"),
    ):
        good = good & np.isfinite(array)
        if not good.all():
            raise InputError(
                "a point cannot be fitted", column=column, value=float(array[~good][0]), expected=f"finite {expected}"
            )
    if not weights.any():
        raise InputError(
            "there is no point to fit", column="weights", expected="at least one point of a weight above 0"
        )
