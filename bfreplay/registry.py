"""Names that a user may type, and the classes and functions behind them."""

from __future__ import annotations

import difflib
import importlib
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from bfreplay.errors import BfreplayError, InputError

_PACKAGE_FOLDER = Path(__file__).parent
_SYSTEMS = tuple(f"bfreplay.systems.{name}" for name in ("gavel", "shockwave", "elasticflow", "products"))
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class PublishedSystem:
    """Contributions of a published system, as locations ``"module:thing"``; declared in ``systems/NAME/__init__.py``.

    Parameters
    ----------
    name
        Prefix of its policies (``NAME.policy``) and of its generated workload (``NAME(n=1000)``).
    policies
        Policies by name, without the prefix.
    is_trace, read_trace
        Functions of a file that return whether it is a trace in the system's format, and, with the file of throughputs
        or ``None``, its ``JobSet``. Empty for a system without traces.
    traces_are_csv
        True if traces are CSV files with a header; ``is_trace`` then gets only these, otherwise files without another
        known ending.
    generated_jobs
        Function from the text ``NAME(key=value, ...)`` and the file of throughputs or ``None``: the ``JobSet``. Empty
        for a system without one.
    isolated_policy
        Function of a run's policy: the policy that gives each job an equal part of the nodes, a baseline of the run.
    check_ideal, ideal_jct_s
        Functions that check a run for, and return, completion times with shares of time applied without rounds.
    """

    name: str
    policies: Mapping[str, str]
    is_trace: str = ""
    read_trace: str = ""
    generated_jobs: str = ""
    traces_are_csv: bool = False
    isolated_policy: str = ""
    check_ideal: str = ""
    ideal_jct_s: str = ""


def published_systems() -> list[PublishedSystem]:
    """Return the published systems. A new one is a folder in ``bfreplay.systems``, and a line here."""
    return [importlib.import_module(module).SYSTEM for module in _SYSTEMS]


def contribution(name: str) -> Any:
    """Import the thing that a published system has under this field, such as ``isolated_policy``."""
    return built_in(next(filter(None, (getattr(system, name) for system in published_systems()))))


def built_in(location: str) -> Any:
    """Import the ``"module:thing"`` of bfreplay itself."""
    module, thing = location.split(":")
    return getattr(importlib.import_module(module), thing)


@dataclass(frozen=True, slots=True)
class Registry:
    """Things of one kind: built in, from other packages' entry points, or spelled ``package.module:Class``.

    Parameters
    ----------
    kind
        Name of the kind in messages: ``"formulation"``.
    group
        Entry-point group for other packages: ``"bfreplay.formulations"``.
    needs
        Required attributes of classes.
    built_in
        ``"package.module:Class"`` by name, imported on first use.
    takes_functions
        True if functions, ``package.module:function``, are also of this kind.
    """

    kind: str
    group: str
    needs: tuple[str, ...]
    built_in: dict[str, str]
    takes_functions: bool = False

    @property
    def form(self) -> str:
        """Spelling of an unregistered thing."""
        return "package.module:function" if self.takes_functions else "package.module:Class"

    def names(self) -> list[str]:
        """Return every registered name: built-in ones in order, then those of other packages by name."""
        foreign = sorted(_entry_points_by_name(self.group, tuple(sys.path)).keys() - self.built_in.keys())
        return [*self.built_in, *foreign]

    def location(self, name: str) -> str:
        """Return the ``"package.module:Class"`` behind ``name``; a built-in name wins over an entry point.

        Raises
        ------
        InputError
            The name is unknown; the message lists the known ones.
        """
        known_location = self._location_of(name)
        if known_location is not None:
            return known_location
        if ":" in name:
            return name
        raise unknown_name(self.kind, name, self.names(), self.form)

    def _location_of(self, name: str) -> str | None:
        return self.built_in.get(name) or _entry_points_by_name(self.group, tuple(sys.path)).get(name)

    def refuse_code(self, name: str, column: str | None = None) -> None:
        """Raise ``InputError`` if ``name``, read from a file, is code to import."""
        if ":" in name and self._location_of(name) is None:
            raise code_refusal(f"the {self.kind} {name!r}", name, column)

    def find(self, name: str, form: str, *, allow_code: bool) -> Any:
        """Import anything by ``name``; arguments and errors as for ``load`` and ``import_code``."""
        known_location, title = self._location_of(name), f"the {self.kind} {name!r}"
        if known_location is not None:
            return _import_location(known_location, title, form)
        return import_code(self.location(name), title, form, allow_code=allow_code)

    def load(self, name: str, *, allow_code: bool) -> Any:
        """Import the class behind ``name``, or the function where functions are accepted.

        Parameters
        ----------
        name
            A registered name, or ``package.module:Class``.
        allow_code
            Import unregistered code: only if the user gave the name, or allows files to give it.

        Raises
        ------
        InputError
            The name is unknown, may not or cannot be imported, or is of another kind.
        """
        location, thing = self.location(name), self.find(name, self.form, allow_code=allow_code)
        if not isinstance(thing, type):
            if self.takes_functions and callable(thing):
                return thing
            fault = "neither a function nor a class" if self.takes_functions else "no class"
            raise InputError(f"the {self.kind} {name!r} is {fault}", value=location, expected=self.form)
        self._check_needs(thing, location, "a class")
        return thing

    def _check_needs(self, thing: object, name: str, what: str) -> None:
        missing = [attribute for attribute in self.needs if not hasattr(thing, attribute)]
        if missing:
            problem = f"{name} is no {self.kind}: it has no {', '.join(missing)}"
            raise InputError(problem, value=name, expected=f"{what} with {', '.join(self.needs)}")

    def refuse_class(self, thing: object) -> None:
        """Raise ``InputError`` for a class where an object is expected."""
        if isinstance(thing, type):
            expected, fix = f"a {self.kind}, which is an object", f"make one: {thing.__name__}()"
            raise InputError(f"{thing.__name__} is a class", expected=expected, fix=fix)

    def make(self, name: object, *, allow_code: bool) -> Any:
        """Import the class behind ``name`` and call it without arguments; ``allow_code`` as for ``load``.

        Anything but a text is returned, if it is a thing of this kind.

        Raises
        ------
        InputError
            As for ``load``, or the constructor needs arguments or fails.
        """
        if not isinstance(name, str):
            self.refuse_class(name)
            self._check_needs(name, repr(name), "an object")
            return name
        return make_from_code(
            self.load(name, allow_code=allow_code),
            f"the {self.kind} {name!r}",
            value=self.location(name),
            expected="a class that is called without arguments",
        )


@lru_cache(maxsize=64)
def _entry_points_by_name(group: str, path: tuple[str, ...]) -> Mapping[str, str]:
    """Return ``"module:thing"`` by name for the entry points of packages on ``path``, cached as reading takes 10 ms."""
    from importlib.metadata import entry_points  # not needed by commands that name nothing, and slow to import

    points = sorted(entry_points(group=group), key=lambda point: point.value, reverse=True)
    return {point.name: point.value for point in points}


def import_code(location: str, what: str, form: str, column: str | None = None, *, allow_code: bool) -> Any:
    """Import code that a user or a file names; the working directory is searched last, for that code alone.

    Parameters
    ----------
    location
        ``"package.module:thing"``; ``thing`` may have dots, such as ``Class.method``.
    what
        Name in messages: ``"the pruner 'mine:Best'"``.
    form
        Expected spelling: ``"package.module:Class"``.
    column
        Key or option that names it, for the error.
    allow_code
        Allow the import; without the user's permission false for code that only a file names.

    Raises
    ------
    InputError
        It may not or cannot be imported, or is misspelt.
    """
    if not allow_code:
        raise code_refusal(what, location, column)
    folder, package = str(Path.cwd()), location.partition(":")[0].partition(".")[0]
    if package and not {folder, package} & {*sys.path, *sys.modules} and find_spec(package) is None:
        sys.path.append(folder)
    return _import_location(location, what, form, column)


def code_refusal(what: str, location: str, column: str | None) -> InputError:
    """Return the error for code that only a file names."""
    return InputError(
        f"{what} is code that only a file names, which is not imported",
        column=column,
        value=location,
        expected="a registered name",
        fix="if you trust this code: add --allow-code (in Python: allow_code=True where the file is read), or name it "
        "yourself in an option of a command that has one",
    )


def _import_location(location: str, title: str, form: str, column: str | None = None) -> Any:
    module_name, _, attribute_path = location.partition(":")
    details = {"column": column, "value": location, "expected": f"{form}, importable from here"}
    if not module_name or not attribute_path:
        remedy = "write the module, a colon, and the name in it"
        raise InputError(f"{title} is not spelled {form}", **details, fix=remedy)
    try:
        thing: Any = importlib.import_module(module_name)
        for attribute in attribute_path.split("."):
            thing = getattr(thing, attribute)
    # user code may raise anything on import, and a script without a __main__ guard exits
    except (Exception, SystemExit) as error:
        remedy = _fix_of_import(module_name, error)
        raise InputError(f"{title} cannot be imported: {one_line(error)}", **details, fix=remedy) from error
    return thing


def _fix_of_import(module_name: str, error: BaseException) -> str:
    """Return how to make a module importable or, if it was imported, the classes and functions of its own."""
    if module_name.endswith(".py"):
        return "write the module without its .py"
    if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
        return "the module must be importable: run from the folder that holds it, or set PYTHONPATH"
    module = sys.modules.get(module_name)
    if module is None:
        return "correct this error, which the module raises when it is imported"
    names = [
        public_name
        for public_name, value in vars(module).items()
        if callable(value) and public_name[:1] != "_" and getattr(value, "__module__", "") == module_name
    ]
    return f"choose one of its classes and functions: {', '.join(names)}" if names else "the module has no such name"


def make_from_code(make: Callable[[], _Made], what: str, **details: Any) -> _Made:
    """Call a class or function of user code that makes something.

    Parameters
    ----------
    make
        Callable without arguments.
    what
        Name of the result in messages: ``"the pruner 'mine:Best'"``.
    **details
        Details of the error: see ``InputError``.

    Raises
    ------
    InputError
        The call fails; errors of bfreplay pass unchanged.
    """
    try:
        return make()
    except BfreplayError:
        raise
    except (Exception, SystemExit) as error:  # user code may raise anything
        raise InputError(f"{what} cannot be made: {one_line(error)}", **details) from error


def unknown_name(kind: str, name: str, names: Sequence[str], form: str = "package.module:Class") -> InputError:
    """Return the error for an unknown name, with the known names and the nearest one."""
    nearest_names = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return InputError(
        f"unknown {kind} {name!r}",
        expected=f"one of {', '.join(_by_family(name, names))}; or {form}",
        fix=f"did you mean {nearest_names[0]!r}?" if nearest_names else None,
    )


def _by_family(name: str, names: Sequence[str]) -> list[str]:
    """Return ``gavel.NAME`` for all names of that family; where ``name`` is one of it, the names of that family."""
    family = name.partition(".")[0]
    members = [name for name in names if name.startswith(f"{family}.")]
    return members or list(dict.fromkeys(f"{name.partition('.')[0]}.NAME" if "." in name else name for name in names))


def one_line(error: BaseException) -> str:
    """Return an error and its place outside bfreplay: ``"ZeroDivisionError: division by zero (mine.py, line 7)"``."""
    message = " ".join(str(error).split())
    problem = f"{type(error).__name__}: {message}" if message else type(error).__name__
    foreign = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not (frame.filename.startswith("<") or Path(frame.filename).is_relative_to(_PACKAGE_FOLDER))
        and Path(frame.filename).parent.name != "importlib"
    ]
    return f"{problem} ({Path(foreign[-1].filename).name}, line {foreign[-1].lineno})" if foreign else problem
