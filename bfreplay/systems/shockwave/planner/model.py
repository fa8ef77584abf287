"""Linear models of planning: the number of rounds of each job, and the rounds in which it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.entries import Columns, Rows
from bfreplay.milp.model import LinearModel
from bfreplay.systems.shockwave.planner.problem import NEGLIGIBLE, Level, PlanProblem, RoundValues


@dataclass(frozen=True, slots=True, eq=False)
class CountsModel:
    """Model with a number of rounds for each job as its answer.

    Parameters
    ----------
    model
        The model. Its objective is the gain over the least numbers of rounds.
    owner : (S,) int64
        Job of each of the first S columns: rounds beyond the least number, of equal worth.
    least : (N,) int64
        Least number of rounds.
    """

    model: LinearModel
    owner: NDArray[np.int64]
    least: NDArray[np.int64]

    def counts(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the rounds of each job in an answer, (N,)."""
        rounds = np.rint(x[: self.owner.shape[0]]).astype(np.int64)
        return self.least + np.bincount(self.owner, weights=rounds, minlength=self.least.shape[0]).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """More important level of the objective, and its value to keep."""

    level: Level
    value: float


def counts_model(
    problem: PlanProblem,
    values: RoundValues,
    level: Level,
    least: NDArray[np.int64],
    floor: Floor | None,
    *,
    per_round: bool,
    start: NDArray[np.bool_] | None = None,
) -> CountsModel:
    """Return the model that maximises ``level`` over numbers of rounds ``least <= n <= F``.

    The utility is concave in n, so rounds of the same gain form one column, and the columns of a job fill up in order
    of their gains. Remaining time is convex: one row ``longest >= R - T n`` a job is exact. The column is the
    reduction of the longest remaining time (in rounds), so that gaps are relative to gains.

    Parameters
    ----------
    problem, values, level, least
        Problem and objective.
    floor
        A more important level to keep.
    per_round
        With binaries for each job and round of G GPUs. Otherwise F * G GPUs in all: a relaxation with few columns,
        exact where the counts can be packed into rounds.
    start : (N, F) bool
        A feasible plan to start from, with ``per_round``.
    """
    n_jobs, n_rounds = problem.n_jobs, problem.n_rounds
    job = np.arange(n_jobs)
    most = np.where(problem.gang <= problem.n_gpus, np.maximum(values.most_useful(), least), least)
    owner, length, gain = _segments(values, least, most)
    scale = n_jobs * n_rounds
    columns, rows = Columns(), Rows()
    rounds = columns.add(
        "rounds", owner, np.arange(owner.shape[0]), objective=level.weight[owner] * gain / scale, upper=length
    )
    if per_round:
        pair = np.indices((n_jobs, n_rounds))
        runs = columns.add("runs", pair[0].ravel(), pair[1].ravel()).reshape(n_jobs, n_rounds)
        first = rows.add("gpus", n_rounds, -np.inf, float(problem.n_gpus))
        rows.put(first + np.arange(n_rounds), runs, problem.gang[:, None])
        first = rows.add("counted", n_jobs, least, least)
        rows.put(first + job[:, None], runs, 1.0)
        rows.put(first + owner, rounds, -1.0)
    else:
        free = n_rounds * problem.n_gpus - int(problem.gang @ least)
        first = rows.add("gpus", 1, -np.inf, float(free))
        rows.put(first, rounds, problem.gang[owner])
    if level.k > 0:
        _add_savings(columns, rows, rounds, owner, problem, values, level.k, least, most)
    if floor is not None:
        _keep(rows, rounds, owner, gain, floor, values, least, scale)
    begins_at = None if start is None else _point(columns, owner, length, least, start, values)
    return CountsModel(rows.model_of(columns, start=begins_at), owner, least)


def order_model(
    problem: PlanProblem,
    weight: NDArray[np.float64],
    counts: NDArray[np.int64],
    floor: tuple[NDArray[np.float64], float] | None,
    start: NDArray[np.bool_] | None,
) -> LinearModel:
    """Return the model that minimises ``sum_j weight_j * (mean number of j's rounds)``, job j in ``counts[j]`` rounds.

    Jobs without rounds have no columns; the others have F each, job after job.

    Parameters
    ----------
    floor
        Other weights, and the upper bound of their sum.
    start : (N, F) bool or None
        A feasible plan to start from.
    """
    runs_at_all = np.flatnonzero(counts)
    n, n_rounds = runs_at_all.shape[0], problem.n_rounds
    pair = np.indices((n, n_rounds))
    columns, rows = Columns(), Rows()
    cost = mean_round_cost(weight, counts)[runs_at_all]
    each = np.arange(n_rounds)
    runs = columns.add(
        "runs", runs_at_all[pair[0].ravel()], pair[1].ravel(), objective=-np.outer(cost, each).ravel()
    ).reshape(n, n_rounds)
    first = rows.add("counted", n, counts[runs_at_all], counts[runs_at_all], runs_at_all)
    rows.put(first + np.arange(n)[:, None], runs, 1.0)
    first = rows.add("gpus", n_rounds, -np.inf, float(problem.n_gpus))
    rows.put(first + each, runs, problem.gang[runs_at_all, None])
    if floor is not None:
        kept = mean_round_cost(floor[0], counts)[runs_at_all]
        scale = float(kept.max(initial=0.0)) or 1.0
        first = rows.add("kept", 1, -np.inf, floor[1] / scale + SLACK)
        rows.put(first, runs, np.outer(kept / scale, each))
    return rows.model_of(columns, start=None if start is None else start[runs_at_all].astype(np.float64).ravel())


def mean_round_cost(weight: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the cost of running one round later, ``weight / counts``, (N,); 0 for jobs without rounds."""
    return np.divide(weight, counts, out=np.zeros(counts.shape[0]), where=counts > 0)


SLACK = 1e-7
"""Tolerance of rows that keep a more important level, relative to their largest coefficient."""


def _segments(
    values: RoundValues, least: NDArray[np.int64], most: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return job, length and gain per round of runs of rounds with equal gain, by job, then round."""
    step = np.diff(values.utility, axis=1)
    number = np.arange(step.shape[1])
    inside = (number >= least[:, None]) & (number < most[:, None])
    bends = np.ones_like(inside)
    bends[:, 1:] = (np.abs(np.diff(step, axis=1)) > NEGLIGIBLE) | ~inside[:, :-1]
    owner, where = np.nonzero(inside)
    segment = np.cumsum(bends[owner, where]) - 1
    length = np.bincount(segment)
    gain = np.bincount(segment, weights=step[owner, where]) / np.maximum(length, 1)
    return owner[bends[owner, where]], length.astype(np.float64), np.maximum(gain, 0.0)


def _keep(
    rows: Rows,
    rounds: NDArray[np.int64],
    owner: NDArray[np.int64],
    gain: NDArray[np.float64],
    floor: Floor,
    values: RoundValues,
    least: NDArray[np.int64],
    scale: int,
) -> None:
    """Add the row that keeps ``floor``, whose level has no k."""
    factor = floor.level.weight[owner] * gain
    wanted = floor.value * scale - float(floor.level.weight @ values.utility[np.arange(least.shape[0]), least])
    largest = float(factor.max(initial=0.0)) or 1.0
    first = rows.add("kept", 1, wanted / largest - SLACK, np.inf)
    rows.put(first, rounds, factor / largest)


def _add_savings(
    columns: Columns,
    rows: Rows,
    rounds: NDArray[np.int64],
    owner: NDArray[np.int64],
    problem: PlanProblem,
    values: RoundValues,
    k: float,
    least: NDArray[np.int64],
    most: NDArray[np.int64],
) -> None:
    """Add the column of rounds saved of the longest remaining time, and a row for each job that may limit it."""
    job = np.arange(problem.n_jobs)
    longest_s = float(values.remaining_s[job, least].max(initial=0.0))
    unavoidable_s = float(values.remaining_s[job, most].max(initial=0.0))
    holds_back = np.flatnonzero(values.remaining_s[job, least] > unavoidable_s)
    if not holds_back.size:
        return
    round_s = problem.round_s
    saved = columns.add(
        "saved", np.zeros(1, dtype=np.int64), objective=k * round_s,
        upper=(longest_s - unavoidable_s) / round_s, integer=False,
    )  # fmt: skip
    slack = (problem.remaining_s[holds_back] - longest_s) / round_s - least[holds_back]
    first = rows.add("saved", holds_back.size, slack, np.inf, holds_back)
    row_of = np.full(problem.n_jobs, -1)
    row_of[holds_back] = first + np.arange(holds_back.size)
    rows.put(row_of[holds_back], np.broadcast_to(saved, holds_back.shape), -1.0)
    has_row = row_of[owner] >= 0
    rows.put(row_of[owner[has_row]], rounds[has_row], 1.0)


def _point(
    columns: Columns,
    owner: NDArray[np.int64],
    length: NDArray[np.float64],
    least: NDArray[np.int64],
    plan: NDArray[np.bool_],
    values: RoundValues,
) -> NDArray[np.float64]:
    """Return the column values of a plan: segments filled in order, then jobs by round, then savings."""
    counts, job, n_segments = plan.sum(axis=1), np.arange(least.shape[0]), owner.shape[0]
    before = np.cumsum(length) - length
    x = np.zeros(len(columns.names))
    x[:n_segments] = np.clip((counts - least)[owner] - (before - before[np.searchsorted(owner, owner)]), 0.0, length)
    x[n_segments : n_segments + plan.size] = plan.ravel()
    if x.shape[0] > n_segments + plan.size:
        longest_s = values.remaining_s[job, least].max(), values.remaining_s[job, counts].max()
        most = float(columns.upper[-1][0])
        x[-1] = min(most, (longest_s[0] - longest_s[1]) / values.round_s)
    return x
