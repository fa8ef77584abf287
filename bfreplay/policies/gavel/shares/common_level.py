"""The linear program of max-min fairness and of makespan: raise the level that every job reaches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from bfreplay.policies.gavel.shares.alike_jobs import alike_jobs
from bfreplay.policies.gavel.shares.feasible_set import FeasibleSet, feasible_set, throughput_matrix
from bfreplay.policies.gavel.shares.linear_program import LinearProgram, Optimum
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares

NOTICEABLE = 1e-6
"""What a job may lack of the level, in parts of it, before it is given the rest."""


def highest_common_level(
    problem: ShareProblem, unit: NDArray[np.float64], *, with_pairs: bool, optimum: Optimum
) -> TimeShares:
    """Maximise z subject to ``th_i(X) >= z * unit_i`` for all i, X in the feasible set.

    Parameters
    ----------
    problem
        Rates and nodes.
    unit : (m,) float64
        Steps/s of each job at level 1. Jobs of unit 0, and jobs that can run nowhere, are left out: they hold back
        nobody.
    with_pairs
        Jobs may share nodes. (Without, jobs that are alike get the same shares.)
    optimum
        Which of equally good shares.

    Returns
    -------
    TimeShares
        With z as its objective; infinite where all jobs are left out.
    """
    if with_pairs and problem.n_pairs:
        feasible = feasible_set(problem, with_pairs=True)
        x, level = _raised(feasible, throughput_matrix(problem, with_pairs=True), unit, optimum)
        return feasible.time_shares(x, level)
    alike = alike_jobs(problem, unit)
    feasible = feasible_set(alike.problem, with_pairs=False, n_of_kind=alike.n_of_kind)
    x, level = _raised(feasible, throughput_matrix(alike.problem, with_pairs=False), alike.unit, optimum)
    of_kind = feasible.time_shares(x).share
    return TimeShares(of_kind[alike.kind], np.zeros((problem.n_pairs, problem.n_types)), level)


def _raised(
    feasible: FeasibleSet, throughput: csr_array, unit: NDArray[np.float64], optimum: Optimum
) -> tuple[NDArray[np.float64], float]:
    """Return columns of the highest level, and the level."""
    best = (throughput @ diags_array(feasible.upper)).max(axis=1).toarray().ravel()
    counts = np.flatnonzero((best > 0) & (unit > 0))
    if counts.size == 0:
        return np.zeros(feasible.n_columns), np.inf
    # the solver's tolerances are absolute: rows in parts of the job's best rate, the level in those of the neediest job
    need = unit[counts] / best[counts]
    most = need.max()
    relative = csr_array(diags_array(1 / best[counts]) @ throughput[counts])
    program = LinearProgram(
        feasible.n_columns + 1,
        np.append(np.zeros(feasible.n_columns), 1.0),
        0.0,
        np.append(feasible.upper, np.inf),
        maximise=True,
        optimum=optimum,
    )
    feasible.add_to(program)
    program.add_rows(hstack([relative, csr_array(-need[:, None] / most)], format="csr"), 0.0, np.inf)
    answer = program.solve().x
    x, level = answer[:-1], answer[-1] / most
    _give_what_tolerance_withholds(x, feasible, counts, relative, level * need)
    return x, float(level)


def _give_what_tolerance_withholds(
    x: NDArray[np.float64],
    feasible: FeasibleSet,
    job: NDArray[np.int64],
    relative: csr_array,
    needed: NDArray[np.float64],
) -> None:
    """Add to ``x`` what jobs lack whose whole need is of the size of the solver's tolerance.

    Such a job is all but done beside others that need a million times its time. With a share of 0 it would wait for
    nodes that nobody wants.
    """
    lacking = needed - relative @ x
    for k in np.flatnonzero(lacking > NOTICEABLE * needed):
        alone = slice(job[k] * feasible.n_types, (job[k] + 1) * feasible.n_types)
        rate = relative[[k], alone].toarray().ravel() * feasible.upper[alone]
        if rate.max() > 0:
            x[job[k] * feasible.n_types + rate.argmax()] += lacking[k] / rate.max()
