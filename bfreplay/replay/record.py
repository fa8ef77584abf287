"""What ``run.json`` says: what the result depends on, and what came out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bfreplay.datasets import NodeEvents
from bfreplay.policies import Policy
from bfreplay.replay.baseline import Efficiency
from bfreplay.replay.engine import Engine
from bfreplay.replay.known_curves import KnownCurves
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.settings import ReplaySettings
from bfreplay.result_folders import RUN
from bfreplay.versions import versions
from bfreplay.workload import JobSet, JobSource


def record_of_inputs(
    events: NodeEvents, jobs: JobSet | JobSource, policy: Policy, settings: ReplaySettings, *, unlimited_work: bool
) -> dict[str, Any]:
    """What the result depends on: no path, no clock, no measurement."""
    return {
        "schema_version": RUN.schema_version,
        "versions": versions(),
        "config": {
            "policy": policy.describe(),
            "max_parallel": settings.max_parallel,
            "semantics": settings.semantics.value,
            "seed": settings.seed,
            "record_nodes": settings.record_nodes,
            "unlimited_work": unlimited_work,
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


def _of_source(source: JobSource) -> dict[str, Any]:
    return {"name": source.name, "higher_is_better": bool(source.higher_is_better), **source.describe()}


def summary_of(
    events: NodeEvents, engine: Engine, ledger: Ledger, compared: Efficiency | None, known: KnownCurves | None
) -> dict[str, Any]:
    """Totals of the run, JSON-ready."""
    duration_us = events.window_end_us - events.window_start_us
    log = engine.log
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
        "n_jobs_wider_than_the_pool": sum(job.min_nodes > engine.most_idle for job in engine.feed.jobs),
        "most_idle_nodes": engine.most_idle,
        "job_times": engine.outcomes.times(),
        "deadlines": engine.outcomes.deadlines,
        "scores": engine.outcomes.scores,
        "last_finish_us": engine.outcomes.all_finished_us,
        "ledger": ledger.to_dict(),
        "efficiency": None if compared is None else {**asdict(compared), "u": compared.u},
        "learning": None if known is None else {**asdict(known), "lost": known.lost},
    }
