"""What a job has got since its admission, as a share of what dedicated nodes would have given it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.policy import PolicyState

FLOOR = 1e-3
"""Added to shares in ``log_service``. ``log`` alone is infinite for a job that has got nothing: all that any other job
could gain would count for nothing beside it. With this it asks for at most log(1001), 6.9 times what a job gains by
doing e times better; shares of one per cent and above are hardly changed."""


def service(
    state: PolicyState, samples: NDArray[np.float64], best: NDArray[np.float64], t_fwd_s: float
) -> NDArray[np.float64]:
    """``(J, K + 1)``: ``(progress + samples) / (best x age)`` at the end of the forward-looking time.

    ``samples (J, K + 1)`` is what the decision brings, ``best (J,)`` the job's best rate in samples/s, and its age then
    is ``now + t_fwd_s - admitted``. 1 is what nodes of its own, at its best count and from its admission on, would
    have given. 0 for a job without any rate.
    """
    age_s = (state.time_us - state.admitted_us) * 1e-6 + t_fwd_s
    dedicated = best * age_s
    share: NDArray[np.float64] = (state.progress[:, None] + samples) / np.where(best > 0.0, dedicated, np.inf)[:, None]
    return share


def log_service(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """``log(share + FLOOR)``, continued below 0 by its tangent: increasing and concave everywhere.

    Shares below 0 exist: what a young job loses by rescaling can be more than it has made.
    """
    above = np.maximum(share, 0.0)
    below = np.minimum(share, 0.0)
    value: NDArray[np.float64] = np.log(above + FLOOR) + below / FLOOR
    return value
