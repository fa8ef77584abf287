"""How many nodes a job uses at once: Gavel's jobs have one width, elastic ones are given one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.policies.policy import PolicyState

WORDS = ("min", "max")


def checked_gang(gang: str | int) -> str | int:
    """``gang`` as it may be set: a word of ``WORDS``, or a number of nodes.

    Raises
    ------
    InputError
        It is neither.
    """
    if isinstance(gang, str):
        if gang not in WORDS:
            raise InputError(
                "this is no width of a job", column="gang", value=gang, expected="min, max, or a number of nodes >= 1"
            )
        return gang
    return checks.whole("gang", gang, 1, math.inf)


def gangs(
    min_nodes: NDArray[np.int64], max_nodes: NDArray[np.int64], gang: str | int, most_nodes: int
) -> NDArray[np.int64]:
    """(J,) nodes of each job: its least, its most, or ``gang`` within these bounds, ``(J,)`` each.

    A job that may be narrower is not wider than ``most_nodes``: the nodes that there are of the largest type.
    """
    most = np.maximum(np.minimum(max_nodes, most_nodes), min_nodes)
    if gang == "min":
        return min_nodes.copy()
    return most if gang == "max" else np.minimum(np.maximum(int(gang), min_nodes), most)


def rates(state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.float64]:
    """(J, T) samples/s of each job on ``width (J,)`` nodes of each type of the state, in the order of its types."""
    by_type = state.throughput[:, None, :] if state.throughput_by_type is None else state.throughput_by_type
    found: NDArray[np.float64] = by_type[np.arange(state.n_jobs), :, width]
    return found
