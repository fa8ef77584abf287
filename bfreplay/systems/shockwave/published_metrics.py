"""Metrics of a run as in the published program, from its own clock and profiles (NSDI'23 artifact)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

UNFAIR_RHO = 1.05
"""A job with a larger finish-time fairness counts as treated unfairly."""

_DIGITS = 5


def finish_time_fairness(
    jct_s: Iterable[float], exclusive_s: Iterable[float], contention: Iterable[float]
) -> NDArray[np.float64]:
    """Return the time from arrival to end over the time alone times contention (>= 1), to five digits, (J,)."""
    of_jobs = zip(jct_s, exclusive_s, contention, strict=True)
    return np.array([round(jct / (alone * max(1.0, by)), _DIGITS) for jct, alone, by in of_jobs])


def unfair_percent(rho: NDArray[np.float64]) -> float:
    """Return the percentage of the jobs above ``UNFAIR_RHO``."""
    return float(100.0 * np.count_nonzero(rho > UNFAIR_RHO) / max(rho.size, 1))


@dataclass(frozen=True, slots=True, eq=False)
class PublishedMetrics:
    """Metrics of the J finished jobs as the published program reports them, in order of arrival.

    Parameters
    ----------
    jct_s, exclusive_s : (J,) float64
        Seconds from arrival to end, and alone by the profile.
    active : (J,) float64
        Mean number of active jobs in the rounds from a job's first to its last.
    scheduled : (J,) float64
        Fraction of these rounds in which the job ran (the envy ratio).
    busy_s : (G,) float64
        Busy seconds of each node without restarts.
    end_s
        End of the last job.
    """

    jct_s: NDArray[np.float64]
    exclusive_s: NDArray[np.float64]
    active: NDArray[np.float64]
    scheduled: NDArray[np.float64]
    busy_s: NDArray[np.float64]
    end_s: float

    @property
    def rho(self) -> NDArray[np.float64]:
        """Finish-time fairness, (J,), with the contention of all jobs of the trace at once."""
        contention = self.jct_s.size / self.busy_s.size
        return finish_time_fairness(self.jct_s, self.exclusive_s, [contention] * self.jct_s.size)

    @property
    def themis_rho(self) -> NDArray[np.float64]:
        """Finish-time fairness, (J,), with the contention of the active jobs in its rounds."""
        return finish_time_fairness(self.jct_s, self.exclusive_s, self.active / self.busy_s.size)

    @property
    def utilisation(self) -> NDArray[np.float64]:
        """Busy fraction of the makespan of each node, (G,), to five digits."""
        return np.round(self.busy_s / self.end_s, _DIGITS) if self.end_s else np.zeros_like(self.busy_s)

    def to_json(self) -> dict[str, float]:
        """Return the totals for the run record; none without jobs."""
        if not self.jct_s.size:
            return {}
        return {
            "makespan_s": self.end_s,
            "average_jct_s": math.fsum(self.jct_s) / self.jct_s.size,
            "geometric_mean_jct_s": float(np.exp(np.log(self.jct_s).mean())),
            "harmonic_mean_jct_s": float(1.0 / (1.0 / self.jct_s).mean()),
            "worst_rho": float(self.rho.max()),
            "unfair_percent": unfair_percent(self.rho),
            "worst_themis_rho": float(self.themis_rho.max()),
            "unfair_themis_percent": unfair_percent(self.themis_rho),
            "utilisation": float(self.utilisation.mean()),
            "least_scheduled": float(self.scheduled.min()),
        }
