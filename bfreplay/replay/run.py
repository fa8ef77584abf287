"""``replay_log``: from a log, jobs and a policy to a ``RunResult``."""

from __future__ import annotations

import json
import resource
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from bfreplay.datasets import NodeEvents
from bfreplay.policies import BFTrainerPolicy, Policy
from bfreplay.replay.baseline import Efficiency, efficiency
from bfreplay.replay.engine import Engine, ProgressCallback
from bfreplay.replay.folder import new_folder
from bfreplay.replay.recorder import Recorder
from bfreplay.replay.result import RECORD_FILE, SCHEMA_VERSION, SESSION_FILE, RunResult
from bfreplay.replay.settings import ReplaySettings
from bfreplay.versions import versions
from bfreplay.workload import JobSet

_DEFAULT_T_FWD_S = 120.0


def replay_log(
    events: NodeEvents,
    jobs: JobSet,
    policy: Policy | None = None,
    settings: ReplaySettings | None = None,
    *,
    unlimited_work: bool = False,
    with_efficiency: bool = True,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    session: Mapping[str, Any] | None = None,
) -> RunResult:
    """Replay ``jobs`` on the idle nodes of ``events``.

    Parameters
    ----------
    events
        The log; ``events.between(...)`` for a part of it.
    jobs
        The job set; relative submit times count from the start of the window.
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
    out
        Folder to write; nothing is written without one. It appears when the run is complete.
    overwrite
        Replace a run folder that exists.
    progress
        Called after every instant with (time reached in us, decisions so far).
    session
        More entries for ``session.json``, such as the command line.

    Raises
    ------
    InputError, OutputExistsError
        The log, the jobs or the output folder cannot be used.
    LedgerError
        The books do not close.
    """
    settings = settings or ReplaySettings()
    policy = policy or BFTrainerPolicy(_DEFAULT_T_FWD_S)
    started = perf_counter()
    anchored = jobs.anchored_at(events.window_start_us)
    if unlimited_work:
        anchored = anchored.endless(settings.max_parallel, events.window_start_us)
    names = [job.name for job in anchored]
    place = nullcontext(None) if out is None else new_folder(Path(out), overwrite=overwrite)
    try:
        with place as folder:
            recorder = Recorder.open(
                names, events.nodes, settings.max_parallel, folder=folder, with_nodes=settings.record_nodes
            )
            engine = Engine(events, anchored, policy, settings, recorder, progress)
            ledger = engine.run()
            engine.book.write()
            tables = recorder.close()
            looped = perf_counter()
            compared = None
            if with_efficiency:
                t_fwd_s = getattr(policy, "t_fwd_s", _DEFAULT_T_FWD_S)
                compared = efficiency(ledger, engine.book.all_finished_us, events, anchored, settings, t_fwd_s)
            record = _record(events, jobs, policy, settings, engine, compared, unlimited_work=unlimited_work)
            seconds = {
                "parse_s": engine.timeline.read_s,
                "decide_s": engine.tally.decide_s,
                "write_s": recorder.write_s,
                "loop_s": looped - started - engine.timeline.read_s - engine.tally.decide_s - recorder.write_s,
                "dedicated_s": perf_counter() - looped,
            }
            notes = {
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": seconds,
                "slowest_decision": engine.tally.slowest,
                "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                **(session or {}),
            }
            if folder is not None:
                _write_json(folder / RECORD_FILE, record)
                _write_json(folder / SESSION_FILE, notes)
    finally:
        policy.close()
    return RunResult(record, notes, None if out is None else Path(out), tables)


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")


def _record(
    events: NodeEvents,
    jobs: JobSet,
    policy: Policy,
    settings: ReplaySettings,
    engine: Engine,
    compared: Efficiency | None,
    *,
    unlimited_work: bool,
) -> dict[str, Any]:
    """Everything that depends on the inputs alone: no path, no clock, no measurement."""
    duration_us = events.window_end_us - events.window_start_us
    assert engine.ledger is not None
    ledger = engine.ledger
    tally = engine.tally
    return {
        "schema_version": SCHEMA_VERSION,
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
        "summary": {
            "duration_s": duration_us / 1e6,
            "n_pool_events": tally.n_pool_events,
            "n_decisions": engine.recorder.decisions.n_rows,
            "decisions": dict(sorted(tally.decisions.items())),
            "fallbacks": dict(sorted(tally.fallbacks.items())),
            "n_preemptions": tally.n_preemptions,
            "n_grown": tally.n_grown,
            "n_shrunk": tally.n_shrunk,
            "equivalent_nodes": ledger.idle_node_us / duration_us,
            "jobs": engine.book.by_status,
            "last_finish_us": engine.book.all_finished_us,
            "ledger": ledger.to_dict(),
            "efficiency": None if compared is None else {**asdict(compared), "u": compared.u},
        },
    }
