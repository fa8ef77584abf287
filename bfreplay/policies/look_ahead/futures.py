"""What may become of the pool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Futures:
    """S possible futures of the pool, over L intervals each; the first begins now.

    Parameters
    ----------
    idle : (S, L) int64
        Idle nodes; the first column is not read.
    seconds : (S, L) float64
        Length of each interval.
    """

    idle: NDArray[np.int64]
    seconds: NDArray[np.float64]

    @classmethod
    def none(cls, seconds: float) -> Futures:
        """Nothing is known: all stays as it is for ``seconds``. Then the decision is BFTrainer's."""
        return cls(np.zeros((1, 1), np.int64), np.full((1, 1), seconds))
