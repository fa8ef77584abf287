"""Max-sum: as many steps as can be from the cluster, or from the money it costs, with deadlines if wished."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from bfreplay.errors import InputError
from bfreplay.policies.gavel.shares.feasible_set import FeasibleSet, feasible_set, throughput_matrix
from bfreplay.policies.gavel.shares.linear_program import LinearAnswer, LinearProgram, Optimum
from bfreplay.policies.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares


class MaxSumThroughput(SharePolicy):
    """Maximise ``sum_ij T_ij X_ij``, of each type divided by its price if ``by_cost`` (Gavel, OSDI'20, section 4.2).

    Steps of all jobs count alike, as in Gavel: a job of short steps gets its way. With ``deadlines`` each job that has
    one still before it must be fast enough to meet it: ``th_i(X) >= N_i / r_i``, r_i seconds from now. Where that
    cannot be for all of them, no deadline counts (Gavel's rule), and the answer says so.

    Parameters
    ----------
    by_cost
        Steps per second and price of a node-hour, instead of steps per second.
    deadlines
        Deadlines count.
    packs
        Jobs may share nodes.
    optimum
        Which of equally good shares, see ``Optimum``.
    """

    def __init__(
        self, *, by_cost: bool = False, deadlines: bool = False, packs: bool = False, optimum: Optimum = "central"
    ) -> None:
        self.uses_pairs = packs
        self._by_cost = by_cost
        self._deadlines = deadlines
        self._optimum: Optimum = optimum

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares with the greatest sum, which is the objective.

        Raises
        ------
        InputError
            Costs count and a node has no price above 0.
        """
        feasible = feasible_set(problem, with_pairs=self.uses_pairs)
        throughput = throughput_matrix(problem, with_pairs=self.uses_pairs)
        gain = np.asarray(throughput.sum(axis=0), dtype=np.float64)
        if self._by_cost:
            _check_prices(problem)
            gain = (gain.reshape(-1, problem.n_types) / problem.price_per_hour).ravel()
        due = _due_throughput(problem) if self._deadlines else np.zeros(problem.n_jobs)
        answer = _greatest_sum(feasible, gain, throughput, due, self._optimum)
        cannot_be_met = answer.status == "infeasible"
        if cannot_be_met:
            answer = _greatest_sum(feasible, gain, throughput, np.zeros(problem.n_jobs), self._optimum)
        return replace(feasible.time_shares(answer.x, float(gain @ answer.x)), deadlines_dropped=cannot_be_met)


def _check_prices(problem: ShareProblem) -> None:
    for name, price in zip(problem.type_names, problem.price_per_hour.tolist(), strict=True):
        if not price > 0:
            raise InputError(
                "Throughput by cost needs prices of nodes",
                row=name,
                column="price_per_hour",
                value=price,
                expected="a number above 0",
                fix=f"say what an hour of it costs: --prices {name}=1.0",
            )


def _due_throughput(problem: ShareProblem) -> NDArray[np.float64]:
    """(m,) steps/s that just meet the deadline; 0 for jobs without one and for those that have missed it."""
    ahead = (problem.to_deadline_s > 0) & np.isfinite(problem.to_deadline_s)
    return np.divide(problem.steps_left, problem.to_deadline_s, out=np.zeros(problem.n_jobs), where=ahead)


def _greatest_sum(
    feasible: FeasibleSet,
    gain: NDArray[np.float64],
    throughput: csr_array,
    due: NDArray[np.float64],
    optimum: Optimum,
) -> LinearAnswer:
    # the solver's tolerances are absolute: gains in parts of the largest, rows in parts of what is due
    most = max(gain.max(), np.finfo(float).tiny)
    program = LinearProgram(feasible.n_columns, gain / most, 0.0, feasible.upper, maximise=True, optimum=optimum)
    feasible.add_to(program)
    has_due = due > 0
    if has_due.any():
        program.add_rows(csr_array(diags_array(1 / due[has_due]) @ throughput[has_due]), 1.0, np.inf)
    return program.solve()
