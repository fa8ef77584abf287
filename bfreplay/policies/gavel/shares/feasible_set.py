"""The shares that nodes and time allow, as rows of a linear program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bfreplay.policies.gavel.shares.linear_program import LinearProgram
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares


@dataclass(frozen=True, slots=True, eq=False)
class FeasibleSet:
    """All shares X >= 0 for which nodes suffice and no job runs more than all the time (Gavel, OSDI'20, eqs. 1-3).

    One column for each entry and node type: entry 0 to m - 1 is a job alone, entry m + k is pair k; the column is
    ``entry * n + type``. A pair takes the nodes of one of its jobs, and the time of both.

    Parameters
    ----------
    n_jobs, n_types, n_pairs
        m, n, and p: 0 where pairs do not count.
    n_known_pairs
        Pairs of the problem, whether they count or not.
    capacity : (n, (m + p) n)
        Nodes that are taken, by type.
    n_nodes : (n,) float64
        Nodes that there are.
    time : (m, (m + p) n)
        Share of time of each job, alone and in pairs.
    upper : ((m + p) n,) float64
        Bounds of the columns: 1; 0 on types without a node, and where sharing gains nothing, see ``gains_by_sharing``.
    """

    n_jobs: int
    n_types: int
    n_pairs: int
    n_known_pairs: int
    capacity: csr_array
    n_nodes: NDArray[np.float64]
    time: csr_array
    upper: NDArray[np.float64]

    @property
    def n_columns(self) -> int:
        """(m + p) n."""
        return (self.n_jobs + self.n_pairs) * self.n_types

    def add_to(self, program: LinearProgram) -> None:
        """Add the rows of nodes, then those of time. The program's first columns are those of this set."""
        program.add_rows(self.capacity, -np.inf, self.n_nodes)
        program.add_rows(self.time, -np.inf, 1.0)

    def time_shares(self, x: NDArray[np.float64], objective: float = float("nan")) -> TimeShares:
        """Shares from the first columns ``x`` of an answer, clipped to [0, 1]."""
        entry_share = np.clip(x[: self.n_columns], 0.0, 1.0).reshape(-1, self.n_types)
        pair_share = entry_share[self.n_jobs :] if self.n_pairs else np.zeros((self.n_known_pairs, self.n_types))
        return TimeShares(entry_share[: self.n_jobs], pair_share, objective)


def feasible_set(problem: ShareProblem, *, with_pairs: bool, n_of_kind: NDArray[np.int64] | None = None) -> FeasibleSet:
    """Rows and bounds for the jobs of ``problem``, alone or ``with_pairs``.

    Each job may stand for ``n_of_kind`` (m,) that get the same share, where there are no pairs.
    """
    m, n = problem.n_jobs, problem.n_types
    p = problem.n_pairs if with_pairs else 0
    pair = problem.pair[:p]
    taken = problem.gang if n_of_kind is None else problem.gang * n_of_kind
    entry_gang = np.concatenate([taken, taken[pair[:, 0]]]).astype(np.float64)
    n_entries = m + p
    capacity = csr_array(
        (
            np.tile(entry_gang, n),
            (np.arange(n)[:, None] + n * np.arange(n_entries)).ravel(),
            n_entries * np.arange(n + 1),
        ),
        shape=(n, n_entries * n),
    )
    time = _by_job(problem, np.ones((m, n)), np.ones((p, n, 2)), p)
    upper = np.tile((problem.n_nodes > 0).astype(np.float64), (n_entries, 1))
    if p:
        upper[m:] *= gains_by_sharing(problem)
    return FeasibleSet(m, n, p, problem.n_pairs, capacity, problem.n_nodes.astype(np.float64), time, upper.ravel())


def gains_by_sharing(problem: ShareProblem) -> NDArray[np.bool_]:
    """(p, n): both run when they share nodes of a type, and get more done than by taking turns on them.

    Alone for r_a / T_a of the time and then r_b / T_b of it, with r their rates together and T those alone, two jobs
    do what they do together. Where that takes no longer, shares with this pair are never needed for an optimum of any
    policy that wants throughput only.
    """
    together = problem.pair_rate
    alone = problem.rate[problem.pair].transpose(0, 2, 1)
    turns = np.divide(together, alone, out=np.full(together.shape, np.inf), where=alone > 0)
    gains: NDArray[np.bool_] = (together > 0).all(axis=2) & (turns.sum(axis=2) > 1)
    return gains


def throughput_matrix(problem: ShareProblem, *, with_pairs: bool, rate: NDArray[np.float64] | None = None) -> csr_array:
    """(m, (m + p) n): steps/s of each job by the columns of the feasible set (``T_i,k,j``).

    Parameters
    ----------
    problem
        Its rates.
    with_pairs
        Pairs have columns.
    rate : (m, n) float64
        Of jobs alone, in place of the problem's.
    """
    p = problem.n_pairs if with_pairs else 0
    return _by_job(problem, problem.rate if rate is None else rate, problem.pair_rate[:p], p)


def _by_job(
    problem: ShareProblem, single: NDArray[np.float64], in_pair: NDArray[np.float64], n_pairs: int
) -> csr_array:
    """Rows of the jobs: ``single`` (m, n) in the columns of each alone, ``in_pair`` (p, n, 2) in those of its pairs."""
    m, n = problem.n_jobs, problem.n_types
    columns = np.arange((m + n_pairs) * n)
    if n_pairs == 0:
        return csr_array((single.ravel(), columns, n * np.arange(m + 1)), shape=(m, m * n))
    of_pairs = columns[m * n :]
    value = np.concatenate([single.ravel(), in_pair[:, :, 0].ravel(), in_pair[:, :, 1].ravel()])
    row = np.repeat(np.concatenate([np.arange(m), problem.pair[:, 0], problem.pair[:, 1]]), n)
    column = np.concatenate([columns[: m * n], of_pairs, of_pairs])
    return csr_array((value, (row, column)), shape=(m, (m + n_pairs) * n))
