"""Fractions of time with the best worst finish-time fairness of all jobs.

The ratio of a job is (elapsed time + iterations left / (rate x fraction)) over its reference time; the largest is to be
as small as possible. Often the worst job has all the time that it can use, and others may have more than they need: the
best answer is then not unique, and decides the jobs that run. Hence the same cone program and the same solver as in the
published Themis: ECOS.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from bfreplay.milp.backends.backend import unmet

ECOS = ">=2.0.14,<3"
"""Versions of ecos, as in ``pyproject.toml``: the last one decides as the published runs."""

Floats = NDArray[np.float64]


def missing_solver() -> str:
    """Return which ECOS to install; empty for none."""
    return unmet("ecos", ECOS, why="others may run other jobs", fix="pip install 'bfreplay[themis]'")


def fair_fractions(
    elapsed_s: Floats, iterations: Floats, rates: Floats, isolated: Floats, gpus: Floats, n_gpus: int
) -> Floats:
    """Return the fractions of time that minimise the largest ratio, shape (J,), in [0, 1] up to rounding.

    Fractions times GPUs add up to at most the GPUs of the cluster. The unknowns of the cone program are the largest
    ratio, the fractions, and a divided time for each. With w = rate x fraction, the last is y >= 1 / w, written as
    norm(w - y, 2) <= w + y.

    Parameters
    ----------
    elapsed_s : (J,)
        Time since submission.
    iterations : (J,)
        Remaining iterations, more than 0.
    rates : (J,)
        Iterations per second on the requested GPUs.
    isolated : (J,)
        Reference time of the finish, more than 0.
    gpus : (J,)
        Requested GPUs.
    n_gpus
        GPUs of the cluster.
    """
    n_jobs = len(gpus)
    if n_jobs == 1:
        return np.ones(1)
    jobs = np.arange(n_jobs)
    fraction, inverse = 1 + jobs, 1 + n_jobs + jobs
    n_linear = 3 * n_jobs + 1
    rows = np.zeros((n_linear + 3 * n_jobs, 1 + 2 * n_jobs))
    bounds = np.zeros(len(rows))
    # each ratio is at most the largest
    rows[jobs, 0] = -1
    rows[jobs, inverse] = iterations / isolated
    bounds[jobs] = -elapsed_s / isolated
    # 0 <= fraction <= 1
    rows[n_jobs + jobs, fraction] = -1
    rows[2 * n_jobs + jobs, fraction] = 1
    bounds[2 * n_jobs + jobs] = 1
    # the GPUs of the cluster
    rows[3 * n_jobs, fraction] = gpus
    bounds[3 * n_jobs] = n_gpus
    # the cones
    cone = n_linear + 3 * jobs
    rows[cone, fraction] = rows[cone + 1, fraction] = -rates
    rows[cone, inverse] = -1
    rows[cone + 1, inverse] = 1
    bounds[cone + 2] = 2
    cost = np.zeros(1 + 2 * n_jobs)
    cost[0] = 1
    import ecos

    answer = ecos.solve(cost, csc_matrix(rows), bounds, {"l": n_linear, "q": [3] * n_jobs}, verbose=False)
    return np.asarray(answer["x"], dtype=np.float64)[fraction]
