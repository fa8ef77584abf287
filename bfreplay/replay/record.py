"""What ``run.json`` says: what the result depends on, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bfreplay.bounds import UpperBound
from bfreplay.datasets import NodeEvents
from bfreplay.errors import InputError
from bfreplay.policies import Policy, Trigger
from bfreplay.replay.engine import Engine
from bfreplay.replay.extrapolation import extrapolation_warnings
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.scheduling import scheduling_summary
from bfreplay.replay.settings import ReplaySettings
from bfreplay.replay.yardsticks import Total, Yardsticks
from bfreplay.result_folders import RUN
from bfreplay.versions import versions
from bfreplay.workload import ElasticJob, JobSet, JobSource


def record_of_inputs(
    events: NodeEvents, jobs: JobSet | JobSource, policy: Policy, settings: ReplaySettings, *, unlimited_work: bool
) -> dict[str, Any]:
    """What the result depends on: no path, no clock, no measurement."""
    return {
        "schema_version": RUN.schema_version,
        "versions": versions(),
        "config": {
            "policy": _of_policy(policy),
            "max_parallel": settings.max_parallel,
            "semantics": settings.semantics.value,
            "seed": settings.seed,
            "record_nodes": settings.record_nodes,
            "unlimited_work": unlimited_work,
            **({"decides_in_rounds": True} if Trigger.ROUND in policy.wakes_on else {}),
            **_of_the_end(settings),
            **_of_prices(events, settings),
            "window_start_us": events.window_start_us,
            "window_end_us": events.window_end_us,
        },
        "inputs": {
            "events": {
                "files": [asdict(source) for source in events.sources],
                "metadata": events.metadata.to_json(),
                "n_nodes": len(events.nodes),
            },
            "jobs": {
                "files": [{"name": name, "sha256": digest} for name, digest in jobs.sources],
                "n_jobs": len(jobs) if isinstance(jobs, JobSet) else None,
                "source": None if isinstance(jobs, JobSet) else _of_source(jobs),
            },
        },
    }


def _of_the_end(settings: ReplaySettings) -> dict[str, Any]:
    """Where the end of the run is not that of the log; older readers know of no such runs."""
    if not settings.until_done and settings.measured is None:
        return {}
    measured = settings.measured
    return {"until_done": settings.until_done, "measured": None if measured is None else list(measured)}


def _of_prices(events: NodeEvents, settings: ReplaySettings) -> dict[str, Any]:
    """Prices of the types of the log, those that are known."""
    prices = {name: settings.price_of(name) for name in events.node_types.names}
    known = {name: float(price) for name, price in prices.items() if price is not None}
    return {"prices": known} if known else {}


_READ_OF_A_POLICY: tuple[tuple[tuple[str, ...], type | tuple[type, ...]], ...] = (
    (("name",), str),
    (("t_fwd_s",), (int, float)),
    (("forward_time", "name"), str),
    (("solver", "name"), str),
    (("objective", "spec"), str),
)
"""What summaries and explanations read of a policy's description; all but the name may be left out."""


def _of_policy(policy: Policy) -> dict[str, Any]:
    """What a policy says of itself; InputError where others could not read it."""
    said: Any = policy.describe()
    for path, kind in _READ_OF_A_POLICY:
        part: Any = said if isinstance(said, Mapping) else {}
        if path[0] not in part and path[0] != "name":
            continue
        for key in path:
            part = part.get(key) if isinstance(part, Mapping) else None
        if not isinstance(part, kind):
            raise InputError(
                f"the policy {type(policy).__name__} describes itself without a usable {'.'.join(path)}",
                value=said,
                expected="a mapping with a name; t_fwd_s a number, forward_time and solver with a name, objective "
                "with a spec",
            )
    return dict(said)


def _of_source(source: JobSource) -> dict[str, Any]:
    said: Any = source.describe()
    if not isinstance(said, Mapping):
        raise InputError(
            f"the job source {source.name!r} describes itself by {type(said).__name__}", expected="a mapping"
        )
    return {"name": source.name, "higher_is_better": bool(source.higher_is_better), **said}


def summary_of(
    events: NodeEvents,
    engine: Engine,
    ledger: Ledger,
    measured_by: Yardsticks | None,
    bound: UpperBound | None,
    reason_without_baselines: str | None,
    isolated_jct_s: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """Totals of the run, JSON-ready; ``isolated_jct_s`` where fairness was asked for."""
    duration_us = events.window_end_us - events.window_start_us
    log, warnings = engine.log, extrapolation_warnings(engine.feed.jobs)
    total = Total.of(engine, ledger.samples)
    too_wide = [job for job in engine.feed.jobs if _never_fits(job, engine)]
    widest = max(too_wide, key=lambda job: job.min_nodes, default=None)
    efficiency = learning = None
    if measured_by is not None:
        # a source may make and prune other jobs in another replay: its samples are then no measure of the nodes
        is_comparable = engine.feed.source is None
        of_nodes, of_learning = measured_by.efficiency(total), measured_by.learning_cost(total)
        efficiency = {**asdict(of_nodes), "u": of_nodes.u if is_comparable else None}
        if of_learning is not None:
            learning = {**asdict(of_learning), "lost": of_learning.lost if is_comparable else None}
    return {
        "duration_s": duration_us / 1e6,
        "n_pool_events": engine.n_pool_events,
        "n_decisions": log.n_rows,
        "decisions": dict(sorted(log.by_kind.items())),
        "fallbacks": dict(sorted(log.fallbacks.items())),
        "fallback_examples": dict(sorted(log.first_message.items())),
        "n_preemptions": engine.n_preemptions,
        "n_grown": log.n_grown,
        "n_shrunk": log.n_shrunk,
        "equivalent_nodes": ledger.idle_node_us / duration_us,
        "jobs": engine.outcomes.by_status,
        "n_jobs_wider_than_the_pool": len(too_wide),
        "widest_job": None if widest is None else {"name": widest.name, "min_nodes": widest.min_nodes},
        "most_idle_nodes": engine.most_idle,
        "job_times": engine.outcomes.times(),
        "deadlines": engine.outcomes.deadlines,
        "scores": engine.outcomes.scores,
        "last_finish_us": engine.outcomes.last_finish_us,
        "ledger": ledger.to_dict(),
        "efficiency": efficiency,
        "learning": learning,
        "bound": None if bound is None else _of_bound(bound, total.samples),
        "reason_without_baselines": reason_without_baselines,
        "scheduling": scheduling_summary(
            engine.outcomes, ledger, engine.recorder.allocations.node_us_by_type, engine.settings,
            events.window_start_us, isolated_jct_s,
        ),
        "policy": _own_summary(engine.policy),
        **({"extrapolation": warnings} if warnings else {}),
        "log_warnings": events.metadata.log_warnings.to_json(),
    }  # fmt: skip


def _own_summary(policy: Policy) -> dict[str, object] | None:
    """What the policy itself has counted; ``None`` for one that counts nothing."""
    said = policy.summary()
    if said is None:
        return None
    if not isinstance(said, Mapping):
        raise InputError(
            f"the policy {policy.name!r} sums itself up by {type(said).__name__}", expected="a mapping, JSON-ready"
        )
    return dict(said)


def _never_fits(job: ElasticJob, engine: Engine) -> bool:
    """Whether a job needs more nodes than were ever idle, of any type that it runs on."""
    types = zip(engine.events.node_types.names, engine.most_idle_of_type.tolist(), strict=True)
    return all(job.min_nodes > most or job.throughput_on(name) is None for name, most in types)


def _of_bound(bound: UpperBound, samples: float) -> dict[str, Any]:
    """What anyone could have had, and which share of it the run has; none where nobody could make a sample."""
    return {**asdict(bound), "share": samples / bound.samples if bound.samples > 0 else None}
