"""ElasticFlow's policies for elastic jobs in the replay: ElasticFlow, EDF, and each without or with admission."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.milp.solver import Solver
from bfreplay.policies.deadlines.plan import NO_DEADLINE_S, Floats, Plan, Steps, minimum_share
from bfreplay.policies.deadlines.spare_nodes import PlannedJob, share_spare
from bfreplay.policies.policy import ANY_TRIGGER, Decision, Policy, PolicyCapabilities, Round, Trigger
from bfreplay.policies.state import LONG_AGO_US, NO_DEADLINE_US, PolicyState
from bfreplay.systems.elasticflow.options import SLOT_S, ElasticFlowOptions, Order, PlanningOptions
from bfreplay.systems.elasticflow.played_back import PlayedBack, Program, servers_of
from bfreplay.systems.elasticflow.published.edf import soonest_end
from bfreplay.workload import ElasticJob

_US_PER_S = 1e6


class ElasticFlowPolicy(Policy):
    """What all policies of ElasticFlow have in common.

    Parameters
    ----------
    options
        Everything that can be set.
    """

    wakes_on = ANY_TRIGGER | Trigger.ROUND
    capabilities = PolicyCapabilities(asks_solver=False, in_rounds=True, warm_up="elasticflow.elasticflow")
    program: ClassVar[Program]
    """The published scheduler."""

    plays_back: bool = False
    """It has no decisions of its own: the published scheduler's are repeated in any case."""

    def __init__(self, options: ElasticFlowOptions | None = None) -> None:
        self.options = options or ElasticFlowOptions()
        self._played_back: PlayedBack | None = None
        self._last_us = LONG_AGO_US
        self.plays_back = self.plays_back or self.options.published
        if self.plays_back:
            self.wakes_on = Trigger.ROUND

    @classmethod
    def from_options(
        cls,
        *,
        t_fwd_s: float | str,
        solver: Solver,
        slot_s: float = SLOT_S,
        published: bool = False,
        gpus_each: int = 8,
    ) -> ElasticFlowPolicy:
        """Neither the forward-looking time nor the solver matters; see ``ElasticFlowOptions`` for the others."""
        return cls(ElasticFlowOptions(slot_s, published, gpus_each))

    def check_jobs(self, jobs: Sequence[ElasticJob], most_nodes: int) -> None:
        """Run the published scheduler, if it is to be repeated; InputError for jobs that it cannot run."""
        if self.plays_back:
            servers = servers_of(most_nodes, self.options.gpus_each)
            self._played_back = PlayedBack(self.published_program(), jobs, servers, int(self.options.slot_s))

    def published_program(self) -> Program:
        """The scheduler that is repeated."""
        return type(self).program

    def decide(self, state: PolicyState) -> Decision:
        """Who has how many nodes until something happens."""
        if state.time_us < self._last_us:
            self.forget()
        self._last_us = state.time_us
        if not self.plays_back:
            return self.decide_now(state)
        if self._played_back is None:
            raise InputError(
                "the published simulator needs to know all jobs before it starts", column="published", value=True,
                expected="a job set", fix="leave published out, or give a trace instead of a campaign",
            )  # fmt: skip
        return self._played_back.decide(state)

    @abstractmethod
    def decide_now(self, state: PolicyState) -> Decision:
        """The decision of the policy itself."""

    def forget(self) -> None:
        """Forget the jobs of a replay."""

    def describe(self) -> dict[str, object]:
        """Every option."""
        return {"name": self.name, **self.options.to_json()}

    def summary(self) -> dict[str, object] | None:
        """What the published program counted; ``None`` without it."""
        if self._played_back is None:
            return None
        return self._played_back.summary()

    def close(self) -> None:
        """Forget the replay."""
        self._last_us = LONG_AGO_US
        self._played_back = None
        self.forget()


@dataclass(frozen=True, slots=True)
class Levels:
    """Node counts that a job may use, in increasing order up to the one on which it is fastest, and its rates there."""

    counts: Floats
    rates: Floats


def levels_of(curve: NDArray[np.float64], least: int) -> Levels:
    """The levels of a job with ``curve (K + 1,)`` that runs on ``least`` nodes or more."""
    most = int(curve.argmax())
    counts = np.flatnonzero(curve[: most + 1] > 0)
    counts = counts[counts >= least]
    return Levels(counts.astype(np.float64), curve[counts].astype(np.float64))


class PlanningPolicy(ElasticFlowPolicy):
    """Plans every job against its deadline, and may decline it when it comes."""

    admits: ClassVar[bool]

    options: PlanningOptions

    def __init__(self, options: PlanningOptions | None = None) -> None:
        super().__init__(options or PlanningOptions())
        self._levels: dict[int, Levels] = {}
        self._known: set[int] = set()

    @classmethod
    def from_options(
        cls,
        *,
        t_fwd_s: float | str,
        solver: Solver,
        slot_s: float = SLOT_S,
        published: bool = False,
        gpus_each: int = 8,
        reserve: float = 0.0,
        order: Order = "paper",
    ) -> PlanningPolicy:
        """Neither the forward-looking time nor the solver matters; see ``PlanningOptions`` for the others."""
        return cls(PlanningOptions(slot_s, published, gpus_each, reserve, order))

    def forget(self) -> None:
        """Forget the jobs of a replay."""
        self._levels.clear()
        self._known.clear()

    @abstractmethod
    def plan(self, job: PlannedJob, free: Steps, total: float) -> Plan:
        """Plan one job."""

    def spread(self, jobs: list[PlannedJob], free: Steps, total: float) -> None:
        """Give spare nodes away: none by default."""

    def decide_now(self, state: PolicyState) -> Decision:
        """Admit or decline those that have come, and follow the plans of all."""
        total = float(state.n_idle)
        now_s = (state.time_us - state.window_start_us) / _US_PER_S
        jobs = [self._job(state, row) for row in range(state.n_jobs)]
        come = [row for row, job in enumerate(state.job.tolist()) if job not in self._known]
        self._known.update(state.job[come].tolist())
        taken = [row for row in range(state.n_jobs) if row not in come]
        declined: dict[int, str] = {}
        free = self._planned([jobs[row] for row in taken], now_s, total)
        for row in come:
            reason = ""
            if self.admits and state.deadline_us[row] != NO_DEADLINE_US:
                reason = self._why_not(jobs, taken, row, now_s, total)
            if reason:
                declined[row] = reason
            else:
                taken.append(row)
        planned = sorted((jobs[row] for row in taken if jobs[row].counts.size), key=_deadline)
        if come:
            free = self._planned(planned, now_s, total)
        for job in planned:
            job.follow(job.plan)
        self.spread(planned, free, total)
        counts = np.array([job.count for job in jobs], np.int64)
        changes = [job.plan.nodes.time[1] for job in planned if job.plan.nodes.time.size > 1]
        until_us = None
        if changes:
            until_us = max(state.window_start_us + math.ceil(min(changes) * _US_PER_S), state.time_us + 1)
        return Decision(counts, round=Round(until_us, declined=declined))

    def _job(self, state: PolicyState, row: int) -> PlannedJob:
        number = int(state.job[row])
        if number not in self._levels or self._levels[number].counts.size == 0:
            self._levels[number] = levels_of(state.throughput[row], int(state.min_nodes[row]))
        levels = self._levels[number]
        deadline_s = NO_DEADLINE_S
        if state.deadline_us[row] != NO_DEADLINE_US:
            to_window_us = state.deadline_us[row] - state.window_start_us
            now_s = (state.time_us - state.window_start_us) / _US_PER_S
            reserve_s = self.options.reserve * float(max(state.scale_up_cost_s[row], state.scale_down_cost_s[row]))
            deadline_s = max(float(to_window_us) / _US_PER_S - reserve_s, now_s)
        owed = 0.0 if state.owed is None else float(state.owed[row])
        work = max(float(state.work[row] - state.progress[row]) + owed, 1e-9)
        work = min(work, 1e15)  # of a job without end
        nothing = Steps(np.zeros(1), np.zeros(1))
        return PlannedJob(deadline_s, work, levels.counts, levels.rates, Plan(nothing, 0.0, 0.0, nothing))

    def _planned(self, jobs: Sequence[PlannedJob], now_s: float, total: float) -> Steps:
        """Plan jobs in the order of their deadlines; returns what is free then."""
        free = Steps(np.array([now_s]), np.array([total]))
        for job in sorted(jobs, key=_deadline):
            if job.counts.size and job.counts[0] <= total:
                job.plan = self.plan(job, free, total)
                free = job.plan.free
            else:
                job.plan = Plan(Steps(np.array([now_s]), np.zeros(1)), math.inf, math.inf, free)
        return free

    def _why_not(self, jobs: list[PlannedJob], taken: list[int], row: int, now_s: float, total: float) -> str:
        """Why the job in ``row`` is declined; empty if it is not."""
        in_time = [other for other in taken if jobs[other].plan.finish_s <= jobs[other].deadline_s]
        self._planned([jobs[other] for other in [*taken, row]], now_s, total)
        late_by_s = jobs[row].plan.finish_s - jobs[row].deadline_s
        if late_by_s > 0:
            best = jobs[row].rates.max() if jobs[row].rates.size else 0.0
            alone_s = jobs[row].work / best if best else math.inf
            self._planned([jobs[other] for other in taken], now_s, total)
            if now_s + alone_s > jobs[row].deadline_s:
                return "its deadline cannot be met on any number of nodes"
            return f"it would be done {late_by_s:,.0f} s too late beside the jobs that are there"
        made_late = sum(jobs[other].plan.finish_s > jobs[other].deadline_s for other in in_time)
        if made_late:
            self._planned([jobs[other] for other in taken], now_s, total)
            return f"it would make {made_late} job{'s' if made_late > 1 else ''} late"
        return ""


def _deadline(job: PlannedJob) -> float:
    return job.deadline_s


class ElasticSharing(PlanningPolicy):
    """Jobs get the fewest nodes that are enough, and what is left by what it gains; nobody is declined."""

    admits = False

    def plan(self, job: PlannedJob, free: Steps, total: float) -> Plan:
        """The fewest nodes that are enough."""
        return minimum_share(free, job.deadline_s, self.options.slot_s, job.work, job.counts, job.rates, total)

    def spread(self, jobs: list[PlannedJob], free: Steps, total: float) -> None:
        """Spare nodes by what they gain."""
        if jobs:
            share_spare(jobs, free, self.options.slot_s, total, largest_growth_first=self.options.order == "artifact")


class ElasticFlow(ElasticSharing):
    """ElasticFlow: jobs that cannot be done in time, or would make others late, are declined."""

    admits = True


class Edf(PlanningPolicy):
    """Earliest deadline first; every job has as many nodes as it can use."""

    admits = False

    def plan(self, job: PlannedJob, free: Steps, total: float) -> Plan:
        """As many nodes as there are, up to the number on which it is fastest."""
        return soonest_end(free, self.options.slot_s, job.work, job.counts, job.rates, total)


class EdfWithAdmission(Edf):
    """Earliest deadline first; jobs that cannot be done in time, or would make others late, are declined."""

    admits = True
