"""Makes the record of a run: configuration, inputs and summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict

import msgspec

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.errors import InputError
from bfreplay.policies import Policy, Trigger
from bfreplay.replay.engine import Engine
from bfreplay.replay.job_outcomes import JobOutcomes
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.settings import ReplaySettings
from bfreplay.result_folders.records import JsonObject
from bfreplay.result_folders.writing import record_json
from bfreplay.runs.baselines import RunBaselines, Total, learning_cost
from bfreplay.runs.run_config import EventInputs, JobInputs, PolicyDescription, RunConfig, RunInputs
from bfreplay.runs.run_record import BatchDelayCounts, BatchStartCounts, Bound, Ideal, Summary, WidestJob
from bfreplay.runs.run_warnings import extrapolation_warnings, rescale_warnings
from bfreplay.runs.scheduling_metrics import mean, scheduling_summary
from bfreplay.wording import count
from bfreplay.workload import ElasticJob, JobSet, JobSource


def config_of(events: NodeEvents, policy: Policy, settings: ReplaySettings, *, unlimited_work: bool) -> RunConfig:
    """Return the configuration of a run.

    Raises ``InputError`` or ``BfreplayError`` for a policy whose description cannot be saved.
    """
    description = policy.describe()
    PolicyDescription.of(description, type(policy).__name__)
    record_json(description, "the run")
    return RunConfig(
        policy=dict(description),
        **settings.to_config(events.node_types.names),
        unlimited_work=unlimited_work,
        also_idle=tuple(STATE_WORDS[state] for state in events.idle_states if state != NodeState.IDLE),
        selection=dict(events.selection),
        decides_in_rounds=Trigger.ROUND in policy.wakes_on,
        window_start_us=events.window_start_us,
        window_end_us=events.window_end_us,
    )


def recorded_inputs(events: NodeEvents, jobs: JobSet | JobSource, batch_jobs: SourceFile | None = None) -> RunInputs:
    """Describe the log and the jobs; BfreplayError for a job source whose description cannot be saved."""
    return RunInputs(
        events=EventInputs(files=tuple(events.sources), metadata=events.metadata, n_nodes=len(events.nodes)),
        jobs=JobInputs(
            files=tuple(SourceFile(name, digest) for name, digest in jobs.sources),
            n_jobs=len(jobs) if isinstance(jobs, JobSet) else None,
            source=None if isinstance(jobs, JobSet) else _source_description(jobs),
        ),
        batch_jobs=batch_jobs,
    )


def with_costs(inputs: RunInputs, jobs: Iterable[ElasticJob]) -> RunInputs:
    """Return the inputs, with what changes of the jobs cost where BFTrainer's model does not know it."""
    kinds = Counter(job.costs_text for job in jobs if not job.has_published_costs)
    if not kinds:
        return inputs
    ((costs, n_jobs),) = kinds.most_common(1)
    words = f"{count(n_jobs, 'job')}: {costs}"
    words = words if len(kinds) == 1 else f"{len(kinds):,} kinds of costs, most: {words}"
    return msgspec.structs.replace(inputs, jobs=msgspec.structs.replace(inputs.jobs, costs=words))


def _source_description(source: JobSource) -> JsonObject:
    description: object = source.describe()
    if not isinstance(description, Mapping):
        raise InputError(
            f"the job source {source.name!r} describes itself by {type(description).__name__}", expected="a mapping"
        )
    record_json(description, "the run")
    return {"name": source.name, "higher_is_better": bool(source.higher_is_better), **description}


def summary_of(
    events: NodeEvents,
    engine: Engine,
    ledger: Ledger,
    baselines: RunBaselines,
    batch_delays: BatchDelayCounts | None = None,
) -> Summary:
    """Sum up the run, against what was measured of its baselines."""
    duration_us = events.window_end_us - events.window_start_us
    decision_log, outcomes = engine.log, engine.outcomes
    total = Total.of(engine, ledger.samples)
    too_wide = [job for job in engine.feed.jobs if _never_fits(job, engine)]
    widest = max(too_wide, key=lambda job: job.min_nodes, default=None)
    is_comparable = engine.feed.source is None
    dedicated, known_total, bound = baselines.dedicated, baselines.known_total, baselines.bound
    share_of_bound = total.samples / bound.samples if bound is not None and bound.samples > 0 else None
    return Summary(
        duration_s=duration_us / 1e6,
        n_pool_events=engine.n_pool_events,
        n_decisions=decision_log.n_rows,
        decisions=dict(sorted(decision_log.by_kind.items())),
        fallbacks=dict(sorted(decision_log.fallbacks.items())),
        fallback_examples=dict(sorted(decision_log.first_message.items())),
        n_preemptions=engine.job_flow.n_preemptions,
        n_scale_ups=decision_log.n_scale_ups,
        n_scale_downs=decision_log.n_scale_downs,
        equivalent_nodes=ledger.idle_node_us / duration_us,
        jobs=outcomes.by_status,
        n_jobs_wider_than_the_pool=len(too_wide),
        widest_job=None if widest is None else WidestJob(name=widest.name, min_nodes=widest.min_nodes),
        most_idle_nodes=engine.most_idle,
        job_times=outcomes.times(),
        deadlines=outcomes.deadlines,
        declined=outcomes.declined,
        scores=outcomes.scores,
        last_finish_us=outcomes.last_finish_us,
        ledger=ledger,
        efficiency=None if dedicated is None else dedicated.efficiency(total, is_comparable=is_comparable),
        learning=None if known_total is None else learning_cost(total, known_total, is_comparable=is_comparable),
        bound=None if bound is None else Bound(**asdict(bound), share=share_of_bound),
        reason_without_baselines=baselines.reason_without,
        scheduling=scheduling_summary(
            outcomes,
            ledger,
            engine.run_tables.allocations.node_us_by_type,
            engine.settings,
            events.window_start_us,
            baselines.isolated_jct_s,
            engine.policy,
            ledger.idle_node_us / duration_us,
        ),
        ideal=None if baselines.ideal_jct_s is None else _ideal(outcomes, baselines.ideal_jct_s),
        policy=_own_summary(engine.policy),
        extrapolation=tuple(extrapolation_warnings(engine.feed.jobs)),
        costly_rescaling=tuple(rescale_warnings(engine.feed.jobs, engine.pool.idle_intervals_until(engine.end_us))),
        ignores_costs=_ignores_costs(engine),
        log_warnings=events.metadata.log_warnings.to_json(),
        batch_starts=None if events.metadata.source_format == SOURCE_FORMAT else _batch_starts(engine),
        batch_delays=batch_delays,
    )


def _ignores_costs(engine: Engine) -> bool:
    """Return whether jobs have costs that the decisions do not count."""
    knows_costs = engine.policy.knows_costs and not engine.active.has_types
    return not knows_costs and not all(job.has_published_costs for job in engine.feed.jobs)


def _batch_starts(engine: Engine) -> BatchStartCounts:
    starts, clear_us = engine.pool.batch_starts, round(engine.settings.clear_s * 1e6)
    return BatchStartCounts(
        n_starts=starts.n_starts,
        n_starts_met=starts.n_starts_met,
        n_nodes_started=starts.n_nodes_started,
        n_nodes_met=starts.n_nodes_met,
        delay_node_us=starts.n_nodes_delayed * clear_us,
        busy_node_us=starts.busy_node_us_until(engine.end_us),
    )


def _ideal(outcomes: JobOutcomes, jct_s: Mapping[int, float]) -> Ideal:
    times_of_jobs = [jct_s[index] for index, _ in outcomes.measured if index in jct_s]
    return Ideal(n_completed=len(times_of_jobs), average_jct_s=mean(times_of_jobs))


def _own_summary(policy: Policy) -> JsonObject | None:
    """Return the policy's own counts; ``None`` for one that counts nothing."""
    policy_summary = policy.summary()
    if policy_summary is None:
        return None
    if not isinstance(policy_summary, Mapping):
        raise InputError(
            f"the policy {policy.name!r} sums itself up by {type(policy_summary).__name__}",
            expected="a mapping, JSON-ready",
        )
    return dict(policy_summary)


def _never_fits(job: ElasticJob, engine: Engine) -> bool:
    """Return whether a job needs more nodes than were ever idle, of every type that it runs on."""
    types = zip(engine.events.node_types.names, engine.most_idle_of_type.tolist(), strict=True)
    return all(job.min_nodes > most_nodes or job.throughput_on(name) is None for name, most_nodes in types)
