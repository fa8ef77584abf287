"""Themis as ElasticFlow's published program has it: in every slot, the GPUs go to the jobs with the largest fractions.

Progress in isolation is measured as in the program: by share of time, without throughput. Fractions of time are those
with the best worst finish-time fairness: the ratio of a job is (elapsed time + iterations left / (rate x fraction))
over its reference time, and the largest is to be as small as possible. Often the worst job has all the time that it can
use, and others may have more than they need: the best answer is then not unique, and decides the jobs that run. Hence
the same cone program and the same solver as in the published Themis: ECOS.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from bfreplay.errors import BfreplayError
from bfreplay.milp.backends.backend import unmet
from bfreplay.systems.elasticflow.published.event_loop import Event, Job, PublishedLoop, check_sizes, first_fit
from bfreplay.systems.elasticflow.published.program import PublishedRun, Servers, TraceJob

NO_START_S = sys.maxsize
"""Start in the log of every job: the program never sets one."""

ECOS = ">=2.0.14,<3"
"""Versions of ecos, as in ``pyproject.toml``: the last one decides as the published runs."""

Floats = NDArray[np.float64]


def missing_solver() -> str:
    """Return which ECOS to install; empty for none."""
    return unmet("ecos", ECOS, why="others may run other jobs", fix="pip install 'bfreplay[themis]'")


@dataclass(slots=True, eq=False)
class _Job(Job):
    """Job that has arrived and not ended."""

    remaining_s: float = 0.0
    iterations_left: float = 0.0
    isolated: float = 0.0
    last_iterations_left: float | None = None
    last_share: float = 1.0

    @property
    def rate(self) -> float:
        """Iterations per second on the requested GPUs."""
        return self.trace.rates[self.trace.gpus]

    def add_isolated_time(self, share: float) -> None:
        """Count the iterations since the last slot as time in isolation at the share then."""
        if self.last_iterations_left is not None:
            self.isolated += (self.last_iterations_left - self.iterations_left) / self.last_share
        self.last_iterations_left = self.iterations_left
        self.last_share = share

    def run(self, start_s: float, slot_s: float) -> bool:
        """Run for a slot; return whether the job ends in it, by its duration or by its iterations."""
        end_s = start_s + self.remaining_s
        self.remaining_s = max(0, self.remaining_s - slot_s)
        self.iterations_left -= slot_s * self.rate
        if self.iterations_left <= 0:
            self.remaining_s = 0
            end_s = start_s + slot_s
        if end_s > start_s + slot_s:
            return False
        self.end_s = end_s
        return True


def themis(jobs: Sequence[TraceJob], servers: Servers, slot_s: int, *, only_contended: bool = True) -> PublishedRun:
    """Run the published Themis.

    No job is ever charged an overhead, and none has a start (``NO_START_S``).

    Parameters
    ----------
    jobs, servers, slot_s
        As for ``gandiva``; each slot is an event.
    only_contended
        Compute fractions only if the jobs do not all fit at once, which is several times as fast. The same jobs run and
        end at the same times, perhaps on other GPUs than in the published program.

    Raises
    ------
    BfreplayError
        As ``check_sizes``, or ECOS is not installed.
    """
    check_sizes(jobs, servers)
    if problem := missing_solver():
        raise BfreplayError(f"the published Themis needs its solver: {problem}")
    loop_jobs = [_Job(job, NO_START_S, remaining_s=job.duration_s, iterations_left=job.iterations) for job in jobs]
    return _Themis(loop_jobs, servers, slot_s, only_contended).run()


class _Themis(PublishedLoop[_Job]):
    """Loop in which every slot is an event."""

    def __init__(self, jobs: Sequence[_Job], servers: Servers, slot_s: int, only_contended: bool) -> None:
        self._first_s = min((job.trace.submit_s for job in jobs), default=0)
        super().__init__(jobs, servers, slot_s)
        self._only_contended = only_contended
        self._last_change_s: float = self._first_s
        self._chosen: list[_Job] = []

    def arrival_s(self, trace: TraceJob) -> float:
        """Return the end of the slot in which the job is submitted."""
        return trace.submit_s + (self._first_s - trace.submit_s) % self.slot_s

    def next_event_s(self, now_s: float) -> float:
        """Return the end of the slot."""
        return now_s + self.slot_s if self.runnable or len(self.timetable) else math.inf

    def advance(self, now_s: float, elapsed_s: float) -> None:
        """Run the chosen jobs for a slot, and add their ends."""
        fitting = set(self._chosen)
        for job in self.runnable:
            if job in fitting and job.run(now_s - elapsed_s, self.slot_s):
                self.timetable.add_end(job, now_s)

    def handle(self, event: Event[_Job]) -> None:
        """Handle ends and arrivals, and choose the jobs of the next slot."""
        if event.ends or event.arrivals:
            self._last_change_s = event.time_s
        for job in event.ends:
            self.end(job, job.trace.gpus, job.trace.is_met(job.end_s))
        self.runnable.extend(event.arrivals)
        self._chosen = self._choose() if self.runnable else []
        self.place_requested(self._chosen)
        self.log(event.time_s, self._chosen, self.placement.gpus())

    def _fractions(self) -> Floats:
        """Return the fractions of time of all jobs; the elapsed time is that at the last event, not now."""
        jobs, n_gpus = self.runnable, self.servers.n_gpus
        equal_gpus = math.ceil(n_gpus / len(jobs))
        shares = [min(equal_gpus / job.trace.gpus, 1.0) for job in jobs]
        for job, share in zip(jobs, shares, strict=True):
            job.add_isolated_time(share)
        gpus = np.array([job.trace.gpus for job in jobs], dtype=float)
        if self._only_contended and gpus.sum() <= n_gpus:
            return np.zeros(len(jobs))
        return fair_fractions(
            elapsed_s=np.array([self._last_change_s - job.trace.submit_s for job in jobs], dtype=float),
            iterations=np.array([job.iterations_left for job in jobs]),
            rates=np.array([job.rate for job in jobs]),
            reference_s=np.array(
                [job.isolated + job.iterations_left / share for job, share in zip(jobs, shares, strict=True)]
            ),
            gpus=gpus,
            n_gpus=n_gpus,
        )

    def _choose(self) -> list[_Job]:
        """Sort jobs by fraction, the largest first, which also breaks later ties; choose the jobs that fit."""
        self.runnable = [self.runnable[job_row] for job_row in np.argsort(-self._fractions(), kind="stable")]
        fitting = first_fit(self.runnable, self.servers.n_gpus)
        return sorted(fitting, key=lambda job: -job.trace.gpus)


def fair_fractions(
    elapsed_s: Floats, iterations: Floats, rates: Floats, reference_s: Floats, gpus: Floats, n_gpus: int
) -> Floats:
    """Return the fractions of time that minimise the largest ratio, shape (J,), in [0, 1] up to rounding.

    Fractions times GPUs add up to at most the GPUs of the cluster. The unknowns of the cone program are the largest
    ratio, the fractions, and a divided time for each. With w = rate x fraction, the last is y >= 1 / w, written as
    norm(w - y, 2) <= w + y.

    Parameters
    ----------
    elapsed_s : (J,)
        Time since submission.
    iterations : (J,)
        Remaining iterations, more than 0.
    rates : (J,)
        Iterations per second on the requested GPUs.
    reference_s : (J,)
        Reference time of the finish, more than 0.
    gpus : (J,)
        Requested GPUs.
    n_gpus
        GPUs of the cluster.
    """
    n_jobs = len(gpus)
    if n_jobs == 1:
        return np.ones(1)
    jobs = np.arange(n_jobs)
    fraction_column, inverse_column = 1 + jobs, 1 + n_jobs + jobs
    n_linear = 3 * n_jobs + 1
    coefficients = np.zeros((n_linear + 3 * n_jobs, 1 + 2 * n_jobs))
    right_side = np.zeros(len(coefficients))
    # each ratio is at most the largest
    coefficients[jobs, 0] = -1
    coefficients[jobs, inverse_column] = iterations / reference_s
    right_side[jobs] = -elapsed_s / reference_s
    # 0 <= fraction <= 1
    coefficients[n_jobs + jobs, fraction_column] = -1
    coefficients[2 * n_jobs + jobs, fraction_column] = 1
    right_side[2 * n_jobs + jobs] = 1
    # the GPUs of the cluster
    coefficients[3 * n_jobs, fraction_column] = gpus
    right_side[3 * n_jobs] = n_gpus
    # the cones
    cone_rows = n_linear + 3 * jobs
    coefficients[cone_rows, fraction_column] = coefficients[cone_rows + 1, fraction_column] = -rates
    coefficients[cone_rows, inverse_column] = -1
    coefficients[cone_rows + 1, inverse_column] = 1
    right_side[cone_rows + 2] = 2
    cost = np.zeros(1 + 2 * n_jobs)
    cost[0] = 1
    import ecos

    answer = ecos.solve(cost, csc_matrix(coefficients), right_side, {"l": n_linear, "q": [3] * n_jobs}, verbose=False)
    return np.asarray(answer["x"], dtype=np.float64)[fraction_column]
