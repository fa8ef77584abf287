"""``run_replay``: from a log, jobs and a policy to a ``RunResult``."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
        Replay the first ``max_parallel`` jobs from the start, with work that never ends: the setting in which BFTrainer
        measures its efficiency.
    efficiency
        Also replay the jobs on dedicated nodes and report U; for a policy that learns curves or rates of pairs, replay
        also with known ones and report the cost of learning.
    dedicated_t_fwd_s
        Forward-looking time on dedicated nodes for a policy that has none.
    bound
        Also report the upper bound on samples (``bounds.upper_bound``), for a set of jobs.
    fairness
        Also replay the jobs under ``gavel.isolated`` (an equal part of the nodes for each) and report finish-time
        fairness; for a set of jobs.
    ideal
        Also apply the shares of a Gavel policy without rounds, on a cluster, and report the cost of rounds.
    tables
        Without a folder, keep the tables of decisions, jobs and allocations in memory; they grow with the log.
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
        Policy that decides the node counts; closed at the end.
    settings, run_settings
        Everything else that changes the result.
    out
        Folder to write, made when the run is complete; by default nothing is written.
    overwrite
        Replace an existing run folder.
    progress
        Called after every instant with (time reached in us, decisions so far).
    session
        More entries for ``session.json``, such as the command line. ``"files"`` has the paths of ``"events"``,
        ``"jobs"`` and ``"curves"``, to read them again later.

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
        # refuse before the replay what cannot be written after it
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
            own_t_fwd_s = config.policy_description.t_fwd_s
            t_fwd_s = float(run_settings.dedicated_t_fwd_s if own_t_fwd_s is None else own_t_fwd_s)
            seconds = dict.fromkeys(("dedicated_s", "loop_s", "isolated_s", "ideal_s", "bound_s"), 0.0)
            if not isinstance(anchored, JobSet):
                # before the run: a source describes its last replay, which must be this run
                with _added_to(seconds, "dedicated_s"):
                    if with_efficiency:
                        measured = baselines(idle_node_us(events), events, anchored, policy, settings, t_fwd_s)
                    known = known_total(events, anchored, policy, settings) if with_known else None
            with _added_to(seconds, "loop_s"):
                engine = Engine(events, anchored, policy, settings, run_tables, progress)
                ledger = engine.run()
            with _added_to(seconds, "isolated_s"):
                isolated = isolated_jct_s(events, anchored, policy, settings) if run_settings.fairness else None
            with _added_to(seconds, "ideal_s"):
                ideal = ideal_jct_s(events, anchored, policy, settings) if run_settings.ideal else None
            if with_known and isinstance(anchored, JobSet):
                with _added_to(seconds, "dedicated_s"):
                    known = known_total(events, anchored, policy, settings)
            with _added_to(seconds, "loop_s"):
                engine.outcomes.write(isolated)
                if engine.end_us < events.window_end_us:
                    events = events.between(events.window_start_us, engine.end_us)
                    config = msgspec.structs.replace(config, window_end_us=engine.end_us)
                tables = run_tables.close()
            if with_efficiency and measured is None:
                with _added_to(seconds, "dedicated_s"):
                    measured = baselines(ledger.idle_node_us, events, anchored, policy, settings, t_fwd_s)
            bound = None
            if run_settings.bound and no_baselines is None and isinstance(anchored, JobSet):
                all_finished = engine.outcomes.by_status["finished"] == len(anchored)
                with _added_to(seconds, "bound_s"):
                    bound = upper_bound(
                        events, anchored, settings.max_parallel,
                        decides_in_rounds=Trigger.ROUND in policy.wakes_on,
                        gives_jobs_up=any(engine.outcomes.by_status[how] for how in (Ending.FAILED, Ending.DECLINED)),
                        with_finish=engine.outcomes.last_finish_us is not None,
                        finished_us=engine.outcomes.last_finish_us if all_finished else None,
                    )  # fmt: skip
            summary = summary_of(events, engine, ledger, measured, known, bound, no_baselines, isolated, ideal)
            measures = {
                "parse_s": engine.timeline.read_s,
                "decide_s": engine.log.decide_s,
                "write_s": run_tables.write_s,
            }
            seconds["loop_s"] -= sum(measures.values())
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
                    seconds=Seconds(**measures, **seconds),
                    slowest_decision=engine.log.slowest,
                    peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                    command=called.pop("command", ""),
                    worker=called.pop("worker", None),
                    load_s=called.pop("load_s", None),
                    more=called,
                ),
            )
            if folder is not None:
                result = result.write(folder)
    finally:
        policy.close()
    return result


@contextmanager
def _added_to(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Add the duration of the block to that of a part."""
    begun = perf_counter()
    yield
    seconds[part] += perf_counter() - begun


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
            "the published clock of BFTrainer supports nodes of one type only", column="semantics",
            value=settings.semantics.value, expected="continuous time", fix="remove --semantics published",
        )  # fmt: skip
    if settings.semantics is Semantics.PUBLISHED and Trigger.ROUND in policy.wakes_on:
        raise InputError(
            f"the policy {policy.name!r} decides in rounds; the published clock of BFTrainer supports pool events only",
            column="semantics", value=settings.semantics.value, expected="continuous time",
            fix="remove --semantics",
        )  # fmt: skip


def jobs_in_window(
    jobs: JobSet | JobSource, events: NodeEvents, settings: ReplaySettings, *, unlimited_work: bool
) -> JobSet | JobSource:
    """Return ``jobs`` as replayed: times from the epoch, and endless work on request.

    Raises
    ------
    InputError
        A job runs only on node types that the log does not have; fewer jobs exist than are to be measured; or a source
        is combined with the published clock, which sees progress at pool events only, or with endless work.
    """
    if not isinstance(jobs, JobSet):
        for asked, option in (
            (settings.semantics is Semantics.PUBLISHED, "semantics='published' (--semantics published)"),
            (unlimited_work, "unlimited_work (--unlimited-work)"),
        ):
            if asked:
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
            "fewer jobs exist than are to be measured", column="measured", value=list(settings.measured),
            expected=f"two numbers up to {len(jobs)}, the number of jobs", fix="measure fewer, or give more jobs",
        )  # fmt: skip
    anchored = jobs.anchored_at(events.window_start_us)
    if any(job.report_at_samples for job in anchored):  # made by a source once, which is not part of this replay
        silent = (replace(job, report_at_samples=()) for job in anchored)
        anchored = JobSet(silent, sources=anchored.sources, colocation=anchored.colocation)
    return anchored.endless(settings.max_parallel, events.window_start_us) if unlimited_work else anchored


def warm_up(policy: Policy | None = None) -> None:
    """Compile by replaying three jobs on four nodes; takes seconds once per machine, then the code is on disk.

    ``policy``, closed at the end, is by default BFTrainer's with a fixed forward-looking time.
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
