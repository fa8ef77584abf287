"""Names that a user may type, and the classes and functions behind them."""

from __future__ import annotations

import difflib
import importlib
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from bfreplay.errors import BfreplayError, InputError

_HOW_TO_IMPORT = "the module must be importable: run from the folder that holds it, or set PYTHONPATH"
_HOUSE = Path(__file__).parent


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
        foreign = sorted({point.name for point in entry_points(group=self.group)} - set(self.built_in))
        return [*self.built_in, *foreign]

    def location(self, name: str) -> str:
        """Return the ``"package.module:Class"`` behind ``name``; a built-in name wins over an entry point.

        Raises
        ------
        InputError
            Nothing has this name; the message lists what exists.
        """
        if name in self.built_in:
            return self.built_in[name]
        for point in sorted(entry_points(group=self.group), key=lambda point: point.value):
            if point.name == name:
                return point.value
        if ":" in name:
            return name
        raise unknown_name(self.kind, name, self.names(), self.form)

    def load(self, name: str) -> Any:
        """Import the class behind ``name``, or the function where those are taken.

        Raises
        ------
        InputError
            No such name, or it cannot be imported, or is something else.
        """
        location = self.location(name)
        module_name, _, class_path = location.partition(":")
        try:
            found: Any = importlib.import_module(module_name)
            for part in class_path.split("."):
                found = getattr(found, part)
        # a stranger's module may raise anything on import, and a script without a __main__ guard exits
        except (Exception, SystemExit) as error:
            raise InputError(
                f"the {self.kind} {name!r} cannot be imported: {one_line(error)}",
                value=location,
                expected=f"{self.form}, importable from here",
                fix=_HOW_TO_IMPORT,
            ) from error
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

    def make(self, name: str) -> Any:
        """Import the class behind ``name`` and call it without arguments.

        Raises
        ------
        InputError
            As ``load``, or the constructor needs arguments or fails.
        """
        found = self.load(name)
        try:
            return found()
        except BfreplayError:
            raise  # said on purpose, for a person to read
        except Exception as error:  # a stranger's constructor may raise anything
            raise InputError(
                f"the {self.kind} {name!r} cannot be made: {one_line(error)}",
                value=self.location(name),
                expected="a class that is called without arguments",
            ) from error


def unknown_name(kind: str, name: str, names: Sequence[str], form: str = "package.module:Class") -> InputError:
    """Return the error for a name that nothing has, with what exists and the nearest of it."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return InputError(
        f"unknown {kind} {name!r}",
        expected=f"one of {', '.join(names)}; or {form}",
        fix=f"did you mean {near[0]!r}?" if near else None,
    )


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
