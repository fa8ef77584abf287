"""Policies that are one linear program: max-min fairness, makespan, greatest sum of throughputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from bfreplay.errors import InputError
from bfreplay.systems.gavel.shares.linear_program import FeasibleSet, LinearAnswer, LinearProgram, Optimum, feasible_set
from bfreplay.systems.gavel.shares.rule_shares import proportional_throughput
from bfreplay.systems.gavel.shares.share_problem import (
    SharePolicy,
    ShareProblem,
    TimeShares,
    Variant,
    VariantPolicy,
    reference_rate,
)


def alike_jobs(
    problem: ShareProblem, unit_rate: NDArray[np.float64]
) -> tuple[ShareProblem, NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Group jobs of the same gang, rates and ``unit_rate`` (m,) into g kinds.

    If some shares maximise the least ``th_i / unit_i``, so do those in which each job gets the mean of its kind: they
    take as many nodes, and no job gets less than the least of its kind had. So a program over kinds has the same
    optimum, is far smaller with many jobs, and treats equal jobs equally. Kinds are ordered by their values, not by
    arrival, so job numbers have no effect.

    Returns
    -------
    problem
        Problem with one job of each kind, and no pairs.
    unit : (g,) float64
        Unit of each kind.
    n_of_kind : (g,) int64
        Number of jobs of each kind.
    kind : (m,) int64
        Kind of each job.
    """
    distinction = np.column_stack([problem.gang, unit_rate, problem.rate])
    _, first_rows, kind, n_of_kind = np.unique(
        distinction, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return problem.of_jobs(first_rows), unit_rate[first_rows], n_of_kind, kind.ravel()


NOTICEABLE = 1e-6
"""Fraction of the level that a job may lack before it is given the rest."""


def highest_common_level(
    problem: ShareProblem, unit_rate: NDArray[np.float64], *, with_pairs: bool, optimum: Optimum
) -> TimeShares:
    """Maximise z subject to ``th_i(X) >= z * unit_i`` for all i, X in the feasible set.

    Parameters
    ----------
    problem
        Rates and nodes.
    unit_rate : (m,) float64
        Steps/s of each job at level 1. Jobs of unit 0, and jobs that can run nowhere, do not count.
    with_pairs
        Jobs may share nodes. (Without, jobs that are alike get the same shares.)
    optimum
        Choice among equally good shares.

    Returns
    -------
    TimeShares
        With z as its objective; infinite where no job counts.
    """
    if with_pairs and problem.n_pairs:
        feasible = feasible_set(problem, with_pairs=True)
        solution, level = _highest_level(feasible, unit_rate, optimum)
        return feasible.time_shares(solution, level)
    one_of_each, unit_of_kind, n_of_kind, kind = alike_jobs(problem, unit_rate)
    feasible = feasible_set(one_of_each, with_pairs=False, n_of_kind=n_of_kind)
    solution, level = _highest_level(feasible, unit_of_kind, optimum)
    of_kind = feasible.time_shares(solution).share
    return TimeShares(of_kind[kind], objective=level)


def _highest_level(
    feasible: FeasibleSet, unit_rate: NDArray[np.float64], optimum: Optimum
) -> tuple[NDArray[np.float64], float]:
    """Return columns of the highest level, and the level."""
    throughput = feasible.throughput
    best_rate = (throughput @ diags_array(feasible.upper)).max(axis=1).toarray().ravel()
    counts = np.flatnonzero((best_rate > 0) & (unit_rate > 0))
    if counts.size == 0:
        return np.zeros(feasible.n_columns), np.inf
    # the solver's tolerances are absolute: rows relative to the job's best rate, the level to that of the neediest job
    need = unit_rate[counts] / best_rate[counts]
    largest_need = need.max()
    relative = csr_array(diags_array(1 / best_rate[counts]) @ throughput[counts])
    cost, upper = np.append(np.zeros(feasible.n_columns), 1.0), np.append(feasible.upper, np.inf)
    program = LinearProgram(feasible.n_columns + 1, cost, 0.0, upper, maximise=True, optimum=optimum)
    feasible.add_to(program)
    program.add_rows(hstack([relative, csr_array(-need[:, None] / largest_need)], format="csr"), 0.0, np.inf)
    answer = program.solve().x
    solution, level = answer[:-1], answer[-1] / largest_need
    _give_what_tolerance_withholds(solution, feasible, counts, relative, level * need)
    return solution, float(level)


def _give_what_tolerance_withholds(
    solution: NDArray[np.float64],
    feasible: FeasibleSet,
    job_of_row: NDArray[np.int64],
    relative: csr_array,
    due_rate: NDArray[np.float64],
) -> None:
    """Add to ``solution`` the shares of jobs whose whole need is of the size of the solver's tolerance.

    Such a job is almost finished, and others need a million times its time. With a share of 0 it would wait even for
    spare nodes.
    """
    lacking = due_rate - relative @ solution
    for lacking_row in np.flatnonzero(lacking > NOTICEABLE * due_rate):
        alone = slice(job_of_row[lacking_row] * feasible.n_types, (job_of_row[lacking_row] + 1) * feasible.n_types)
        rate = relative[[lacking_row], alone].toarray().ravel() * feasible.upper[alone]
        if rate.max() > 0:
            solution[job_of_row[lacking_row] * feasible.n_types + rate.argmax()] += lacking[lacking_row] / rate.max()


class MaxMinFairness(VariantPolicy):
    """Maximise ``min_i (s_i / w_i) th_i(X) / p_i`` (Gavel, OSDI'20, section 4.1; least attained service, LAS).

    ``p_i`` is the throughput of job i alone with its time split over types like the cluster. The agnostic variant takes
    every rate for 1, even where a job cannot run, and splits a job's time over types like the cluster.

    A job that can run nowhere does not count, and gets nothing.

    Parameters
    ----------
    variant
        ``agnostic``, ``perf`` or ``packed``.
    optimum
        Choice among equally good shares, see ``Optimum``.
    """

    def __init__(self, variant: Variant = "perf", optimum: Optimum = "central") -> None:
        super().__init__(variant)
        self._optimum: Optimum = optimum

    def _shares(self, problem: ShareProblem) -> TimeShares:
        unit_rate = problem.weight / problem.gang * proportional_throughput(problem)
        return highest_common_level(problem, unit_rate, with_pairs=self.uses_pairs, optimum=self._optimum)


class Makespan(VariantPolicy):
    """Minimise ``max_i N_i / th_i(X)``, in seconds (Gavel, OSDI'20, section 4.2; min_total_duration).

    Its inverse, the largest z with ``th_i(X) >= z N_i`` for all i, is a linear program, solved once and exactly. (Gavel
    bisects for the makespan, to 5 %.)

    The agnostic variant takes the rates of one type for all (``reference_rate``), and splits a job's time over types
    like the cluster.

    A job that can run nowhere never ends: it does not count, and gets nothing. If all jobs are such the objective is 0.

    Parameters
    ----------
    variant
        ``agnostic``, ``perf`` or ``packed``.
    optimum
        Choice among equally good shares, see ``Optimum``.
    """

    looks_at_work = True

    def __init__(self, variant: Variant = "perf", optimum: Optimum = "central") -> None:
        super().__init__(variant)
        self._optimum: Optimum = optimum

    def _believed_rate(self, problem: ShareProblem) -> NDArray[np.float64]:
        return reference_rate(problem)

    def _shares(self, problem: ShareProblem) -> TimeShares:
        shares = highest_common_level(problem, problem.steps_left, with_pairs=self.uses_pairs, optimum=self._optimum)
        return replace(shares, objective=1 / shares.objective)


class MaxSumThroughput(SharePolicy):
    """Maximise ``sum_ij T_ij X_ij``, of each type divided by its price if ``by_cost`` (Gavel, OSDI'20, section 4.2).

    Steps of all jobs count alike, as in Gavel, which favours jobs of short steps. With ``deadlines`` each job whose
    deadline, r_i seconds from now, is ahead must be fast enough to meet it: ``th_i(X) >= N_i / r_i``. If not all can,
    no deadline counts (Gavel's rule): ``deadlines_dropped``.

    Parameters
    ----------
    by_cost
        Steps per second and price of a node-hour, instead of steps per second.
    deadlines
        Deadlines count.
    packs
        Jobs may share nodes.
    optimum
        Choice among equally good shares, see ``Optimum``.
    """

    def __init__(
        self, *, by_cost: bool = False, deadlines: bool = False, packs: bool = False, optimum: Optimum = "central"
    ) -> None:
        self.uses_pairs = packs
        self._by_cost = by_cost
        self._deadlines = deadlines
        self._optimum: Optimum = optimum

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return the shares with the greatest sum, which is the objective.

        Raises
        ------
        InputError
            Costs count and a node has no price above 0.
        """
        feasible = feasible_set(problem, with_pairs=self.uses_pairs)
        gain = np.asarray(feasible.throughput.sum(axis=0), dtype=np.float64)
        if self._by_cost:
            _check_prices(problem)
            gain = (gain.reshape(-1, problem.n_types) / problem.price_per_hour).ravel()
        due_rate = _due_throughput(problem) if self._deadlines else np.zeros(problem.n_jobs)
        answer = _greatest_sum(feasible, gain, due_rate, self._optimum)
        drops_deadlines = answer.status == "infeasible"
        if drops_deadlines:
            answer = _greatest_sum(feasible, gain, np.zeros(problem.n_jobs), self._optimum)
        return replace(feasible.time_shares(answer.x, float(gain @ answer.x)), deadlines_dropped=drops_deadlines)


def _check_prices(problem: ShareProblem) -> None:
    for type_name, price in zip(problem.type_names, problem.price_per_hour.tolist(), strict=True):
        if not price > 0:
            raise InputError(
                "Throughput by cost needs prices of nodes",
                row=type_name,
                column="price_per_hour",
                value=price,
                expected="a number above 0",
                fix=f"give the price of its hour: --prices {type_name}=1.0",
            )


def _due_throughput(problem: ShareProblem) -> NDArray[np.float64]:
    """Return the steps/s that just meet the deadline, (m,); 0 for jobs without one or past it."""
    ahead = (problem.to_deadline_s > 0) & np.isfinite(problem.to_deadline_s)
    return np.divide(problem.steps_left, problem.to_deadline_s, out=np.zeros(problem.n_jobs), where=ahead)


def _greatest_sum(
    feasible: FeasibleSet, gain: NDArray[np.float64], due_rate: NDArray[np.float64], optimum: Optimum
) -> LinearAnswer:
    # the solver's tolerances are absolute: gains relative to the largest, rows to the due throughput
    largest_gain = max(gain.max(), np.finfo(float).tiny)
    program = LinearProgram(
        feasible.n_columns, gain / largest_gain, 0.0, feasible.upper, maximise=True, optimum=optimum
    )
    feasible.add_to(program)
    has_due = due_rate > 0
    if has_due.any():
        program.add_rows(csr_array(diags_array(1 / due_rate[has_due]) @ feasible.throughput[has_due]), 1.0, np.inf)
    return program.solve()
