"""The linear program that raises levels of jobs towards a target."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack, vstack

from bfreplay.errors import BfreplayError
from bfreplay.policies.gavel.shares.feasible_set import FeasibleSet
from bfreplay.policies.gavel.shares.linear_program import LinearAnswer, LinearProgram

SLACKS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8)
"""Part of its best rate by which a job may miss what it got before, where rounding makes that infeasible: the first
that suffices. Slack of all jobs together can raise one by far more than itself, and what it is raised by is missed by
the others then, so there is none where none is needed."""


ROUNDING = 1e-9
"""Dual values that count as 0."""


class LevelProgram:
    """One linear program for all questions: how far can levels go from here to there.

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
        # a row is in parts of its job's best column, so that all are of one size
        best = height.max(axis=1).toarray().ravel()
        self._scale = np.where(best > 0, best, 1.0)
        self._climb = np.ones(self._n_jobs)
        self._height = (diags_array(1 / self._scale) @ height).tocsr()
        rows = hstack([self._height, csr_array(-self._climb[:, None])], format="csr")
        self._first = self._program.add_rows(rows, 0.0, np.inf)
        self._by_column = vstack([feasible.capacity, feasible.time, self._height]).T.tocsr()
        self._runs_in = (self._height > 0).astype(np.int64)
        self.x = np.zeros(feasible.n_columns)

    def rise(self, level: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[float, NDArray[np.bool_]]:
        """Tell what part of the straight way from ``level`` to ``target`` all jobs can go together, and who is stuck.

        ``x`` becomes the shares with which they go so far.

        Parameters
        ----------
        level : (m,) float64
            Is reached by ``x``.
        target : (m,) float64
            No lower.

        Returns
        -------
        part
            Of the way; exactly 1 where the target can be reached.
        stuck : (m,) bool
            Jobs that are where they then are in every optimum, and so can rise no further, as the dual tells
            (complementary slackness): a rising job whose row has a non-zero dual value, and one that gets nothing
            because each column in which it runs has a non-zero reduced cost. Not all of such jobs need be found, but
            where ``part`` is below 1 a rising one is.

        Raises
        ------
        BfreplayError
            ``level`` cannot be reached.
        """
        climb = (target - level) / self._scale
        # HiGHS takes coefficients below 1e-9 for 0
        most = float(climb.max()) or 1.0
        climb = climb / most
        for k in np.flatnonzero(climb != self._climb):
            self._program.change_coefficient(self._first + int(k), self._n_columns, -float(climb[k]))
        self._climb = climb
        self._upper[-1] = most
        self._program.change_bounds(0.0, self._upper)
        base = level / self._scale
        answer = self._solve(base)
        if answer.status != "optimal":
            reached = np.minimum(base, self._height @ self.x)
            answer = next(
                (a for a in (self._solve(reached - slack) for slack in SLACKS) if a.status == "optimal"), answer
            )
        if answer.status != "optimal":
            raise BfreplayError(f"Levels of Gavel's policies that were reached before are {answer.status}")
        self.x = answer.x[:-1]
        part = min(1.0, max(0.0, float(answer.x[-1]) / most))
        # dual values sum to 1 over what the rising jobs weigh: below 1e-9 of that is rounding
        dual = -answer.row_dual
        presses = dual[self._first :] * climb > ROUNDING
        kept_out = self._by_column @ dual < -ROUNDING
        return part, presses | (self._runs_in @ ~kept_out == 0)

    def _solve(self, base: NDArray[np.float64]) -> LinearAnswer:
        self._program.change_rows(self._first, base, np.inf)
        return self._program.solve()
