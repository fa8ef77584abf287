"""Shares that follow a rule, and the throughputs under them: the units of other policies."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from bfreplay.systems.gavel.shares.share_problem import PairRows, SharePolicy, ShareProblem, TimeShares, relative_rates


def proportional_shares(problem: ShareProblem) -> NDArray[np.float64]:
    """Return shares with the time of each job split over types like the cluster, ``c_j / C``, (m, n)."""
    split = problem.n_nodes / max(1, problem.n_nodes.sum())
    return np.repeat(split[None, :], problem.n_jobs, axis=0)


def isolated_shares(problem: ShareProblem) -> NDArray[np.float64]:
    """Return shares with the nodes of each type split evenly among jobs, ``c_j / (m s_i)``, sum at most 1, (m, n)."""
    even_share = problem.n_nodes[None, :] / (problem.n_jobs * problem.gang[:, None])
    at_most_one: NDArray[np.float64] = even_share / np.maximum(1.0, even_share.sum(axis=1, keepdims=True))
    return at_most_one


def proportional_throughput(problem: ShareProblem) -> NDArray[np.float64]:
    """Return the steps/s under ``proportional_shares`` (``p_i``), (m,)."""
    total: NDArray[np.float64] = (problem.rate * proportional_shares(problem)).sum(axis=1)
    return total


def isolated_throughput(problem: ShareProblem) -> NDArray[np.float64]:
    """Return the steps/s under ``isolated_shares`` (``iso_i``), (m,)."""
    total: NDArray[np.float64] = (problem.rate * isolated_shares(problem)).sum(axis=1)
    return total


def best_throughput(problem: ShareProblem, *, with_pairs: bool) -> NDArray[np.float64]:
    """Return an upper bound of steps/s, (m,): all the time on a job's best types, as far as nodes suffice.

    On a type with fewer nodes than its gang a job can have ``c_j / s_i`` of the time. With pairs each type counts with
    the best rate alone or beside any other job, so the bound may not be attainable.
    """
    rate = problem.rate.copy()
    if with_pairs:
        for member in (0, 1):
            np.maximum.at(rate, problem.pair[:, member], problem.pair_rate[:, :, member])
    order = np.argsort(-rate, axis=1, kind="stable")
    most_time = np.minimum(1.0, problem.n_nodes / problem.gang[:, None])
    time_so_far = np.minimum(np.take_along_axis(most_time, order, axis=1).cumsum(axis=1), 1.0)
    time_on_type = np.diff(time_so_far, axis=1, prepend=0.0)
    throughput: NDArray[np.float64] = (np.take_along_axis(rate, order, axis=1) * time_on_type).sum(axis=1)
    return throughput


class Isolated(SharePolicy):
    """Each job gets its part of every type, as if alone on ``1/m`` of the cluster: ``c_j / (m s_i)``."""

    shuffles_types = True

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return ``isolated_shares``."""
        return TimeShares(isolated_shares(problem))


class Proportional(SharePolicy):
    """Each job's time is split over types like the cluster, ``c_j / C``: oversubscribed with many jobs."""

    shuffles_types = True

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return ``proportional_shares``."""
        return TimeShares(proportional_shares(problem))


WORTH_SHARING = 1.0


class Gandiva(SharePolicy):
    """``gandiva`` of Gavel: every job or pair gets an equal part of the cluster, of each type the same.

    While all gangs together fit on the nodes, all jobs run alone. Otherwise two of the jobs without a partner are
    drawn, as often as there are such jobs, and become a pair if their gangs are equal (and the problem has this pair);
    the rest run alone. A pair lasts until one of the two leaves, or until the sum over both jobs and
    all node types of the rate together, as a fraction of the rate alone, is below 1, or one of these rates is 0.
    Types without a node do not count, and where no type has one, every pair stays. A pair is first judged at the
    recomputation after its draw.

    With K jobs and pairs that run, one of gang s gets ``c_j / (K s)`` of its time on type j, or less where that adds
    up to more than all its time.

    Parameters
    ----------
    seed
        Seed of the draws.
    """

    uses_pairs = True

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.forget()

    def forget(self) -> None:
        """Split all pairs and restart the draws."""
        # numbers of two jobs, the earlier first, in the order of the draws
        self._pairs: list[tuple[int, int]] = []
        self._random = random.Random(self.seed)

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return equal parts."""
        position = {number: index for index, number in enumerate(problem.job.tolist())}
        pair_rows = PairRows(problem)
        self._pairs = [pair for pair in self._pairs if pair[0] in position and pair[1] in position]
        self._pairs = [pair for pair, good in zip(self._pairs, self._is_good(problem, pair_rows), strict=True) if good]
        share = np.zeros((problem.n_jobs, problem.n_types))
        pair_share = np.zeros((problem.n_pairs, problem.n_types))
        if problem.gang.sum() <= problem.n_nodes.sum():
            share[:] = _equal_parts(problem, problem.n_jobs, problem.gang)
            return TimeShares(share, pair_share)
        in_pairs = {number for pair in self._pairs for number in pair}
        singles = self._draw(
            [index for number, index in position.items() if number not in in_pairs], problem, pair_rows
        )
        pair_row = self._rows(problem, pair_rows)
        n_parts = len(singles) + len(pair_row)
        share[singles] = _equal_parts(problem, n_parts, problem.gang[singles])
        pair_share[pair_row] = _equal_parts(problem, n_parts, problem.gang[problem.pair[pair_row, 0]])
        return TimeShares(share, pair_share)

    def _draw(self, singles: list[int], problem: ShareProblem, pair_rows: PairRows) -> list[int]:
        """Add pairs of these positions; return the positions without a partner."""
        for _ in range(len(singles)):
            if len(singles) < 2:
                break
            first_job, second_job = sorted(self._random.sample(singles, 2))
            if problem.gang[first_job] == problem.gang[second_job] and pair_rows.of(first_job, second_job) >= 0:
                self._pairs.append((int(problem.job[first_job]), int(problem.job[second_job])))
                singles.remove(first_job)
                singles.remove(second_job)
        return singles

    def _rows(self, problem: ShareProblem, pair_rows: PairRows) -> NDArray[np.int64]:
        """Return the rows of the pairs, all of which are present."""
        numbers = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        member = np.searchsorted(problem.job, numbers)
        return pair_rows.of(member[:, 0], member[:, 1])

    def _is_good(self, problem: ShareProblem, pair_rows: PairRows) -> NDArray[np.bool_]:
        """Return whether each pair is worth keeping."""
        pair_row = self._rows(problem, pair_rows)
        exists = problem.n_nodes > 0
        if not exists.any():
            return pair_row >= 0
        is_good = np.zeros(len(pair_row), dtype=np.bool_)
        relative = relative_rates(problem, pair_row[pair_row >= 0])[:, exists]
        is_good[pair_row >= 0] = (relative > 0).all(axis=(1, 2)) & (relative.sum(axis=(1, 2)) >= WORTH_SHARING)
        return is_good


def _equal_parts(problem: ShareProblem, n_parts: int, gang: NDArray[np.int64]) -> NDArray[np.float64]:
    time_share = (problem.n_nodes / n_parts)[None, :] / gang[:, None]
    limited_share: NDArray[np.float64] = time_share / np.maximum(time_share.sum(axis=1), 1.0)[:, None]
    return limited_share
