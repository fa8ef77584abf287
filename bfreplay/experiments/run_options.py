"""``RunOptions``: one replay as data."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfreplay import checks
from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import FIELDS, FILE_OPTIONS, OPTION_NAMES, OPTIONS, DeclaredOptions
from bfreplay.options import option_name

if TYPE_CHECKING:
    from bfreplay.experiments.prepared_run import PreparedRun
    from bfreplay.replay.engine import ProgressCallback
    from bfreplay.runs import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(DeclaredOptions):
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

        ``t_fwd`` is taken for ``t-fwd``.

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
        from bfreplay.datasets.located import with_location

        try:
            mapping = as_options(mapping)
            checks.known_keys(mapping, OPTION_NAMES, "a run")
            if "jobs" not in mapping:
                raise InputError(
                    "the option 'jobs' is missing", column="jobs", expected='jobs = "FILE"',
                    fix=f'add it; jobs = "{BUNDLED}" stands for what is bundled',
                )  # fmt: skip
            given = {FIELDS[name]: value for name, value in mapping.items()}
            made = cls(**given, allow_code=allow_code)
            if folder is not None:
                for name in FILE_OPTIONS:
                    object.__setattr__(made, name, _from_folder(name, getattr(made, name), Path(folder)))
            if not allow_code:
                _refuse_code(made)
        except InputError as error:
            raise error if file is None or error.file else with_location(error, file, row) from error
        return made

    def to_json(self) -> dict[str, Any]:
        """Options with their values, defaults filled in, as ``from_mapping`` reads them.

        Those without a value are left out; paths are as they were given.
        """
        values = {name: getattr(self, own) for name, own in FIELDS.items()}
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
            As for ``runs.run_replay``; ``with_tables`` keeps the tables in memory where there is no folder.
        save_failures
            As for ``prepare``.

        Raises
        ------
        InputError, OutputExistsError, SolverUnavailableError, LedgerError
            As ``prepare``.
        """
        return self.prepare(save_failures=save_failures).replay(
            out, overwrite=overwrite, with_tables=with_tables, progress=progress, session=session
        )


def as_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by the names that files use, from names with dashes or underscores.

    Raises
    ------
    InputError
        An option is there under both names.
    """
    named = {option_name(name) if option_name(name) in FIELDS else name: value for name, value in given.items()}
    if len(named) < len(given):
        twice = next(name for name in named if name in given and FIELDS.get(name, name) in given and "-" in name)
        raise InputError(f"{twice} is given twice", column=twice, value=FIELDS[twice], expected="dashes or underscores")
    return named


def _refuse_code(options: RunOptions) -> None:
    """Raise ``InputError`` where an option, read from a file, names code to import."""
    from bfreplay.campaigns.workloads import JOB_SOURCES, is_source_name
    from bfreplay.milp.backends import BACKENDS
    from bfreplay.milp.formulations import FORMULATIONS
    from bfreplay.policies.catalogue import POLICIES, policy_named
    from bfreplay.policies.objectives.catalogue import OBJECTIVES
    from bfreplay.policies.spec import parsed

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


def documented(doc: str | None, *names: str) -> str:
    """Return a docstring with these options among its parameters, before the section ``Raises``."""
    before, raises, after = (doc or "").partition("\n    Raises\n")
    lines = [] if "    Parameters\n" in before else ["", "Parameters", "----------"]
    for name in names:
        lines += [name, textwrap.indent(textwrap.fill(OPTIONS[name].text, 112), "    ")]
    return f"{before.rstrip()}\n{textwrap.indent(chr(10).join(lines), '    ')}\n{raises}{after}"


RunOptions.__doc__ = documented(RunOptions.__doc__, *OPTIONS)
