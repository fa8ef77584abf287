"""``replay_log``: from a log, jobs and a policy to a ``RunResult``."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from bfreplay import defaults
from bfreplay.datasets import NodeEvents, load_events, load_jobs
from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy, Policy
from bfreplay.replay.baseline import Efficiency, efficiency
from bfreplay.replay.engine import Engine, ProgressCallback
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.recorder import Recorder
from bfreplay.replay.result import RunResult
from bfreplay.replay.settings import ReplaySettings
from bfreplay.result_folders import RUN, new_folder, record_json
from bfreplay.versions import versions
from bfreplay.workload import ElasticJob, JobSet


def replay_log(
    events: NodeEvents | str | Path,
    jobs: JobSet | Iterable[ElasticJob] | str | Path,
    policy: Policy | None = None,
    settings: ReplaySettings | None = None,
    *,
    unlimited_work: bool = False,
    with_efficiency: bool = True,
    dedicated_t_fwd_s: float = defaults.T_FWD_S,
    with_tables: bool = True,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    session: Mapping[str, Any] | None = None,
) -> RunResult:
    """Replay ``jobs`` on the idle nodes of ``events``.

    Parameters
    ----------
    events
        The log, or its file; ``events.between(...)`` for a part of it.
    jobs
        The job set, or its file; relative submit times count from the start of the window. A job submitted before
        the window waits at its start.
    policy
        Decides the node counts; BFTrainer's with exact decisions and a forward-looking time of 120 s by default.
        It is closed at the end.
    settings
        Everything else that changes the result.
    unlimited_work
        Take the first ``max_parallel`` jobs, all there from the start, with work that never runs out: the setting
        in which BFTrainer measures its efficiency.
    with_efficiency
        Also replay the jobs on dedicated nodes and report U.
    dedicated_t_fwd_s
        Forward-looking time of the decisions there when the policy itself has none.
    with_tables
        Without ``out``: keep the tables of decisions, jobs and allocations in memory, which grow with the log.
    out
        Folder to write; nothing is written without one. It appears when the run is complete.
    overwrite
        Replace a run folder that exists.
    progress
        Called after every instant with (time reached in us, decisions so far).
    session
        More entries for ``session.json``, such as the command line. ``"files"`` says where ``"events"``, ``"jobs"``
        and ``"curves"`` lie, for those who want to read them again; it is known without where files are given.

    Raises
    ------
    InputError, OutputExistsError
        The log, the jobs or the output folder cannot be used.
    LedgerError
        The books do not close.
    """
    settings = settings or ReplaySettings()
    policy = policy or BFTrainerPolicy()
    if isinstance(policy, type) or not hasattr(policy, "decide"):
        raise InputError(
            "this is no policy", value=policy, expected="an object with decide, such as BFTrainerPolicy(120)"
        )
    files = {
        name: str(Path(given).absolute())
        for name, given in (("events", events), ("jobs", jobs))
        if isinstance(given, str | Path)
    }
    if not isinstance(events, NodeEvents):
        events = load_events(events)
    if not isinstance(jobs, JobSet):
        jobs = load_jobs(jobs) if isinstance(jobs, str | Path) else JobSet(jobs)
    started = perf_counter()
    try:
        anchored = jobs_in_window(jobs, events, settings, unlimited_work=unlimited_work)
        record = _record_of_inputs(events, jobs, policy, settings, unlimited_work=unlimited_work)
        notes: dict[str, Any] = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"), "files": files, **(session or {})
        }  # fmt: skip
        for document in (record, notes):
            record_json(document, "the run")  # what cannot be written is better known before the replay than after it
        place = nullcontext(None) if out is None else new_folder(Path(out), RUN, overwrite=overwrite)
        with place as folder:
            recorder = _recorder(anchored, events, settings, folder, with_tables=with_tables)
            engine = Engine(events, anchored, policy, settings, recorder, progress)
            ledger = engine.run()
            engine.outcomes.write()
            tables = recorder.close()
            looped = perf_counter()
            compared = None
            if with_efficiency:
                t_fwd_s = float(record["config"]["policy"].get("t_fwd_s", dedicated_t_fwd_s))
                compared = efficiency(ledger, engine.outcomes.all_finished_us, events, anchored, settings, t_fwd_s)
            record["summary"] = _summary(events, engine, ledger, compared)
            known_s = engine.timeline.read_s + engine.log.decide_s + recorder.write_s
            notes |= {
                "seconds": {
                    "parse_s": engine.timeline.read_s,
                    "decide_s": engine.log.decide_s,
                    "loop_s": looped - started - known_s,
                    "write_s": recorder.write_s,
                    "dedicated_s": perf_counter() - looped,
                },
                "slowest_decision": engine.log.slowest,
                "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
            if folder is not None:
                for name, document in zip((RUN.record_file, *RUN.more_documents), (record, notes), strict=True):
                    (folder / name).write_text(record_json(document, "the run"), encoding="utf-8")
    finally:
        policy.close()
    return RunResult(record, notes, None if out is None else Path(out).resolve(), tables)


def jobs_in_window(jobs: JobSet, events: NodeEvents, settings: ReplaySettings, *, unlimited_work: bool) -> JobSet:
    """``jobs`` as they are replayed: times counted from the epoch, work without end where it is asked for.

    Raises
    ------
    InputError
        A job runs on certain node types only.
    """
    _refuse_node_types(jobs)
    anchored = jobs.anchored_at(events.window_start_us)
    return anchored.endless(settings.max_parallel, events.window_start_us) if unlimited_work else anchored


def _recorder(
    jobs: JobSet, events: NodeEvents, settings: ReplaySettings, folder: Path | None, *, with_tables: bool
) -> Recorder:
    names = [job.name for job in jobs]
    limit = min(settings.max_parallel, len(jobs))
    if folder is None and not with_tables:
        return Recorder.nowhere(names, limit)
    return Recorder.open(names, events.nodes, limit, folder=folder, with_nodes=settings.record_nodes)


def _refuse_node_types(jobs: JobSet) -> None:
    for job in jobs:
        if job.node_types:
            raise InputError(
                f"job {job.name!r} runs on certain node types only, and node events do not tell types apart",
                column="node_types",
                value=";".join(job.node_types),
                expected="no node types",
                fix="leave the column empty, and give a log of those nodes alone",
            )


def _record_of_inputs(
    events: NodeEvents, jobs: JobSet, policy: Policy, settings: ReplaySettings, *, unlimited_work: bool
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
            "jobs": {"files": [{"name": name, "sha256": digest} for name, digest in jobs.sources], "n_jobs": len(jobs)},
        },
    }


def _summary(events: NodeEvents, engine: Engine, ledger: Ledger, compared: Efficiency | None) -> dict[str, Any]:
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
        "n_jobs_wider_than_the_pool": sum(job.min_nodes > engine.most_idle for job in engine.jobs),
        "most_idle_nodes": engine.most_idle,
        "job_times": engine.outcomes.times(),
        "deadlines": engine.outcomes.deadlines,
        "last_finish_us": engine.outcomes.all_finished_us,
        "ledger": ledger.to_dict(),
        "efficiency": None if compared is None else {**asdict(compared), "u": compared.u},
    }
