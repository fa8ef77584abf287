"""Shares of AlloX, and the metrics of the published program."""

import numpy as np

from bfreplay.systems.gavel.shares.share_problem import ShareProblem
from bfreplay.systems.shockwave.published_jobs import unfair_percent
from bfreplay.systems.shockwave.shares import GangAlloX


def test_allox_looks_at_the_oldest_jobs_only():
    """Ten wait, in order of arrival, for one node: of the two oldest, the shorter; the rest are shorter still."""
    n = 10
    problem = ShareProblem(
        np.arange(n),
        ("v100",),
        np.array([1]),
        np.ones(n, np.int64),
        np.ones((n, 1)),
        np.ones(n),
        np.arange(1000.0, 0.0, -100.0),
        np.arange(n, 0.0, -1.0),
        np.full(n, np.inf),
        np.ones(1),
    )
    assert np.flatnonzero(GangAlloX().shares(problem).share[:, 0]).tolist() == [1]


def test_a_job_is_unfair_above_the_limit():
    assert unfair_percent(np.array([1.0, 1.05, 1.05001, 2.0])) == 50.0
