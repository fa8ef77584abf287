"""Problem of a plan: jobs, a window of rounds, the worth of n rounds to a job, and the linear models of planning."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import Columns, LinearModel, Rows

LOG_OF_ZERO = math.log(1e-6)
"""Logarithm of progress 0 in the objective."""

URGENT_POWER = 100.0
"""Exponent of the published weights of jobs about to be late that need less than a round."""

MOST_WEIGHT = 1e100
"""Upper limit of published weights, against overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanProblem:
    """N jobs to plan in the next F rounds on G GPUs.

    Parameters
    ----------
    gang : (N,) int64
        GPUs of a job in every round in which it runs.
    n_epochs, epochs_done : (N,) int64
        All epochs, and epochs done (E, e).
    mean_epoch_s, remaining_s : (N,) float64
        Seconds of an epoch, and remaining time alone (``d̄``, R).
    remaining_of_weights_s : (N,) float64
        The same as weights look at it: another one only in the published program.
    elapsed_s, target_s : (N,) float64
        Elapsed time of the job, and its finish target (Φ), from the same zero.
    n_rounds
        Rounds of the window (F).
    round_s
        Length of a round (T).
    n_gpus
        Number of GPUs (G).
    k, priority_power, rhomax, log_knots
        As in ``PlannerOptions``.
    """

    gang: NDArray[np.int64]
    n_epochs: NDArray[np.int64]
    epochs_done: NDArray[np.int64]
    mean_epoch_s: NDArray[np.float64]
    remaining_s: NDArray[np.float64]
    remaining_of_weights_s: NDArray[np.float64]
    elapsed_s: NDArray[np.float64]
    target_s: NDArray[np.float64]
    n_rounds: int
    round_s: float
    n_gpus: int
    k: float
    priority_power: float
    rhomax: float
    log_knots: tuple[float, ...]

    @property
    def n_jobs(self) -> int:
        """Number of jobs (N)."""
        return int(self.gang.shape[0])

    @property
    def fair_share(self) -> float:
        """Share of the time of each job with equal shares (σ), regardless of gangs."""
        return min(1.0, self.n_gpus / max(1, self.n_jobs))

    @property
    def rho(self) -> NDArray[np.float64]:
        """Expected finish-time fairness of jobs, (N,): above 1 they would finish after their targets."""
        return (self.elapsed_s + self.remaining_of_weights_s / self.fair_share) / self.target_s

    @property
    def is_urgent(self) -> NDArray[np.bool_]:
        """Jobs about to be late that need less than a round, (N,)."""
        return (self.rho > self.rhomax) & (self.remaining_of_weights_s < self.round_s)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights, (N,): ``rho ** priority_power`` of jobs with rho above ``rhomax``, otherwise 1."""
        return np.where(self.rho > self.rhomax, self.rho**self.priority_power, 1.0)

    @property
    def published_weights(self) -> NDArray[np.float64]:
        """The same with ``rho ** 100`` of urgent jobs, (N,): up to 1e75 beside 1, beyond a solver's precision."""
        with np.errstate(over="ignore"):
            urgent = np.minimum(self.rho**URGENT_POWER, MOST_WEIGHT)
        return np.where(self.is_urgent, urgent, self.weights)

    def levels(self, *, published: bool) -> tuple[Level, ...]:
        """Return the objectives without finish-time constraints, the most important first.

        Urgent jobs first, among themselves weighted like all jobs (``weights``); then all jobs, and the longest
        remaining time. As published: one objective with ``published_weights``. The two agree where these separate
        urgent jobs from the others within a solver's precision; urgent jobs rarely compete, as each needs about one
        round.
        """
        if published:
            return (Level(self.published_weights, self.k),)
        urgent = (Level(np.where(self.is_urgent, self.weights, 0.0), 0.0),) if self.is_urgent.any() else ()
        return (*urgent, Level(self.weights, self.k))


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One objective: maximise weighted utilities, less ``k`` times the longest remaining time.

    The utilities are summed over jobs and divided by jobs and rounds (N F).

    Parameters
    ----------
    weight : (N,) float64
        At least 0.
    k
        Utility per second.
    """

    weight: NDArray[np.float64]
    k: float


@dataclass(frozen=True, slots=True, eq=False)
class RoundValues:
    """Value of n rounds of the window to each job, for n = 0 ... F, which determine the worth of an answer.

    Parameters
    ----------
    problem
        The problem.
    utility : (N, F + 1) float64
        Interpolated logarithm of the fraction of epochs that a job has then done: concave, not falling.
    remaining_s : (N, F + 1) float64
        Remaining time then: convex, not rising.
    """

    problem: PlanProblem
    utility: NDArray[np.float64]
    remaining_s: NDArray[np.float64]

    @classmethod
    def of(cls, problem: PlanProblem) -> RoundValues:
        """Return the values of all numbers of rounds."""
        n_remaining = np.maximum(problem.n_epochs - problem.epochs_done, 0)[:, None]
        seconds = problem.round_s * np.arange(problem.n_rounds + 1)
        epochs = np.minimum(n_remaining, seconds / problem.mean_epoch_s[:, None])
        progress = (problem.epochs_done[:, None] + epochs) / problem.n_epochs[:, None]
        knots = np.array(problem.log_knots)
        log_at_knot = np.concatenate(([LOG_OF_ZERO], np.log(knots[1:])))
        remaining_s = problem.remaining_s[:, None] - problem.mean_epoch_s[:, None] * epochs
        return cls(problem, np.interp(progress, knots, log_at_knot), np.maximum(0.0, remaining_s))

    def at(self, level: Level, counts: NDArray[np.int64]) -> float:
        """Return the objective of ``level`` when each job gets ``counts (N,)`` rounds."""
        job_index = np.arange(counts.shape[0])
        return float(level.weight @ self.utility[job_index, counts]) / self._scale - level.k * self.longest_s(counts)

    def longest_s(self, counts: NDArray[np.int64]) -> float:
        """Return the longest remaining time when each job gets ``counts (N,)`` rounds."""
        return float(self.remaining_s[np.arange(counts.shape[0]), counts].max(initial=0.0))

    def rounds_until(self, longest_s: float) -> NDArray[np.int64]:
        """Return the fewest rounds after which no job has more than ``longest_s`` left (possible), (N,)."""
        least_counts: NDArray[np.int64] = (self.remaining_s <= longest_s + TOLERANCE_S).argmax(axis=1)
        return least_counts

    def drown_in(self, level: Level) -> bool:
        """Return whether the longest remaining time hides utilities from a solver with gaps and tolerances.

        True with the published k for 64 and 256 GPUs, 10 and 1e5.
        """
        largest_gain = float((level.weight[:, None] * np.diff(self.utility, axis=1)).max(initial=0.0)) / self._scale
        return level.k * self.problem.round_s > HIDING * largest_gain

    @property
    def _scale(self) -> int:
        return self.problem.n_jobs * self.problem.n_rounds

    def most_useful(self) -> NDArray[np.int64]:
        """Return the rounds beyond which a job gains nothing, (N,)."""
        n_useful: NDArray[np.int64] = (np.diff(self.utility, axis=1) > NEGLIGIBLE).sum(axis=1)
        return n_useful


HIDING = 1e3
"""Worth of a round less of the longest remaining time, over that of a job's round, that hides the latter."""

NEGLIGIBLE = 1e-11
"""Differences of utilities below this are rounding."""


def least_rounds(values: RoundValues) -> NDArray[np.int64] | None:
    """Return the rounds that jobs need to finish within ``rhomax`` times their targets, (N,), or None.

    Each job alone: together they may need too many GPUs. Every job counts as running on after the window, as published:
    a job whose target falls into the window makes this impossible.
    """
    problem = values.problem
    window_s = problem.n_rounds * problem.round_s
    latest_s = problem.fair_share * (problem.rhomax * problem.target_s - problem.elapsed_s - window_s)
    is_in_time = values.remaining_s <= (latest_s + TOLERANCE_S)[:, None]
    least_counts: NDArray[np.int64] = is_in_time.argmax(axis=1)
    return least_counts if is_in_time.any(axis=1).all() else None


TOLERANCE_S = 1e-6
"""Tolerance of constraints on remaining times."""


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

    def counts(self, solution: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the rounds of each job in an answer, (N,)."""
        rounds = np.rint(solution[: self.owner.shape[0]]).astype(np.int64)
        return self.least + np.bincount(self.owner, weights=rounds, minlength=self.least.shape[0]).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """More important level of the objective, and its value to keep."""

    level: Level
    value: float


def counts_model(
    values: RoundValues,
    level: Level,
    least_counts: NDArray[np.int64],
    floor: Floor | None,
    *,
    per_round: bool,
    start: NDArray[np.bool_] | None = None,
) -> CountsModel:
    """Return the model that maximises ``level`` over numbers of rounds ``least_counts <= n <= F``.

    The utility is concave in n, so rounds of the same gain form one column, and the columns of a job fill up in order
    of their gains. Remaining time is convex: one row ``longest >= R - T n`` a job is exact. The column is the
    reduction of the longest remaining time (in rounds), so that gaps are relative to gains.

    Parameters
    ----------
    values, level, least_counts
        Problem and objective.
    floor
        A more important level to keep.
    per_round
        With binaries for each job and round of G GPUs. Otherwise F * G GPUs in all: a relaxation with few columns,
        exact where the counts can be packed into rounds.
    start : (N, F) bool
        A feasible plan to start from, with ``per_round``.
    """
    counts = _Counts(values, level, least_counts)
    counts.limit_gpus(per_round=per_round)
    if level.k > 0:
        counts.add_savings()
    if floor is not None:
        counts.keep(floor)
    start_point = None if start is None else counts.point(start)
    return CountsModel(counts.rows.model_of(counts.columns, start=start_point), counts.owner, least_counts)


class _Counts:
    """Model of ``counts_model`` in the making; its first columns are rounds of equal gain, by job, then round."""

    def __init__(self, values: RoundValues, level: Level, least_counts: NDArray[np.int64]) -> None:
        self._values, self._level, self._least = values, level, least_counts
        self._problem = problem = values.problem
        self._job = np.arange(problem.n_jobs)
        self._most = np.where(
            problem.gang <= problem.n_gpus, np.maximum(values.most_useful(), least_counts), least_counts
        )
        self.owner, self._length, self._gain = _segments(values, least_counts, self._most)
        self._scale = problem.n_jobs * problem.n_rounds
        self.columns, self.rows = Columns(), Rows()
        worth, number = level.weight[self.owner] * self._gain / self._scale, np.arange(self.owner.shape[0])
        self._rounds = self.columns.add("rounds", self.owner, number, objective=worth, upper=self._length)

    def limit_gpus(self, *, per_round: bool) -> None:
        """Add the rows of GPUs: of each round, with a binary for each job and round; or of all together."""
        problem, model_rows = self._problem, self.rows
        if not per_round:
            free_gpu_rounds = problem.n_rounds * problem.n_gpus - int(problem.gang @ self._least)
            model_rows.put(
                model_rows.add("gpus", 1, -np.inf, float(free_gpu_rounds)), self._rounds, problem.gang[self.owner]
            )
            return
        indices = np.indices((problem.n_jobs, problem.n_rounds))
        run_columns = self.columns.add("runs", indices[0].ravel(), indices[1].ravel()).reshape(indices[0].shape)
        first_row = model_rows.add("gpus", problem.n_rounds, -np.inf, float(problem.n_gpus))
        model_rows.put(first_row + np.arange(problem.n_rounds), run_columns, problem.gang[:, None])
        first_row = model_rows.add("counted", problem.n_jobs, self._least, self._least)
        model_rows.put(first_row + self._job[:, None], run_columns, 1.0)
        model_rows.put(first_row + self.owner, self._rounds, -1.0)

    def add_savings(self) -> None:
        """Add the column of rounds saved of the longest remaining time, and a row for each job that may limit it."""
        remaining_s, round_s = self._values.remaining_s, self._problem.round_s
        longest_s, unavoidable_s = self._values.longest_s(self._least), self._values.longest_s(self._most)
        holds_back = np.flatnonzero(remaining_s[self._job, self._least] > unavoidable_s)
        if not holds_back.size:
            return
        saved_column = self.columns.add(
            "saved",
            np.zeros(1, dtype=np.int64),
            objective=self._level.k * round_s,
            upper=(longest_s - unavoidable_s) / round_s,
            integer=False,
        )
        slack = (self._problem.remaining_s[holds_back] - longest_s) / round_s - self._least[holds_back]
        first_row = self.rows.add("saved", holds_back.size, slack, np.inf, holds_back)
        row_of = np.full(self._problem.n_jobs, -1)
        row_of[holds_back] = first_row + np.arange(holds_back.size)
        self.rows.put(row_of[holds_back], np.broadcast_to(saved_column, holds_back.shape), -1.0)
        has_row = row_of[self.owner] >= 0
        self.rows.put(row_of[self.owner[has_row]], self._rounds[has_row], 1.0)

    def keep(self, floor: Floor) -> None:
        """Add the row that keeps ``floor``, whose level has no k."""
        weight, utility = floor.level.weight, self._values.utility
        factor = weight[self.owner] * self._gain
        least_gain = floor.value * self._scale - float(weight @ utility[self._job, self._least])
        largest = float(factor.max(initial=0.0)) or 1.0
        self.rows.put(self.rows.add("kept", 1, least_gain / largest - SLACK, np.inf), self._rounds, factor / largest)

    def point(self, plan: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the column values of a plan: segments filled in order, then jobs by round, then savings."""
        counts, owner, n_segments = plan.sum(axis=1), self.owner, self.owner.shape[0]
        rounds_before = np.cumsum(self._length) - self._length
        available = (counts - self._least)[owner] - (rounds_before - rounds_before[np.searchsorted(owner, owner)])
        column_values = np.zeros(len(self.columns.names))
        column_values[:n_segments] = np.clip(available, 0.0, self._length)
        column_values[n_segments : n_segments + plan.size] = plan.ravel()
        if column_values.shape[0] > n_segments + plan.size:
            savings_s = self._values.longest_s(self._least) - self._values.longest_s(counts)
            column_values[-1] = min(float(self.columns.upper[-1][0]), savings_s / self._problem.round_s)
        return column_values


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
    n_jobs, n_rounds = runs_at_all.shape[0], problem.n_rounds
    indices = np.indices((n_jobs, n_rounds))
    columns, model_rows = Columns(), Rows()
    cost = mean_round_cost(weight, counts)[runs_at_all]
    round_range = np.arange(n_rounds)
    run_columns = columns.add(
        "runs", runs_at_all[indices[0].ravel()], indices[1].ravel(), objective=-np.outer(cost, round_range).ravel()
    ).reshape(n_jobs, n_rounds)
    first_row = model_rows.add("counted", n_jobs, counts[runs_at_all], counts[runs_at_all], runs_at_all)
    model_rows.put(first_row + np.arange(n_jobs)[:, None], run_columns, 1.0)
    first_row = model_rows.add("gpus", n_rounds, -np.inf, float(problem.n_gpus))
    model_rows.put(first_row + round_range, run_columns, problem.gang[runs_at_all, None])
    if floor is not None:
        kept_cost = mean_round_cost(floor[0], counts)[runs_at_all]
        scale = float(kept_cost.max(initial=0.0)) or 1.0
        first_row = model_rows.add("kept", 1, -np.inf, floor[1] / scale + SLACK)
        model_rows.put(first_row, run_columns, np.outer(kept_cost / scale, round_range))
    return model_rows.model_of(columns, start=None if start is None else start[runs_at_all].astype(np.float64).ravel())


def mean_round_cost(weight: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the cost of running one round later, ``weight / counts``, (N,); 0 for jobs without rounds."""
    return np.divide(weight, counts, out=np.zeros(counts.shape[0]), where=counts > 0)


SLACK = 1e-7
"""Tolerance of rows that keep a more important level, relative to their largest coefficient."""


def _segments(
    values: RoundValues, least_counts: NDArray[np.int64], largest: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return job, length and gain per round of runs of rounds with equal gain, by job, then round."""
    gain_of_round = np.diff(values.utility, axis=1)
    number = np.arange(gain_of_round.shape[1])
    inside = (number >= least_counts[:, None]) & (number < largest[:, None])
    begins = np.ones_like(inside)
    begins[:, 1:] = (np.abs(np.diff(gain_of_round, axis=1)) > NEGLIGIBLE) | ~inside[:, :-1]
    owner, round_number = np.nonzero(inside)
    segment = np.cumsum(begins[owner, round_number]) - 1
    length = np.bincount(segment)
    mean_gain = np.bincount(segment, weights=gain_of_round[owner, round_number]) / np.maximum(length, 1)
    return owner[begins[owner, round_number]], length.astype(np.float64), np.maximum(mean_gain, 0.0)
