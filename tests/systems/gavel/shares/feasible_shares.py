"""Shares of time that no cluster could give are an error."""

import numpy as np

from bfreplay.systems.gavel.shares.share_problem import ShareProblem, TimeShares


def assert_feasible(shares: TimeShares, problem: ShareProblem, within: float = 1e-7) -> None:
    """Shares lie in [0, 1], nodes suffice, and no job runs more than all the time."""
    time = shares.share.sum(axis=1)
    nodes = problem.gang @ shares.share
    assert shares.share.shape == (problem.n_jobs, problem.n_types)
    assert shares.share.min() >= 0
    assert shares.share.max() <= 1
    if shares.pair_share.size:
        assert shares.pair_share.shape == (problem.n_pairs, problem.n_types)
        assert shares.pair_share.min() >= 0
        assert shares.pair_share.max() <= 1
        for member in (0, 1):
            np.add.at(time, problem.pair[:, member], shares.pair_share.sum(axis=1))
        nodes = nodes + problem.gang[problem.pair[:, 0]] @ shares.pair_share
    assert time.max() <= 1 + within
    assert (nodes <= problem.n_nodes + within).all()
