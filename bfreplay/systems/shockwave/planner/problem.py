"""Problem of a plan: jobs and a window of rounds, and the worth of n rounds to a job."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
        left = np.maximum(problem.n_epochs - problem.epochs_done, 0)[:, None]
        seconds = problem.round_s * np.arange(problem.n_rounds + 1)
        epochs = np.minimum(left, seconds / problem.mean_epoch_s[:, None])
        progress = (problem.epochs_done[:, None] + epochs) / problem.n_epochs[:, None]
        knots = np.array(problem.log_knots)
        logs = np.concatenate(([LOG_OF_ZERO], np.log(knots[1:])))
        remaining_s = problem.remaining_s[:, None] - problem.mean_epoch_s[:, None] * epochs
        return cls(problem, np.interp(progress, knots, logs), np.maximum(0.0, remaining_s))

    def at(self, level: Level, counts: NDArray[np.int64]) -> float:
        """Return the objective of ``level`` when each job gets ``counts (N,)`` rounds."""
        job = np.arange(counts.shape[0])
        return float(level.weight @ self.utility[job, counts]) / self._scale - level.k * self.longest_s(counts)

    def longest_s(self, counts: NDArray[np.int64]) -> float:
        """Return the longest remaining time when each job gets ``counts (N,)`` rounds."""
        return float(self.remaining_s[np.arange(counts.shape[0]), counts].max(initial=0.0))

    def rounds_until(self, longest_s: float) -> NDArray[np.int64]:
        """Return the fewest rounds after which no job has more than ``longest_s`` left (possible), (N,)."""
        least: NDArray[np.int64] = (self.remaining_s <= longest_s + TOLERANCE_S).argmax(axis=1)
        return least

    def drown_in(self, level: Level) -> bool:
        """Return whether the longest remaining time hides utilities from a solver with gaps and tolerances.

        True with the published k for 64 and 256 GPUs, 10 and 1e5.
        """
        gain = float((level.weight[:, None] * np.diff(self.utility, axis=1)).max(initial=0.0)) / self._scale
        return level.k * self.problem.round_s > HIDING * gain

    @property
    def _scale(self) -> int:
        return self.problem.n_jobs * self.problem.n_rounds

    def most_useful(self) -> NDArray[np.int64]:
        """Return the rounds beyond which a job gains nothing, (N,)."""
        gained: NDArray[np.int64] = (np.diff(self.utility, axis=1) > NEGLIGIBLE).sum(axis=1)
        return gained


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
    allowed_s = problem.fair_share * (problem.rhomax * problem.target_s - problem.elapsed_s - window_s)
    met = values.remaining_s <= (allowed_s + TOLERANCE_S)[:, None]
    least: NDArray[np.int64] = met.argmax(axis=1)
    return least if met.any(axis=1).all() else None


TOLERANCE_S = 1e-6
"""Tolerance of constraints on remaining times."""
