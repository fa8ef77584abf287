"""Variants of Gavel's policies by their knowledge of node types: agnostic, perf and packed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.systems.gavel.shares.share_problem import NO_PAIRS, SharePolicy, ShareProblem, TimeShares

Variant = Literal["agnostic", "perf", "packed"]
"""The same optimisation with rates that ignore types, with true ones, and with pairs that share nodes."""

USUAL_REFERENCE = "v100"
"""Node type whose rates Gavel takes for all types."""


def reference_rate(problem: ShareProblem, reference_type: str | None = None) -> NDArray[np.float64]:
    """Return the rate of each job on one type, which an agnostic policy takes for all types, (m,).

    A job that cannot run on that type counts with its best rate.

    Parameters
    ----------
    problem
        Problem with the rates.
    reference_type
        The type. By default v100, as in Gavel; without one, the type on which jobs come nearest to their best rates on
        average (the first in alphabetical order if equal).

    Raises
    ------
    InputError
        The cluster has no such type.
    """
    best = problem.rate.max(axis=1)
    if reference_type is not None and reference_type not in problem.type_names:
        raise InputError(
            "the reference type is not in the cluster",
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
    believed: NDArray[np.float64] = np.where(problem.rate[:, column] > 0, problem.rate[:, column], best)
    return believed


def pool_types(problem: ShareProblem, rate: NDArray[np.float64]) -> ShareProblem:
    """Return ``problem`` on one type that has all nodes, at ``rate`` (m,) and without pairs.

    Where every type counts with the same rate, only the time of a job on all types together matters. And whatever time
    f_i the pool allows, the types allow as well: ``X_ij = f_i c_j / C``. So both have the same optimum.
    """
    return replace(
        problem,
        type_names=("any",),
        n_nodes=np.array([problem.n_nodes.sum()], dtype=np.int64),
        rate=rate[:, None],
        price_per_hour=np.array([problem.price_per_hour.mean()]),
        pair=NO_PAIRS,
        pair_rate=np.zeros((0, 1, 2)),
    )


def spread(shares: TimeShares, problem: ShareProblem) -> TimeShares:
    """Split the time on the pool over the types of ``problem`` like their nodes: it favours none of them."""
    split = problem.n_nodes / max(int(problem.n_nodes.sum()), 1)
    return TimeShares(shares.share * split, np.zeros((problem.n_pairs, problem.n_types)), shares.objective)


class VariantPolicy(SharePolicy):
    """Policy in three variants; the agnostic one has one type of node, and splits a job's time like the cluster.

    Parameters
    ----------
    variant
        ``agnostic``, ``perf`` or ``packed``.

    Raises
    ------
    InputError
        There is no such variant.
    """

    def __init__(self, variant: Variant) -> None:
        checks.one_of("variant", variant, get_args(Variant))
        self.uses_pairs = variant == "packed"
        self.shuffles_types = variant == "agnostic"

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return optimal shares, with the optimum as their objective."""
        if self.shuffles_types:
            return spread(self._shares(pool_types(problem, self._believed_rate(problem))), problem)
        return self._shares(problem)

    @abstractmethod
    def _shares(self, problem: ShareProblem) -> TimeShares:
        """Return optimal shares of ``problem`` itself."""

    def _believed_rate(self, problem: ShareProblem) -> NDArray[np.float64]:
        """Return the steps/s that the agnostic variant assumes, (m,): every rate is 1."""
        return np.ones(problem.n_jobs)
