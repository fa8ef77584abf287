"""``RunOptions``: one replay as data, and the only list of its options."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfreplay import checks, defaults
from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError
from bfreplay.experiments import option_checks
from bfreplay.experiments.option_checks import check_together
from bfreplay.options import NoEffect, Number, OneOf, Whole, option, option_name, options_of, required

if TYPE_CHECKING:
    from bfreplay.experiments.prepared_run import PreparedRun
    from bfreplay.replay.engine import ProgressCallback
    from bfreplay.runs import RunResult

LOG, JOBS, POLICY, SOLVER, TIME, OUTPUT = "Log", "Jobs", "Policy", "Solver", "Time", "Output"
GROUPS = (LOG, JOBS, POLICY, SOLVER, TIME, OUTPUT)
"""Headings under which help shows the options."""


def _solver_is_asked(run: RunOptions) -> bool:
    from bfreplay.policies.catalogue import capabilities_of

    return capabilities_of(run.policy).asks_solver


def _looks_ahead(run: RunOptions) -> bool:
    """Whether decisions do, those of the run or those on dedicated nodes that U is measured by."""
    from bfreplay.policies.catalogue import capabilities_of

    return not capabilities_of(run.policy).in_rounds or (run.efficiency and not run.ends_with_its_jobs)


def _draws(run: RunOptions) -> bool:
    return run.semantics == "published" or (run.learn_curves is not None and run.measurement_noise > 0)


_NO_SOLVER = NoEffect(lambda run: not _solver_is_asked(run), "with --policy {0.policy}")
_OF_BACKENDS = (_NO_SOLVER, NoEffect(lambda run: run.solver == "exact", "with --solver exact"))
_NOTHING_AHEAD = NoEffect(lambda run: not _looks_ahead(run), "with --policy {0.policy}")
_NOTHING_LEARNT = NoEffect(lambda run: run.learn_curves is None, "without --learn-curves")
_NOTHING_DRAWN = NoEffect(
    lambda run: not _draws(run), "with --semantics continuous and without --measurement-noise"
)  # fmt: skip
_NO_BASELINES = (
    NoEffect(lambda run: run.cluster is not None, "with --cluster: neither U nor the bound is told"),
    NoEffect(lambda run: run.measure is not None, "with --measure: neither U nor the bound is told"),
)
_PRICES = ",".join(f"{name}={price:g}" for name, price in defaults.NODE_PRICES.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Every option of ``bfreplay replay`` that changes a result, by the same names, and ``allow_code``.

    A field is called as the option of the command, with underscores for dashes. Two objects with equal fields are
    equal, and may be keys. ``dataclasses.replace`` gives one that differs in a few fields. One of ``events`` and
    ``cluster`` is needed; the word ``"sample"`` stands for the bundled log and its jobs.

    Raises
    ------
    InputError
        A value that no run could use, or options that no run could use together. What depends on files and on names is
        checked by ``prepare``.
    """

    events: str | PathLike[str] | None = option(
        None, option_checks.path, LOG, "File of the log: Parquet, CSV, or the published node-state matrix.",
        is_argument=True, loads="log",
    )  # fmt: skip
    jobs: str | PathLike[str] = field(metadata=required(
        option_checks.path, JOBS, "Job set: CSV, Parquet, TOML, a published table of bounds (.pkl), or a trace of "
        "Gavel (.trace); a campaign (TOML); a generated workload, 'gavel(n=1000, jobs_per_hour=1)'; or "
        "package.module:Class of a job source.", loads="jobs",
    ))  # fmt: skip
    curves: str | PathLike[str] | None = option(
        None, option_checks.path, JOBS, "Scalability curves that the jobs refer to: CSV, Parquet, TOML, or the "
        "published table (.pkl); for a trace or workload of Gavel its measured throughputs (.json, .json.gz).",
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
        "it has seen; 'equal-share'; 'foresight(events=10)', which is shown the log; one of Gavel's, such as "
        "'gavel.max_min_fairness_perf'; or package.module:Class. Parameters in brackets.",
    )  # fmt: skip
    round: float | None = option(
        None, Number(above=0), TIME, "Length of a round, for policies that decide in rounds.", metavar="SECONDS",
        usual="the policy's own; 360 of Gavel's",
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
        False, checks.truth, OUTPUT, "Also write who held which node when (nodes.parquet).", only_writes=True
    )
    prices: str | Mapping[str, float] | None = option(
        None, option_checks.prices, OUTPUT, "Price of a node for an hour, by type: for costs, and for policies that "
        "look at them.", usual=f"{_PRICES}; none for other types", metavar="TYPE=DOLLARS,...",
    )  # fmt: skip
    fairness: bool = option(
        False, checks.truth, OUTPUT, "Also replay the jobs under gavel.isolated, where each has its part of the nodes "
        "for itself, and report rho: the time a job takes here over the time it takes there.",
    )  # fmt: skip
    efficiency: bool = option(
        True, checks.truth, OUTPUT, "Also replay the jobs on dedicated nodes and report U; and with known curves under "
        "--learn-curves.", no_effect=_NO_BASELINES,
    )  # fmt: skip
    bound: bool = option(
        True, checks.truth, OUTPUT, "Also report how much anyone could have processed, and which share of it the run "
        "has.", no_effect=_NO_BASELINES,
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
        check_together(self, OPTIONS)

    @property
    def ends_with_its_jobs(self) -> bool:
        """Whether the run ends when its jobs are done, not with the log; then there is neither U nor a bound."""
        return self.cluster is not None or self.measure is not None

    def without_effect(self) -> dict[str, str]:
        """Options that change nothing beside the others, and why: ``{"seed": "with --semantics continuous ..."}``."""
        reasons = {name: declared.reason_without_effect(self) for name, declared in OPTIONS.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    @classmethod
    def from_mapping(
        cls,
        mapping: Mapping[str, Any],
        *,
        folder: str | Path | None = None,
        file: str | Path | None = None,
        row: int | str | None = None,
        allow_code: bool = False,
    ) -> RunOptions:
        """Make one of options as they stand in a TOML file: ``{"events": "log.parquet", "t-fwd": 300, ...}``.

        Parameters
        ----------
        mapping
            Option to value, named as on the command line without the leading dashes.
        folder
            Where relative paths start; the working directory by default.
        file, row
            Where the mapping was read, for messages.
        allow_code
            Whether the mapping, and the files that it names, may name code to import.

        Raises
        ------
        InputError
            An option that there is not, one that is missing, or a value that cannot be used; or code not allowed.
        """
        from bfreplay.datasets.located import located

        try:
            checks.known_keys(mapping, OPTION_NAMES, "a run")
            if "jobs" not in mapping:
                raise InputError(
                    "the option 'jobs' is missing", column="jobs", expected='jobs = "FILE"',
                    fix=f'add it; jobs = "{BUNDLED}" stands for what is bundled',
                )  # fmt: skip
            given = {_FIELDS[name]: value for name, value in mapping.items()}
            made = cls(**given, allow_code=allow_code)
            if folder is not None:
                for name in FILE_OPTIONS:
                    object.__setattr__(made, name, _from_folder(name, getattr(made, name), Path(folder)))
            if not allow_code:
                _refuse_code(made)
        except InputError as error:
            raise error if file is None or error.file else located(error, file, row) from error
        return made

    def to_json(self) -> dict[str, Any]:
        """Options with their values, defaults filled in, as ``from_mapping`` reads them.

        Those without a value are left out; paths are as they were given.
        """
        values = {name: getattr(self, own) for name, own in _FIELDS.items()}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value is not None
        }

    def prepare(self, *, save_failures: str | Path | None = None) -> PreparedRun:
        """Load the log and the jobs and make the policy: everything that can be refused before the replay.

        Parameters
        ----------
        save_failures
            Folder for models and decisions of answers of a MILP back end that were rejected.

        Raises
        ------
        InputError, SolverUnavailableError
            A file, a name or a combination of options cannot be used.
        """
        from bfreplay.experiments.prepared_run import prepared

        return prepared(self, save_failures=save_failures)

    def run(
        self,
        out: str | Path | None = None,
        *,
        overwrite: bool = False,
        with_tables: bool = False,
        progress: ProgressCallback | None = None,
        session: Mapping[str, Any] | None = None,
        save_failures: str | Path | None = None,
    ) -> RunResult:
        """Replay.

        Parameters
        ----------
        out, overwrite, with_tables, progress, session
            As for ``replay_log``.
        save_failures
            As for ``prepare``.

        Raises
        ------
        InputError, OutputExistsError, SolverUnavailableError, LedgerError
            As ``prepare`` and ``replay_log``.
        """
        return self.prepare(save_failures=save_failures).replay(
            out, overwrite=overwrite, with_tables=with_tables, progress=progress, session=session
        )


def _refuse_code(options: RunOptions) -> None:
    """Raise ``InputError`` where an option, read from a file, names code to import."""
    from bfreplay.campaigns.workloads import JOB_SOURCES, is_source_name
    from bfreplay.milp.backends import BACKENDS
    from bfreplay.milp.formulations import FORMULATIONS
    from bfreplay.policies.catalogue import POLICIES, policy_named
    from bfreplay.policies.objectives.catalogue import OBJECTIVES
    from bfreplay.policies.objectives.spec import parsed

    terms = [] if options.objective is None else parsed(options.objective)
    for name, registry, names in (
        ("policy", POLICIES, [policy_named(options.policy).name]),
        ("objective", OBJECTIVES, [term.name for term in terms]),
        ("solver", BACKENDS, [options.solver]),
        ("formulation", FORMULATIONS, [options.formulation or ""]),
        ("jobs", JOB_SOURCES, [str(options.jobs)] if is_source_name(options.jobs) else []),
    ):
        for each in names:
            registry.refuse_code(each, name)


def _from_folder(name: str, value: str | None, folder: Path) -> str | None:
    """Return a path seen from the working directory instead of from ``folder``."""
    from bfreplay.campaigns.workloads import is_source_name

    if value is None or value == BUNDLED or Path(value).is_absolute():
        return value
    if not (folder / value).exists() and name == "jobs" and is_source_name(value):
        return value
    return str(folder / value)


OPTIONS = options_of(RunOptions)
"""Every option by its field."""

FILE_OPTIONS = tuple(name for name, each in OPTIONS.items() if each.check is option_checks.path)
"""Options that name files."""

_FIELDS = {option_name(name): name for name, each in OPTIONS.items() if not each.is_permission}

OPTION_NAMES = tuple(_FIELDS)
"""Every option by the name that the command line and TOML files use."""


def _parameters() -> str:
    """The options as a section of a docstring."""
    lines = ["Parameters", "----------"]
    for name, each in OPTIONS.items():
        lines += [name, textwrap.indent(textwrap.fill(each.text.replace("*", r"\*"), 112), "    ")]
    return textwrap.indent("\n".join(lines), "    ")


RunOptions.__doc__ = (RunOptions.__doc__ or "").replace("    Raises\n", f"{_parameters()}\n\n    Raises\n", 1)
