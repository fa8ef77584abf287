"""Rounds that follow a plan, replanned when needed, and their state."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.solution import SolverStatus
from bfreplay.systems.shockwave.planner.options import PlannerOptions
from bfreplay.systems.shockwave.planner.prediction import JobPrediction
from bfreplay.systems.shockwave.planner.problem import PlanProblem
from bfreplay.systems.shockwave.planner.solve import Plan, PlanSolver
from bfreplay.systems.shockwave.profile import Profile

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

    def prediction(self, job: int) -> JobPrediction:
        """Return the prediction for a job that has been added."""
        return self._jobs[job]

    def add(self, job: int, profile: Profile, gang: int, now_s: float) -> None:
        """Admit a job that runs on ``gang`` GPUs."""
        self._jobs[job] = JobPrediction(
            profile, gang, admitted_s=now_s, round_s=self._options.round_s, quirks=self._options.quirks
        )
        self._is_stale = True

    def remove(self, job: int) -> None:
        """Forget a job that ended."""
        del self._jobs[job]
        self._is_stale = True

    def after_round(self, round_index: int, ran: Mapping[int, tuple[int, int, float]], now_s: float) -> None:
        """Record what jobs did in round ``round_index``, which ended at ``now_s``.

        Parameters
        ----------
        round_index
            Number of the round, from 0.
        ran
            For each scheduled job: whole epochs done by now, the batch size in the round, and steps/s (0 if it failed).
            Unknown (removed) jobs are ignored.
        now_s
            End of the round. A round that ended at 0 is not recorded.
        """
        if now_s <= 0.0:
            return
        for job, (epochs_done, batch_size, steps_per_s) in ran.items():
            if (prediction := self._jobs.get(job)) is not None:
                prediction.epochs_done = min(epochs_done, prediction.n_epochs)
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
        return [self.planned_jobs[job] for job in self.plan.schedule[position]]

    def summary(self) -> dict[str, float]:
        """Return the counts of plans and solves: the same for the same rounds, unless a time limit ended a solve."""
        return {**{name: self._counted[name] for name in COUNTED}, "largest_gap": self._largest_gap}

    def close(self) -> None:
        """End the back end's worker process, if any; a later plan starts it again."""
        self._solver.close()

    def problem(self, round_index: int, now_s: float, n_gpus: int) -> PlanProblem:
        """Calibrate, predict finish targets again if jobs or GPUs have changed, and return the planning problem."""
        options, jobs = self._options, list(self._jobs.values())
        if not options.quirks.calibrates_each_use:
            for each in jobs:
                each.calibrate()
        if tuple(self._jobs) != self.planned_jobs or n_gpus != self._planned_gpus:
            for each in jobs:
                each.add_target(round_index, min(1.0, n_gpus / len(jobs)))
        admitted_s = np.array([each.admitted_s for each in jobs])
        target_s = np.array([each.target_s(round_index) for each in jobs])
        elapsed_s = now_s - admitted_s
        if options.quirks.clock_times:
            elapsed_s = np.full(len(jobs), options.round_s * round_index)
        mean_epoch_s, remaining_s, of_weights_s = np.zeros((3, len(jobs)))
        for k, each in enumerate(jobs):  # in the order in which the published program uses them
            each.calibrate_for_use()
            mean_epoch_s[k] = each.mean_epoch_s
            each.calibrate_for_use()
            remaining_s[k] = each.remaining_s
            each.calibrate_for_use(2)
            of_weights_s[k] = each.remaining_s
        return PlanProblem(
            gang=np.array([each.gang for each in jobs], dtype=np.int64),
            n_epochs=np.array([each.n_epochs for each in jobs], dtype=np.int64),
            epochs_done=np.array([each.epochs_done for each in jobs], dtype=np.int64),
            mean_epoch_s=mean_epoch_s,
            remaining_s=remaining_s,
            remaining_of_weights_s=of_weights_s,
            elapsed_s=elapsed_s,
            target_s=target_s if options.quirks.clock_times else target_s - admitted_s,
            n_rounds=options.future_rounds,
            round_s=options.round_s,
            n_gpus=n_gpus,
            k=options.k,
            priority_power=options.priority_power,
            rhomax=options.rhomax,
            log_knots=options.log_knots,
        )

    def _remaining_s(self, runs: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the remaining times that the filling of a round looks at, (N,), given the jobs that run in it."""
        for each, is_planned in zip(self._jobs.values(), runs.tolist(), strict=True):
            if not is_planned:
                each.calibrate_for_use()
        return np.array([each.remaining_s for each in self._jobs.values()])

    def _replan(self, round_index: int, now_s: float, n_gpus: int) -> None:
        problem = self.problem(round_index, now_s, n_gpus)
        self.plan = self._solver.plan(problem, self._remaining_s)
        self.planned_jobs, self._planned_gpus = tuple(self._jobs), n_gpus
        self._planned_in, self._is_stale = round_index, False
        self._counted["plans"] += 1
        self._counted["lexicographic"] += self.plan.n_levels > 1
        for call in self.plan.calls:
            answered = call.status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE)
            self._counted["infeasible"] += call.status is SolverStatus.INFEASIBLE
            self._counted["without_answer"] += not answered and call.status is not SolverStatus.INFEASIBLE
            self._counted["stopped_by_time_limit"] += call.status is SolverStatus.FEASIBLE
            self._counted["per_round"] += call.per_round
            self._counted["greedy"] += call.greedy
            if math.isfinite(call.gap):
                self._largest_gap = max(self._largest_gap, call.gap)
            self.solve_s += call.seconds
