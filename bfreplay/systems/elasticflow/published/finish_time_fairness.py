"""Fractions of time that make the worst finish-time fairness of all jobs as good as it can be.

The published Themis poses this to an interior-point method (ECOS). Its answer is not always the only one: where a job
that has all of the time it can use is the worst one, what the others get beyond their need is undetermined. An
interior-point method then ends in the middle of the best answers, the analytic centre; it is worked out here directly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Floats = NDArray[np.float64]

NEED_WEIGHT = 1.5
"""Weight in the analytic centre of a job's distance from its need, over that from 1.

The program writes ``y >= 1/x`` as a second-order cone, which counts half, and the ratio as a linear row, which counts
in full. At the centre over y, both are in proportion to the distance of x from the need.
"""


@dataclass(frozen=True, slots=True)
class Claims:
    """Jobs that share GPUs; all arrays are of shape (J,).

    Parameters
    ----------
    elapsed_s
        Time since submission.
    iterations
        Those left.
    rates
        Iterations per second on the GPUs that it asked for.
    isolated
        What the time to the finish is measured by, positive.
    gpus
        GPUs asked for.
    n_gpus
        GPUs of the cluster.
    """

    elapsed_s: Floats
    iterations: Floats
    rates: Floats
    isolated: Floats
    gpus: Floats
    n_gpus: int

    def needs(self, ratio: float) -> Floats:
        """Fractions of time at which all jobs have this ratio, shape (J,)."""
        return self.iterations / (self.rates * (ratio * self.isolated - self.elapsed_s))

    def alone(self) -> float:
        """Worst ratio where every job runs all the time."""
        return float(np.max((self.elapsed_s + self.iterations / self.rates) / self.isolated))


def fair_fractions(claims: Claims) -> Floats:
    """Fractions of time, shape (J,), in [0, 1], that minimise the largest ratio and are central among all that do.

    The ratio of a job is (elapsed time + iterations left / (rate x fraction)) / isolated. Fractions, each times the
    GPUs of its job, add up to the GPUs of the cluster at most. If all GPUs are needed for the best ratio, the answer is
    unique.
    """
    ratio = claims.alone()
    needs = np.minimum(claims.needs(ratio), 1.0)
    if claims.gpus @ needs >= claims.n_gpus:
        return claims.needs(_contended_ratio(claims, ratio))
    return _centre(needs, claims.gpus, claims.n_gpus)


def _contended_ratio(claims: Claims, least: float) -> float:
    """Smallest ratio, from ``least`` on, at which the needs fit into the cluster.

    Newton's method: the GPUs that are needed are convex and decreasing in the ratio, so that no step goes too far.
    """
    ratio = least
    while True:
        needs = claims.needs(ratio)
        excess = float(claims.gpus @ needs) - claims.n_gpus
        slope = float(claims.gpus @ (needs * claims.isolated / (ratio * claims.isolated - claims.elapsed_s)))
        further = ratio + excess / slope
        if further <= ratio or excess <= 1e-12 * claims.n_gpus:
            return ratio
        ratio = further


def _centre(needs: Floats, gpus: Floats, n_gpus: int) -> Floats:
    """Fractions x that maximise the sum of NEED_WEIGHT log(x - need) + log(1 - x), plus log of the GPUs left over.

    With the price p of a GPU, which is 1 over the GPUs left over, each fraction is the root of a quadratic equation;
    the price is then a root in one dimension.
    """
    room = 1.0 - needs
    free = float(n_gpus - gpus @ needs)

    def extra(price: float) -> Floats:
        cost = price * gpus * room
        middle = NEED_WEIGHT + 1 + cost
        return 2 * NEED_WEIGHT * room / (middle + np.sqrt(middle**2 - 4 * NEED_WEIGHT * cost))

    highest = (NEED_WEIGHT * len(gpus) + 1) / free
    price = brentq(lambda price: price * (free - gpus @ extra(price)) - 1, 0.0, highest, xtol=1e-15 * highest)
    return needs + extra(float(price))
