"""``RunOptions``: one replay as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfreplay import checks
from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import (
    FIELDS,
    FILE_OPTIONS,
    NODE_LISTS,
    OPTION_NAMES,
    OPTIONS,
    DeclaredOptions,
)
from bfreplay.experiments.option_checks import node_list
from bfreplay.options import add_options, checked_keywords, option_name

if TYPE_CHECKING:
    from bfreplay.experiments.prepared_run import PreparedRun
    from bfreplay.replay.engine import ProgressCallback
    from bfreplay.runs import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(DeclaredOptions):
    """Every option of ``bfreplay replay`` that changes a result, by the same names, and ``allow_code``.

    Fields are named as the options of the command, with underscores for dashes. Objects with equal fields are equal and
    hashable; ``dataclasses.replace`` makes one with other values. One of ``events`` and ``cluster`` is required;
    ``"sample"`` stands for the bundled log and its jobs.

    Raises
    ------
    InputError
        A value is invalid, or options exclude one another. ``prepare`` checks files and names.
    """

    named = staticmethod(option_name)

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
        """Make an object from options as in a TOML file: ``{"events": "log.parquet", "t-fwd": 300, ...}``.

        ``t_fwd`` is taken for ``t-fwd``.

        Parameters
        ----------
        mapping
            Option to value, named as on the command line without the leading dashes.
        folder
            Folder of relative paths; by default the working directory.
        file, row
            Origin of the mapping, for messages.
        allow_code
            Import code that the mapping, or the files that it names, name.

        Raises
        ------
        InputError
            An option is unknown or missing, a value cannot be used, or code is not allowed.
        """
        from bfreplay.datasets.located import with_location

        try:
            mapping = as_options(mapping)
            checks.known_keys(mapping, OPTION_NAMES, "a run")
            options = {FIELDS[name]: value for name, value in mapping.items()}
            for name in NODE_LISTS:
                if folder is not None and isinstance(options.get(name), str):
                    options[name] = node_list(name, options[name], folder)
            run_options = cls(**{"jobs": None, **options}, allow_code=allow_code)
            if folder is not None:
                for name in FILE_OPTIONS:
                    object.__setattr__(run_options, name, _from_folder(name, getattr(run_options, name), Path(folder)))
            if not allow_code:
                _refuse_code(run_options)
        except InputError as error:
            raise error if file is None or error.file else with_location(error, file, row) from error
        return run_options

    def to_json(self, *, absolute: bool = False) -> dict[str, Any]:
        """Return the options with a value, defaults included and paths as given or absolute, for ``from_mapping``.

        An object that was given in place of a file is a text, ``"<JobSet 1a2b3c4d>"``, with part of its SHA-256.
        """
        from bfreplay.experiments.given_objects import input_text

        values = {name: getattr(self, field_name) for name, field_name in FIELDS.items()}
        if absolute:
            values |= {option_name(name): _from_folder(name, getattr(self, name), Path.cwd()) for name in FILE_OPTIONS}
        return {
            name: list(value) if isinstance(value, tuple) else input_text(value)
            for name, value in values.items()
            if value is not None
        }

    def prepare(self, *, save_failures: str | Path | None = None) -> PreparedRun:
        """Load the log and the jobs and make the policy; all bad input is refused here, before the replay.

        Parameters
        ----------
        save_failures
            Folder for the models and decisions of rejected answers of a MILP back end.

        Raises
        ------
        InputError, SolverUnavailableError
            A file, a name or a combination of options cannot be used.
        """
        from bfreplay.experiments.prepared_run import prepare_run

        return prepare_run(self, save_failures=save_failures)

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
        """Run the replay.

        Parameters
        ----------
        out, overwrite, with_tables, progress, session
            As for ``runs.run_replay``; ``with_tables`` keeps the tables in memory if there is no folder.
        save_failures
            As for ``prepare``.

        Raises
        ------
        InputError, OutputExistsError, SolverUnavailableError, LedgerError
            As ``prepare``.
        """
        from bfreplay.runs import Output

        output = Output(folder=out, overwrite=overwrite, progress=progress, session=session or {})
        return self.prepare(save_failures=save_failures).replay(output, with_tables=with_tables)


def as_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by the names that files use, from names with dashes or underscores.

    Raises
    ------
    InputError
        An option is there under both names.
    """
    named_options: dict[str, Any] = {}
    for name, value in options.items():
        option = option_name(name) if option_name(name) in FIELDS else name
        if option in named_options:
            problem, expected = f"{option} is given twice", "dashes or underscores"
            raise InputError(problem, column=option, value=FIELDS[option], expected=expected)
        named_options[option] = value
    return named_options


def _refuse_code(options: RunOptions) -> None:
    """Raise ``InputError`` where an option, read from a file, names code to import."""
    from bfreplay.campaigns.workloads import JOB_SOURCES, is_source_name
    from bfreplay.milp.backends import BACKENDS
    from bfreplay.milp.formulations import FORMULATIONS
    from bfreplay.policies.catalogue import parse_policy
    from bfreplay.policies.names import OBJECTIVES, POLICIES
    from bfreplay.policies.spec import parse

    terms = [] if options.objective is None else parse(options.objective)
    for name, registry, names in (
        ("policy", POLICIES, [parse_policy(options.policy).name]),
        ("objective", OBJECTIVES, [term.name for term in terms]),
        ("solver", BACKENDS, [options.solver]),
        ("formulation", FORMULATIONS, [options.formulation or ""]),
        ("jobs", JOB_SOURCES, [str(options.jobs)] if is_source_name(options.jobs) else []),
    ):
        for code_name in names:
            registry.refuse_code(code_name, name)


def _from_folder(name: str, value: Any, folder: Path) -> Any:
    """Return a path relative to ``folder`` as one relative to the working directory."""
    from bfreplay.campaigns.workloads import is_source_name

    if not isinstance(value, str) or value == BUNDLED or Path(value).is_absolute():
        return value
    if not (folder / value).exists() and name == "jobs" and is_source_name(value):
        return value
    return str(folder / value)


RunOptions.__init__ = checked_keywords()(RunOptions.__init__)  # type: ignore[method-assign]  # made by dataclass
RunOptions.__doc__ = add_options(RunOptions.__doc__, OPTIONS)
