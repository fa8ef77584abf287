"""Tables of a campaign file: each key read once, with errors that name file, table and key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bfreplay import checks
from bfreplay.datasets.located import locate_errors
from bfreplay.documents import Cell
from bfreplay.errors import InputError

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class TomlTable:
    """One table of a file; ``label`` is its name in messages, such as ``"[campaign.budget]"``."""

    file: Path
    label: str
    cells: Mapping[str, Cell]

    @classmethod
    def of(cls, file: Path, label: str, cells: object, known: Sequence[str] | None = None) -> TomlTable:
        """Make a table of ``cells`` with no other keys than ``known`` (``None``: any).

        Raises
        ------
        InputError
            ``cells`` is no table, or has an unknown key.
        """
        if not isinstance(cells, Mapping):
            raise InputError(
                f"{label} is no table",
                file=file,
                row=label,
                value=cells,
                expected=f"{label} in a line of its own, its keys below",
                fix=f"write {label} with its keys below",
            )
        table = cls(file, label, cells)
        if known is not None:
            with_place(table, lambda: checks.known_keys(cells, known, label))
        return table

    def has(self, key: str) -> bool:
        """Return whether the key is present."""
        return key in self.cells

    def take(self, key: str) -> Any:
        """Return the value of a required key.

        Raises
        ------
        InputError
            The key is missing.
        """
        if key not in self.cells:
            raise InputError(
                f"the key {key!r} is missing",
                file=self.file,
                row=self.label,
                column=key,
                value=list(self.cells),
                expected=f"{key} = ... in {self.label}",
                fix=f"add it below {self.label}",
            )
        return self.cells[key]

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; the key is required without a default."""
        return self._check(key, checks.text, default)

    def whole(self, key: str, least: int, default: int | None = None, most: int = checks.LARGEST) -> int:
        """Return a whole number; the key is required without a default."""
        return self._check(key, lambda name, value: checks.whole(name, value, least, most), default)

    def number(self, key: str, default: float | None = None, *, above: float | None = None) -> float:
        """Return a finite number; the key is required without a default."""
        return self._check(key, lambda name, value: checks.number(name, value, above=above), default)

    def arguments(self, *keys: str) -> dict[str, Any]:
        """Return the keys that are present, as arguments for a class that checks them itself."""
        return {key: self.cells[key] for key in keys if key in self.cells}

    def error(self, problem: str, key: str, expected: str, fix: str) -> InputError:
        """Return the error about one of its keys."""
        return InputError(
            problem, file=self.file, row=self.label, column=key, value=self.cells.get(key), expected=expected, fix=fix
        )

    def _check(self, key: str, check: Callable[[str, Any], _Made], default: _Made | None) -> _Made:
        if default is not None and not self.has(key):
            return default
        value = self.take(key)
        return with_place(self, lambda: check(key, value))


def with_place(table: TomlTable, make: Callable[[], _Made]) -> _Made:
    """Call ``make``, and add file and table to its errors."""
    with locate_errors(table.file, table.label):
        return make()
