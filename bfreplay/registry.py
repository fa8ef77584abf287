"""Names that a user may type, and the classes and functions behind them."""

from __future__ import annotations

import difflib
import importlib
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from bfreplay.errors import BfreplayError, InputError

_HOW_TO_IMPORT = "the module must be importable: run from the folder that holds it, or set PYTHONPATH"
_HOUSE = Path(__file__).parent
_SYSTEMS = ("bfreplay.systems.gavel", "bfreplay.systems.shockwave", "bfreplay.systems.elasticflow")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class PublishedSystem:
    """What a published system adds, as names and ``"module:thing"`` behind them; ``systems/NAME/__init__.py`` says it.

    Parameters
    ----------
    name
        What its policies (``NAME.policy``) and its generated workload (``NAME(n=1000)``) begin with.
    policies
        Policies by their names without the system's.
    is_trace, read_trace
        Functions of a file: whether it is a trace of jobs in the system's format; and, with the file of throughputs or
        ``None``, the ``JobSet``.
    traces_are_csv
        Traces are CSV files with a header, and only such files are asked about; otherwise files of no other ending.
    generated_jobs
        Function of the text ``NAME(key=value, ...)`` and the file of throughputs or ``None``: the ``JobSet``.
    """

    name: str
    policies: Mapping[str, str]
    is_trace: str
    read_trace: str
    generated_jobs: str
    traces_are_csv: bool = False


def published_systems() -> list[PublishedSystem]:
    """What each room of ``bfreplay.systems`` adds. A new system is a folder there, and a line here."""
    return [importlib.import_module(module).SYSTEM for module in _SYSTEMS]


def built_in(location: str) -> Any:
    """What is behind ``"module:thing"`` of bfreplay itself, imported."""
    module, thing = location.split(":")
    return getattr(importlib.import_module(module), thing)


@dataclass(frozen=True, slots=True)
class Registry:
    """Things of one kind: built in, from other packages' entry points, or spelled ``package.module:Class``.

    Parameters
    ----------
    kind
        What they are, for messages: ``"formulation"``.
    group
        Entry-point group in which other packages announce theirs: ``"bfreplay.formulations"``.
    needs
        Attributes that its classes have; one without them is something else.
    built_in
        Name to ``"package.module:Class"``. Nothing is imported before it is asked for.
    takes_functions
        Functions are of this kind too, ``package.module:function``; ``needs`` is asked of classes only.
    """

    kind: str
    group: str
    needs: tuple[str, ...]
    built_in: dict[str, str]
    takes_functions: bool = False

    @property
    def form(self) -> str:
        """How a thing that is not registered is spelled."""
        return "package.module:function" if self.takes_functions else "package.module:Class"

    def names(self) -> list[str]:
        """Every registered name: built-in ones in their written order, then other packages' by name."""
        foreign = sorted(_announced(self.group, tuple(sys.path)).keys() - self.built_in.keys())
        return [*self.built_in, *foreign]

    def location(self, name: str) -> str:
        """Return the ``"package.module:Class"`` behind ``name``; a built-in name wins over an entry point.

        Raises
        ------
        InputError
            Nothing has this name; the message lists what exists.
        """
        registered = self._registered(name)
        if registered is not None:
            return registered
        if ":" in name:
            return name
        raise unknown_name(self.kind, name, self.names(), self.form)

    def _registered(self, name: str) -> str | None:
        return self.built_in.get(name) or _announced(self.group, tuple(sys.path)).get(name)

    def refuse_code(self, name: str, column: str | None = None) -> None:
        """Raise ``InputError`` where ``name``, read from a file, is code to import: neither registered nor unknown."""
        if ":" in name and self._registered(name) is None:
            raise code_refused(f"the {self.kind} {name!r}", name, column)

    def find(self, name: str, form: str, *, allow_code: bool) -> Any:
        """Import what is behind ``name``, whatever it is; arguments and errors as for ``load`` and ``imported``."""
        registered, what = self._registered(name), f"the {self.kind} {name!r}"
        if registered is not None:
            return _imported(registered, what, form)
        return imported(self.location(name), what, form, allow_code=allow_code)

    def load(self, name: str, *, allow_code: bool) -> Any:
        """Import the class behind ``name``, or the function where those are taken.

        Parameters
        ----------
        name
            What is registered, or ``package.module:Class``.
        allow_code
            Import what is not registered: only where the user gave the name, or allows files to give it.

        Raises
        ------
        InputError
            No such name, or it may not or cannot be imported, or is something else.
        """
        location, found = self.location(name), self.find(name, self.form, allow_code=allow_code)
        if not isinstance(found, type):
            if self.takes_functions and callable(found):
                return found
            what = "neither a function nor a class" if self.takes_functions else "no class"
            raise InputError(f"the {self.kind} {name!r} is {what}", value=location, expected=self.form)
        missing = [attribute for attribute in self.needs if not hasattr(found, attribute)]
        if missing:
            raise InputError(
                f"{location} is no {self.kind}: it has no {', '.join(missing)}",
                value=location,
                expected=f"a class with {', '.join(self.needs)}",
            )
        return found

    def make(self, name: str, *, allow_code: bool) -> Any:
        """Import the class behind ``name`` and call it without arguments; ``allow_code`` as for ``load``.

        Raises
        ------
        InputError
            As ``load``, or the constructor needs arguments or fails.
        """
        return made(
            self.load(name, allow_code=allow_code), f"the {self.kind} {name!r}", value=self.location(name),
            expected="a class that is called without arguments",
        )  # fmt: skip


@lru_cache(maxsize=64)
def _announced(group: str, path: tuple[str, ...]) -> Mapping[str, str]:
    """Name to ``"module:thing"`` of the entry points of packages on ``path``, read once: it takes 10 ms each time."""
    points = sorted(entry_points(group=group), key=lambda point: point.value, reverse=True)
    return {point.name: point.value for point in points}


def imported(location: str, what: str, form: str, column: str | None = None, *, allow_code: bool) -> Any:
    """Import code that a user or a file names; the working directory is searched last, for that code alone.

    Parameters
    ----------
    location
        ``"package.module:thing"``; ``thing`` may have dots of its own, as ``Class.method`` has.
    what
        What it is, for messages: ``"the pruner 'mine:Best'"``.
    form
        How it should be spelled: ``"package.module:Class"``.
    column
        Key or option that names it, for the error.
    allow_code
        Whether it may be imported: not where a file alone names it, unless the user allows that.

    Raises
    ------
    InputError
        It may not be imported, is spelled otherwise, or cannot be imported.
    """
    if not allow_code:
        raise code_refused(what, location, column)
    here, package = str(Path.cwd()), location.partition(":")[0].partition(".")[0]
    if package and not {here, package} & {*sys.path, *sys.modules} and find_spec(package) is None:
        sys.path.append(here)
    return _imported(location, what, form, column)


def code_refused(what: str, location: str, column: str | None) -> InputError:
    """Return the error for code that only a file names."""
    return InputError(
        f"{what} is code that a file names, and a file may not have code imported", column=column, value=location,
        expected="a registered name",
        fix="if you trust this code: add --allow-code (in Python: allow_code=True where the file is read), or name it "
        "yourself in an option of a command that has one",
    )  # fmt: skip


def _imported(location: str, what: str, form: str, column: str | None = None) -> Any:
    module_name, _, path = location.partition(":")
    if not module_name or not path:
        raise InputError(
            f"{what} is not spelled {form}", column=column, value=location, expected=f"{form}, importable from here",
            fix="write the module, a colon, and what it holds",
        )  # fmt: skip
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    # a stranger's module may raise anything on import, and a script without a __main__ guard exits
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{what} cannot be imported: {one_line(error)}",
            column=column,
            value=location,
            expected=f"{form}, importable from here",
            fix=_HOW_TO_IMPORT,
        ) from error
    return found


def made(make: Callable[[], _Made], what: str, **details: Any) -> _Made:
    """Call a class or function of a stranger's that makes something.

    Parameters
    ----------
    make
        Called without arguments.
    what
        What it makes, for messages: ``"the pruner 'mine:Best'"``.
    **details
        For the error: see ``InputError``.

    Raises
    ------
    InputError
        It fails; what it raises of bfreplay's own errors comes through as it is, meant for a person to read.
    """
    try:
        return make()
    except BfreplayError:
        raise
    except (Exception, SystemExit) as error:  # a stranger's constructor may raise anything
        raise InputError(f"{what} cannot be made: {one_line(error)}", **details) from error


def unknown_name(kind: str, name: str, names: Sequence[str], form: str = "package.module:Class") -> InputError:
    """Return the error for a name that nothing has, with what exists and the nearest of it."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return InputError(
        f"unknown {kind} {name!r}",
        expected=f"one of {', '.join(_by_family(name, names))}; or {form}",
        fix=f"did you mean {near[0]!r}?" if near else None,
    )


def _by_family(name: str, names: Sequence[str]) -> list[str]:
    """Return ``gavel.NAME`` for all names of that family; where ``name`` is one of it, the names of that family."""
    family = name.partition(".")[0]
    own = [each for each in names if each.startswith(f"{family}.")]
    return own or list(dict.fromkeys(f"{each.partition('.')[0]}.NAME" if "." in each else each for each in names))


def one_line(error: BaseException) -> str:
    """``"ZeroDivisionError: division by zero (mine.py, line 7)"``: what was raised, and where outside bfreplay."""
    text = " ".join(str(error).split())
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    theirs = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not (frame.filename.startswith("<") or Path(frame.filename).is_relative_to(_HOUSE))
        and Path(frame.filename).parent.name != "importlib"
    ]
    return f"{said} ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})" if theirs else said
