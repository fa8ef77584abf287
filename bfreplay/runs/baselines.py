"""Baselines of a run: the same jobs on dedicated nodes (U), with known curves, isolated, without rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bfreplay.bounds import UpperBound, reason_without_bound, upper_bound
from bfreplay.datasets import EventsMetadata, NodeEvents, NodeState
from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy, Policy
from bfreplay.policies.names import OWN
from bfreplay.policies.state import NEVER_US
from bfreplay.registry import contribution
from bfreplay.replay.active import ActiveJobs
from bfreplay.replay.engine import Engine
from bfreplay.replay.placement import PlacementRule
from bfreplay.replay.pool import NodePool, Timeline
from bfreplay.replay.progress import Semantics
from bfreplay.replay.run_tables import RunTables
from bfreplay.replay.settings import ReplaySettings
from bfreplay.runs.run_record import Efficiency, LearningCost
from bfreplay.runs.run_settings import RunSettings
from bfreplay.runs.scheduling_metrics import mean
from bfreplay.workload import Ending, JobSet, JobSource

IN_PORTIONS = "its log came in portions, and is not there as a whole"
"""Reason for having no baselines."""


@dataclass(frozen=True, slots=True)
class Total:
    """Totals of a replay.

    Parameters
    ----------
    samples
        Samples processed in the window.
    last_finish_us
        End of the last job; ``None`` if not all ended.
    jobs
        Number of jobs by status, without zeros.
    best_score
        Best score of a job source; ``None`` without one.
    average_jct_s
        Mean time from submission to finish of the measured jobs that finished.
    """

    samples: float
    last_finish_us: int | None
    jobs: Mapping[str, int]
    best_score: float | None
    average_jct_s: float | None = None

    @classmethod
    def of(cls, engine: Engine, samples: float) -> Total:
        """Return the totals of a finished replay."""
        outcomes = engine.outcomes
        by_status = {status: n_jobs for status, n_jobs in outcomes.by_status.items() if n_jobs}
        scores = outcomes.scores
        jct_s = mean(outcomes.jct_s[index] for index, _ in outcomes.measured if index in outcomes.jct_s)
        best_score = None if scores is None else scores.best_score
        return cls(samples, outcomes.last_finish_us, by_status, best_score, jct_s)


@dataclass(frozen=True, slots=True)
class Baselines:
    """The baseline of a run on dedicated nodes; does not depend on the run.

    ``one_is_enough``: the nodes are less than one, and one does all the work, so that a share of its samples says
    nothing.
    """

    equivalent_nodes: float
    t_fwd_s: float
    dedicated: Total
    one_is_enough: bool

    def efficiency(self, own_total: Total, *, is_comparable: bool) -> Efficiency:
        """Return U of the run; ``is_comparable`` unless a source may make other jobs in another replay."""
        dedicated_total = self.dedicated
        is_defined = is_comparable and dedicated_total.samples > 0 and not self.one_is_enough
        return Efficiency(
            equivalent_nodes=self.equivalent_nodes,
            t_fwd_s=self.t_fwd_s,
            samples=own_total.samples,
            dedicated_samples=dedicated_total.samples,
            last_finish_us=own_total.last_finish_us,
            dedicated_last_finish_us=dedicated_total.last_finish_us,
            dedicated_jobs=dict(dedicated_total.jobs),
            dedicated_best_score=dedicated_total.best_score,
            u=own_total.samples / dedicated_total.samples if is_defined else None,
        )


class RunBaselines:
    """Everything that a run is measured against, as far as its settings ask for it; ``None`` what is not measured.

    Parameters
    ----------
    events, jobs, policy, settings, run_settings
        Inputs of the run.
    t_fwd_s
        Forward-looking time of its policy, used on dedicated nodes too; ``None`` for a policy that has none.
    in_portions
        The log is not there yet: it comes in portions.

    Attributes
    ----------
    reason_without
        Reason for having neither dedicated nodes nor an upper bound; ``None`` if there are both.
    dedicated, known_total
        The jobs on dedicated nodes, and the totals of the run with nothing left to learn.
    bound
        Upper bound on the samples.
    isolated_jct_s, ideal_jct_s
        Seconds from submission to finish by number of the job, as the functions of these names return them.

    Raises
    ------
    InputError
        A baseline that is asked for does not exist for these jobs, this log or this policy.
    """

    def __init__(
        self,
        events: NodeEvents,
        jobs: JobSet | JobSource,
        policy: Policy,
        settings: ReplaySettings,
        run_settings: RunSettings,
        t_fwd_s: float | None,
        *,
        in_portions: bool,
    ) -> None:
        self._jobs, self._policy, self._settings, self._run_settings = jobs, policy, settings, run_settings
        self._t_fwd_s = float(run_settings.dedicated_t_fwd_s if t_fwd_s is None else t_fwd_s)
        self._has_whole_log = not in_portions
        self.reason_without = _reason_without_baselines(events, jobs, settings)
        if in_portions and self.reason_without is None:
            self.reason_without = IN_PORTIONS
        if run_settings.fairness:
            refuse_source(jobs)
        if run_settings.ideal:
            contribution("check_ideal")(events, jobs, policy)
        self.dedicated: Baselines | None = None
        self.known_total: Total | None = None
        self.bound: UpperBound | None = None
        self.isolated_jct_s: dict[int, float] | None = None
        self.ideal_jct_s: dict[int, float] | None = None

    def take_whole_log(self, log: NodeEvents) -> None:
        """Measure against this log, which came in portions."""
        self.reason_without = _reason_without_baselines(log, self._jobs, self._settings)

    def take_jobs(self, jobs: JobSet) -> None:
        """Measure with these jobs: some were added."""
        self._jobs = jobs

    def measure_isolated(self, events: NodeEvents) -> None:
        """Replay the jobs under the isolated policy."""
        if self._run_settings.fairness:
            self.isolated_jct_s = isolated_jct_s(events, self._jobs, self._policy, self._settings)

    def measure_ideal(self, events: NodeEvents) -> None:
        """Apply shares of time without rounds."""
        if self._run_settings.ideal:
            self.ideal_jct_s = contribution("ideal_jct_s")(events, self._jobs, self._policy, self._settings)

    def measure_dedicated(self, whole_log: NodeEvents, events: NodeEvents, idle_us: int | None = None) -> None:
        """Replay the jobs on dedicated nodes, and with nothing left to learn.

        Parameters
        ----------
        whole_log, events
            The log, and the part of it that the run lasted.
        idle_us
            Idle node time of the run, if it is known.
        """
        if not self._run_settings.efficiency:
            return
        jobs, policy, settings = self._jobs, self._policy, self._settings
        if self._has_whole_log or self.reason_without is None:
            self.known_total = known_total(whole_log, jobs, policy, settings)
        if self.reason_without is None:
            idle_us = idle_node_us(events) if idle_us is None else idle_us
            self.dedicated = baselines(idle_us, events, jobs, policy, settings, self._t_fwd_s)

    def measure_bound(self, events: NodeEvents, engine: Engine, *, frees_rescaling: bool) -> None:
        """Bound the samples in the part of the log that the run lasted."""
        jobs, outcomes = self._jobs, engine.outcomes
        if not self._run_settings.bound or self.reason_without is not None or not isinstance(jobs, JobSet):
            return
        self.bound = upper_bound(
            events,
            jobs,
            self._settings.max_parallel,
            decides_in_rounds=frees_rescaling,
            gives_jobs_up=any(outcomes.by_status[ending] for ending in (Ending.FAILED, Ending.DECLINED)),
            with_finish=outcomes.last_finish_us is not None,
            finished_us=outcomes.last_finish_us if outcomes.by_status["finished"] == len(jobs) else None,
            most_idle=engine.most_idle if self._has_whole_log else None,  # or of another log
        )


def learning_cost(own_total: Total, known_total: Total, *, is_comparable: bool) -> LearningCost:
    """Return the cost of learning in a run; ``is_comparable`` unless a source may make other jobs in another replay."""
    return LearningCost(
        samples=own_total.samples,
        known_samples=known_total.samples,
        last_finish_us=own_total.last_finish_us,
        known_last_finish_us=known_total.last_finish_us,
        known_jobs=dict(known_total.jobs),
        known_best_score=known_total.best_score,
        lost=1 - own_total.samples / known_total.samples if is_comparable and known_total.samples > 0 else None,
        known_average_jct_s=known_total.average_jct_s,
    )


def known_total(events: NodeEvents, jobs: JobSet | JobSource, policy: Policy, settings: ReplaySettings) -> Total | None:
    """Replay ``jobs`` under the same policy with known curves; ``None`` for a policy that learns nothing.

    Parameters
    ----------
    events, jobs, policy, settings
        Inputs of the run; the log without the end that the run gave it.
    """
    with_known_curves = policy.with_known_curves()
    if with_known_curves is None:
        return None
    try:
        settings = replace(settings, record_nodes=False)
        return _total(Engine(events, jobs, with_known_curves, settings, RunTables.nowhere(events.node_types.names)))
    finally:
        with_known_curves.close()


def isolated_jct_s(
    events: NodeEvents, jobs: JobSet | JobSource, policy: Policy, settings: ReplaySettings
) -> dict[int, float]:
    """Return the completion time in seconds of each job that finishes under ``gavel.isolated``, by number.

    Its options are those of ``policy`` if it is one of Gavel's, else the defaults; time is continuous.

    Parameters
    ----------
    events, jobs, settings
        Inputs of the run to measure; the log without the end that the run gave it.
    policy
        Policy of that run.

    Raises
    ------
    InputError
        The jobs come from a source, which may make other jobs here.
    """
    refuse_source(jobs)
    isolated_policy: Policy = contribution("isolated_policy")(policy.with_known_curves() or policy)
    settings = replace(settings, semantics=Semantics.CONTINUOUS, record_nodes=False)
    try:
        engine = Engine(events, jobs, isolated_policy, settings, RunTables.nowhere(events.node_types.names))
        engine.run()
    finally:
        isolated_policy.close()
    return engine.outcomes.jct_s


def refuse_source(jobs: JobSet | JobSource) -> None:
    """Raise ``InputError`` for jobs of a source, which may make other jobs in another replay."""
    if not isinstance(jobs, JobSet):
        raise InputError(
            "fairness cannot be measured for a job source: it may make other jobs under the isolated policy",
            value=jobs.name,
            expected="a set of jobs",
            fix="omit --fairness (Python: fairness)",
        )


def _reason_without_baselines(events: NodeEvents, jobs: JobSet | JobSource, settings: ReplaySettings) -> str | None:
    """Reason for having neither dedicated nodes nor an upper bound as baselines; ``None`` if there are both."""
    reason = reason_without_bound(events, jobs)
    if reason is None and (settings.until_done or settings.measured is not None):
        return "the run ends when its jobs are done"
    return reason


def baselines(
    idle_node_us: int,
    events: NodeEvents,
    jobs: JobSet | JobSource,
    policy: Policy,
    settings: ReplaySettings,
    t_fwd_s: float,
) -> Baselines:
    """Replay ``jobs`` on dedicated nodes with exact decisions.

    The dedicated nodes always run in continuous time with BFTrainer's exact decisions, so that U of different
    policies, solvers and semantics has one denominator. They follow the objective of ``policy``, if it has one: the
    comparison is about nodes, not objectives.

    Parameters
    ----------
    idle_node_us
        Idle node time of the log: ``idle_node_us(events)``, or from a ledger.
    events, jobs, policy, settings
        Inputs of the run.
    t_fwd_s
        Forward-looking time on the dedicated nodes.
    """
    allocator = BFTrainerPolicy(t_fwd_s, objective=OWN if policy.objective is None else policy.objective)
    equivalent = idle_node_us / (events.window_end_us - events.window_start_us)
    below = math.floor(equivalent)
    part = equivalent - below
    window = (events.window_start_us, events.window_end_us)
    if isinstance(jobs, JobSet) and events.node_types.has_type_names:
        jobs = jobs.on_type(events.node_types.names[0])  # the only type
    total_below = _total_on_dedicated_nodes(below, window, jobs, settings, allocator)
    high = _total_on_dedicated_nodes(below + 1, window, jobs, settings, allocator) if part else total_below
    return Baselines(
        equivalent_nodes=equivalent,
        t_fwd_s=t_fwd_s,
        dedicated=replace(
            total_below if part < 0.5 else high, samples=(1 - part) * total_below.samples + part * high.samples
        ),
        one_is_enough=below == 0 and high.last_finish_us is not None,
    )


def idle_node_us(events: NodeEvents) -> int:
    """Idle node time of a log in node-microseconds, summed node by node."""
    pool = NodePool(len(events.nodes), ActiveJobs(1, len(events.nodes)), events.window_start_us)
    timeline = Timeline()
    for batch in events.batches():
        timeline.add(batch)
        while (now_us := timeline.next_us) != NEVER_US:
            node, state = timeline.take()
            pool.change(node, state, now_us)
    return pool.idle_node_us_until(events.window_end_us)


def events_of_dedicated_nodes(n_nodes: int, start_us: int, end_us: int) -> NodeEvents:
    """A log of ``n_nodes`` nodes that are idle from ``start_us`` to ``end_us``."""
    width = len(str(n_nodes - 1))
    return NodeEvents.from_arrays(
        [f"dedicated{number:0{width}d}" for number in range(n_nodes)],
        np.full(n_nodes, NodeState.IDLE, dtype=np.int8),
        np.zeros(0, dtype=np.int64),
        np.zeros(0, dtype=np.int32),
        np.zeros(0, dtype=np.int8),
        start_us,
        end_us,
        EventsMetadata(source_format="dedicated nodes"),
    )


def _total_on_dedicated_nodes(
    n_nodes: int, window_us: tuple[int, int], jobs: JobSet | JobSource, settings: ReplaySettings, policy: Policy
) -> Total:
    """Replay the jobs on ``n_nodes`` dedicated nodes."""
    if n_nodes == 0:
        return Total(0.0, None, {}, None)
    # no node is reclaimed there, and so any is as good
    settings = replace(
        settings,
        semantics=Semantics.CONTINUOUS,
        record_nodes=False,
        reserve=0,
        min_age_s=0.0,
        settle_s=0.0,
        placement=PlacementRule.LOWEST_ID,
    )
    return _total(Engine(events_of_dedicated_nodes(n_nodes, *window_us), jobs, policy, settings, RunTables.nowhere()))


def _total(engine: Engine) -> Total:
    return Total.of(engine, engine.run().samples)
