"""Nodes that jobs keep from one recomputation to the next, as in FIFO and AlloX."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.gavel.shares.share_problem import ShareProblem


def still_held(held: Mapping[int, int], problem: ShareProblem) -> tuple[dict[int, int], NDArray[np.int64]]:
    """Slots that are left of those held before, and the nodes that no slot takes.

    Where a type has fewer nodes than its slots take (idle nodes come and go), the latest arrivals lose theirs, one
    by one until the rest fits. A cluster of constant size never takes a slot back.

    Parameters
    ----------
    held
        Position of the node type in ``problem.type_names``, by the job's number. Jobs may have left since.

    Returns
    -------
    kept
        As ``held``, in order of arrival.
    free : (n,) int64
        Nodes of each type that are not in ``kept``.
    """
    free = problem.n_nodes.astype(np.int64)
    too_small = np.zeros(problem.n_types, dtype=np.bool_)
    kept: dict[int, int] = {}
    for number, gang in zip(problem.job.tolist(), problem.gang.tolist(), strict=True):
        j = held.get(number)
        if j is None:
            continue
        too_small[j] |= gang > free[j]
        if not too_small[j]:
            kept[number] = j
            free[j] -= gang
    return kept, free


def shares_of_slots(held: Mapping[int, int], problem: ShareProblem) -> NDArray[np.float64]:
    """(m, n): all of a job's time on the type of its slot."""
    share = np.zeros((problem.n_jobs, problem.n_types))
    for i, number in enumerate(problem.job.tolist()):
        j = held.get(number)
        if j is not None:
            share[i, j] = 1.0
    return share
