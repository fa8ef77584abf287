"""Problems and answers of Gavel's policies, and policies in variants by their knowledge of node types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ShareProblem:
    """Problem of m jobs, n node types, and p pairs of jobs that may share nodes (Gavel, OSDI'20, section 3).

    Parameters
    ----------
    job : (m,) int64
        Number of each job, increasing: jobs are in order of arrival.
    type_names
        n names in alphabetical order.
    n_nodes : (n,) int64
        Nodes of each type (``c_j``).
    gang : (m,) int64
        Nodes that a job uses at once (``s_i``).
    rate : (m, n) float64
        Steps/s of a job on ``gang`` nodes of a type (``T_ij``); 0 where it cannot run.
    weight : (m,) float64
        Priority (``w_i``), > 0.
    steps_left : (m,) float64
        Remaining steps (``N_i``).
    age_s : (m,) float64
        Seconds since arrival (``t_i``).
    to_deadline_s : (m,) float64
        Seconds from now to the deadline; negative when it is past, inf for a job without one.
    price_per_hour : (n,) float64
        Price of one node of a type.
    pair : (p, 2) int64
        Rows ``a < b`` of jobs with equal gangs that may share nodes; sorted, unique. None for policies without packing.
    pair_rate : (p, n, 2) float64
        Steps/s of ``a`` and of ``b`` when they share nodes of a type; zeros where they cannot.
    """

    job: NDArray[np.int64]
    type_names: tuple[str, ...]
    n_nodes: NDArray[np.int64]
    gang: NDArray[np.int64]
    rate: NDArray[np.float64]
    weight: NDArray[np.float64]
    steps_left: NDArray[np.float64]
    age_s: NDArray[np.float64]
    to_deadline_s: NDArray[np.float64]
    price_per_hour: NDArray[np.float64]
    pair: NDArray[np.int64] = field(default_factory=lambda: NO_PAIRS)
    pair_rate: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0, 2)))

    @property
    def n_jobs(self) -> int:
        """Number m of jobs."""
        return int(self.job.shape[0])

    @property
    def n_types(self) -> int:
        """Number n of node types."""
        return len(self.type_names)

    @property
    def n_pairs(self) -> int:
        """Number p of pairs."""
        return int(self.pair.shape[0])

    def of_jobs(self, rows: NDArray[np.int64]) -> ShareProblem:
        """Return the problem of the jobs in these rows, without pairs."""
        by_job = ("job", "gang", "rate", "weight", "steps_left", "age_s", "to_deadline_s")
        columns: Any = {name: getattr(self, name)[rows] for name in by_job}
        return replace(self, **columns, pair=NO_PAIRS, pair_rate=np.zeros((0, self.n_types, 2)))


@dataclass(frozen=True, slots=True, eq=False)
class TimeShares:
    """Shares of wall-clock time (``X``) until the next recomputation.

    Parameters
    ----------
    share : (m, n) float64
        Share of each job alone on each node type, within [0, 1].
    pair_share : (p, n) float64
        Share of each pair of the problem; empty if none has any.
    objective
        Objective of the policy at this answer; NaN for one that follows a rule.
    deadlines_dropped
        Whether deadlines were ignored because not all could be met.
    """

    share: NDArray[np.float64]
    pair_share: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    objective: float = float("nan")
    deadlines_dropped: bool = False

    def throughput(self, problem: ShareProblem) -> NDArray[np.float64]:
        """Return the steps/s of each job under these shares, alone and in pairs together (``th_i``), (m,)."""
        total: NDArray[np.float64] = (problem.rate * self.share).sum(axis=1)
        for member in (0, 1):
            if self.pair_share.size:
                pair_throughput = (problem.pair_rate[:, :, member] * self.pair_share).sum(axis=1)
                np.add.at(total, problem.pair[:, member], pair_throughput)
        return total


class SharePolicy(ABC):
    """Policy that computes shares of time; one object serves a whole replay and may have memory."""

    uses_pairs: bool = False
    """Jobs may share nodes: its problems need ``pair`` and ``pair_rate``."""

    runs_only_its_own: bool = False
    """Jobs without a share never run, even on nodes that would stay empty (the FIFO policies)."""

    looks_at_work: bool = False
    """It needs the remaining steps: all jobs must have an end."""

    shuffles_types: bool = False
    """It ignores node types: rounds fill them in random order."""

    takes_single_nodes: bool = False
    """Every job must run on one node."""

    @abstractmethod
    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return shares for the jobs of ``problem``, of which there is at least one."""

    def forget(self) -> None:  # noqa: B027
        """Clear the memory for a new replay; by default there is none."""


class PairRows:
    """Rows of ``problem.pair`` by its two jobs.

    Parameters
    ----------
    problem
        Problem, whose pairs are sorted.
    """

    def __init__(self, problem: ShareProblem) -> None:
        self._n_jobs = problem.n_jobs
        self._key = problem.pair[:, 0] * self._n_jobs + problem.pair[:, 1]

    def of(self, first: NDArray[np.int64] | int, second: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """Return the row of each pair of positions, in either order; -1 where the problem has no such pair."""
        pair_key = np.minimum(first, second) * self._n_jobs + np.maximum(first, second)
        if not len(self._key):
            return np.full(np.shape(pair_key), -1, dtype=np.int64)
        row = np.minimum(np.searchsorted(self._key, pair_key), len(self._key) - 1)
        return np.where(self._key[row] == pair_key, row, -1).astype(np.int64)


def relative_rates(problem: ShareProblem, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the rates in these pairs as fractions of the rate alone, (r, n, 2); 0 where a job cannot run alone."""
    alone = problem.rate[problem.pair[rows]].transpose(0, 2, 1)
    return np.divide(problem.pair_rate[rows], alone, out=np.zeros_like(alone), where=alone > 0)


Variant = Literal["agnostic", "perf", "packed"]
"""The same optimisation with rates that ignore types, with true ones, and with pairs that share nodes."""

USUAL_REFERENCE = "v100"
"""Node type whose rates Gavel takes for all types."""


def reference_rate(problem: ShareProblem) -> NDArray[np.float64]:
    """Return the rate of each job on one type, which an agnostic policy takes for all types, (m,).

    The type is v100, as in Gavel; on a cluster without any, the type on which jobs come nearest to their best rates on
    average (the first in alphabetical order if equal). A job that cannot run on that type counts with its best rate.
    """
    best = problem.rate.max(axis=1)
    if USUAL_REFERENCE in problem.type_names:
        column = problem.type_names.index(USUAL_REFERENCE)
    else:
        relative = np.divide(problem.rate, best[:, None], out=np.zeros_like(problem.rate), where=best[:, None] > 0)
        column = int(relative.sum(axis=0).argmax())
    return np.where(problem.rate[:, column] > 0, problem.rate[:, column], best)


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


def split_over_types(shares: TimeShares, problem: ShareProblem) -> TimeShares:
    """Split the time on the pool over the types of ``problem`` like their nodes: it favours none of them."""
    split = problem.n_nodes / max(int(problem.n_nodes.sum()), 1)
    return TimeShares(shares.share * split, objective=shares.objective)


class VariantPolicy(SharePolicy):
    """Policy in three variants; the agnostic one has one type of node, and splits a job's time like the cluster.

    Parameters
    ----------
    variant
        ``agnostic``, ``perf`` or ``packed``.
    """

    def __init__(self, variant: Variant) -> None:
        self.uses_pairs = variant == "packed"
        self.shuffles_types = variant == "agnostic"

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return optimal shares, with the optimum as their objective."""
        if self.shuffles_types:
            return split_over_types(self._shares(pool_types(problem, self._believed_rate(problem))), problem)
        return self._shares(problem)

    @abstractmethod
    def _shares(self, problem: ShareProblem) -> TimeShares:
        """Return optimal shares of ``problem`` itself."""

    def _believed_rate(self, problem: ShareProblem) -> NDArray[np.float64]:
        """Return the steps/s that the agnostic variant assumes, (m,): every rate is 1."""
        return np.ones(problem.n_jobs)
