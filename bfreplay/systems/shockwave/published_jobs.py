"""Training in the published simulator: whole steps, and batch sizes that change at the ends of leases."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.saved_state import restorable
from bfreplay.systems.gavel.rounds.next_round import FAILURES_ALLOWED
from bfreplay.systems.gavel.rounds.state import Assignment
from bfreplay.systems.shockwave.adaptation_rules import (
    Mode,
    asked_batch_size,
    model_and_batch_size,
    steps_per_epoch,
    wants_to_change,
)
from bfreplay.systems.shockwave.profile import Profile, profile_of
from bfreplay.systems.shockwave.trace import RESTORE_S
from bfreplay.workload import ElasticJob

UNFAIR_RHO = 1.05
"""A job with a larger finish-time fairness counts as treated unfairly."""

_DIGITS = 5


def finish_time_fairness(
    jct_s: Iterable[float], exclusive_s: Iterable[float], contention: Iterable[float]
) -> NDArray[np.float64]:
    """Return the time from arrival to end over the time alone times contention (>= 1), to five digits, (J,)."""
    per_job = zip(jct_s, exclusive_s, contention, strict=True)
    return np.array(
        [round(completion_s / (alone_s * max(1.0, factor)), _DIGITS) for completion_s, alone_s, factor in per_job]
    )


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


DEADLINE_FACTOR = 1.5
"""A job that has run for this multiple of its exclusive time counts as finished."""

TAIL_S = 5.0
"""A restart costs nothing in a round in which the job ends this long before the round, or earlier."""


@restorable
@dataclass(slots=True)
class PublishedJob:
    """Job of the published simulator.

    Parameters
    ----------
    job, gang, profile
        The job, its nodes, and its published profile.
    size
        Batch size now.
    total, done
        Steps at this batch size: of the whole job, and done.
    asks
        Whether it asks for another batch size, which it gets when its next lease ends.
    ran_s
        Seconds of running.
    last_round
        Last round in which it ran.
    ends_late
        Whether this round is its last one, as it has run for too long.
    n_failed
        Consecutive rounds in which it had nothing to do.
    finish_s, is_done
        End of its last micro-task on the simulator's clock, and whether that is the end of the job.
    first_round, n_rounds, n_active
        Its first round, the number of rounds in which it ran, and the sum of active jobs over all rounds since.
    """

    job: ElasticJob
    gang: int
    profile: Profile
    size: int
    total: int
    done: int = 0
    asks: bool = False
    ran_s: float = 0.0
    last_round: int = -1
    ends_late: bool = False
    n_failed: int = 0
    finish_s: float = 0.0
    is_done: bool = False
    first_round: int = 0
    n_rounds: int = 0
    n_active: int = 0

    @classmethod
    def of(cls, job: ElasticJob, gang: int) -> PublishedJob:
        """Return a job that has done nothing yet."""
        _, first_size = model_and_batch_size(job.model or "")
        return cls(job, gang, profile_of(job, gang, published=True), first_size, round(job.work_samples / first_size))

    @property
    def rate(self) -> float:
        """Steps/s on its nodes."""
        assert self.job.adaptation is not None
        curve = self.job.adaptation.throughput[self.size]
        return float(curve.table(self.gang)[self.gang]) / self.size

    @property
    def steps_left(self) -> int:
        """Remaining steps; a job whose started epoch was rounded up may have none before it is removed."""
        return max(self.total - self.done, 0)

    @property
    def is_given_up(self) -> bool:
        """True if it had nothing to do for so many rounds that it is removed."""
        return self.n_failed >= FAILURES_ALLOWED

    @property
    def epochs_done(self) -> int:
        """Number of whole epochs done."""
        return self.done // self._steps_per_epoch

    @property
    def _steps_per_epoch(self) -> int:
        return steps_per_epoch(self._model[0], self.size)

    @property
    def _model(self) -> tuple[str, int]:
        return model_and_batch_size(self.job.model or "")

    @property
    def _mode(self) -> Mode:
        assert self.job.adaptation is not None
        return Mode(self.job.adaptation.rule)

    def is_over_time(self, exec_s: float, factor: float) -> bool:
        """Return whether the simulator counts it as finished after ``exec_s`` seconds more."""
        return self.ran_s + exec_s > int(factor * int(self.profile.exclusive_s))

    def change_batch_size(self) -> None:
        """Change to the batch size that was asked for: an epoch that has begun counts as done."""
        model, first_size = self._model
        old_steps = self._steps_per_epoch
        size = asked_batch_size(model, first_size, self.size, self._mode)
        new_steps = steps_per_epoch(model, size)
        n_epochs = math.ceil(self.total / old_steps)
        total = math.ceil(self.total * self.size / size)
        self.total = total if math.ceil(total / new_steps) == n_epochs else new_steps * n_epochs
        self.done = math.ceil(self.done / old_steps) * new_steps
        self.size, self.asks = size, False

    def ask(self) -> None:
        """Ask for another batch size if the rule requires it now."""
        model, first_size = self._model
        n_epochs_begun = math.ceil(self.done / self._steps_per_epoch)  # including the current one
        if wants_to_change(model, first_size, self.size, self.gang, self._mode, n_epochs_begun):
            self.asks = True


class PublishedJobs:
    """All jobs of a replay by their numbers in the rounds, and their progress in each round.

    Parameters
    ----------
    round_s
        Length of a round.
    deadline_factor
        See ``DEADLINE_FACTOR``; 1.0 in the older published runs.
    """

    def __init__(self, round_s: float, deadline_factor: float = DEADLINE_FACTOR) -> None:
        self._round_s = round_s
        self._deadline_factor = deadline_factor
        self.of: dict[int, PublishedJob] = {}
        self._all: list[PublishedJob] = []
        self.n_rounds = 0
        self._busy_s = np.zeros(0)

    def add(self, number: int, job: PublishedJob) -> None:
        """Add a job that has arrived."""
        job.first_round = self.n_rounds
        self.of[number] = job
        self._all.append(job)

    def begin_round(self, assignment: Assignment) -> Assignment:
        """Subtract the steps that restarts cost; micro-tasks without a step fail.

        A job that did not run in the round before loses ``RESTORE_S`` seconds of steps, except in the first round and
        where it ends ``TAIL_S`` or more before the round; its time counts without them.
        """
        steps, restarts = assignment.steps.copy(), np.zeros_like(assignment.restarts)
        last_node = int(assignment.node.max(initial=-1))
        self._busy_s = np.pad(self._busy_s, (0, max(0, last_node + 1 - self._busy_s.size)))
        overhead_s, fails = assignment.overhead_s.copy(), assignment.fails.copy()
        for task, number in enumerate(assignment.member[:, 0].tolist()):
            job = self.of[number]
            exec_s = float(assignment.finish_s[task] - assignment.start_s[task])
            is_new = job.last_round != self.n_rounds - 1  # in the first round none is
            if is_new and exec_s > self._round_s - TAIL_S:
                steps[task, 0] = int(int(steps[task, 0]) * (exec_s - RESTORE_S) / exec_s)
                restarts[task, 0] = True
                overhead_s[task] = RESTORE_S
                exec_s -= RESTORE_S
            fails[task] = steps[task, 0] <= 0 and exec_s <= 0
            job.last_round = self.n_rounds
            job.n_rounds += 1
            job.finish_s = float(assignment.finish_s[task])
            job.n_failed = job.n_failed + 1 if fails[task] else 0
            job.ends_late = not fails[task] and job.is_over_time(exec_s, self._deadline_factor)
            job.is_done = job.ends_late or job.is_given_up or (not fails[task] and steps[task, 0] >= job.steps_left)
            self._busy_s[assignment.nodes_of(task)] += 0.0 if fails[task] else exec_s
        if assignment.n_tasks:
            self.n_rounds += 1
            for job in self.of.values():
                job.n_active += len(self.of)
        return replace(assignment, steps=steps, restarts=restarts, overhead_s=overhead_s, fails=fails)

    def end_round(self, assignment: Assignment) -> None:
        """Count the work of the round; let jobs change their batch sizes, then ask for others."""
        ran_s = assignment.ran_s().tolist()
        for task, number in enumerate(assignment.member[:, 0].tolist()):
            job = self.of.get(number)
            if job is None:
                continue
            if not assignment.fails[task]:
                job.done += int(assignment.steps[task, 0])
                job.ran_s += ran_s[task]
            if job.asks:
                job.change_batch_size()
        for job in self.of.values():
            job.ask()

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget jobs that are done."""
        for number in numbers:
            del self.of[number]

    def metrics(self, n_nodes: int) -> PublishedMetrics:
        """Return the metrics of the finished jobs on ``n_nodes`` nodes."""
        jobs = [job for job in self._all if job.is_done]
        n_rounds_present = [job.last_round - job.first_round + 1 for job in jobs]
        pairs = list(zip(jobs, n_rounds_present, strict=True))
        return PublishedMetrics(
            jct_s=np.array([job.finish_s - job.job.submit_us / 1e6 for job in jobs]),
            exclusive_s=np.array([job.profile.exclusive_s for job in jobs]),
            active=np.array([job.n_active / n_rounds for job, n_rounds in pairs]),
            scheduled=np.array([job.n_rounds / n_rounds for job, n_rounds in pairs]),
            busy_s=np.pad(self._busy_s, (0, n_nodes - self._busy_s.size)),
            end_s=max((job.finish_s for job in jobs), default=0.0),
        )
