"""The linear program that raises levels of jobs towards a target."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from bfreplay.errors import BfreplayError
from bfreplay.policies.gavel.shares.feasible_set import FeasibleSet
from bfreplay.policies.gavel.shares.linear_program import LinearProgram

SLACKS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7)
"""Part of its best rate by which a job may miss a level that it reached before: the first that suffices. Rounding can
make levels infeasible that a program has just given. Slack of all jobs together can raise one by far more than itself,
so none is given where none is needed."""


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
        rows = hstack([diags_array(1 / self._scale) @ height, csr_array(-self._climb[:, None])], format="csr")
        self._first = self._program.add_rows(rows, 0.0, np.inf)
        self.x = np.zeros(feasible.n_columns)

    def rise(self, level: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[float, NDArray[np.bool_]]:
        """Tell what part of the way from ``level`` to ``target``, along a straight line, all jobs can go together.

        ``x`` becomes the shares with which they go so far.

        Parameters
        ----------
        level : (m,) float64
            Can be reached.
        target : (m,) float64
            No lower.

        Returns
        -------
        part
            Of the way; exactly 1 where the target can be reached.
        presses : (m,) bool
            Rising jobs with a non-zero dual value: each of them is at the level that it has there in every optimum
            (complementary slackness). Where ``part`` is below 1 there is at least one.

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
        for slack in SLACKS:
            self._program.change_rows(self._first, level / self._scale - slack, np.inf)
            answer = self._program.solve()
            if answer.status == "optimal":
                break
        else:
            raise BfreplayError(f"Levels of Gavel's policies that were reached before are {answer.status}")
        self.x = answer.x[:-1]
        part = min(1.0, max(0.0, float(answer.x[-1]) / most))
        # duals of one program sum to 1 over what they weigh: below 1e-9 of that is rounding
        return part, -answer.row_dual[self._first :] * climb > 1e-9
