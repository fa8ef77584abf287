"""Fractions of time that make the worst finish-time fairness of all jobs as good as it can be.

The ratio of a job is (elapsed time + iterations left / (rate x fraction)) over what it is measured by; the largest is
to be as small as possible. Often the worst job has all of the time that it can use, and others may have more than they
need: then the best answer is not unique, and which one it is decides which jobs run. Hence the same program as the
published Themis makes of it, and the same kind of method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bfreplay.systems.elasticflow.published.cone_program import ConeProgram, Floats, solve


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """Jobs that share GPUs; all arrays are of shape (J,).

    Parameters
    ----------
    elapsed_s
        Time since submission.
    iterations
        Those left, more than 0.
    rates
        Iterations per second on the GPUs that it asked for.
    isolated
        What the time to the finish is measured by, more than 0.
    gpus
        GPUs asked for.
    n_gpus
        GPUs of the cluster.
    """

    elapsed_s: Floats
    iterations: Floats
    rates: Floats
    isolated: Floats
    gpus: Floats
    n_gpus: int


def fair_fractions(claims: Claims) -> Floats:
    """Fractions of time, shape (J,), in [0, 1] but for rounding, that minimise the largest ratio.

    Fractions, each times the GPUs of its job, add up to the GPUs of the cluster at most.
    """
    n_jobs = len(claims.gpus)
    if n_jobs == 1:
        return np.ones(1)
    return solve(_program(claims))[1 : 1 + n_jobs]


def _program(claims: Claims) -> ConeProgram:
    """Cone program whose unknowns are the largest ratio, the fractions, and for each the time it is divided by.

    With rate x fraction called w, the last is y >= 1 / w, written as norm(w - y, 2) <= w + y.
    """
    n_jobs = len(claims.gpus)
    jobs = np.arange(n_jobs)
    fraction, inverse = 1 + jobs, 1 + n_jobs + jobs
    n_linear = 3 * n_jobs + 1
    rows = np.zeros((n_linear + 3 * n_jobs, 1 + 2 * n_jobs))
    bounds = np.zeros(len(rows))
    # each ratio is at most the largest
    rows[jobs, 0] = -1
    rows[jobs, inverse] = claims.iterations / claims.isolated
    bounds[jobs] = -claims.elapsed_s / claims.isolated
    # 0 <= fraction <= 1
    rows[n_jobs + jobs, fraction] = -1
    rows[2 * n_jobs + jobs, fraction] = 1
    bounds[2 * n_jobs + jobs] = 1
    # the GPUs of the cluster
    rows[3 * n_jobs, fraction] = claims.gpus
    bounds[3 * n_jobs] = claims.n_gpus
    # the cones
    cone = n_linear + 3 * jobs
    rows[cone, fraction] = rows[cone + 1, fraction] = -claims.rates
    rows[cone, inverse] = -1
    rows[cone + 1, inverse] = 1
    bounds[cone + 2] = 2
    cost = np.zeros(1 + 2 * n_jobs)
    cost[0] = 1
    return ConeProgram(cost, rows, bounds, n_linear)
