"""A run with its inputs loaded and its policy made, ready to replay."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

from bfreplay import defaults
from bfreplay.campaigns.workloads import is_source_name, load_workload
from bfreplay.datasets import NodeEvents, load_events
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.datasets.log.events import with_node_types
from bfreplay.datasets.log.states import POOLS
from bfreplay.datasets.named_inputs import place_of, resolve_sample, restrict
from bfreplay.datasets.node_selection import select_nodes
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import OPTIONS, DeclaredOptions
from bfreplay.experiments.option_checks import parse_prices
from bfreplay.milp.named_solvers import solver_of
from bfreplay.policies import Policy, Trigger
from bfreplay.policies.catalogue import policy_of
from bfreplay.policies.learning import LearningPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs import Output, ReplaySession, RunResult, RunSettings
from bfreplay.workload import JobSet, JobSource

_BYTES_PER_MB = 1_000_000
_DERIVED_SETTINGS = {"max_parallel", "prices", "until_done"}
_RUN_OPTIONS = {setting.name for setting in fields(RunSettings)} & {*OPTIONS}
_REPLAY_OPTIONS: set[str] = {setting.name for setting in fields(ReplaySettings)} & {*OPTIONS} - _DERIVED_SETTINGS


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """The log, the jobs, the policy and the settings of ``options``, for one replay.

    Parameters
    ----------
    options
        Options of the run.
    log, jobs, policy, settings
        Loaded inputs, the policy, and the settings of the replay.
    load_s
        Seconds to load and make them.
    """

    options: DeclaredOptions
    log: NodeEvents
    jobs: JobSet | JobSource
    policy: Policy
    settings: ReplaySettings
    load_s: float

    def session(
        self, output: Output, *, with_tables: bool, portions: bool = False, hold_back_s: float = 0.0
    ) -> ReplaySession:
        """Return the session of the replay; arguments and errors as those of ``ReplaySession``."""
        return ReplaySession(
            self.log,
            self.jobs,
            self.policy,
            self.settings,
            run_settings_of(self.options, with_tables=with_tables),
            replace(output, session={"load_s": self.load_s, "files": files_of(self.options), **output.session}),
            portions=portions,
            hold_back_s=hold_back_s,
            batch_jobs=self.options.batch_jobs,
        )

    def replay(self, output: Output | None = None, *, with_tables: bool = False) -> RunResult:
        """Replay, and close the policy; errors as those of ``run_replay``."""
        with self.session(output or Output(), with_tables=with_tables) as session:
            return session.run()


def prepare_run(
    options: DeclaredOptions,
    *,
    log: NodeEvents | None = None,
    jobs: JobSet | JobSource | None = None,
    policy: Policy | None = None,
    settings: ReplaySettings | None = None,
    save_failures: str | Path | None = None,
) -> PreparedRun:
    """Load the inputs that are not given, and make the policy and the settings; errors as ``RunOptions.prepare``."""
    begin_s = perf_counter()
    log = load_log(options) if log is None else log
    jobs = load_jobs_of(options) if jobs is None else jobs
    settings = settings_of(options, log, jobs) if settings is None else settings
    policy = policy_for(options, save_failures=save_failures) if policy is None else learning(policy, options)
    return PreparedRun(options, log, jobs, policy, settings, perf_counter() - begin_s)


def load_log(options: DeclaredOptions) -> NodeEvents:
    """Load the cluster, or the part of the log in the window of the options, with their node type and idle states."""
    if options.cluster is not None:
        return fixed_cluster(options.cluster)
    assert options.events is not None
    log = options.events if isinstance(options.events, NodeEvents) else load_events(options.events)
    log = select_nodes(restrict(log, options.window), options.partition, options.only_nodes, options.without)
    if options.pool != "startable":
        log = log.counting_as_idle(POOLS[options.pool])
    return log if options.node_type is None else with_node_types(log, {options.node_type: log.nodes})


def load_jobs_of(options: DeclaredOptions) -> JobSet | JobSource:
    """Load the job set, or make a new job source; an object is returned as it is."""
    return load_workload(options.jobs, options.curves, allow_code=options.allow_code)


def known_jobs(workload: JobSet | JobSource, fix: str) -> JobSet:
    """Return the jobs for a replay with unlimited work; ``InputError`` for a source, which makes jobs as it goes."""
    if not isinstance(workload, JobSet):
        raise InputError(
            "a campaign cannot have unlimited work: it makes jobs during the replay",
            value=workload.name,
            expected="a plain job set",
            fix=fix,
        )
    return workload


def settings_of(options: DeclaredOptions, log: NodeEvents, jobs: JobSet | JobSource) -> ReplaySettings:
    """Return the settings of a replay of ``jobs`` on ``log``.

    Raises
    ------
    InputError
        Fewer jobs exist than are to be measured.
    """
    measure = options.measure
    if measure is not None and isinstance(jobs, JobSet) and measure[1] > len(jobs):
        raise InputError(
            "fewer jobs exist than are to be measured",
            column="measure",
            value=f"{measure[0]}:{measure[1]}",
            expected=f"an end of {len(jobs):,} at most",
            fix="give more jobs, or measure fewer",
        )
    return ReplaySettings(
        **{field_name: getattr(options, field_name) for field_name in _REPLAY_OPTIONS},
        max_parallel=max_parallel_of(options, log, jobs),
        clear_s=float(options.clear),
        min_age_s=float(options.min_age),
        settle_s=float(options.settle),
        until_done=options.until_done or options.cluster is not None,
        measured=measure,
        prices=prices_of(options),
    )


def run_settings_of(options: DeclaredOptions, *, with_tables: bool) -> RunSettings:
    """Return the settings of the run's baselines and tables."""
    return RunSettings(
        **{name: getattr(options, name) for name in _RUN_OPTIONS},
        tables=with_tables,
        dedicated_t_fwd_s=defaults.T_FWD_S if isinstance(options.t_fwd, str) else options.t_fwd,
    )


def max_parallel_of(options: DeclaredOptions, log: NodeEvents, jobs: JobSet | JobSource) -> int:
    """Return the maximum number of jobs at once; by default on a cluster all jobs, or one per node for a job source."""
    if options.max_parallel is not None:
        return options.max_parallel
    if options.cluster is None:
        return defaults.MAX_PARALLEL
    return max(1, len(jobs)) if isinstance(jobs, JobSet) else len(log.nodes)


def prices_of(options: DeclaredOptions) -> dict[str, float]:
    """Return the given prices: dollars per node-hour by node type."""
    return {} if options.prices is None else parse_prices(options.prices)


def policy_for(options: DeclaredOptions, *, save_failures: str | Path | None = None) -> Policy:
    """Make the policy with its solver and objective; the caller closes it."""
    solver = solver_of(options.solver, options.formulation, save_failures=save_failures, **solver_keywords(options))
    t_fwd: Any = options.t_fwd
    policy = policy_of(
        options.policy,
        t_fwd_s=t_fwd,
        solver=solver,
        objective=options.objective,
        round_s=options.round,
        prices=prices_of(options),
    )
    return learning(policy, options)


def learning(policy: Policy, options: DeclaredOptions) -> Policy:
    """Return the policy, wrapped to learn the curves if the options say so."""
    if options.learn_curves is None:
        return policy
    if Trigger.ROUND in policy.wakes_on:
        policy.close()
        raise InputError(
            f"the policy {policy.name!r} uses the rates of jobs in every round, which --learn-curves hides",
            column="learn-curves",
            value=options.learn_curves,
            expected="a policy that does not decide in rounds",
            fix="remove --learn-curves",
        )
    return LearningPolicy(policy, share=options.learn_curves, noise=options.measurement_noise, seed=options.seed)


def solver_keywords(options: DeclaredOptions) -> dict[str, Any]:
    """Return the options of a MILP solver by its own keywords."""
    keywords = {setting.passed_as: getattr(options, name) for name, setting in OPTIONS.items() if setting.passed_as}
    if options.memory_limit is not None:
        keywords["memory_limit_bytes"] *= _BYTES_PER_MB
    return keywords


def files_of(options: DeclaredOptions) -> dict[str, str]:
    """Return the absolute path or the name of each input by kind; clusters and what was made in memory have none."""
    paths = {}
    if isinstance(options.jobs, str | PathLike):
        jobs = resolve_sample(Path(options.jobs), "jobs")
        paths["jobs"] = str(jobs if is_source_name(jobs) else jobs.absolute())
    log_file = options.events.file if isinstance(options.events, NodeEvents) else options.events
    if log_file is not None:
        paths["events"] = str(resolve_sample(Path(log_file), "events").absolute())
    if options.curves is not None:
        paths["curves"] = place_of(options.curves)
    if options.batch_jobs is not None:
        paths["batch_jobs"] = str(Path(options.batch_jobs).absolute())
    return paths
