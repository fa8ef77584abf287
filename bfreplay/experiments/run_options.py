"""``RunOptions``: one replay as data, the same for the command line, sweeps, comparisons and tuning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfreplay import checks, defaults
from bfreplay.datasets.named_inputs import BUNDLED
from bfreplay.errors import InputError
from bfreplay.experiments.option_checks import AUTO, CHECKS
from bfreplay.experiments.options_together import check_together

if TYPE_CHECKING:
    from bfreplay.experiments.prepared_run import PreparedRun
    from bfreplay.replay import RunResult
    from bfreplay.replay.engine import ProgressCallback

__all__ = ["AUTO", "FILE_OPTIONS", "OPTION_NAMES", "RunOptions", "option_name"]

FILE_OPTIONS = ("events", "jobs", "curves")
"""Options that name files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Every option of ``bfreplay replay`` that changes a result, by the same names, and ``allow_code``.

    A field is called as the option of the command, with underscores for dashes. Two objects with equal fields are
    equal, and may be keys. ``dataclasses.replace`` gives one that differs in a few fields.

    Parameters
    ----------
    events
        File of the log; ``"sample"`` is the bundled one. ``None`` with ``cluster``.
    jobs
        File of a job set or campaign; ``"sample"`` is the bundled set; ``package.module:Class`` of a job source; or a
        generated set, ``"gavel(n=1000, jobs_per_hour=1)"``.
    curves
        File of named curves that the jobs refer to, or of measured throughputs.
    cluster
        Instead of ``events``: nodes that are all one's own, ``"v100=36,p100=36,k80=36"``. The run ends when the jobs
        are done.
    node_type
        What all nodes of the log are, ``"v100"``, for jobs whose rate depends on it.
    window
        Part of the log: two times as a user types them, ISO-8601 (UTC) or epoch seconds. ``None``: all of it.
    measure
        Which jobs the run is about, by number in order of submission: from the first to the one before the second. It
        ends when these are done; the others only keep the nodes busy. ``None``: all.
    policy, objective, solver, formulation
        Names as the command takes them. ``objective=None`` is each job's own; ``formulation=None`` the solver's usual.
    round
        Length of a round in seconds > 0, for policies that decide in rounds. ``None``: the policy's own.
    t_fwd
        Forward-looking time in seconds > 0, or ``"auto"``.
    max_parallel
        Most jobs at once, >= 1. ``None``: ``defaults.MAX_PARALLEL``, and all jobs with ``cluster``.
    unlimited_work
        The first ``max_parallel`` jobs, all there from the start, never done.
    learn_curves, measurement_noise
        ``"job"`` or ``"model"`` where the allocator has to learn the curves; relative scatter of what it measures, 0
        to 1.
    fallback, time_limit, gap, threads, solver_seed, warm_start, reformulate_sets, memory_limit
        For a MILP back end. ``time_limit`` in seconds a decision, finite, ``gap`` relative, ``memory_limit`` in MB.
    semantics
        ``"continuous"`` or ``"published"``.
    seed
        Of the first map under published semantics, and of ``measurement_noise``.
    record_nodes
        Also write who held which node when.
    prices
        Dollars for an hour of a node by its type, ``"v100=0.74,p100=0.43"`` or a mapping: for costs, and for policies
        that look at them. ``defaults.NODE_PRICES`` of types that are not there.
    fairness
        Also replay under ``gavel.isolated``, and report how much later or earlier jobs finish than there.
    efficiency
        Also replay on dedicated nodes, and report U; not of a run that ends with its jobs.
    bound
        Also report the samples that nobody could have exceeded; not of a run that ends with its jobs.
    allow_code
        Import code that the files name, ``package.module:thing``. It is not an option in files, nor written to any.

    Raises
    ------
    InputError
        A value that no run could use, or options that no run could use together. What depends on files and on names is
        checked by ``prepare``.
    """

    events: str | PathLike[str] | None = None
    jobs: str | PathLike[str]
    curves: str | PathLike[str] | None = None
    cluster: str | None = None
    node_type: str | None = None
    window: tuple[str, str] | None = None
    measure: tuple[int, int] | None = None
    policy: str = "bftrainer"
    round: float | None = None
    objective: str | None = None
    t_fwd: float | str = defaults.T_FWD_S
    max_parallel: int | None = None
    unlimited_work: bool = False
    learn_curves: str | None = None
    measurement_noise: float = 0.0
    solver: str = "exact"
    formulation: str | None = None
    fallback: str = "exact"
    time_limit: float = defaults.TIME_LIMIT_S
    gap: float = 0.0
    threads: int = 1
    solver_seed: int = 0
    warm_start: bool = True
    reformulate_sets: bool = False
    memory_limit: int | None = None
    semantics: str = "continuous"
    seed: int = 0
    record_nodes: bool = False
    prices: str | Mapping[str, float] | None = None
    fairness: bool = False
    efficiency: bool = True
    bound: bool = True
    allow_code: bool = False

    def __post_init__(self) -> None:
        for name, checked in CHECKS.items():
            given = getattr(self, name)
            if given is not None or name not in _MAY_BE_NONE:
                object.__setattr__(self, name, checked(option_name(name), given))
        check_together(self)

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
        found: dict[str, Any] = {}
        for name, field in _FIELDS.items():
            value = getattr(self, field)
            if value is not None:
                found[name] = list(value) if isinstance(value, tuple) else value
        return found

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


def option_name(field: str) -> str:
    """``"max_parallel"`` as the command line and TOML files call it: ``"max-parallel"``."""
    return field.replace("_", "-")


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


_MAY_BE_NONE = (
    "events", "curves", "cluster", "node_type", "window", "measure", "round", "objective", "max_parallel",
    "learn_curves", "formulation", "memory_limit", "prices",
)  # fmt: skip
_FIELDS = {option_name(field.name): field.name for field in fields(RunOptions) if field.name != "allow_code"}

OPTION_NAMES = tuple(_FIELDS)
"""Every option by the name that the command line and TOML files use."""
