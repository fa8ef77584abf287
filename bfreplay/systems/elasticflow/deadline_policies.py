"""ElasticFlow's policies for elastic jobs in the replay: ElasticFlow, EDF, and each without or with admission."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT as FIXED_CLUSTER
from bfreplay.errors import InputError
from bfreplay.policies.deadlines.admission import DeadlinePlans, PlanJob, fewest_nodes
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
from bfreplay.systems.elasticflow.options import ElasticFlowOptions, PlanningOptions
from bfreplay.systems.elasticflow.played_back import PlayedBack, Program, servers_of
from bfreplay.systems.elasticflow.published.deadline_schedulers import soonest_end
from bfreplay.workload import ElasticJob

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
