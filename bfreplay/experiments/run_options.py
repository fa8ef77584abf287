"""``RunOptions``: one replay as data, the same for the command line, sweeps, comparisons and tuning."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfreplay import checks, defaults
from bfreplay.datasets.named_inputs import BUNDLED
from bfreplay.errors import InputError

if TYPE_CHECKING:
    from bfreplay.experiments.prepared_run import PreparedRun
    from bfreplay.replay import RunResult
    from bfreplay.replay.engine import ProgressCallback

AUTO = "auto"
"""The word for a forward-looking time that is estimated from the events seen so far."""

FILE_OPTIONS = ("events", "jobs", "curves")
"""Options that name files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Every option of ``bfreplay replay`` that changes a result, by the same names, and nothing else.

    A field is called as the option of the command, with underscores for dashes. Two objects with equal fields are
    equal, and may be keys. ``dataclasses.replace`` gives one that differs in a few fields.

    Parameters
    ----------
    events
        File of the log; ``"sample"`` is the bundled one.
    jobs
        File of a job set or campaign; ``"sample"`` is the bundled set; or ``package.module:Class`` of a job source.
    curves
        File of named curves that the jobs refer to.
    window
        Part of the log: two times as a user types them, ISO-8601 (UTC) or epoch seconds. ``None``: all of it.
    policy, objective, solver, formulation
        Names as the command takes them. ``objective=None`` is each job's own; ``formulation=None`` the solver's usual.
    t_fwd
        Forward-looking time in seconds > 0, or ``"auto"``.
    max_parallel
        Most jobs at once, >= 1.
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
    efficiency
        Also replay on dedicated nodes, and report U.
    bound
        Also report the samples that nobody could have exceeded.

    Raises
    ------
    InputError
        A value that no run could use. What depends on other options or on files is checked by ``prepare``.
    """

    events: str | PathLike[str]
    jobs: str | PathLike[str]
    curves: str | PathLike[str] | None = None
    window: tuple[str, str] | None = None
    policy: str = "bftrainer"
    objective: str | None = None
    t_fwd: float | str = defaults.T_FWD_S
    max_parallel: int = defaults.MAX_PARALLEL
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
    efficiency: bool = True
    bound: bool = True

    def __post_init__(self) -> None:
        for name, checked in _CHECKS.items():
            given = getattr(self, name)
            if given is not None or name not in _MAY_BE_NONE:
                object.__setattr__(self, name, checked(option_name(name), given))

    @classmethod
    def from_mapping(
        cls,
        mapping: Mapping[str, Any],
        *,
        folder: str | Path | None = None,
        file: str | Path | None = None,
        row: int | str | None = None,
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

        Raises
        ------
        InputError
            An option that there is not, one that is missing, or a value that cannot be used.
        """
        from bfreplay.datasets.located import located

        try:
            checks.known_keys(mapping, OPTION_NAMES, "a run")
            for name in ("events", "jobs"):
                if name not in mapping:
                    raise InputError(
                        f"the option {name!r} is missing", column=name, expected=f'{name} = "FILE"',
                        fix=f'add it; {name} = "{BUNDLED}" stands for what is bundled',
                    )  # fmt: skip
            given = {_FIELDS[name]: value for name, value in mapping.items()}
            made = cls(**given)
        except InputError as error:
            raise error if file is None or error.file else located(error, file, row) from error
        if folder is not None:
            for name in FILE_OPTIONS:
                object.__setattr__(made, name, _from_folder(name, getattr(made, name), Path(folder)))
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


def _from_folder(name: str, value: str | None, folder: Path) -> str | None:
    """Return a path seen from the working directory instead of from ``folder``."""
    from bfreplay.campaigns.workloads import is_source_name

    if value is None or value == BUNDLED or Path(value).is_absolute():
        return value
    if not (folder / value).exists() and name == "jobs" and is_source_name(value):
        return value
    return str(folder / value)


def _path(name: str, value: object) -> str:
    return checks.text(name, fspath(value) if isinstance(value, PathLike) else value)


def _window(name: str, value: object) -> tuple[str, str]:
    """Two times as text; TOML has dates and times of its own, and numbers for epoch seconds."""
    pair = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    times = [each.isoformat() if isinstance(each, datetime.date) else each for each in pair]
    times = [str(each) if isinstance(each, int | float) and not isinstance(each, bool) else each for each in times]
    if len(times) != 2 or not all(isinstance(each, str) for each in times):
        raise InputError(
            f"{name} is no pair of times", column=name, value=value, expected='["START", "END"], such as '
            '["2021-02-12", "2021-02-14T06:00"]', fix="give the start and the end of the part of the log",
        )  # fmt: skip
    return str(times[0]), str(times[1])


def _t_fwd(name: str, value: object) -> float | str:
    if value == AUTO:
        return AUTO
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(
            f"{name} is neither a number nor {AUTO!r}", column=name, value=value, expected=f"seconds > 0, or {AUTO!r}",
            fix="write it without quotes, in digits with a decimal point" if isinstance(value, str) else None,
        )  # fmt: skip
    if not (math.isfinite(value) and value > 0):
        raise InputError(
            "the forward-looking time is not a positive number", column=name, value=value,
            expected=f"seconds > 0, or {AUTO!r}",
            fix="120 s is a good start; the best value depends on how often nodes are reclaimed",
        )  # fmt: skip
    return float(value)


def _time_limit(name: str, value: object) -> float:
    if value == math.inf:
        raise InputError(
            "the time limit of a decision is not finite", column=name, value=value, expected="seconds > 0, finite",
            fix="give a large number, such as 3600",
        )  # fmt: skip
    return checks.number(name, value, above=0)


def _gap(name: str, value: object) -> float:
    return checks.number(name, value, least=0, most=math.nextafter(1, 0))


def _one_of(*words: str) -> Callable[[str, object], str]:
    return lambda name, value: checks.one_of(name, value, words)


def _whole(least: int) -> Callable[[str, object], int]:
    return lambda name, value: checks.whole(name, value, least)


_CHECKS: Mapping[str, Callable[[str, object], Any]] = {
    "events": _path,
    "jobs": _path,
    "curves": _path,
    "window": _window,
    "policy": checks.text,
    "objective": checks.text,
    "t_fwd": _t_fwd,
    "max_parallel": _whole(1),
    "unlimited_work": checks.truth,
    "learn_curves": _one_of("job", "model"),
    "measurement_noise": lambda name, value: checks.number(name, value, least=0, most=1),
    "solver": checks.text,
    "formulation": checks.text,
    "fallback": _one_of("exact", "keep"),
    "time_limit": _time_limit,
    "gap": _gap,
    "threads": _whole(1),
    "solver_seed": _whole(0),
    "warm_start": checks.truth,
    "reformulate_sets": checks.truth,
    "memory_limit": _whole(1),
    "semantics": _one_of("continuous", "published"),
    "seed": _whole(0),
    "record_nodes": checks.truth,
    "efficiency": checks.truth,
    "bound": checks.truth,
}
_MAY_BE_NONE = ("curves", "window", "objective", "learn_curves", "formulation", "memory_limit")
_FIELDS = {option_name(field.name): field.name for field in fields(RunOptions)}

OPTION_NAMES = tuple(_FIELDS)
"""Every option by the name that the command line and TOML files use."""
