"""The only list of the options of a run: what each is called, what it may be, and which go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike

from bfreplay import checks, defaults
from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError
from bfreplay.experiments import option_checks
from bfreplay.options import NoEffect, Number, OneOf, Whole, option, option_name, options_of, required

LOG, JOBS, POLICY, SOLVER, TIME, OUTPUT = "Log", "Jobs", "Policy", "Solver", "Time", "Output"
GROUPS = (LOG, JOBS, POLICY, SOLVER, TIME, OUTPUT)
"""Headings under which help shows the options."""


def _solver_is_asked(run: DeclaredOptions) -> bool:
    from bfreplay.policies.catalogue import capabilities_of

    return capabilities_of(run.policy).asks_solver


def _looks_ahead(run: DeclaredOptions) -> bool:
    """Whether decisions do, those of the run or those on dedicated nodes that U is measured by."""
    from bfreplay.policies.catalogue import capabilities_of

    return not capabilities_of(run.policy).in_rounds or (run.efficiency and not run.ends_with_its_jobs)


def _learns(run: DeclaredOptions) -> bool:
    """Whether the policy has to learn what a baseline knows."""
    from bfreplay.policies.catalogue import learns

    return run.learn_curves is not None or learns(run.policy)


def _draws(run: DeclaredOptions) -> bool:
    return run.semantics == "published" or (run.learn_curves is not None and run.measurement_noise > 0)


_NO_SOLVER = NoEffect(lambda run: not _solver_is_asked(run), "with --policy {0.policy}")
_OF_BACKENDS = (_NO_SOLVER, NoEffect(lambda run: run.solver == "exact", "with --solver exact"))
_NOTHING_AHEAD = NoEffect(lambda run: not _looks_ahead(run), "with --policy {0.policy}")
_NOTHING_LEARNT = NoEffect(lambda run: run.learn_curves is None, "without --learn-curves")
_NOTHING_DRAWN = NoEffect(
    lambda run: not _draws(run), "with --semantics continuous and without --measurement-noise"
)  # fmt: skip
_ON_CLUSTER = "with --cluster: neither U nor the bound is told"
_ON_MEASURED = "with --measure: neither U nor the bound is told"
_NO_BOUND = (
    NoEffect(lambda run: run.cluster is not None, _ON_CLUSTER),
    NoEffect(lambda run: run.measure is not None, _ON_MEASURED),
)
_NO_BASELINES = (
    NoEffect(lambda run: run.cluster is not None and not _learns(run), _ON_CLUSTER),
    NoEffect(lambda run: run.measure is not None and not _learns(run), _ON_MEASURED),
)
_CLUSTER = "v100=36,p100=36,k80=36"
_PRICES = ",".join(f"{name}={price:g}" for name, price in defaults.NODE_PRICES.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOptions:
    """The options of a run as fields, with their checks; ``RunOptions`` adds what is done with them."""

    events: str | PathLike[str] | None = option(
        None, option_checks.path, LOG, "File of the log: Parquet, CSV, or the published node-state matrix.",
        is_argument=True, loads="log",
    )  # fmt: skip
    jobs: str | PathLike[str] = field(metadata=required(
        option_checks.path, JOBS, "Job set: CSV, Parquet, TOML, a published table of bounds (.pkl), or a trace of "
        "Gavel or Shockwave (.trace) or of ElasticFlow (.csv); a campaign (TOML); a generated workload, "
        "'gavel(n=1000, jobs_per_hour=1)'; or package.module:Class of a job source.", loads="jobs",
    ))  # fmt: skip
    curves: str | PathLike[str] | None = option(
        None, option_checks.path, JOBS, "Scalability curves that the jobs refer to: CSV, Parquet, TOML, or the "
        "published table (.pkl); for a trace or workload of Gavel or Shockwave the measured throughputs (.json, "
        ".json.gz), of ElasticFlow the folder of throughput tables; 'sample' for made-up throughputs.",
        loads="jobs",
    )  # fmt: skip
    cluster: str | None = option(
        None, option_checks.cluster, LOG, "Instead of EVENTS: nodes that are all one's own, such as "
        "v100=36,p100=36,k80=36. The run ends when the jobs are done.", metavar="TYPE=COUNT,...",
        loads="log",
    )  # fmt: skip
    node_type: str | None = option(
        None, option_checks.node_type, LOG, "Node type of every node in EVENTS, such as v100, for jobs whose rate "
        "depends on it.", metavar="TYPE", is_rare=True, loads="log",
        not_on_cluster=("the cluster says itself of which types its nodes are", "leave --node-type out"),
    )  # fmt: skip
    window: tuple[str, str] | None = option(
        None, option_checks.window, LOG, "Part of the log: two ISO-8601 times (UTC) or epoch seconds.",
        usual="the whole log", metavar="START END", n_values=2, loads="log",
        not_on_cluster=("a cluster has no calendar, and the run ends with its jobs",
                        "leave --window out; --measure says which jobs the run is about"),
    )  # fmt: skip
    measure: tuple[int, int] | None = option(
        None, option_checks.measure, JOBS, "The jobs that the run is about, by number in order of submission: "
        "4000:5000 are a thousand after the first four thousand. The run ends when they are done; the others only keep "
        "the nodes busy.", usual="all", metavar="FIRST:END",
    )  # fmt: skip
    policy: str = option(
        "bftrainer", checks.text, POLICY, "Who decides the node counts: 'bftrainer'; 'look-ahead', which expects what "
        "it has seen; 'equal-share'; 'foresight(events=10)', which is shown the log; one of Gavel's, "
        "Shockwave's or ElasticFlow's, such as 'gavel.max_min_fairness_perf'; or package.module:Class. Parameters in "
        "brackets.",
    )  # fmt: skip
    round: float | None = option(
        None, Number(above=0), TIME, "Length of a round, for policies that decide in rounds.", metavar="SECONDS",
        usual="the policy's own; 360 of Gavel's, 120 of Shockwave's",
    )  # fmt: skip
    objective: str | None = option(
        None, checks.text, POLICY, "What is maximised: 'own' (each job's), 'throughput', 'speed-up', 'priority', "
        "'max-min', 'deadline', ...; a weighted sum '0.7*throughput + 0.3*speed-up'; or package.module:function. See "
        "docs/objectives.md.", usual="own",
    )  # fmt: skip
    t_fwd: float | str = option(
        defaults.T_FWD_S, option_checks.t_fwd, TIME, "Forward-looking time in seconds: how long a decision is expected "
        "to last; or 'auto', which learns it from the events as they come.", metavar="SECONDS|AUTO",
        parse=option_checks.seconds_or_auto, no_effect=(_NOTHING_AHEAD,),
    )  # fmt: skip
    max_parallel: int | None = option(
        None, Whole(1), JOBS, "Most jobs at once; the others queue.",
        usual=f"{defaults.MAX_PARALLEL}; all jobs with --cluster",
    )  # fmt: skip
    unlimited_work: bool = option(
        False, checks.truth, JOBS, "The first MAX-PARALLEL jobs, all there from the start, never done: how BFTrainer "
        "measures U.", not_on_cluster=("a run on a cluster ends when its jobs are done",
                                       "leave --unlimited-work out, or replay a log"),
    )  # fmt: skip
    learn_curves: str | None = option(
        None, OneOf(("job", "model")), POLICY, "The allocator does not know the curves: it learns them as jobs run, "
        "each job its own or all of a model together.",
    )  # fmt: skip
    measurement_noise: float = option(
        0.0, Number(least=0, most=1), POLICY, "Relative scatter of the rates that --learn-curves measures, 0.05 for "
        "5 %.", is_rare=True, no_effect=(_NOTHING_LEARNT,),
    )  # fmt: skip
    solver: str = option(
        "exact", checks.text, SOLVER, "'exact', a MILP back end such as 'cbc' or 'highs', or package.module:Class. See "
        "'bfreplay solvers'.", no_effect=(_NO_SOLVER,),
    )  # fmt: skip
    formulation: str | None = option(
        None, checks.text, SOLVER, "MILP formulation for a back end; 'published' also for the exact solver.",
        usual=f"{defaults.MILP_FORMULATION} for a back end", no_effect=(_NO_SOLVER,),
    )  # fmt: skip
    fallback: str = option(
        "exact", OneOf(("exact", "keep")), SOLVER, "When a back end fails: ask the exact solver, or keep all counts as "
        "the published program does.", no_effect=_OF_BACKENDS, passed_as="fallback",
    )  # fmt: skip
    time_limit: float = option(
        defaults.TIME_LIMIT_S, option_checks.TimeLimit(above=0), SOLVER, "Seconds a MILP back end may take for one "
        "decision.", no_effect=_OF_BACKENDS, passed_as="time_limit_s",
    )  # fmt: skip
    gap: float = option(
        0.0, Number(least=0, below=1), SOLVER, "Relative gap that a MILP back end may leave and still call optimal.",
        no_effect=_OF_BACKENDS, passed_as="relative_gap",
    )  # fmt: skip
    threads: int = option(
        1, Whole(1), SOLVER, "Threads of a MILP back end (scip: always 1).", no_effect=_OF_BACKENDS, passed_as="threads"
    )
    solver_seed: int = option(
        0, Whole(0), SOLVER, "Seed of a MILP back end.", is_rare=True, no_effect=_OF_BACKENDS, passed_as="seed"
    )
    warm_start: bool = option(
        True, checks.truth, SOLVER, "Let a MILP back end that can begin from the current counts.", is_rare=True,
        no_effect=_OF_BACKENDS, passed_as="warm_start",
    )  # fmt: skip
    reformulate_sets: bool = option(
        False, checks.truth, SOLVER, "Pose special ordered sets by binaries on back ends that take none, instead of "
        "refusing.", is_rare=True, no_effect=_OF_BACKENDS, passed_as="reformulate_sets",
    )  # fmt: skip
    memory_limit: int | None = option(
        None, Whole(1), SOLVER, "Address space of a MILP back end's process, in MB.", usual="no limit", metavar="MB",
        is_rare=True, no_effect=_OF_BACKENDS, passed_as="memory_limit_bytes",
    )  # fmt: skip
    semantics: str = option(
        "continuous", OneOf(("continuous", "published")), TIME, "Continuous time, or the published program's clock and "
        "accounting.", is_rare=True, not_on_cluster=(
            "BFTrainer's published clock moves when nodes come and go, which they never do on a cluster",
            "leave --semantics out"),
    )  # fmt: skip
    seed: int = option(
        0, Whole(0), TIME, "Of the random first map under --semantics published, and of --measurement-noise.",
        is_rare=True, no_effect=(_NOTHING_DRAWN,),
    )  # fmt: skip
    record_nodes: bool = option(
        False,
        checks.truth,
        OUTPUT,
        "Also write which job held which node when (nodes.parquet); the report then has a Gantt chart.",
        only_writes=True,
    )
    prices: str | Mapping[str, float] | None = option(
        None, option_checks.prices, OUTPUT, "Price of a node for an hour, by type: for costs, and for policies that "
        "look at them.", usual=f"{_PRICES}; none for other types", metavar="TYPE=DOLLARS,...",
    )  # fmt: skip
    fairness: bool = option(
        False, checks.truth, OUTPUT, "Also replay the jobs under gavel.isolated, where each has its part of the nodes "
        "for itself, and report rho: the time a job takes here over the time it takes there.",
    )  # fmt: skip
    ideal: bool = option(
        False, checks.truth, OUTPUT, "Also apply the shares of time of one of Gavel's policies without rounds, on a "
        "cluster, and report the mean completion time: what rounds cost.",
    )  # fmt: skip
    efficiency: bool = option(
        True, checks.truth, OUTPUT, "Also replay the jobs on dedicated nodes and report U; and with known curves under "
        "--learn-curves, with known rates of pairs where a policy estimates them.", no_effect=_NO_BASELINES,
    )  # fmt: skip
    bound: bool = option(
        True, checks.truth, OUTPUT, "Also report how much anyone could have processed, and which share of it the run "
        "has.", no_effect=_NO_BOUND,
    )  # fmt: skip
    allow_code: bool = option(
        False, checks.truth, JOBS, "Import code that the files name, package.module:thing: it may do whatever you may "
        "do. Without it only code that you name on the command line is imported.", is_rare=True, is_permission=True,
        loads="jobs",
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name, declared in OPTIONS.items():
            given = getattr(self, name)
            if given is not None or declared.default is not None:
                object.__setattr__(self, name, declared.check(option_name(name), given))
        _check_together(self)

    @property
    def ends_with_its_jobs(self) -> bool:
        """Whether the run ends when its jobs are done, not with the log; then there is neither U nor a bound."""
        return self.cluster is not None or self.measure is not None

    def without_effect(self) -> dict[str, str]:
        """Options that change nothing beside the others, and why: ``{"seed": "with --semantics continuous ..."}``."""
        reasons = {name: declared.reason_without_effect(self) for name, declared in OPTIONS.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}


def _check_together(run: DeclaredOptions) -> None:
    """Refuse what no run can be, whatever is in its files: ``InputError``."""
    if run.cluster is None:
        if run.events is None:
            raise InputError(
                "the option 'events' is missing: there is neither a log nor a cluster", column="events",
                expected=f'events = "FILE", or cluster = "{_CLUSTER}" (replay EVENTS, or --cluster {_CLUSTER})',
                fix=f"name one of the two; {BUNDLED!r} stands for the bundled log",
            )  # fmt: skip
    else:
        _check_cluster(run)
    if run.measure is not None and run.unlimited_work:
        raise InputError(
            "the run ends when the measured jobs are done, and with unlimited work none ever is", column="measure",
            value=f"{run.measure[0]}:{run.measure[1]}", expected="--measure, or --unlimited-work",
            fix="leave one of the two out",
        )  # fmt: skip


def _check_cluster(run: DeclaredOptions) -> None:
    if run.events is not None:
        raise InputError(
            "a log and a cluster were given", column="cluster", value=run.cluster,
            expected=f"one of the two; the log is {run.events}", fix="leave EVENTS (events) or --cluster out",
        )  # fmt: skip
    for own_name, declared in OPTIONS.items():
        value = getattr(run, own_name)
        if declared.not_on_cluster is not None and value != declared.default:
            name, (why, fix) = option_name(own_name), declared.not_on_cluster
            raise InputError(
                f"--{name} does not go with --cluster: {why}", column=name, value=value,
                expected=f"a log of events with --{name}", fix=fix,
            )  # fmt: skip


OPTIONS = options_of(DeclaredOptions)
"""Every option by its field."""

FILE_OPTIONS = tuple(name for name, each in OPTIONS.items() if each.check is option_checks.path)
"""Options that name files."""

FIELDS = {option_name(name): name for name, each in OPTIONS.items() if not each.is_permission}
"""The field of every option, by the name that the command line and TOML files use."""

OPTION_NAMES = tuple(FIELDS)
