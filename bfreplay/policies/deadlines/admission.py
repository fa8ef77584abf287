"""Admission of jobs on arrival: those that can be done in time without making others late."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bfreplay.policies.deadlines.plan import NO_DEADLINE_S, NOT_FORCED, Levels, Plan, Steps, finish_of, minimum_share
from bfreplay.policies.deadlines.spare_nodes import PlannedJob, free_without
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
    slot_s = float(slot_s)  # of a spec that says 240: for whole numbers the loop would be compiled again
    return lambda job, free, n_nodes: minimum_share(
        free, job.deadline_s, slot_s, job.work, job.counts, job.rates, n_nodes, NOT_FORCED
    )


@dataclass(frozen=True, slots=True)
class _JointPlan:
    """Plans of jobs by their rows, the nodes that none of them takes, the time now, and the number of nodes."""

    plans: Mapping[int, Plan]
    free: Steps
    now_s: float
    n_nodes: float

    def delays(self, jobs: Sequence[PlannedJob], earlier: _JointPlan, slot_s: float) -> list[int]:
        """Return the rows of jobs that end after their deadlines, and later than by the plans ``earlier``.

        A job that is late by these may end a slot later: slots begin anew with each decision.
        """
        return [
            job_row
            for job_row, plan in earlier.plans.items()
            if self.plans[job_row].finish_s > jobs[job_row].deadline_s
            and self.plans[job_row].finish_s
            > plan.finish_s + (slot_s if plan.finish_s > jobs[job_row].deadline_s else 0.0)
        ]


class DeadlinePlans:
    """Plans for the jobs of a replay as they come and go.

    Plans take the nodes that are idle now to stay idle, and rescaling to cost nothing. Where both hold, no admitted job
    is late: slots begin with each decision, so that new plans may fail where the ones that were followed do not, and
    these are then followed on.

    Parameters
    ----------
    plan
        Plans one job.
    reserve
        A job is planned to be done before its deadline by what so many rescales cost it.
    slot_s
        Length of a slot.
    """

    not_saved = ("_plan",)

    def __init__(self, plan: PlanJob, reserve: float = 0.0, slot_s: float = SLOT_S) -> None:
        self._plan = plan
        self._reserve = reserve
        self._slot_s = slot_s
        self._known: set[int] = set()
        self._followed: dict[int, Plan] = {}

    def forget(self) -> None:
        """Forget the jobs of a replay."""
        self._known.clear()
        self._followed.clear()

    def plan_jobs(self, state: PolicyState, *, admits: bool) -> tuple[list[PlannedJob], dict[int, str], Steps]:
        """Plan all jobs at this time, in the order of their deadlines.

        Parameters
        ----------
        state
            What is decided on.
        admits
            Jobs that have come since the last time may be declined; those without a deadline never are. Admitted ones
            are not delayed beyond their deadlines by plans made anew, as long as ``follow`` is told what is followed.

        Returns
        -------
        jobs
            For each job of the state. The plan of one that is declined, or cannot run now, is without nodes.
        declined
            Why a job is declined, by its row.
        free
            Nodes that no plan takes.
        """
        n_nodes, now_s = float(state.n_idle), (state.time_us - state.window_start_us) / _US_PER_S
        jobs = [self._job(state, job_row, now_s) for job_row in range(state.n_jobs)]
        new_rows = [job_row for job_row, job in enumerate(state.job.tolist()) if job not in self._known]
        self._known.update(state.job[new_rows].tolist())
        old_rows = [job_row for job_row in range(state.n_jobs) if job_row not in new_rows]
        no_plans = _JointPlan({}, Steps(np.array([now_s]), np.array([n_nodes])), now_s, n_nodes)
        plans = self._in_order(jobs, old_rows if admits else range(state.n_jobs), no_plans)
        plans_followed = self._remaining_plans(state, jobs, old_rows, no_plans) if admits else None
        if plans_followed is not None and plans.delays(jobs, plans_followed, self._slot_s):
            plans = plans_followed
        refusals: dict[int, str] = {}
        for job_row in new_rows if admits else ():
            replanned = self._in_order(jobs, [*plans.plans, job_row], no_plans)
            appended = self._beside(jobs[job_row], job_row, plans)
            may_decline = state.deadline_us[job_row] != NO_DEADLINE_US
            acceptable = [
                candidate
                for candidate in (replanned, appended)
                if not candidate.delays(jobs, plans, self._slot_s)
                and (candidate.plans[job_row].finish_s <= jobs[job_row].deadline_s or not may_decline)
            ]
            if acceptable:
                plans = acceptable[0]
            else:
                refusals[job_row] = self._why_not(jobs, job_row, plans, replanned)
        for job_row, job in enumerate(jobs):
            job.follow(plans.plans.get(job_row, _nothing(now_s)))
        return jobs, refusals, plans.free

    def follow(self, state: PolicyState, jobs: Sequence[PlannedJob]) -> None:
        """Note the plans that the jobs of the state follow from now on."""
        self._followed = {number: job.plan for number, job in zip(state.job.tolist(), jobs, strict=True)}

    def _job(self, state: PolicyState, job_row: int, now_s: float) -> PlannedJob:
        levels = Levels.of(state.throughput[job_row, : state.max_nodes[job_row] + 1], int(state.min_nodes[job_row]))
        deadline_s = NO_DEADLINE_S
        if state.deadline_us[job_row] != NO_DEADLINE_US:
            cost_s = float(max(state.scale_up_cost_s[job_row], state.scale_down_cost_s[job_row]))
            due_s = float(state.deadline_us[job_row] - state.window_start_us) / _US_PER_S
            deadline_s = max(due_s - self._reserve * cost_s, now_s)
        debt_samples = 0.0 if state.owed is None else float(state.owed[job_row])
        remaining = float(state.work[job_row] - state.progress[job_row]) + debt_samples
        work = min(max(remaining, _LEAST_WORK), _MOST_WORK)
        return PlannedJob(deadline_s, work, *levels, _nothing(now_s))

    def _in_order(self, jobs: Sequence[PlannedJob], job_rows: Sequence[int], plans: _JointPlan) -> _JointPlan:
        """Plan jobs beside ``plans``, in the order of their deadlines."""
        for job_row in sorted(job_rows, key=lambda job_row: jobs[job_row].deadline_s):
            plans = self._beside(jobs[job_row], job_row, plans)
        return plans

    def _beside(self, job: PlannedJob, job_row: int, others: _JointPlan) -> _JointPlan:
        """Plan a job with the nodes that others leave free."""
        plan, free_steps = _nothing(others.now_s), others.free
        if job.counts.size and job.counts[0] <= others.n_nodes:
            plan = self._plan(job, free_steps, others.n_nodes)
            free_steps = plan.free
        return replace(others, plans={**others.plans, job_row: plan}, free=free_steps)

    def _remaining_plans(
        self, state: PolicyState, jobs: Sequence[PlannedJob], job_rows: Sequence[int], no_plans: _JointPlan
    ) -> _JointPlan | None:
        """Return the rest of the plans that were followed, for the work that is left; ``None`` if they do not fit."""
        plans, free_steps, now_s = {}, no_plans.free, no_plans.now_s
        for job_row in job_rows:
            plan = self._followed.get(int(state.job[job_row]))
            if plan is None or not now_s < plan.end_s < math.inf:
                plans[job_row] = _nothing(now_s)
                continue
            nodes = plan.nodes.since(now_s)
            free_steps = free_without(free_steps, Steps(nodes.time, -nodes.value), plan.end_s, no_plans.n_nodes)
            if free_steps.value.min() < 0:
                return None
            finish_s = finish_of(nodes, plan.end_s, jobs[job_row].work, jobs[job_row].counts, jobs[job_row].rates)
            plans[job_row] = Plan(nodes, plan.end_s, finish_s, free_steps)
        return replace(no_plans, plans=plans, free=free_steps)

    def _why_not(self, jobs: Sequence[PlannedJob], job_row: int, earlier: _JointPlan, anew: _JointPlan) -> str:
        """Return why the job in ``job_row`` is declined."""
        job = jobs[job_row]
        late_by_s = anew.plans[job_row].finish_s - job.deadline_s
        n_made_late = len(anew.delays(jobs, earlier, self._slot_s))
        usable = job.rates[job.counts <= anew.n_nodes]
        if not usable.size or anew.now_s + job.work / usable.max() > job.deadline_s:
            return "its deadline cannot be met with all idle nodes"
        if late_by_s > 0:
            return f"it would be done {late_by_s:,.0f} s too late beside the jobs that are there"
        return f"it would make {n_made_late} job{'s' if n_made_late > 1 else ''} late"


def _nothing(now_s: float) -> Plan:
    """Return the plan of a job that has no nodes and never ends."""
    nobody = Steps(np.array([now_s]), np.zeros(1))
    return Plan(nobody, math.inf, math.inf, nobody)
