"""Jobs that a policy cannot tell apart, as one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.gavel.shares.share_problem import NO_PAIRS, ShareProblem


@dataclass(frozen=True, slots=True, eq=False)
class AlikeJobs:
    """g kinds of jobs.

    Parameters
    ----------
    problem
        With one job of each kind, and no pairs.
    unit : (g,) float64
        Of each kind.
    n_of_kind : (g,) int64
        How many jobs are of each kind.
    kind : (m,) int64
        Of each job.
    """

    problem: ShareProblem
    unit: NDArray[np.float64]
    n_of_kind: NDArray[np.int64]
    kind: NDArray[np.int64]


def alike_jobs(problem: ShareProblem, unit: NDArray[np.float64]) -> AlikeJobs:
    """Put jobs of the same gang, rates and ``unit`` (m,) into one kind.

    If some shares are best by the least of ``th_i / unit_i``, so are those in which each job gets the mean of its kind:
    they take as many nodes, and nobody gets less than before the one of its kind that got least. So a program over
    kinds has the same optimum. In a cluster of many jobs it is far smaller, and jobs that are alike fare alike. Kinds
    are in the order of what they are, not of who came first: nobody's number makes a difference.
    """
    told_by = np.column_stack([problem.gang, unit, problem.rate])
    _, first, kind, n_of_kind = np.unique(told_by, axis=0, return_index=True, return_inverse=True, return_counts=True)
    one_of_each = replace(
        problem,
        **{name: getattr(problem, name)[first] for name in ("job", "gang", "rate", "weight", "steps_left", "age_s")},
        to_deadline_s=problem.to_deadline_s[first],
        pair=NO_PAIRS,
        pair_rate=np.zeros((0, problem.n_types, 2)),
    )
    return AlikeJobs(one_of_each, unit[first], n_of_kind, kind.ravel())
