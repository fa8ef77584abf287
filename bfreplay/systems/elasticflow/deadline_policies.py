"""ElasticFlow's policies for elastic jobs (itself and EDF, with and without admission); options of all its policies."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bfreplay import checks
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT as FIXED_CLUSTER
from bfreplay.errors import InputError
from bfreplay.options import Number, OneOf, Whole, option
from bfreplay.policies.deadlines.admission import SLOT_S, DeadlinePlans, PlanJob, fewest_nodes
from bfreplay.policies.deadlines.plan import Steps
from bfreplay.policies.deadlines.spare_nodes import PlannedJob, share_spare
from bfreplay.policies.policy import (
    ANY_TRIGGER,
    Decision,
    PolicyCapabilities,
    PolicyOptions,
    PolicyWithOptions,
    Round,
    Trigger,
)
from bfreplay.policies.state import PolicyState
from bfreplay.systems.elasticflow.played_back import PlayedBack, Program, servers_of
from bfreplay.systems.elasticflow.published.deadline_schedulers import soonest_end
from bfreplay.workload import ElasticJob


@dataclass(frozen=True)
class ElasticFlowOptions(PolicyOptions):
    """Options of all policies of ElasticFlow.

    Parameters
    ----------
    slot_s
        Length of a slot: plans change at its end only, and jobs take turns once a slot. 60 s (figure 8) or 240 s in the
        published simulations.
    published
        Repeat the published simulator, clock and all, on a cluster of servers that are never reclaimed.
    gpus_each
        GPUs of a server in the published simulator.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    slot_s: float = option(SLOT_S, checks.round_length)
    published: bool = option(False, checks.truth)
    gpus_each: int = option(8, Whole(1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published:
            checks.number("slot_s", self.slot_s, least=1)
            if not float(self.slot_s).is_integer():
                raise InputError(
                    "the published simulator counts whole seconds",
                    column="slot_s",
                    value=self.slot_s,
                    expected="a whole number",
                    fix="round it",
                )


@dataclass(frozen=True)
class PlanningOptions(ElasticFlowOptions):
    """Options of policies that plan against deadlines.

    Parameters
    ----------
    reserve
        A job is planned to end this number of rescale costs before its deadline, as plans have no rescales.
    order
        First job to get spare nodes under ElasticFlow: ``paper``, the one that needs less node time with more nodes;
        ``artifact`` (the published program), the one whose node time grows most.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    reserve: float = option(0.0, Number(least=0))
    order: str = option("paper", OneOf(("paper", "artifact")))


@dataclass(frozen=True)
class ChronusOptions(ElasticFlowOptions):
    """Options of Chronus; the published program checks its jobs once a slot.

    Parameters
    ----------
    lease_s
        Length of a lease; 240 s in the published program.
    backend
        Back end that plans leases; ``greedy`` for the fallback rule of the published program, always used with
        ``published``, as its recorded runs have no solver.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    lease_s: float = option(240.0, checks.round_length)
    backend: str = option("highs", checks.text)


_US_PER_S = 1e6


class ElasticFlowPolicy(PolicyWithOptions):
    """Base of all policies of ElasticFlow.

    Parameters
    ----------
    options
        Options of the policy.
    """

    wakes_on = ANY_TRIGGER | Trigger.ROUND
    capabilities = PolicyCapabilities(asks_solver=False, in_rounds=True, warm_up="elasticflow.elasticflow")
    program: ClassVar[Program]
    """Published scheduler that ``published`` repeats."""

    options_type: ClassVar[type[PolicyOptions]] = ElasticFlowOptions
    options: ElasticFlowOptions

    def __init__(self, options: ElasticFlowOptions | None = None) -> None:
        super().__init__(options)
        self._played_back: PlayedBack | None = None
        if self.options.published:
            self.wakes_on = Trigger.ROUND

    def check_jobs(self, jobs: Sequence[ElasticJob], most_nodes: int) -> None:
        """Run the published scheduler, with ``published``; InputError for jobs that it cannot run."""
        if self.options.published:
            servers = servers_of(most_nodes, self.options.gpus_each)
            self._played_back = PlayedBack(type(self).program, jobs, servers, int(self.options.slot_s))

    def foresee(self, events: NodeEvents) -> None:
        """Raise ``InputError`` for a log with reclaimed nodes, with ``published``."""
        if self.options.published and events.metadata.source_format != FIXED_CLUSTER:
            raise InputError(
                "the published simulator cannot reclaim nodes",
                column="published",
                value=True,
                expected="a cluster of one's own (--cluster)",
                fix="remove published, or replay on a cluster",
            )

    def decide(self, state: PolicyState) -> Decision:
        """Return the nodes of each job until the next event."""
        self.note_time(state)
        if not self.options.published:
            return self.decide_now(state)
        if self._played_back is None:
            raise InputError(
                "the published simulator needs all jobs before it starts",
                column="published",
                value=True,
                expected="a job set",
                fix="remove published, or give a trace instead of a campaign",
            )
        return self._played_back.decide(state)

    @abstractmethod
    def decide_now(self, state: PolicyState) -> Decision:
        """Return the decision of the policy itself."""

    def summary(self) -> dict[str, object] | None:
        """Return the counts of the published program; ``None`` without it."""
        if self._played_back is None:
            return None
        return self._played_back.summary()

    def close(self) -> None:
        """Forget the replay."""
        self._played_back = None
        super().close()


class PlanningPolicy(ElasticFlowPolicy):
    """Base of policies that plan every job against its deadline, and may decline it on arrival."""

    admits: ClassVar[bool]

    options_type = PlanningOptions
    options: PlanningOptions

    def __init__(self, options: PlanningOptions | None = None) -> None:
        super().__init__(options)
        self._plans = DeadlinePlans(self.plan_job(), self.options.reserve, self.options.slot_s)

    def forget(self) -> None:
        """Forget the jobs of a replay."""
        self._plans.forget()

    @abstractmethod
    def plan_job(self) -> PlanJob:
        """Return the plan of one job."""

    def give_spare_nodes(self, jobs: list[PlannedJob], free: Steps, total: float) -> None:
        """Give spare nodes away: none by default."""

    def decide_now(self, state: PolicyState) -> Decision:
        """Admit or decline new jobs, and follow the plans of all."""
        jobs, reason_of_declined, free = self._plans.plan_jobs(state, admits=self.admits)
        feasible_jobs = sorted((job for job in jobs if job.plan.end_s < math.inf), key=lambda job: job.deadline_s)
        self.give_spare_nodes(feasible_jobs, free, float(state.n_idle))
        self._plans.follow(state, jobs)
        counts = np.array([job.count for job in jobs], np.int64)
        first_changes_s = [job.plan.nodes.time[1] for job in feasible_jobs if job.plan.nodes.time.size > 1]
        until_us = None
        if first_changes_s:
            until_us = max(state.window_start_us + round(min(first_changes_s) * _US_PER_S), state.time_us + 1)
        return Decision(counts, round=Round(until_us, declined=reason_of_declined))


class ElasticSharing(PlanningPolicy):
    """Jobs get the fewest sufficient nodes, and spare ones by their gain; no job is declined."""

    admits = False

    def plan_job(self) -> PlanJob:
        """Return the plan with the fewest sufficient nodes."""
        return fewest_nodes(self.options.slot_s)

    def give_spare_nodes(self, jobs: list[PlannedJob], free: Steps, total: float) -> None:
        """Give spare nodes away by their gain."""
        if jobs:
            share_spare(jobs, free, self.options.slot_s, total, largest_growth_first=self.options.order == "artifact")


class ElasticFlow(ElasticSharing):
    """ElasticFlow: jobs that would be late, or make others late, are declined."""

    admits = True


class Edf(PlanningPolicy):
    """Earliest deadline first; every job has as many nodes as it can use."""

    admits = False

    def plan_job(self) -> PlanJob:
        """Return the plan with as many nodes as possible, up to the fastest number for the job."""
        slot_s = float(self.options.slot_s)
        return lambda job, free, total: soonest_end(free, slot_s, job.work, job.counts, job.rates, total, False)


class EdfWithAdmission(Edf):
    """Earliest deadline first; jobs that would be late, or make others late, are declined."""

    admits = True
