"""Admission of jobs on arrival: those that can be done in time without making others late."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.deadlines.plan import NO_DEADLINE_S, Floats, Plan, Steps, minimum_share
from bfreplay.policies.deadlines.spare_nodes import PlannedJob
from bfreplay.policies.state import NO_DEADLINE_US, PolicyState

SLOT_S = 60.0
"""Default length of a slot: plans change at the ends of slots only."""

PlanJob = Callable[[PlannedJob, Steps, float], Plan]
"""Plans a job, given what is free and how many nodes there are."""

_US_PER_S = 1e6
_LEAST_WORK = 1e-9
_MOST_WORK = 1e15  # of a job without end


def fewest_nodes(slot_s: float) -> PlanJob:
    """Plan jobs by ``minimum_share``, with slots of this length."""
    return lambda job, free, total: minimum_share(free, job.deadline_s, slot_s, job.work, job.counts, job.rates, total)


@dataclass(frozen=True, slots=True)
class Levels:
    """Node counts that a job may use, in increasing order up to the one on which it is fastest, and its rates there."""

    counts: Floats
    rates: Floats

    @classmethod
    def of(cls, curve: NDArray[np.float64], least: int) -> Levels:
        """Return the levels of a job with ``curve (K + 1,)`` that runs on ``least`` nodes or more.

        A count on which it makes nothing, as where only powers of two can be used, is none.
        """
        most = int(curve.argmax())
        counts = np.flatnonzero(curve[: most + 1] > 0)
        counts = counts[counts >= least]
        return cls(counts.astype(np.float64), curve[counts].astype(np.float64))


class DeadlinePlans:
    """Plans for the jobs of a replay as they come and go.

    Plans take the nodes that are idle now to stay idle, and rescaling to cost nothing.

    Parameters
    ----------
    plan
        Plans one job.
    reserve
        A job is planned to be done before its deadline by what so many rescales cost it.
    """

    not_saved = ("_plan",)

    def __init__(self, plan: PlanJob, reserve: float = 0.0) -> None:
        self._plan = plan
        self._reserve = reserve
        self._known: set[int] = set()

    def forget(self) -> None:
        """Forget the jobs of a replay."""
        self._known.clear()

    def plan_jobs(self, state: PolicyState, *, admits: bool) -> tuple[list[PlannedJob], dict[int, str], Steps]:
        """Plan all jobs at this time, in the order of their deadlines.

        Parameters
        ----------
        state
            What is decided on.
        admits
            Jobs that have come since the last time may be declined; those without a deadline never are.

        Returns
        -------
        jobs
            For each job of the state. The plan of one that is declined, or cannot run now, is without nodes.
        declined
            Why a job is declined, by its row.
        free
            Nodes that no plan takes.
        """
        total, now_s = float(state.n_idle), (state.time_us - state.window_start_us) / _US_PER_S
        jobs = [self._job(state, row, now_s) for row in range(state.n_jobs)]
        come = [row for row, job in enumerate(state.job.tolist()) if job not in self._known]
        self._known.update(state.job[come].tolist())
        taken = [row for row in range(state.n_jobs) if row not in come]
        free = self._plan_in_order([jobs[row] for row in taken], now_s, total)
        declined: dict[int, str] = {}
        for row in come:
            reason = ""
            if admits and state.deadline_us[row] != NO_DEADLINE_US:
                reason = self._why_not(jobs, taken, row, now_s, total)
            if reason:
                declined[row] = reason
            else:
                taken.append(row)
        if come:
            free = self._plan_in_order([jobs[row] for row in taken], now_s, total)
        for row in declined:
            jobs[row].plan = _nothing(now_s)
        for job in jobs:
            job.follow(job.plan)
        return jobs, declined, free

    def _job(self, state: PolicyState, row: int, now_s: float) -> PlannedJob:
        levels = Levels.of(state.throughput[row, : state.max_nodes[row] + 1], int(state.min_nodes[row]))
        deadline_s = NO_DEADLINE_S
        if state.deadline_us[row] != NO_DEADLINE_US:
            cost_s = float(max(state.scale_up_cost_s[row], state.scale_down_cost_s[row]))
            due_s = float(state.deadline_us[row] - state.window_start_us) / _US_PER_S
            deadline_s = max(due_s - self._reserve * cost_s, now_s)
        owed = 0.0 if state.owed is None else float(state.owed[row])
        left = float(state.work[row] - state.progress[row]) + owed
        work = min(max(left, _LEAST_WORK), _MOST_WORK)
        return PlannedJob(deadline_s, work, levels.counts, levels.rates, _nothing(now_s))

    def _plan_in_order(self, jobs: Sequence[PlannedJob], now_s: float, total: float) -> Steps:
        """Plan jobs in the order of their deadlines, and return the nodes that stay free."""
        free = Steps(np.array([now_s]), np.array([total]))
        for job in sorted(jobs, key=lambda job: job.deadline_s):
            job.plan = _nothing(now_s)
            if job.counts.size and job.counts[0] <= total:
                job.plan = self._plan(job, free, total)
                free = job.plan.free
        return free

    def _why_not(self, jobs: list[PlannedJob], taken: list[int], row: int, now_s: float, total: float) -> str:
        """Return why the job in ``row`` is declined; empty if it is not. Plans of admitted jobs stay, or are remade."""
        job = jobs[row]
        in_time = [other for other in taken if jobs[other].is_in_time]
        self._plan_in_order([jobs[other] for other in [*taken, row]], now_s, total)
        late_by_s = job.plan.finish_s - job.deadline_s
        n_made_late = sum(not jobs[other].is_in_time for other in in_time)
        if late_by_s <= 0 and not n_made_late:
            return ""
        self._plan_in_order([jobs[other] for other in taken], now_s, total)
        usable = job.rates[job.counts <= total]
        if not usable.size or now_s + job.work / usable.max() > job.deadline_s:
            return "its deadline cannot be met with all idle nodes"
        if late_by_s > 0:
            return f"it would be done {late_by_s:,.0f} s too late beside the jobs that are there"
        return f"it would make {n_made_late} job{'s' if n_made_late > 1 else ''} late"


def _nothing(now_s: float) -> Plan:
    """Return the plan of a job that has no nodes and never ends."""
    nobody = Steps(np.array([now_s]), np.zeros(1))
    return Plan(nobody, math.inf, math.inf, nobody)
