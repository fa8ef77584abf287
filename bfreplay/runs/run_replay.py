"""``run_replay``: from a log, jobs and a policy to a ``RunResult``."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
import numpy as np

from bfreplay import defaults
from bfreplay.bounds import upper_bound
from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy, Policy, Trigger
from bfreplay.replay.engine import Engine, ProgressCallback
from bfreplay.replay.feed import refuse_other_types
from bfreplay.replay.progress import Semantics
from bfreplay.replay.run_tables import RunTables
from bfreplay.replay.settings import ReplaySettings
from bfreplay.result_folders.records import RUN
from bfreplay.result_folders.writing import new_folder, record_json
from bfreplay.runs.baselines import (
    baselines,
    check_ideal,
    ideal_jct_s,
    idle_node_us,
    isolated_jct_s,
    known_total,
    reason_without_baselines,
    refuse_source,
)
from bfreplay.runs.make_record import config_of, recorded_inputs, summary_of
from bfreplay.runs.run_record import RunRecord, Seconds, Session
from bfreplay.runs.run_result import RunResult
from bfreplay.scalability import TabulatedCurve
from bfreplay.versions import versions
from bfreplay.workload import ElasticJob, Ending, JobSet, JobSource


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of a run besides those of its replay.

    Parameters
    ----------
    unlimited_work
        Take the first ``max_parallel`` jobs, all there from the start, with work that never runs out: the setting
        in which BFTrainer measures its efficiency.
    efficiency
        Also replay the jobs on dedicated nodes and report U; and, where the policy has to learn curves or rates of
        pairs, once more with known ones, and report what learning cost.
    dedicated_t_fwd_s
        Forward-looking time of the decisions there when the policy itself has none.
    bound
        Also report the upper bound on samples (``bounds.upper_bound``), for a set of jobs.
    fairness
        Also replay the jobs under ``gavel.isolated``, which gives each an equal part of the nodes, and report
        finish-time fairness; for a set of jobs.
    ideal
        Also apply the shares of one of Gavel's policies without rounds, on a cluster, and report what rounds cost.
    tables
        Without a folder: keep the tables of decisions, jobs and allocations in memory, which grow with the log.
    """

    unlimited_work: bool = False
    efficiency: bool = True
    dedicated_t_fwd_s: float = defaults.T_FWD_S
    bound: bool = True
    fairness: bool = False
    ideal: bool = False
    tables: bool = True


def run_replay(
    events: NodeEvents,
    jobs: JobSet | JobSource,
    policy: Policy,
    settings: ReplaySettings,
    run_settings: RunSettings,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    session: Mapping[str, Any] | None = None,
) -> RunResult:
    """Replay ``jobs`` on the idle nodes of ``events``, and measure the run against its baselines.

    Parameters
    ----------
    events, jobs
        The log and its jobs; relative submit times count from the start of the window.
    policy
        Decides the node counts; it is closed at the end.
    settings, run_settings
        Everything else that changes the result.
    out
        Folder to write; nothing is written without one. It appears when the run is complete.
    overwrite
        Replace a run folder that exists.
    progress
        Called after every instant with (time reached in us, decisions so far).
    session
        More entries for ``session.json``, such as the command line. ``"files"`` says where ``"events"``, ``"jobs"``
        and ``"curves"`` lie, for those who want to read them again.

    Raises
    ------
    InputError, OutputExistsError
        The log, the jobs or the output folder cannot be used.
    LedgerError
        The ledger does not close.
    """
    try:
        anchored = jobs_in_window(jobs, events, settings, unlimited_work=run_settings.unlimited_work)
        check_policy(policy, events, settings)
        if isinstance(anchored, JobSet):
            policy.check_jobs(anchored.jobs, int(np.bincount(events.node_types.of_node).max()))
        no_baselines = reason_without_baselines(events, anchored, settings)
        with_known = run_settings.efficiency
        with_efficiency = with_known and no_baselines is None
        if run_settings.fairness:
            refuse_source(anchored)
        if run_settings.ideal:
            check_ideal(events, anchored, policy)
        config = config_of(events, policy, settings, unlimited_work=run_settings.unlimited_work)
        inputs = recorded_inputs(events, jobs)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        called = dict(session or {})
        # what cannot be written is better known before the replay than after it
        record_json(called, "the run")
        record_json(inputs, "the run")
        with new_folder(out, RUN, overwrite=overwrite) as folder:
            type_names = events.node_types.names
            nowhere = folder is None and not run_settings.tables
            run_tables = RunTables.nowhere(type_names) if nowhere else RunTables.open(
                events.nodes, folder=folder, with_nodes=settings.record_nodes,
                with_reports=not isinstance(anchored, JobSet), type_names=type_names,
                shared=isinstance(anchored, JobSet) and anchored.colocation is not None,
            )  # fmt: skip
            policy.foresee(events)
            measured = known = None
            own_t_fwd_s = config.described.t_fwd_s
            t_fwd_s = float(run_settings.dedicated_t_fwd_s if own_t_fwd_s is None else own_t_fwd_s)
            comparing = perf_counter()
            if not isinstance(anchored, JobSet):
                # before the run, so that what a source tells of its last replay is of this one
                if with_efficiency:
                    measured = baselines(idle_node_us(events), events, anchored, policy, settings, t_fwd_s)
                known = known_total(events, anchored, policy, settings) if with_known else None
            compared_s = perf_counter() - comparing
            looping = perf_counter()
            engine = Engine(events, anchored, policy, settings, run_tables, progress)
            ledger = engine.run()
            loop_s = perf_counter() - looping
            isolating = perf_counter()
            isolated = isolated_jct_s(events, anchored, policy, settings) if run_settings.fairness else None
            isolated_s = perf_counter() - isolating if run_settings.fairness else 0.0
            idealising = perf_counter()
            ideal = ideal_jct_s(events, anchored, policy, settings) if run_settings.ideal else None
            ideal_s = perf_counter() - idealising if run_settings.ideal else 0.0
            comparing = perf_counter()
            if with_known and isinstance(anchored, JobSet):
                known = known_total(events, anchored, policy, settings)
            compared_s += perf_counter() - comparing
            looping = perf_counter()
            engine.outcomes.write(isolated)
            if engine.end_us < events.window_end_us:
                events = events.between(events.window_start_us, engine.end_us)
                config = msgspec.structs.replace(config, window_end_us=engine.end_us)
            tables = run_tables.close()
            loop_s += perf_counter() - looping
            comparing = perf_counter()
            if with_efficiency and measured is None:
                measured = baselines(ledger.idle_node_us, events, anchored, policy, settings, t_fwd_s)
            compared_s += perf_counter() - comparing
            bounding = perf_counter()
            bound = None
            if run_settings.bound and no_baselines is None and isinstance(anchored, JobSet):
                all_finished = engine.outcomes.by_status["finished"] == len(anchored)
                bound = upper_bound(
                    events, anchored, settings.max_parallel,
                    decides_in_rounds=Trigger.ROUND in policy.wakes_on,
                    gives_jobs_up=any(engine.outcomes.by_status[how] for how in (Ending.FAILED, Ending.DECLINED)),
                    with_finish=engine.outcomes.last_finish_us is not None,
                    finished_us=engine.outcomes.last_finish_us if all_finished else None,
                )  # fmt: skip
            bound_s = perf_counter() - bounding
            summary = summary_of(events, engine, ledger, measured, known, bound, no_baselines, isolated, ideal)
            known_s = engine.timeline.read_s + engine.log.decide_s + run_tables.write_s
            seconds = Seconds(
                parse_s=engine.timeline.read_s,
                decide_s=engine.log.decide_s,
                loop_s=loop_s - known_s,
                write_s=run_tables.write_s,
                dedicated_s=compared_s,
                bound_s=bound_s,
                isolated_s=isolated_s,
                ideal_s=ideal_s,
            )
            result = RunResult(
                RunRecord(
                    schema_version=RUN.schema_version,
                    versions=versions(),
                    config=config,
                    inputs=inputs,
                    summary=summary,
                ),
                None if out is None else Path(out).resolve(),
                tables,
                session=Session(
                    started=started,
                    files=called.pop("files", {}),
                    seconds=seconds,
                    slowest_decision=engine.log.slowest,
                    peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                    command=called.pop("command", ""),
                    worker=called.pop("worker", None),
                    load_s=called.pop("load_s", None),
                    more=called,
                ),
            )
            if folder is not None:
                result = result.written(folder)
    finally:
        policy.close()
    return result


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
    if settings.semantics is Semantics.PUBLISHED and len(types) > 1:
        raise InputError(
            "the published clock of BFTrainer knows nodes of one type only", column="semantics",
            value=settings.semantics.value, expected="continuous time", fix="leave --semantics published out",
        )  # fmt: skip
    if settings.semantics is Semantics.PUBLISHED and Trigger.ROUND in policy.wakes_on:
        raise InputError(
            f"the policy {policy.name!r} decides in rounds; the published clock of BFTrainer knows pool events only",
            column="semantics", value=settings.semantics.value, expected="continuous time",
            fix="leave --semantics out",
        )  # fmt: skip


def jobs_in_window(
    jobs: JobSet | JobSource, events: NodeEvents, settings: ReplaySettings, *, unlimited_work: bool
) -> JobSet | JobSource:
    """``jobs`` as they are replayed: times counted from the epoch, work without end where it is asked for.

    Raises
    ------
    InputError
        A job runs on node types only that there are not; more jobs are to be measured than there are; or a source is to
        run under the published clock, which looks at progress at pool events only, or without end.
    """
    if not isinstance(jobs, JobSet):
        for asked, option in (
            (settings.semantics is Semantics.PUBLISHED, "semantics='published' (--semantics published)"),
            (unlimited_work, "unlimited_work (--unlimited-work)"),
        ):
            if asked:
                raise InputError(
                    f"a job source makes jobs as time goes on, which does not go with {option}",
                    value=jobs.name,
                    expected="continuous time, and work that ends",
                    fix="leave the option out, or give a plain job set",
                )
        return jobs
    refuse_other_types(jobs, events.node_types.names)
    if settings.measured is not None and settings.measured[1] > len(jobs):
        raise InputError(
            "there are not as many jobs as are to be measured", column="measured", value=list(settings.measured),
            expected=f"two numbers up to {len(jobs)}, the number of jobs", fix="measure fewer, or give more jobs",
        )  # fmt: skip
    anchored = jobs.anchored_at(events.window_start_us)
    if any(job.report_at_samples for job in anchored):  # jobs that a source once made: nobody is there to be told
        silent = (replace(job, report_at_samples=()) for job in anchored)
        anchored = JobSet(silent, sources=anchored.sources, colocation=anchored.colocation)
    return anchored.endless(settings.max_parallel, events.window_start_us) if unlimited_work else anchored


def warm_up(policy: Policy | None = None) -> None:
    """Replay three jobs on four nodes: seconds on the first run on a machine, then the compiled code is on disk.

    ``policy`` is what will decide, where it is not BFTrainer's with a fixed forward-looking time; it is closed.
    """
    second = 1_000_000
    events = NodeEvents.from_arrays(
        ["a", "b", "c", "d"],
        np.full(4, NodeState.IDLE, dtype=np.int8),
        [10 * second, 20 * second],
        [0, 0],
        [NodeState.BUSY, NodeState.IDLE],
        0,
        100 * second,
    )
    curve = TabulatedCurve((0, 1, 2, 3), (0.0, 1.0, 1.5, 3.0))
    jobs = JobSet(ElasticJob(name, 0, 1, 3, 1.0, 1.0, 60.0, curve) for name in ("x", "y", "z"))
    policy = policy or BFTrainerPolicy()
    run_replay(events, jobs, policy, ReplaySettings(max_parallel=2), RunSettings(efficiency=False, bound=False))
