"""What each job may choose: a type and a count, as flat arrays without what is never better."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled


class Choices(NamedTuple):
    """The choices of job j are at ``offset[j]`` to ``offset[j + 1] - 1``: none first, then by type, then by count.

    Parameters
    ----------
    offset : (J + 1,) int64
    kind : (A,) int64
        Node type; 0 for no nodes.
    nodes : (A,) int64
        How many.
    value : (A,) float64
        What the job is worth with them.
    """

    offset: NDArray[np.int64]
    kind: NDArray[np.int64]
    nodes: NDArray[np.int64]
    value: NDArray[np.float64]


@compiled
def choices_of(value: NDArray[np.float64]) -> Choices:
    """Choices with the values ``value (J, T, K + 1)``; ``-inf`` is what a job may not have.

    A count that is worth no more than fewer nodes of the same type, or than none, is left out: nodes that nobody uses
    cost nothing, so some best answer does without it.
    """
    n_jobs, n_types, width = value.shape
    most = n_jobs * (1 + n_types * (width - 1))
    offset = np.zeros(n_jobs + 1, np.int64)
    kind = np.zeros(most, np.int64)
    nodes = np.zeros(most, np.int64)
    worth = np.zeros(most, np.float64)
    top = 0
    for j in range(n_jobs):
        worth[top] = value[j, 0, 0]
        top += 1
        for t in range(n_types):
            best = value[j, 0, 0]
            for n in range(1, width):
                if value[j, t, n] > best:
                    best = value[j, t, n]
                    kind[top] = t
                    nodes[top] = n
                    worth[top] = best
                    top += 1
        offset[j + 1] = top
    return Choices(offset, kind[:top].copy(), nodes[:top].copy(), worth[:top].copy())
