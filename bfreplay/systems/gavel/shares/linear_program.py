"""Linear programs of Gavel's policies: an optimum by HiGHS, the shares that nodes and time allow, levels in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array, hstack, vstack

from bfreplay.errors import BfreplayError, InputError, SolverUnavailableError
from bfreplay.milp.linear_program import HighsProgram, missing_highspy, to_size
from bfreplay.systems.gavel.shares.share_problem import ShareProblem, TimeShares

TOLERANCE = 1e-9
"""Tolerance of rows, bounds and reduced costs. HiGHS's 1e-7 is too coarse for shares compared to 1e-7."""

Optimum = Literal["central", "vertex"]
"""Choice among optimal answers: one amid them, by an interior-point method, or a corner, by the simplex method.

Amid them, columns that no row limits are above their bounds, as with Gavel's own solver. A corner has the fewest
columns above their bounds, and a program that is changed and solved again starts from it.
"""

STATUSES: dict[str, Literal["optimal", "infeasible", "unbounded"]] = {
    "kOptimal": "optimal",
    "kModelEmpty": "optimal",
    "kInfeasible": "infeasible",
    "kUnbounded": "unbounded",
}
"""HiGHS's model statuses that are answers; any other is a failure."""

METHODS: dict[Optimum, str] = {"central": "ipm", "vertex": "simplex"}
"""HiGHS's option ``solver`` for each optimum."""

SLACKS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8)
"""Slack of a job's level, relative to its best rate, where rounding makes levels reached before infeasible: the first
value that suffices, 0 if possible, as the slack of all jobs can raise one of them by far more than itself, at the cost
of the others."""

ROUNDING = 1e-9
"""Dual values that count as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearAnswer:
    """Answer of a linear program.

    Parameters
    ----------
    status
        Status of the program, proven.
    x : (n,) float64
        An optimal answer, on its bounds where it is nearer to them than ``TOLERANCE``; NaN if there is none.
    objective
        Objective at ``x``; NaN without ``x``.
    row_dual : (r,) float64
        Growth of the objective for one unit more of a row's binding bound; NaN without ``x``.
    """

    status: Literal["optimal", "infeasible", "unbounded"]
    x: NDArray[np.float64]
    objective: float
    row_dual: NDArray[np.float64]


class LinearProgram(HighsProgram):
    """Maximise or minimise ``cost @ x`` over ``lower <= x <= upper`` and rows ``row_lower <= A x <= row_upper``.

    One thread: the same calls give the same answer. Rows, bounds and coefficients may be changed between solves; for a
    vertex, each solve but the first starts from the last basis.

    Parameters
    ----------
    n_columns
        n.
    cost : (n,) float64
        Coefficients of the objective.
    lower, upper
        (n,) each, or one number for all columns; infinities for no bound.
    maximise
        The sense.
    optimum
        Choice among optimal answers.

    Raises
    ------
    SolverUnavailableError
        No version of HiGHS that is known to be sound is installed.
    InputError
        By this or a change: a number that HiGHS refuses, such as a coefficient that is infinite.
    """

    def __init__(
        self,
        n_columns: int,
        cost: ArrayLike,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        *,
        maximise: bool,
        optimum: Optimum = "vertex",
    ) -> None:
        if _missing():
            raise SolverUnavailableError(f"Gavel's policies that optimise need HiGHS: {_missing()}")
        super().__init__(
            maximise=maximise,
            random_seed=0,
            # presolve removes little here, and the rest has another middle
            presolve="off",
            run_crossover="off",
            ipm_optimality_tolerance=1e-12,
            primal_feasibility_tolerance=TOLERANCE,
            dual_feasibility_tolerance=TOLERANCE,
        )
        self._method = METHODS[optimum]
        self._lower, self._upper = to_size(lower, n_columns), to_size(upper, n_columns)
        self.add_columns(to_size(cost, n_columns), (self._lower, self._upper))

    def change_bounds(self, lower: ArrayLike, upper: ArrayLike) -> None:
        """Set the bounds of all columns: (n,) each, or one number for all."""
        self._lower, self._upper = to_size(lower, self._lower.size), to_size(upper, self._lower.size)
        self.change_columns(self._lower, self._upper)

    def solve(self) -> LinearAnswer:
        """Return the optimum, or a status without an answer.

        Raises
        ------
        BfreplayError
            HiGHS reached no conclusion; the message gives its status.
        """
        outcome = self.run(self._method)
        if outcome not in STATUSES:
            # the interior-point method may end undecided, and so may a warm start: solve by simplex from scratch
            self.forget_basis()
            outcome = self.run("simplex")
        if outcome not in STATUSES:
            raise BfreplayError(f"HiGHS could not solve a linear program of Gavel's policies: status {outcome}")
        status = STATUSES[outcome]
        if status != "optimal":
            return LinearAnswer(status, np.full(self._lower.size, np.nan), np.nan, np.full(self.n_rows, np.nan))
        solution = self.column_values()
        solution = np.where(solution - self._lower < TOLERANCE, self._lower, solution)
        solution = np.where(self._upper - solution < TOLERANCE, self._upper, solution)
        return LinearAnswer(status, solution, float(self.info.objective_function_value), self.row_duals())

    def _check(self, status: Any) -> None:
        try:
            super()._check(status)
        except ValueError as error:
            raise InputError(
                "the policy's linear program has numbers that HiGHS refuses",
                expected="rates, work and weights of jobs within some fifteen powers of ten",
                fix="correct those that are too small or too large to be real",
            ) from error


@cache
def _missing() -> str:
    return missing_highspy()


@dataclass(frozen=True, slots=True, eq=False)
class FeasibleSet:
    """Shares X >= 0 for which nodes suffice and no job runs more than all the time (Gavel, OSDI'20, eqs. 1-3).

    One column for each entry and node type: entry 0 to m - 1 is a job alone, entry m + k is pair k; the column is
    ``entry * n + type``. A pair takes the nodes of one of its jobs, and the time of both.

    Parameters
    ----------
    n_jobs, n_types, n_pairs
        m, n, and p: 0 where pairs do not count.
    capacity : (n, (m + p) n)
        Nodes in use, by type.
    n_nodes : (n,) float64
        Nodes of each type.
    time : (m, (m + p) n)
        Share of time of each job, alone and in pairs.
    throughput : (m, (m + p) n)
        Steps/s of each job (``T_i,k,j``).
    upper : ((m + p) n,) float64
        Bounds of the columns: 1; 0 on types without a node, and where sharing gains nothing, see ``gains_by_sharing``.
    """

    n_jobs: int
    n_types: int
    n_pairs: int
    capacity: csr_array
    n_nodes: NDArray[np.float64]
    time: csr_array
    throughput: csr_array
    upper: NDArray[np.float64]

    @property
    def n_columns(self) -> int:
        """Number of columns, (m + p) n."""
        return (self.n_jobs + self.n_pairs) * self.n_types

    def add_to(self, program: LinearProgram) -> None:
        """Add the rows of nodes, then those of time. The program's first columns are those of this set."""
        program.add_rows(self.capacity, -np.inf, self.n_nodes)
        program.add_rows(self.time, -np.inf, 1.0)

    def time_shares(self, solution: NDArray[np.float64], objective: float = float("nan")) -> TimeShares:
        """Return the shares in the first columns ``solution`` of an answer, clipped to [0, 1]."""
        entry_share = np.clip(solution[: self.n_columns], 0.0, 1.0).reshape(-1, self.n_types)
        return TimeShares(entry_share[: self.n_jobs], entry_share[self.n_jobs :], objective)


def feasible_set(problem: ShareProblem, *, with_pairs: bool, n_of_kind: NDArray[np.int64] | None = None) -> FeasibleSet:
    """Return rows and bounds for the jobs of ``problem``, alone or ``with_pairs``.

    Each job may stand for ``n_of_kind`` (m,) that get the same share, where there are no pairs.
    """
    n_jobs, n_types = problem.n_jobs, problem.n_types
    n_pairs = problem.n_pairs if with_pairs else 0
    pairs = problem.pair[:n_pairs]
    nodes_taken = problem.gang if n_of_kind is None else problem.gang * n_of_kind
    entry_gang = np.concatenate([nodes_taken, nodes_taken[pairs[:, 0]]]).astype(np.float64)
    n_entries = n_jobs + n_pairs
    column = (np.arange(n_types)[:, None] + n_types * np.arange(n_entries)).ravel()
    start = n_entries * np.arange(n_types + 1)
    capacity = csr_array((np.tile(entry_gang, n_types), column, start), shape=(n_types, n_entries * n_types))
    time = _by_job(problem, np.ones((n_jobs, n_types)), np.ones((n_pairs, n_types, 2)))
    throughput = _by_job(problem, problem.rate, problem.pair_rate[:n_pairs])
    upper = np.tile((problem.n_nodes > 0).astype(np.float64), (n_entries, 1))
    if n_pairs:
        upper[n_jobs:] *= gains_by_sharing(problem)
    n_nodes = problem.n_nodes.astype(np.float64)
    return FeasibleSet(n_jobs, n_types, n_pairs, capacity, n_nodes, time, throughput, upper.ravel())


def gains_by_sharing(problem: ShareProblem) -> NDArray[np.bool_]:
    """Return whether two jobs that share nodes of a type both run and do more than by taking turns, (p, n).

    With rates r together and T alone, one job alone for r_a / T_a of the time and then the other for r_b / T_b of it do
    as much as together. Where that takes no longer, no policy that depends on throughput only needs this pair.
    """
    together = problem.pair_rate
    alone = problem.rate[problem.pair].transpose(0, 2, 1)
    turns = np.divide(together, alone, out=np.full(together.shape, np.inf), where=alone > 0)
    gains: NDArray[np.bool_] = (together > 0).all(axis=2) & (turns.sum(axis=2) > 1)
    return gains


def _by_job(problem: ShareProblem, single: NDArray[np.float64], in_pair: NDArray[np.float64]) -> csr_array:
    """Return rows of the jobs: ``single`` (m, n) in columns of jobs alone, ``in_pair`` (p, n, 2) in those of pairs."""
    n_jobs, n_types, n_pairs = problem.n_jobs, problem.n_types, in_pair.shape[0]
    columns = np.arange((n_jobs + n_pairs) * n_types)
    of_pairs = columns[n_jobs * n_types :]
    entry_value = np.concatenate([single.ravel(), in_pair[:, :, 0].ravel(), in_pair[:, :, 1].ravel()])
    pair = problem.pair[:n_pairs]
    entry_row = np.repeat(np.concatenate([np.arange(n_jobs), pair[:, 0], pair[:, 1]]), n_types)
    entry_column = np.concatenate([columns[: n_jobs * n_types], of_pairs, of_pairs])
    return csr_array((entry_value, (entry_row, entry_column)), shape=(n_jobs, (n_jobs + n_pairs) * n_types))


class LevelProgram:
    """Linear program for the largest step of all levels from a feasible point towards a target.

    Parameters
    ----------
    feasible
        B, with c columns.
    height : (m, c)
        Level of each job by column.
    """

    def __init__(self, feasible: FeasibleSet, height: csr_array) -> None:
        self._n_columns = feasible.n_columns
        self._n_jobs = int(height.shape[0])
        cost = np.append(np.zeros(feasible.n_columns), 1.0)
        self._upper = np.append(feasible.upper, 1.0)
        self._program = LinearProgram(feasible.n_columns + 1, cost, 0.0, self._upper, maximise=True)
        feasible.add_to(self._program)
        # rows are relative to the job's best column, so that all have the same scale
        best_height = height.max(axis=1).toarray().ravel()
        self._scale = np.where(best_height > 0, best_height, 1.0)
        self._climb = np.ones(self._n_jobs)
        self._height = (diags_array(1 / self._scale) @ height).tocsr()
        rows = hstack([self._height, csr_array(-self._climb[:, None])], format="csr")
        self._first = self._program.add_rows(rows, 0.0, np.inf)
        self._by_column = vstack([feasible.capacity, feasible.time, self._height]).T.tocsr()
        self._runs_in = (self._height > 0).astype(np.int64)
        self.x = np.zeros(feasible.n_columns)

    def rise(self, level: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[float, NDArray[np.bool_]]:
        """Return the part of the straight way from ``level`` to ``target`` that all jobs can go, and which are stuck.

        ``x`` becomes the shares at that point.

        Parameters
        ----------
        level : (m,) float64
            Feasible levels, reached by ``x``.
        target : (m,) float64
            Levels that are no lower.

        Returns
        -------
        portion
            Part of the way; exactly 1 where the target can be reached.
        stuck : (m,) bool
            Jobs at the same level in every optimum, which can rise no further, by the dual (complementary slackness): a
            rising job whose row has a non-zero dual value, and one that gets nothing because each column in which it
            runs has a non-zero reduced cost. Some may be missed, but where ``portion`` is below 1 a rising one is
            found.

        Raises
        ------
        BfreplayError
            ``level`` cannot be reached.
        """
        climb = (target - level) / self._scale
        # HiGHS takes coefficients below 1e-9 for 0
        largest_climb = float(climb.max()) or 1.0
        climb = climb / largest_climb
        for job_row in np.flatnonzero(climb != self._climb):
            self._program.change_coefficient(self._first + int(job_row), self._n_columns, -float(climb[job_row]))
        self._climb = climb
        self._upper[-1] = largest_climb
        self._program.change_bounds(0.0, self._upper)
        base_level = level / self._scale
        answer = self._solve(base_level)
        if answer.status != "optimal":
            start = np.minimum(base_level, self._height @ self.x)
            answer = next(
                (trial for trial in (self._solve(start - slack) for slack in SLACKS) if trial.status == "optimal"),
                answer,
            )
        if answer.status != "optimal":
            raise BfreplayError(f"the linear program for levels that were reached before is {answer.status}")
        self.x = answer.x[:-1]
        portion = min(1.0, max(0.0, float(answer.x[-1]) / largest_climb))
        # dual values, weighted, sum to 1 over the rising jobs: below 1e-9 of that is rounding
        dual_values = -answer.row_dual
        presses = dual_values[self._first :] * climb > ROUNDING
        is_excluded = self._by_column @ dual_values < -ROUNDING
        return portion, presses | (self._runs_in @ ~is_excluded == 0)

    def _solve(self, base_level: NDArray[np.float64]) -> LinearAnswer:
        self._program.change_rows(self._first, base_level, np.inf)
        return self._program.solve()
