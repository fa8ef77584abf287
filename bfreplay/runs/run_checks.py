"""Checks of a run before it begins: its policy, its nodes and its jobs fit together."""

from __future__ import annotations

from dataclasses import replace

from bfreplay import checks
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT
from bfreplay.datasets.log.portions import Portions
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.policies import Policy, Trigger
from bfreplay.replay.feed import refuse_other_types
from bfreplay.replay.placement import PlacementRule
from bfreplay.replay.progress import Semantics
from bfreplay.replay.settings import ReplaySettings, not_published
from bfreplay.runs.baselines import idle_node_us
from bfreplay.wording import duration
from bfreplay.workload import JobSet, JobSource


def check_policy(policy: Policy, events: NodeEvents, settings: ReplaySettings) -> None:
    """Raise ``InputError`` for a policy that cannot decide on these nodes, or under this clock."""
    if not isinstance(getattr(policy, "name", None), str):
        kind = type(policy)
        raise InputError(
            f"{kind.__module__}:{kind.__qualname__} has no name", column="policy", expected='name = "..." in the class'
        )
    types = events.node_types.names
    if len(types) > 1:
        policy.check_types(types)
    if settings.semantics is Semantics.PUBLISHED:
        if len(types) > 1:
            problem = "the published clock of BFTrainer supports nodes of one type only"
            raise not_published(problem, "remove --semantics published")
        if Trigger.ROUND in policy.wakes_on:
            behaviour = "decides in rounds; the published clock of BFTrainer supports pool events only"
            raise not_published(f"the policy {policy.name!r} {behaviour}", "remove --semantics")
        if policy.capabilities.restarts_jobs:
            behaviour = "brings its own cost of a change, which the published clock does not know"
            raise not_published(f"the policy {policy.name!r} {behaviour}", "remove --semantics")
    if settings.placement is PlacementRule.RUNS and (len(types) > 1 or policy.capabilities.chooses_nodes):
        where = "on nodes of several types" if len(types) > 1 else "itself"
        raise InputError(
            f"the policy {policy.name!r} chooses the nodes of each job {where}",
            column="placement",
            value=settings.placement.value,
            expected="a policy that decides only how many nodes each job gets, on nodes of one type",
            fix="remove --placement, or choose another policy",
        )


def check_growing(policy: Policy) -> None:
    """Raise ``InputError`` for a policy that cannot decide where nodes may appear."""
    if policy.capabilities.fixed_nodes:
        raise InputError(
            f"the policy {policy.name!r} keeps a state by node, and nodes may appear while a log is followed",
            column="hold_back",
            expected="a policy that does not, such as bftrainer or reclaim-aware",
            fix="choose another policy, or omit hold_back",
        )


def check_length(policy: Policy, events: NodeEvents, jobs: JobSet | JobSource, settings: ReplaySettings) -> None:
    """Raise ``InputError`` for a job that ends on no cluster, or for more rounds than ``checks.MOST_ROUNDS``.

    A replay lasts for the window of a log, and on a cluster at least as long as its longest job at its best rate.
    """
    seconds = (events.window_end_us - events.window_start_us) / 1e6
    if events.metadata.source_format == SOURCE_FORMAT:
        lengths = [(job.least_s, job) for job in jobs] if isinstance(jobs, JobSet) else []
        for least_s, job in lengths:
            if least_s > seconds and settings.until_done and settings.measured is None:
                raise InputError(
                    f"the job {job.name!r} cannot end on a cluster",
                    column="work_samples",
                    value=job.work_samples,
                    expected=f"work that its best rate ends within {duration(seconds)}",
                    fix="give it less work",
                )
        seconds = min(seconds, max((least_s for least_s, _ in lengths), default=0.0))
    if policy.round_s is not None and seconds / policy.round_s > checks.MOST_ROUNDS:
        raise InputError(
            "the replay has too many rounds",
            column="round_s",
            value=policy.round_s,
            expected=f"at most {checks.MOST_ROUNDS:,} rounds; it lasts at least {duration(seconds)}",
            fix="make rounds longer (--round), or the longest job or the window shorter",
        )


def check_whole_log(log: NodeEvents, portions: Portions, end_us: int) -> None:
    """Raise ``InputError`` if a log is not what came in portions."""
    events = portions.log
    for property_name, own_value, other_value in (
        ("nodes", list(events.nodes), list(log.nodes)),
        ("nodes at its start", events.metadata.n_nodes_at_start, log.metadata.n_nodes_at_start),
        ("node types", list(events.node_types.of_node), list(log.node_types.of_node)),
        ("start of the window", iso_utc(events.window_start_us), iso_utc(log.window_start_us)),
        ("end of the window", iso_utc(end_us), iso_utc(log.window_end_us)),
        ("idle node time in us", portions.idle_node_us(end_us), idle_node_us(log)),
    ):
        if own_value != other_value:
            raise InputError(
                f"this log is not what came in portions: its {property_name} differ" + "s" * (property_name[-1] != "s"),
                column="log",
                value=other_value,
                expected=str(own_value)[:200],
                fix="give the log of the portions, cut to their window: log.between(start, end); or none",
            )


def jobs_in_window(
    jobs: JobSet | JobSource, events: NodeEvents, settings: ReplaySettings, *, unlimited_work: bool
) -> JobSet | JobSource:
    """Return ``jobs`` as replayed: times from the epoch, and endless work on request.

    Raises
    ------
    InputError
        A job runs only on node types that the log does not have; fewer jobs exist than are to be measured; a source
        is combined with the published clock, which sees progress at pool events only, or with endless work; or a job
        has costs that the published clock does not know.
    """
    if not isinstance(jobs, JobSet):
        for conflicts, option in (
            (settings.semantics is Semantics.PUBLISHED, "semantics='published' (--semantics published)"),
            (unlimited_work, "unlimited_work (--unlimited-work)"),
            (bool(settings.costs_of_jobs), "other costs (--restart-cost, --work-saved-every, --saves)"),
        ):
            if conflicts:
                raise InputError(
                    f"a job source makes jobs during the replay, which cannot be combined with {option}",
                    value=jobs.name,
                    expected="continuous time, and work that ends",
                    fix="remove the option, or give a plain job set",
                )
        return jobs
    refuse_other_types(jobs, events.node_types.names)
    if settings.measured is not None and settings.measured[1] > len(jobs):
        raise InputError(
            "fewer jobs exist than are to be measured",
            column="measured",
            value=list(settings.measured),
            expected=f"two numbers up to {len(jobs)}, the number of jobs",
            fix="measure fewer, or give more jobs",
        )
    jobs_at_times = jobs.anchored_at(events.window_start_us)
    costs = settings.costs_of_jobs
    # reports are of jobs that a source made once, which is not part of this replay
    if costs or any(job.report_at_samples for job in jobs_at_times):
        changed = (replace(job, report_at_samples=(), **costs) for job in jobs_at_times)
        jobs_at_times = JobSet(changed, sources=jobs_at_times.sources, colocation=jobs_at_times.colocation)
    if settings.semantics is Semantics.PUBLISHED:
        _refuse_unpublished_costs(jobs_at_times)
    return jobs_at_times.endless(settings.max_parallel, events.window_start_us) if unlimited_work else jobs_at_times


def _refuse_unpublished_costs(jobs: JobSet) -> None:
    for job in jobs:
        if (field_name := job.unpublished_cost) is not None:
            raise InputError(
                f"job {job.name!r} has costs of changes that the published clock of BFTrainer does not know",
                column=field_name,
                value=getattr(job, field_name),
                expected="constant scale_up_cost_s and scale_down_cost_s, charged, and nothing else",
                fix=f"remove --semantics published, or {field_name}",
            )
