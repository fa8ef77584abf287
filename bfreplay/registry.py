"""Names that a user may type, and the classes behind them."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from bfreplay.errors import InputError


@dataclass(frozen=True, slots=True)
class Registry:
    """Classes of one kind: built in, from other packages' entry points, or spelled ``package.module:Class``.

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
    """

    kind: str
    group: str
    needs: tuple[str, ...]
    built_in: dict[str, str]

    def names(self) -> list[str]:
        """Every registered name: built-in ones in their written order, then other packages' by name."""
        foreign = sorted({point.name for point in entry_points(group=self.group)} - set(self.built_in))
        return [*self.built_in, *foreign]

    def location(self, name: str) -> str:
        """``"package.module:Class"`` behind ``name``; a built-in name wins over an entry point.

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
        near = difflib.get_close_matches(name, self.names(), n=1, cutoff=0.5)
        raise InputError(
            f"unknown {self.kind}",
            value=name,
            expected=f"one of {', '.join(self.names())}; or package.module:Class",
            fix=f"did you mean {near[0]!r}?" if near else None,
        )

    def load(self, name: str) -> type[Any]:
        """Import the class behind ``name``.

        Raises
        ------
        InputError
            No such name, or its module or class cannot be imported.
        """
        location = self.location(name)
        module_name, _, class_path = location.partition(":")
        try:
            found: Any = importlib.import_module(module_name)
            for part in class_path.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError, ValueError) as error:
            raise InputError(
                f"the {self.kind} {name!r} cannot be imported: {error}",
                value=location,
                expected="package.module:Class, importable from here",
            ) from error
        if not isinstance(found, type):
            raise InputError(f"the {self.kind} {name!r} is no class", value=location, expected="package.module:Class")
        missing = [attribute for attribute in self.needs if not hasattr(found, attribute)]
        if missing:
            raise InputError(
                f"{location} is no {self.kind}: it has no {', '.join(missing)}",
                value=location,
                expected=f"a class with {', '.join(self.needs)}",
            )
        return found
