"""All options of a run, declared once: name, check, default and help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from bfreplay import checks, defaults
from bfreplay.experiments import option_checks
from bfreplay.options import (
    REQUIRED,
    Number,
    OneOf,
    Whole,
    check_options,
    field_name,
    option,
    option_name,
    options_of,
    switch,
)
from bfreplay.policies import names as policies

if TYPE_CHECKING:
    from bfreplay.datasets import NodeEvents
    from bfreplay.workload import ElasticJob, JobSet, JobSource

LOG, JOBS, POLICY, SOLVER, TIME, OUTPUT = "Log", "Jobs", "Policy", "Solver", "Time", "Output"
BATCH_JOBS = "Batch jobs"
GROUPS = (LOG, JOBS, POLICY, SOLVER, TIME, BATCH_JOBS, OUTPUT)
"""Headings of the options in help."""


_Value = TypeVar("_Value")
_NO_BATCH_JOBS = "a dedicated cluster has no batch jobs", "remove it, or replay a log"
_PRICES = ",".join(f"{name}={price:g}" for name, price in defaults.NODE_PRICES.items())


def _backend_option(
    keyword: str, default: _Value, check: Callable[[str, Any], Any], text: str, **attributes: Any
) -> _Value:
    """Return an option of MILP back ends, passed to their solver as ``keyword``."""
    return option(default, check, SOLVER, text, no_effect=option_checks.NO_BACKEND, passed_as=keyword, **attributes)


def _batch_option(default: _Value, check: Callable[[str, Any], Any], text: str, **attributes: Any) -> _Value:
    """Return an option of batch jobs, which a cluster does not have."""
    return option(default, check, BATCH_JOBS, text, not_on_cluster=_NO_BATCH_JOBS, **attributes)


def _part_option(text: str, metavar: str, check: Callable[[str, Any], Any]) -> str | None:
    """Return an option that chooses a part of the machine."""
    declared: str | None = option(
        None,
        check,
        LOG,
        text,
        usual="all nodes",
        metavar=metavar,
        loads="log",
        not_on_cluster=("the cluster has no nodes but those that it names", "remove the option"),
    )
    return declared


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOptions:
    """Options of a run as fields, with their checks; ``RunOptions`` adds methods."""

    named: ClassVar[staticmethod[[str], str]] = staticmethod(field_name)  # name of a field in messages

    events: NodeEvents | str | PathLike[str] | None = option(
        None,
        option_checks.log,
        LOG,
        "File of the log: Parquet, CSV, or the published node-state matrix.",
        is_argument=True,
        loads="log",
    )
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str] = option(
        REQUIRED,
        option_checks.jobs,
        JOBS,
        "The training jobs to replay, never the scheduler's own: a job set (CSV, Parquet, "
        "TOML; 'sample' for the bundled one), a published table of bounds (.pkl), or a trace of Gavel or Shockwave "
        "(.trace) or of ElasticFlow (.csv); a campaign (TOML), or a study of Optuna (its SQLite or journal storage, "
        "or the CSV of its trials_dataframe()); a generated workload, 'gavel(n=1000, jobs_per_hour=1)'; or "
        "package.module:Class of a job source.",
        loads="jobs",
    )
    curves: str | PathLike[str] | None = option(
        None,
        option_checks.path,
        JOBS,
        "Scalability curves that the jobs refer to: CSV, Parquet, TOML, or the "
        "published table (.pkl); for a trace or workload of Gavel or Shockwave the measured throughputs (.json, "
        ".json.gz), of ElasticFlow the folder of throughput tables; 'sample' for made-up throughputs.",
        loads="jobs",
    )
    cluster: str | None = option(
        None,
        option_checks.cluster,
        LOG,
        "Replay on a dedicated cluster instead of EVENTS, for example "
        "v100=36,p100=36,k80=36. The run ends when its jobs are done.",
        metavar="TYPE=COUNT,...",
        loads="log",
    )
    node_type: str | None = option(
        None,
        option_checks.node_type,
        LOG,
        "Node type of every node in EVENTS, for example v100, for jobs whose rate depends on it.",
        metavar="TYPE",
        is_rare=True,
        loads="log",
        not_on_cluster=("the cluster names the types of its nodes", "remove --node-type"),
    )
    pool: Literal["startable", "idle"] = option(
        "startable",
        OneOf(("startable", "idle")),
        LOG,
        "Which nodes of EVENTS count as idle: 'startable', those on which a preemptible job could start now; or "
        "'idle', planned and reserved ones too.",
        loads="log",
        not_on_cluster=("all nodes of a cluster are there for training", "remove --pool"),
    )
    partition: str | None = _part_option(
        "The nodes of this partition only, those that it shares with others included.", "NAME", checks.text
    )
    only_nodes: str | None = _part_option(
        "These nodes only: a node list such as cn[01-20],gpu1, or a file with names.", "NODES", option_checks.node_list
    )
    without: str | None = _part_option(
        "All but these nodes, as if they were drained: a node list or a file. The batch jobs that ran there are left "
        "out too, not moved.",
        "NODES",
        option_checks.node_list,
    )
    window: tuple[str | float | date, str | float | date] | None = option(
        None,
        option_checks.window,
        LOG,
        "Part of the log: two ISO-8601 times (UTC) or epoch seconds.",
        usual="the whole log",
        metavar="START END",
        accepts="tuple[str | float | date, str | float | date] | list[Any] | None",
        n_values=2,
        loads="log",
        not_on_cluster=(
            "a cluster has no calendar, and the run ends with its jobs",
            "remove --window; --measure selects the measured jobs",
        ),
    )
    measure: tuple[int, int] | None = option(
        None,
        option_checks.measure,
        JOBS,
        "Measured jobs, numbered from 0 in order of submission: 4000:5000 "
        "is the thousand after the first 4,000. The run ends when they are done; other jobs run but are not measured.",
        usual="all",
        metavar="FIRST:END",
        accepts="Sequence[int] | str | None",
    )
    policy: str = option(
        "bftrainer",
        checks.text,
        POLICY,
        f"Allocation policy: {policies.HELP}; a policy of Gavel, Shockwave or ElasticFlow, such as "
        "'gavel.max_min_fairness_perf'; or package.module:Class. Parameters follow in brackets.",
        names=("bfreplay.policies.names:POLICIES",),
    )
    round: float | None = option(
        None,
        Number(above=0),
        TIME,
        "Length of a round, for policies that decide in rounds.",
        metavar="TIME",
        parse=option_checks.amount,
        usual="the policy's own; 360 of Gavel's, 120 of Shockwave's",
    )
    objective: str | None = option(
        None,
        checks.text,
        POLICY,
        "Objective of decisions: 'own' (each job's), 'throughput', 'speed-up', 'priority', "
        "'max-min', 'deadline', ...; a weighted sum '0.7*throughput + 0.3*speed-up'; or package.module:function. See "
        "docs/objectives.md.",
        usual="own",
        names=("bfreplay.policies.names:OBJECTIVES",),
    )
    t_fwd: float | str = option(
        defaults.T_FWD_S,
        option_checks.t_fwd,
        TIME,
        "Forward-looking time T_fwd in seconds, the expected time until "
        "the next event; or 'auto' to estimate it from past events.",
        metavar="SECONDS|AUTO",
        parse=option_checks.seconds_or_auto,
        no_effect=(option_checks.NO_FORWARD_TIME,),
    )
    max_parallel: int | None = option(
        None,
        Whole(1),
        JOBS,
        "Maximum number of jobs at once; others queue.",
        usual=f"{defaults.MAX_PARALLEL}; all jobs with --cluster",
    )
    settle: float | str = option(
        0.0,
        option_checks.seconds,
        TIME,
        "Time for which all has to be quiet before a decision: pool events, arrivals and completions wait so long, at "
        "most ten times as long after the first; rounds do not. One cost covers the reclaims of a burst.",
        metavar="TIME",
        parse=option_checks.parse_seconds,
    )
    placement: Literal["lowest-id", "runs"] = option(
        "lowest-id",
        OneOf(("lowest-id", "runs")),
        JOBS,
        "Which idle nodes a job gets: 'lowest-id', those of lowest number; or 'runs', runs of neighbouring nodes, "
        "which are reclaimed together. For policies that decide only how many nodes a job gets.",
        not_on_cluster=("no node of a cluster is reclaimed, and so any is as good", "remove --placement"),
    )
    restart_cost: float | str | None = option(
        None,
        option_checks.cost,
        JOBS,
        "Seconds for which every start, rescale and reclaim pauses a job, whatever its file says; by the new count of "
        "nodes '0:20 4:29 8:95'.",
        usual="the costs of the jobs",
        metavar="SECONDS",
    )
    work_saved_every: float | str | None = option(
        None,
        option_checks.seconds,
        JOBS,
        "Checkpoint interval of every job, whatever its file says: a reclaim or change loses what was made since the "
        "last one. 0: nothing is ever lost.",
        usual="that of the jobs",
        metavar="TIME",
        parse=option_checks.parse_seconds,
    )
    saves: Literal["never", "on-notice", "on-resize"] | None = option(
        None,
        OneOf(("never", "on-notice", "on-resize")),
        JOBS,
        "When else every job saves its work: never; at reclaims with --notice; or also before it is rescaled.",
        usual="as the jobs say",
        is_rare=True,
    )
    unlimited_work: bool = switch(
        JOBS,
        "Replay the first MAX-PARALLEL jobs from the start, with work that never ends: BFTrainer's setting for U.",
        not_on_cluster=("a run on a cluster ends when its jobs are done", "remove --unlimited-work, or replay a log"),
    )
    until_done: bool = switch(
        JOBS,
        "End the run when its jobs are done, not with the log.",
        is_rare=True,
        no_effect=(option_checks.ENDS_ON_CLUSTER,),
    )
    learn_curves: Literal["job", "model"] | None = option(
        None,
        OneOf(("job", "model")),
        POLICY,
        "Hide the curves from the allocator, which learns them as jobs run, per job or per model.",
    )
    measurement_noise: float = option(
        0.0,
        Number(least=0, most=1),
        POLICY,
        "Relative noise of the rates that --learn-curves measures: 0.05 is 5 %.",
        is_rare=True,
        no_effect=(option_checks.NO_LEARNING,),
    )
    solver: str = option(
        "exact",
        checks.text,
        SOLVER,
        "Solver of decisions: 'exact', a MILP back end such as 'cbc' or 'highs' (see "
        "'bfreplay solvers'), or package.module:Class.",
        no_effect=(option_checks.NO_SOLVER,),
        names=("exact", "bfreplay.milp.names:BACKENDS"),
    )
    formulation: str | None = option(
        None,
        checks.text,
        SOLVER,
        "MILP formulation for a back end; 'published' also works with the exact solver.",
        usual=f"{defaults.MILP_FORMULATION} for a back end",
        no_effect=(option_checks.NO_SOLVER,),
        names=("bfreplay.milp.names:FORMULATIONS",),
    )
    fallback: Literal["exact", "keep"] = _backend_option(
        "fallback",
        "exact",
        OneOf(("exact", "keep")),
        "When a back end fails, use the exact solver, or keep all counts like the published program.",
    )
    time_limit: float = _backend_option(
        "time_limit_s",
        defaults.TIME_LIMIT_S,
        Number(above=0),
        "Time limit of a MILP back end for one decision, in seconds.",
        metavar="TIME",
        parse=option_checks.amount,
    )
    gap: float = _backend_option(
        "relative_gap",
        0.0,
        Number(least=0, below=1),
        "Relative gap within which a MILP back end may call an answer optimal.",
    )
    threads: int = _backend_option(
        "threads", 1, Whole(1, checks.MOST_THREADS), "Number of threads of a MILP back end (scip: always 1)."
    )
    solver_seed: int = _backend_option("seed", 0, Whole(0), "Seed of a MILP back end.", is_rare=True)
    warm_start: bool = _backend_option(
        "warm_start", True, checks.truth, "Start from the current counts, on MILP back ends that can.", is_rare=True
    )
    reformulate_sets: bool = _backend_option(
        "reformulate_sets",
        False,
        checks.truth,
        "Replace special ordered sets by binaries on back ends without them, instead of refusing.",
        is_rare=True,
    )
    memory_limit: int | None = _backend_option(
        "memory_limit_bytes",
        None,
        Whole(1),
        "Memory limit (address space) of a MILP back end's process, in MB.",
        usual="no limit",
        metavar="MB",
        is_rare=True,
    )
    semantics: Literal["continuous", "published"] = option(
        "continuous",
        OneOf(("continuous", "published")),
        TIME,
        "Clock and accounting: continuous time, or as in the published program.",
        accepts='Literal["continuous", "published"] | Semantics',
        is_rare=True,
        not_on_cluster=(
            "BFTrainer's published clock moves only at pool events, which a cluster does not have",
            "remove --semantics",
        ),
    )
    seed: int = option(
        0,
        Whole(0),
        TIME,
        "Seed of the random first map with --semantics published, and of --measurement-noise.",
        is_rare=True,
        no_effect=(option_checks.NO_RANDOMNESS,),
    )
    batch_jobs: str | PathLike[str] | None = _batch_option(
        None,
        option_checks.path,
        "The batch jobs of EVENTS, as 'bfreplay ingest --batch-jobs' wrote them: "
        "their delays are propagated through the recorded schedule.",
    )
    clear: float | str = _batch_option(
        defaults.CLEAR_S,
        option_checks.seconds,
        "Time to clear a node of training when a batch job starts "
        "on it; the batch job is late by it. 30s is Slurm's KillWait.",
        metavar="TIME",
        parse=option_checks.parse_seconds,
    )
    notice: bool = _batch_option(
        False,
        checks.truth,
        "Training is told when a node is reclaimed, and saves its state in the time "
        "of --clear: a preemption costs it only what its scale-down cost exceeds that.",
    )
    reserve: int = _batch_option(
        0, Whole(0), "Idle nodes to leave alone, for batch jobs to start on at once.", metavar="NODES"
    )
    min_age: float | str = _batch_option(
        0.0,
        option_checks.seconds,
        "Time for which a node has to be idle before training may have it.",
        metavar="TIME",
        parse=option_checks.parse_seconds,
    )
    record_nodes: bool = switch(
        OUTPUT,
        "Also write which job held which node when (nodes.parquet); the report then has a Gantt chart.",
        only_writes=True,
    )
    prices: str | Mapping[str, float] | None = option(
        None,
        option_checks.prices,
        OUTPUT,
        "Price of a node-hour by node type, for costs and for policies that use prices.",
        usual=f"{_PRICES}; none for other types",
        metavar="TYPE=DOLLARS,...",
    )
    fairness: bool = switch(
        OUTPUT,
        "Also replay the jobs under gavel.isolated (an equal part of the nodes for each) "
        "and report finish-time fairness rho: completion time over that under gavel.isolated.",
    )
    ideal: bool = switch(
        OUTPUT,
        "Also apply the shares of a Gavel policy without rounds, on a cluster, and report "
        "the mean completion time, to show the cost of rounds.",
    )
    efficiency: bool = option(
        True,
        checks.truth,
        OUTPUT,
        "Also replay the jobs on dedicated nodes and report U; for a policy that learns "
        "curves or rates of pairs, also replay with known ones and report the cost of learning.",
        no_effect=option_checks.NO_BASELINES,
    )
    bound: bool = option(
        True,
        checks.truth,
        OUTPUT,
        "Also report the upper bound on samples, and the run's share of it.",
        no_effect=option_checks.NO_BOUND,
    )
    allow_code: bool = switch(
        JOBS,
        "Import code that the files name (package.module:thing); it runs with your "
        "permissions. By default only code named on the command line is imported.",
        is_rare=True,
        is_permission=True,
        loads="jobs",
    )

    def __post_init__(self) -> None:
        check_options(self, named=self.named)
        option_checks.check_together(self)

    @property
    def ends_with_its_jobs(self) -> bool:
        """True if the run ends when its jobs are done, not with the log; it then has neither U nor a bound."""
        return any(reason.holds(self) for reason in option_checks.NO_BOUND)

    def without_effect(self) -> dict[str, str]:
        """Return the options without effect, with the reason: ``{"seed": "with --semantics continuous ..."}``."""
        reasons = {field_name: declaration.reason_without_effect(self) for field_name, declaration in OPTIONS.items()}
        return {field_name: reason for field_name, reason in reasons.items() if reason is not None}


OPTIONS = options_of(DeclaredOptions)
"""Options by field."""

_OF_FILES = (option_checks.path, option_checks.log, option_checks.jobs)
FILE_OPTIONS = tuple(name for name, declaration in OPTIONS.items() if declaration.check in _OF_FILES)
"""Options that name files; in Python, a log and jobs may be objects."""

NODE_LISTS = tuple(name for name, declaration in OPTIONS.items() if declaration.check is option_checks.node_list)
"""Options that may name a file of nodes, whose names they then have."""

FIELDS = {option_name(name): name for name, declaration in OPTIONS.items() if not declaration.is_permission}
"""Fields by the option's name on the command line and in TOML files."""

OPTION_NAMES = tuple(FIELDS)
