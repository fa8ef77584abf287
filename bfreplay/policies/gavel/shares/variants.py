"""What a policy knows of node types: the three versions in which Gavel has most of its policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.policies.gavel.shares.share_problem import ShareProblem

Variant = Literal["agnostic", "perf", "packed"]
"""The same optimisation with rates that do not tell types apart, with true ones, and with pairs that share nodes."""

USUAL_REFERENCE = "v100"
"""The node type whose rates Gavel takes for all types."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What a variant means for the replay.

    Parameters
    ----------
    uses_pairs, shuffles_types
        As in ``SharePolicy``.
    """

    uses_pairs: bool
    shuffles_types: bool


def knowledge(variant: Variant) -> Knowledge:
    """Tell what ``variant`` means.

    Raises
    ------
    InputError
        There is no such variant.
    """
    if variant not in get_args(Variant):
        raise InputError(
            "No such variant of a policy", value=variant, expected=f"one of {', '.join(get_args(Variant))}"
        )
    return Knowledge(uses_pairs=variant == "packed", shuffles_types=variant == "agnostic")


def reference_rate(problem: ShareProblem, reference_type: str | None = None) -> NDArray[np.float64]:
    """(m, n): the rate of each job on one type, taken for all types: what an agnostic policy believes.

    A job that cannot run on that type counts with its best rate.

    Parameters
    ----------
    problem
        Its rates.
    reference_type
        The type. By default v100, as in Gavel; where there is none, the type on which jobs come nearest to their best
        rates on average (of two that are alike, the first in the alphabet).

    Raises
    ------
    InputError
        The cluster has no such type.
    """
    best = problem.rate.max(axis=1)
    if reference_type is not None and reference_type not in problem.type_names:
        raise InputError(
            "The reference type is not in the cluster",
            value=reference_type,
            expected=f"one of {', '.join(problem.type_names)}",
        )
    if reference_type is None and USUAL_REFERENCE in problem.type_names:
        reference_type = USUAL_REFERENCE
    if reference_type is None:
        relative = np.divide(problem.rate, best[:, None], out=np.zeros_like(problem.rate), where=best[:, None] > 0)
        column = int(relative.sum(axis=0).argmax())
    else:
        column = problem.type_names.index(reference_type)
    believed = np.where(problem.rate[:, column] > 0, problem.rate[:, column], best)
    return np.repeat(believed[:, None], problem.n_types, axis=1)
