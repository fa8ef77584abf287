"""Plans the runs of a spec, and refuses all bad input before the first run starts."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bfreplay import __version__
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.log_warnings import LogWarnings
from bfreplay.experiments.declared_options import FILE_OPTIONS, OPTIONS
from bfreplay.experiments.prepared_run import files_of, policy_for, settings_of
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.identity import content_of, id_of
from bfreplay.experiments.sweep.result import SweepPoint, SweepRecord, SweptRun
from bfreplay.experiments.sweep.spec import SweepSpec
from bfreplay.experiments.sweep.worker import Inputs, RunTask, key_of
from bfreplay.registry import contribution, make_from_code
from bfreplay.result_folders.records import SWEEP, JsonObject
from bfreplay.runs.baselines import refuse_source
from bfreplay.runs.run_checks import check_policy, jobs_in_window
from bfreplay.versions import versions
from bfreplay.workload import JobSet, JobSource

_OF_OTHERS = (
    *FILE_OPTIONS,
    "cluster",
    "node_type",
    "pool",
    "partition",
    "only_nodes",
    "without",
    "window",
    "measure",
    "max_parallel",
    "unlimited_work",
    "fairness",
)
_OF_A_POLICY = tuple(name for name in OPTIONS if name not in _OF_OTHERS)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run of a sweep: options with absolute paths, the content behind its id, and facts about its inputs."""

    options: RunOptions
    content: JsonObject
    log_warnings: LogWarnings
    jobs_are_a_set: bool


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """Points and runs of a sweep.

    Parameters
    ----------
    spec
        Spec of the sweep.
    ids
        Id of each point's run, in the order of the points.
    runs
        Distinct runs by id.
    """

    spec: SweepSpec
    ids: tuple[str, ...]
    runs: Mapping[str, PlannedRun]

    def task(self, run_id: str, folder: Path) -> RunTask:
        """Return the run for a worker."""
        run = self.runs[run_id]
        search_path = tuple(entry or str(Path.cwd()) for entry in sys.path)
        return RunTask(run_id, run.options, run.content, run.jobs_are_a_set, str(folder), search_path)

    def record(self) -> SweepRecord:
        """Return the record of ``sweep.json``, without the checksums of the tables."""
        return SweepRecord(
            schema_version=SWEEP.schema_version,
            bfreplay=__version__,
            versions=versions(),
            spec=dict(self.spec.document),
            columns=list(self.spec.columns),
            points=[
                SweepPoint(id=run_id, cells=dict(point.cells))
                for run_id, point in zip(self.ids, self.spec.points, strict=True)
            ],
            runs={
                run_id: SweptRun(paths=files_of(run.options), **run.content, log_warnings=run.log_warnings.to_json())
                for run_id, run in self.runs.items()
            },
        )


def plan_runs(spec: SweepSpec) -> SweepPlan:
    """Plan the runs of ``spec``: load every input once, make every policy once, and compute the ids.

    Raises
    ------
    InputError, SolverUnavailableError
        An input, a name or a combination of options cannot be used; nothing has run.
    """
    checks = _Checks()
    # paths for workers in another working directory
    every = [replace(point.options, **dict[str, Any](files_of(point.options))) for point in spec.points]
    planned: dict[int, PlannedRun] = {}
    # by jobs: a sweep may have hundreds of workloads, and only one is in memory at a time
    first: dict[Any, int] = {}
    for position in sorted(range(len(every)), key=lambda index: first.setdefault(key_of(every[index], "jobs"), index)):
        options = every[position]
        log, jobs = checks.inputs_of(options)
        content = content_of(options, log, jobs)
        planned[position] = PlannedRun(options, content, log.metadata.log_warnings, isinstance(jobs, JobSet))
    ids = tuple(id_of(planned[position].content) for position in range(len(every)))
    runs: dict[str, PlannedRun] = {}
    for position, run_id in enumerate(ids):
        runs.setdefault(run_id, planned[position])
    return SweepPlan(spec, ids, runs)


class _Checks:
    """Checks of logs, policies and jobs of one plan, each done once."""

    def __init__(self) -> None:
        self._inputs = Inputs(n_logs=None, n_jobs=1)
        self._seen: set[Any] = set()

    def inputs_of(self, options: RunOptions) -> tuple[NodeEvents, JobSet | JobSource]:
        """Return the log and the jobs of a run, after checking that it can start."""
        whole_log = replace(options, window=None)
        log, jobs = self._inputs.log(options), self._inputs.jobs(options)
        nodes, of_jobs = key_of(whole_log, "log"), key_of(options, "jobs")
        settings = settings_of(options, log, jobs)
        of_policy = (*(getattr(options, field_name) for field_name in _OF_A_POLICY), options.semantics, nodes)
        if of_policy not in self._seen:
            policy = policy_for(options)
            policy.close()
            check_policy(policy, log, settings)
            if options.ideal:
                contribution("check_ideal")(log, jobs, policy)
        together = (nodes, options.window, of_jobs, options.semantics, options.unlimited_work, options.fairness)
        if together not in self._seen:
            jobs_in_window(jobs, log, settings, unlimited_work=options.unlimited_work)
            if options.fairness:
                refuse_source(jobs)
            make_from_code(partial(pickle.dumps, options), "a copy of the log and the jobs for other processes")
        self._seen |= {of_policy, together}
        return log, jobs
