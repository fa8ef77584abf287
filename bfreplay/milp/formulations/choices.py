"""One binary for every job and each count it may have, a multiple-choice knapsack: every count, or only some."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.exact.relaxation import best_exchange, concave_hulls, critical_price
from bfreplay.milp.exact.solver import PROOF_TOLERANCE
from bfreplay.milp.formulations.formulation import NodeMap, start_counts
from bfreplay.milp.model import Columns, LinearModel, Rows
from bfreplay.milp.problem import AllocationProblem


class Choices:
    """Counts as choices; no node names, no special ordered sets, no big M.

    Variables: ``y[j, n]`` binary, job j gets n nodes, for every n with ``f_j(n) > -inf`` (0, and min_nodes to
    max_nodes, as far as capacity and change limit allow).

    Maximise ``sum f_j(n) y[j, n]`` subject to ``sum_n y[j, n] = 1`` for each job (``one[j]``) and
    ``sum n y[j, n] <= capacity`` (``capacity[0]``).

    Size: at most J (min(K, N) + 1) columns, J + 1 rows, 2 entries a column at most. A job without any allowed
    count (a change limit can do that) has the one column ``y[j, 0]`` with an upper bound of 0: the model is
    infeasible, as it should be.

    Source: the multiple-choice knapsack that BFTrainer's equations 1 to 16 (arXiv:2106.12091) are over counts.
    """

    name = "choices"
    needs_sos = False
    needs_continuous = False
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; columns ordered by job, then count."""
        return choice_model(problem, _countable(problem), np.arange(problem.n_jobs), start_counts(problem))

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return the chosen counts. A job with two choices gets their sum: re-verification judges it."""
        return counts_from(_countable(problem), x), None


def choice_model(
    problem: AllocationProblem,
    is_offered: NDArray[np.bool_],
    jobs: NDArray[np.int64],
    start: NDArray[np.int64] | None,
    *,
    capacity: int | None = None,
    constant: float = 0.0,
) -> LinearModel:
    """Build the model in which ``jobs`` choose among the ``is_offered (J, K + 1)`` counts; other jobs are offered none.

    A count that is offered although it is not allowed gets an upper bound of 0.
    ``start`` are counts ``(J,)`` of which those of ``jobs`` are offered; ``capacity`` is what ``jobs`` may use (the
    problem's own by default); ``constant`` is added to the objective.
    """
    job_index, count = np.nonzero(is_offered)
    columns, rows = Columns(), Rows()
    worth = problem.value[job_index, count]
    is_feasible = worth > -np.inf
    choice_columns = columns.add(
        "y", job_index, count, objective=np.where(is_feasible, worth, 0.0), upper=is_feasible.astype(np.float64)
    )
    one_per_job = rows.add("one", jobs.shape[0], 1.0, 1.0, jobs)
    rows.put(one_per_job + np.searchsorted(jobs, job_index), choice_columns, 1.0)
    n_nodes = problem.capacity if capacity is None else capacity
    rows.put(rows.add("capacity", 1, -np.inf, float(n_nodes)), choice_columns, count.astype(np.float64))
    start_values = None if start is None else (start[job_index] == count).astype(np.float64)
    return rows.model_of(columns, objective_constant=constant, start=start_values)


def counts_from(is_offered: NDArray[np.bool_], x: NDArray[np.float64]) -> NDArray[np.int64]:
    """``(J,)``: the counts that column values ``x`` of ``choice_model`` choose; 0 for jobs that are offered none."""
    job_index, count = np.nonzero(is_offered)
    counts = np.zeros(is_offered.shape[0], dtype=np.int64)
    np.add.at(counts, job_index, count * np.rint(x).astype(np.int64))
    return counts


def _countable(problem: AllocationProblem) -> NDArray[np.bool_]:
    """``(J, K + 1)``: the counts allowed, and 0 for a job that has none."""
    is_offered = problem.value > -np.inf
    is_offered[:, 0] |= ~is_offered.any(axis=1)
    return is_offered


CORE = 1024
"""Where more counts than this are left beyond one a job, a better incumbent is sought among so many of least loss."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """The undecided part of a decision.

    Parameters
    ----------
    kept : (J, K + 1) bool
        Counts that are left. All are allowed, but that a job without any allowed count keeps 0.
    incumbent : (J,) int64 or None
        Feasible counts, all of them kept; ``None`` when there are none (then each job's least allowed count is kept,
        which is proof enough) or when the numbers are too large to compare.
    """

    kept: NDArray[np.bool_]
    incumbent: NDArray[np.int64] | None


def reduction(problem: AllocationProblem) -> Reduction:
    """Drop the counts that no answer better than the incumbent can have.

    ``milp.exact`` has the sources. With a node priced at ``price``, an answer is worth the relaxation less its
    jobs' losses at that price less ``price`` for each unused node, and no loss is negative. So an answer that is
    better than the incumbent has only counts whose own loss is below the gap between relaxation and incumbent; all of
    these are kept (and those at the gap, or above it by no more than rounding, as well). The incumbent's counts are
    kept too: if no answer is better, it is an optimal one, so an optimal answer is among the kept counts either way.
    """
    value, capacity = problem.value, problem.capacity
    job_index, count = np.arange(problem.n_jobs), np.arange(problem.value.shape[1])
    is_feasible = value > -np.inf
    least_count = np.argmax(is_feasible, axis=1)
    if not is_feasible.any(axis=1).all() or int(least_count.sum()) > capacity:
        return Reduction(count == least_count[:, None], None)
    hulls = concave_hulls(value, capacity)
    price, incumbent = 0.0, hulls.points[hulls.stop - 1]
    if int(incumbent.sum()) > capacity:
        price, cut_job, vertex = critical_price(hulls, capacity)
        incumbent = hulls.points[vertex]
        exchange_gain, cut_count, other_job, other_count = best_exchange(value, capacity, cut_job, incumbent)
        if exchange_gain > 0.0:
            incumbent[cut_job] = cut_count
            if other_job >= 0:
                incumbent[other_job] = other_count
    with np.errstate(over="ignore", invalid="ignore"):  # seen in the relaxation
        at_price = value - price * count
        best_worth = at_price.max(axis=1)
        loss = best_worth[:, None] - at_price
        relaxation = price * capacity + float(best_worth.sum())
    if not np.isfinite(relaxation):
        return Reduction(is_feasible, None)
    slack = PROOF_TOLERANCE * (job_index.shape[0] + 2) * (abs(price * capacity) + float(np.abs(best_worth).sum()))
    is_kept = loss <= relaxation - float(value[job_index, incumbent].sum()) + slack
    if np.count_nonzero(is_kept) > job_index.shape[0] + CORE:
        incumbent = _best_in_core(value, loss, capacity, incumbent)
        is_kept = loss <= relaxation - float(value[job_index, incumbent].sum()) + slack
    is_kept[job_index, incumbent] = True
    return Reduction(is_kept, incumbent)


def _best_in_core(
    value: NDArray[np.float64], loss: NDArray[np.float64], capacity: int, counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the best answer among ``counts`` and the counts of least loss, by a dynamic program over their sums.

    The idea of a core is Pisinger's: the best answers differ from the relaxed one in what costs least to change.
    """
    jobs = np.arange(value.shape[0])
    core = np.zeros(value.shape, dtype=np.bool_)
    core.ravel()[np.argsort(loss, axis=None, kind="stable")[: value.shape[0] + CORE]] = True
    core &= np.isfinite(loss)
    core[jobs, counts] = True
    choices = [np.flatnonzero(is_choice) for is_choice in core]
    answer = np.array([choice[0] for choice in choices])
    free_nodes = capacity - int(answer.sum())
    best_worth = np.zeros(1)  # by the nodes used beyond each job's least
    choice_of_job: list[tuple[int, NDArray[np.int64]]] = []
    for job_index in np.flatnonzero(core.sum(axis=1) > 1).tolist():
        extra = choices[job_index] - answer[job_index]
        wider = np.full(min(free_nodes, best_worth.shape[0] - 1 + int(extra[-1])) + 1, -np.inf)
        choice = np.zeros(wider.shape[0], dtype=np.int64)
        for n_more, worth in zip(extra.tolist(), value[job_index, choices[job_index]].tolist(), strict=True):
            values = best_worth[: max(0, wider.shape[0] - n_more)] + worth
            target = slice(n_more, n_more + values.shape[0])
            better = values > wider[target]
            wider[target][better] = values[better]
            choice[target][better] = n_more
        best_worth = wider
        choice_of_job.append((job_index, choice))
    state = int(np.argmax(best_worth))
    for job_index, choice in reversed(choice_of_job):
        n_more = int(choice[state])
        answer[job_index] += n_more
        state -= n_more
    return answer


class ChoicesReduced:
    """``choices`` after reduced-cost fixing at the critical price of a node.

    A first answer and a price of a node come from the concave hulls of the f_j (``reduction``).
    Counts that no better answer can have are left out. A job with one count left is fixed: it is no longer in the
    model, its value is in the objective's constant, and the capacity is less by its nodes. If all are fixed the
    first job stays in, so that the model has a column. An optimal answer survives: any answer better than the first
    one has only counts that are kept, and the first one's counts are kept too. A problem without feasible counts
    gives an infeasible model, in which every job has its least allowed count and no job is fixed.

    Variables: ``y[j, n]`` binary, open job j gets n nodes, for every n that is left.

    Maximise ``constant + sum f_j(n) y[j, n]`` subject to ``sum_n y[j, n] = 1`` for each open job (``one[j]``) and
    ``sum n y[j, n] <= N - nodes of fixed jobs`` (``capacity[0]``).

    Size: A columns and at most J + 1 rows, 2 entries a column at most, where A are the counts left to open jobs. It is
    at most that of ``choices`` and mostly far less, because the gap is about that of one hull segment of one job. At
    300 jobs, 4,000 nodes and 64 nodes a job (1,000 generated decisions, curves as the published ones) half had fewer
    than 180 columns, 998 fewer than 2,000, and the largest 2,532. Where many jobs are alike, many counts tie.

    Source: the reduction of Dyer, Riha and Walker, 1995, and Pisinger, 1995; see ``milp.exact``.
    """

    name = "choices_reduced"
    needs_sos = False
    needs_continuous = False
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; columns ordered by job, then count. Starts from the first answer."""
        open_counts = _open_counts(problem)
        fixed_counts = open_counts.fixed
        worth = float(problem.value[np.flatnonzero(fixed_counts >= 0), fixed_counts[fixed_counts >= 0]].sum())
        room, is_open = problem.capacity - int(fixed_counts[fixed_counts >= 0].sum()), np.flatnonzero(fixed_counts < 0)
        return choice_model(problem, open_counts.offered, is_open, open_counts.incumbent, capacity=room, constant=worth)

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return the chosen counts, and the fixed ones. A job with two choices gets their sum, which is judged."""
        open_counts = _open_counts(problem)
        return counts_from(open_counts.offered, x) + np.maximum(open_counts.fixed, 0), None


@dataclass(frozen=True, slots=True)
class _OpenCounts:
    """Counts offered to open jobs, ``(J, K + 1)``; counts of fixed jobs, -1 for open ones, ``(J,)``; first answer."""

    offered: NDArray[np.bool_]
    fixed: NDArray[np.int64]
    incumbent: NDArray[np.int64] | None


def _open_counts(problem: AllocationProblem) -> _OpenCounts:
    """Reduce, and fix. The same for the same problem, so ``read`` needs nothing from ``build``."""
    reduced = reduction(problem)
    fixed_counts = np.full(problem.n_jobs, -1, dtype=np.int64)
    if reduced.incumbent is not None:
        has_one_count = reduced.kept.sum(axis=1) == 1
        has_one_count[0] &= not has_one_count.all()
        fixed_counts[has_one_count] = reduced.incumbent[has_one_count]
    return _OpenCounts(reduced.kept & (fixed_counts < 0)[:, None], fixed_counts, reduced.incumbent)
