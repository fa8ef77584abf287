"""A run with everything loaded and made: what remains is the replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from bfreplay import defaults
from bfreplay.campaigns.workloads import is_source_name, load_workload
from bfreplay.datasets import NodeEvents, load_events
from bfreplay.datasets.named_inputs import or_bundled, restricted
from bfreplay.experiments.run_options import RunOptions
from bfreplay.milp.catalogue import solver_of
from bfreplay.milp.milp_solver import Fallback
from bfreplay.policies import Policy
from bfreplay.policies.catalogue import policy_of
from bfreplay.policies.learning import LearningPolicy
from bfreplay.replay import ReplaySettings, RunResult, Semantics, replay_log
from bfreplay.replay.engine import ProgressCallback
from bfreplay.workload import JobSet, JobSource

_BYTES_PER_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """The log, the jobs and the policy of ``options``; good for one replay.

    Parameters
    ----------
    options
        What was asked for.
    log, jobs, policy
        What was loaded and made.
    load_s
        How long that took.
    """

    options: RunOptions
    log: NodeEvents
    jobs: JobSet | JobSource
    policy: Policy
    load_s: float

    @property
    def settings(self) -> ReplaySettings:
        """What the replay needs to know beside these."""
        options = self.options
        return ReplaySettings(
            options.max_parallel, Semantics(options.semantics), options.seed, options.record_nodes
        )  # fmt: skip

    def replay(
        self,
        out: str | Path | None = None,
        *,
        overwrite: bool = False,
        with_tables: bool = False,
        progress: ProgressCallback | None = None,
        session: Mapping[str, Any] | None = None,
    ) -> RunResult:
        """Replay, and close the policy; arguments and errors as those of ``replay_log``."""
        options = self.options
        t_fwd = options.t_fwd
        return replay_log(
            self.log, self.jobs, self.policy, self.settings,
            unlimited_work=options.unlimited_work, with_efficiency=options.efficiency, with_bound=options.bound,
            dedicated_t_fwd_s=defaults.T_FWD_S if isinstance(t_fwd, str) else t_fwd,
            with_tables=with_tables, out=out, overwrite=overwrite, progress=progress,
            session={"load_s": self.load_s, "files": files_of(options), **(session or {})},
        )  # fmt: skip

    def close(self) -> None:
        """Release the policy without a replay."""
        self.policy.close()


def prepared(
    options: RunOptions,
    *,
    log: NodeEvents | None = None,
    jobs: JobSet | JobSource | None = None,
    save_failures: str | Path | None = None,
) -> PreparedRun:
    """Load what is not given, and make the policy; errors as ``RunOptions.prepare``."""
    started = perf_counter()
    log = load_log(options) if log is None else log
    jobs = load_jobs_of(options) if jobs is None else jobs
    policy = policy_for(options, save_failures=save_failures)
    return PreparedRun(options, log, jobs, policy, perf_counter() - started)


def load_log(options: RunOptions) -> NodeEvents:
    """The part of the log that the options ask for."""
    return restricted(load_events(or_bundled(Path(options.events), "events")), options.window)


def load_jobs_of(options: RunOptions) -> JobSet | JobSource:
    """The job set, or a fresh source of jobs."""
    return load_workload(or_bundled(Path(options.jobs), "jobs"), options.curves)


def policy_for(options: RunOptions, *, save_failures: str | Path | None = None) -> Policy:
    """Make the policy with its solver and objective; whoever asks closes it."""
    solver = solver_of(
        options.solver, options.formulation, time_limit_s=options.time_limit, fallback=cast(Fallback, options.fallback),
        relative_gap=options.gap, threads=options.threads, seed=options.solver_seed, warm_start=options.warm_start,
        reformulate_sets=options.reformulate_sets, save_failures=save_failures,
        memory_limit_bytes=None if options.memory_limit is None else options.memory_limit * _BYTES_PER_MB,
    )  # fmt: skip
    t_fwd: Any = options.t_fwd
    chosen = policy_of(options.policy, t_fwd_s=t_fwd, solver=solver, objective=options.objective)
    if options.learn_curves is None:
        return chosen
    return LearningPolicy(chosen, share=options.learn_curves, noise=options.measurement_noise, seed=options.seed)


def files_of(options: RunOptions) -> dict[str, str]:
    """Where the inputs lie, by what they are: absolute paths, or the name of a job source."""
    jobs = or_bundled(Path(options.jobs), "jobs")
    found = {
        "events": str(or_bundled(Path(options.events), "events").absolute()),
        "jobs": str(jobs if is_source_name(jobs) else jobs.absolute()),
    }
    return found if options.curves is None else {**found, "curves": str(Path(options.curves).absolute())}
