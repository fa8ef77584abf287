"""Priority of each entry on each node type: share promised over share received."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled

NEVER_RAN = 1e9
"""Over the share of an entry that has received no time at all."""


@compiled
def priorities(
    share: NDArray[np.float64], can_run: NDArray[np.bool_], time_s: NDArray[np.float64], total_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(e, n) priorities: ``X_ij`` over the part that entry i had of the time that all ran on type j (section 5).

    0 for an entry without share there or that cannot run there. Time is per entry, not per node.
    """
    e, n = share.shape
    priority = np.zeros((e, n))
    for i in range(e):
        for j in range(n):
            if share[i, j] > 0.0 and can_run[i, j]:
                part = time_s[i, j] / total_s[j]
                priority[i, j] = share[i, j] / part if part > 0.0 else share[i, j] * NEVER_RAN
    return priority
