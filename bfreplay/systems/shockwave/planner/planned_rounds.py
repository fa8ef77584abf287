"""Rounds that follow a plan, replanned when needed, and their state."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.solution import SolverStatus
from bfreplay.saved_state import restorable
from bfreplay.systems.shockwave.planner.options import PlannerOptions, PlannerQuirks
from bfreplay.systems.shockwave.planner.problem import PlanProblem
from bfreplay.systems.shockwave.planner.solve import Plan, PlanSolver
from bfreplay.systems.shockwave.profile import Profile

CALIBRATION_THRESHOLD = 0.4
"""Epoch times are calibrated when measured progress differs from the profile's by more than this fraction."""

LEAST_EPOCH_S = 1.0
"""Least rounded epoch time."""

DONE_REMAINING_S = 1.0
"""Remaining time of a job that has done all epochs and has not been removed."""

PAST_TARGETS, LATEST_TARGET = 0.9, 0.1
"""Weights of the average of all finish targets, and of the latest one, in the final target."""


@restorable
class JobPrediction:
    """Prediction for one job: its profile, calibrated by measurements, and the history of its finish targets.

    Calibration multiplies all epoch times of the profile by one factor. The published program calibrates its profile
    and knows the coming batch sizes, but not their times: it assumes Dirichlet distributed numbers of epochs.

    Parameters
    ----------
    profile
        Batch size and seconds of each epoch.
    gang
        GPUs of the job.
    admission_s
        Clock time of its admission.
    round_s
        Nominal length of a round (T).
    quirks
        Defects of the published program to repeat.

    Attributes
    ----------
    epochs_done
        Whole epochs done, as of the last round in which the job ran.
    factor
        Factor of calibration.
    targets
        ``(round, finish time)``: the finish time predicted in that round if the job had its fair share, on the clock.
    """

    def __init__(
        self, profile: Profile, gang: int, *, admission_s: float, round_s: float, quirks: PlannerQuirks
    ) -> None:
        self.gang = gang
        self.n_epochs = profile.n_epochs
        self.admitted_s = admission_s
        self.epochs_done = 0
        self.factor = 1.0
        self.targets: list[tuple[int, float]] = []
        self._quirks = quirks
        self._round_s = round_s
        self._samples_per_epoch = profile.samples_per_epoch
        epoch_s = profile.epoch_s
        if quirks.whole_second_epochs:
            epoch_s = np.maximum(LEAST_EPOCH_S, np.rint(epoch_s))
        self._until_s = np.concatenate(([0.0], np.cumsum(epoch_s)))  # (E + 1,)
        _, self._size = np.unique(profile.batch_size, return_inverse=True)  # (E,)
        self._n_of_size = np.bincount(self._size)  # (K,)
        self._mean_s_of_size = np.bincount(self._size, weights=epoch_s) / self._n_of_size
        self._measured_samples = 0.0
        self._measured_rounds = 0

    @property
    def mean_epoch_s(self) -> float:
        """Mean time of the epochs done and the current one (``d̄``)."""
        n_epochs = min(self.epochs_done + 1, self.n_epochs)
        return self.factor * float(self._until_s[n_epochs]) / n_epochs

    @property
    def remaining_s(self) -> float:
        """Remaining time alone on ``gang`` GPUs (``R``).

        The E epochs are split over the K batch sizes of the profile by the mean of a Dirichlet distribution, whose
        prior is symmetric and whose observations are the epochs done and the current one. Observed epochs are then
        subtracted, and the rest is scaled to the number of remaining epochs.
        """
        n_remaining = self.n_epochs - self.epochs_done
        if n_remaining <= 0:
            return DONE_REMAINING_S
        observations = np.bincount(self._size[: self.epochs_done + 1], minlength=self._n_of_size.shape[0])
        concentration = self.n_epochs / self._n_of_size.shape[0] + observations
        n_of_size = self.n_epochs * concentration / concentration.sum()
        n_of_size -= np.minimum(observations, np.floor(n_of_size))
        seconds = self.factor * float(n_of_size @ self._mean_s_of_size)
        return seconds * n_remaining / max(int(n_of_size.sum() + 1), n_remaining)

    def record_round(self, round_index: int, batch_size: int, steps_per_s: float) -> None:
        """Record the progress of the job in round ``round_index``, which has ended.

        With ``calibrates_over_waiting`` rounds since the last measurement (the first: since round 0) count like it.
        """
        n_rounds = round_index + 1 - self._measured_rounds if self._quirks.calibrates_over_waiting else 1
        self._measured_samples += batch_size * steps_per_s * self._round_s * n_rounds
        self._measured_rounds += n_rounds

    def calibrate(self) -> None:
        """Correct epoch times where the number of measured samples differs from the profile."""
        if self._measured_samples <= 0.0:
            return
        profile_samples = self._profiled_samples(self._measured_rounds * self._round_s)
        if abs(self._measured_samples - profile_samples) > CALIBRATION_THRESHOLD * profile_samples:
            self.factor = profile_samples / self._measured_samples

    def calibrate_for_use(self, n_uses: int = 1) -> None:
        """Calibrate as often as the published program does before so many uses, with its quirk; else do nothing."""
        if self._quirks.calibrates_each_use:
            for _ in range(n_uses):
                self.calibrate()

    def add_target(self, round_index: int, fair_share: float) -> None:
        """Predict the finish of the job if it ran in ``fair_share`` of the time.

        A second prediction in a round replaces the first.
        """
        if self.targets and self.targets[-1][0] == round_index:
            self.targets.pop()
        self.calibrate_for_use()
        progress_s = self.factor * float(self._until_s[min(self.epochs_done, self.n_epochs)])
        self.calibrate_for_use()
        total_s = progress_s + self.remaining_s
        self.targets.append((round_index, self.admitted_s + total_s / fair_share))

    def target_s(self, round_index: int) -> float:
        """Return the finish target (``Φ``) in round ``round_index``, on the clock.

        A weighted sum of the latest finish time and the average of all, each weighted by the rounds it was in force.
        """
        start, target = zip(*self.targets, strict=True)
        in_force = np.diff([*start, round_index])
        latest = float(target[-1])
        average = latest if in_force.sum() == 0 else float(in_force @ np.array(target)) / float(in_force.sum())
        return PAST_TARGETS * average + LATEST_TARGET * latest

    def _profiled_samples(self, seconds: float) -> float:
        """Return the samples of the profile in the first ``seconds``; after its end the last epoch continues."""
        whole_epochs = int(np.searchsorted(self._until_s, seconds, side="right")) - 1
        epoch = min(whole_epochs, self.n_epochs - 1)
        epoch_s = self._until_s[epoch + 1] - self._until_s[epoch]
        if self._quirks.calibrates_each_use:
            epoch_s *= self.factor
        return float((whole_epochs + (seconds - self._until_s[whole_epochs]) / epoch_s) * self._samples_per_epoch)


COUNTED = ("plans", "infeasible", "without_answer", "stopped_by_time_limit", "per_round", "greedy", "lexicographic")
"""Counts of ``ShockwavePlanner.summary``: plans, calls (see ``CallReport``), plans of two levels."""


class ShockwavePlanner:
    """Planner of the jobs of each round (Shockwave, NSDI'23).

    A plan is followed by the number of the round. It is replaced after a job was admitted or removed, in every
    ``replan_every``-th round, after its last round, and (not in the published program) after the number of GPUs
    changed.

    Call order in each round: ``after_round`` for the round that has ended, ``remove`` and ``add``, ``next_round``.

    Parameters
    ----------
    options
        Options of prediction, objective and back end.

    Raises
    ------
    SolverUnavailableError
        The back end does not work here.
    """

    not_saved = ("_options", "_solver")

    def __init__(self, options: PlannerOptions) -> None:
        self._options = options
        self._solver = PlanSolver(options)
        self.forget()

    def forget(self) -> None:
        """Forget all jobs and the plan."""
        self._jobs: dict[int, JobPrediction] = {}
        self.plan: Plan | None = None
        self.planned_jobs: tuple[int, ...] = ()
        self._planned_in = 0
        self._planned_gpus = 0
        self._is_stale = True
        self._counted: Counter[str] = Counter()
        self._largest_gap = 0.0
        self.solve_s = 0.0

    def prediction(self, job_number: int) -> JobPrediction:
        """Return the prediction for a job that has been added."""
        return self._jobs[job_number]

    def add(self, job_number: int, profile: Profile, gang: int, now_s: float) -> None:
        """Admit a job that runs on ``gang`` GPUs."""
        self._jobs[job_number] = JobPrediction(
            profile, gang, admission_s=now_s, round_s=self._options.round_s, quirks=self._options.quirks
        )
        self._is_stale = True

    def remove(self, job_number: int) -> None:
        """Forget a job that ended."""
        del self._jobs[job_number]
        self._is_stale = True

    def after_round(self, round_index: int, progress: Mapping[int, tuple[int, int, float]], now_s: float) -> None:
        """Record what jobs did in round ``round_index``, which ended at ``now_s``.

        Parameters
        ----------
        round_index
            Number of the round, from 0.
        progress
            For each scheduled job: whole epochs done by now, the batch size in the round, and steps/s (0 if it failed).
            Unknown (removed) jobs are ignored.
        now_s
            End of the round. A round that ended at 0 is not recorded.
        """
        if now_s <= 0.0:
            return
        for job_number, (n_epochs, batch_size, steps_per_s) in progress.items():
            if (prediction := self._jobs.get(job_number)) is not None:
                prediction.epochs_done = min(n_epochs, prediction.n_epochs)
                prediction.record_round(round_index, batch_size, steps_per_s)

    def next_round(self, round_index: int, now_s: float, n_gpus: int) -> list[int]:
        """Return the jobs to run in round ``round_index``, in the order of their admission.

        Their gangs fit into ``n_gpus``. With no job, or no GPU, nothing runs and nothing is planned.
        """
        if not self._jobs or n_gpus <= 0:
            return []
        position = round_index - self._planned_in
        if (
            self._is_stale
            or self.plan is None
            or not 0 <= position < len(self.plan.schedule)
            or round_index % self._options.replan_every == 0
            or n_gpus != self._planned_gpus
        ):
            self._replan(round_index, now_s, n_gpus)
            position = 0
        assert self.plan is not None
        return [self.planned_jobs[job_number] for job_number in self.plan.schedule[position]]

    def summary(self) -> dict[str, float]:
        """Return the counts of plans and solves: the same for the same rounds, unless a time limit ended a solve."""
        return {**{counter: self._counted[counter] for counter in COUNTED}, "largest_gap": self._largest_gap}

    def close(self) -> None:
        """End the back end's worker process, if any; a later plan starts it again."""
        self._solver.close()

    def problem(self, round_index: int, now_s: float, n_gpus: int) -> PlanProblem:
        """Calibrate, predict finish targets again if jobs or GPUs have changed, and return the planning problem."""
        options, predictions = self._options, list(self._jobs.values())
        if not options.quirks.calibrates_each_use:
            for prediction in predictions:
                prediction.calibrate()
        if tuple(self._jobs) != self.planned_jobs or n_gpus != self._planned_gpus:
            for prediction in predictions:
                prediction.add_target(round_index, min(1.0, n_gpus / len(predictions)))
        admission_s = np.array([prediction.admitted_s for prediction in predictions])
        target_s = np.array([prediction.target_s(round_index) for prediction in predictions])
        elapsed_s = now_s - admission_s
        if options.quirks.clock_times:
            elapsed_s = np.full(len(predictions), options.round_s * round_index)
        mean_epoch_s, remaining_s, of_weights_s = np.zeros((3, len(predictions)))
        for index, prediction in enumerate(predictions):  # in the order in which the published program uses them
            prediction.calibrate_for_use()
            mean_epoch_s[index] = prediction.mean_epoch_s
            prediction.calibrate_for_use()
            remaining_s[index] = prediction.remaining_s
            prediction.calibrate_for_use(2)
            of_weights_s[index] = prediction.remaining_s
        return PlanProblem(
            gang=np.array([prediction.gang for prediction in predictions], dtype=np.int64),
            n_epochs=np.array([prediction.n_epochs for prediction in predictions], dtype=np.int64),
            epochs_done=np.array([prediction.epochs_done for prediction in predictions], dtype=np.int64),
            mean_epoch_s=mean_epoch_s,
            remaining_s=remaining_s,
            remaining_of_weights_s=of_weights_s,
            elapsed_s=elapsed_s,
            target_s=target_s if options.quirks.clock_times else target_s - admission_s,
            n_rounds=options.future_rounds,
            round_s=options.round_s,
            n_gpus=n_gpus,
            k=options.k,
            priority_power=options.priority_power,
            rhomax=options.rhomax,
            log_knots=options.log_knots,
        )

    def _remaining_s(self, is_running: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the remaining times that the filling of a round looks at, (N,), given the jobs that run in it."""
        for prediction, is_planned in zip(self._jobs.values(), is_running.tolist(), strict=True):
            if not is_planned:
                prediction.calibrate_for_use()
        return np.array([prediction.remaining_s for prediction in self._jobs.values()])

    def _replan(self, round_index: int, now_s: float, n_gpus: int) -> None:
        problem = self.problem(round_index, now_s, n_gpus)
        self.plan = self._solver.plan(problem, self._remaining_s)
        self.planned_jobs, self._planned_gpus = tuple(self._jobs), n_gpus
        self._planned_in, self._is_stale = round_index, False
        self._counted["plans"] += 1
        self._counted["lexicographic"] += self.plan.n_levels > 1
        for report in self.plan.calls:
            has_answer = report.status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE)
            self._counted["infeasible"] += report.status is SolverStatus.INFEASIBLE
            self._counted["without_answer"] += not has_answer and report.status is not SolverStatus.INFEASIBLE
            self._counted["stopped_by_time_limit"] += report.status is SolverStatus.FEASIBLE
            self._counted["per_round"] += report.per_round
            self._counted["greedy"] += report.greedy
            if math.isfinite(report.gap):
                self._largest_gap = max(self._largest_gap, report.gap)
            self.solve_s += report.seconds
