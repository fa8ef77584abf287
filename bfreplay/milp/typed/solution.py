"""The answer to a decision on several types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.solution import Solution


@dataclass(frozen=True, slots=True, eq=False)
class TypedSolution:
    """Counts with all that is known of them, and the types.

    Parameters
    ----------
    types : (J,) int64 or None
        Type of each job's nodes, ``NO_TYPE`` for a job without any; ``None`` when there is no answer.
    solution
        The counts, their worth, and the statuses.
    """

    types: NDArray[np.int64] | None
    solution: Solution
