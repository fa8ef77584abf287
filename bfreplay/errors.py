"""Errors of bfreplay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_ABSENT: Any = object()


def printable(text: str) -> str:
    """Return text with control characters and lone surrogates escaped for terminals, line breaks kept."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


class BfreplayError(Exception):
    """Root of all errors of bfreplay."""


class InputError(BfreplayError):
    """An input (file, table, argument) cannot be used.

    Parameters
    ----------
    problem
        The problem in one sentence.
    file, row, column, value
        Place of the problem. ``row`` counts data rows from 1 in tables (the header is not counted);
        text formats may give a line instead, as ``"line 7"``. ``column`` is also a key of a TOML or JSON file, or an
        option.
    expected, fix
        Valid input, and what the reader can do.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        row: int | str | None = None,
        column: str | None = None,
        value: Any = _ABSENT,
        expected: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.problem = problem = printable(problem)
        self.file = None if file is None else str(file)
        self.row = row
        self.column = column
        self.value = None if value is _ABSENT else value
        self.expected = expected
        self.fix = fix
        try:
            shown = None if value is _ABSENT else repr(value)
        except ValueError:  # Python writes no whole numbers of more digits
            shown = "a whole number of thousands of digits"
        if shown is not None and len(shown) > 200:
            shown = shown[:197] + "..."
        place = {"file": file, "row": row, _column_word(column, file, row): column}
        parts = {**place, "value": shown, "expected": expected, "fix": fix}
        lines = [f"  {name + ':':<10}{part}" for name, part in parts.items() if part is not None]
        super().__init__(printable("\n".join([problem, *lines])))

    def with_changes(self, **changes: Any) -> InputError:
        """Return the same error with other parts, such as ``file`` and ``row``; a value of ``None`` is not shown."""
        parts = {part_name: getattr(self, part_name) for part_name in ("file", "row", "column", "expected", "fix")}
        return InputError(self.problem, **parts | ({} if self.value is None else {"value": self.value}) | changes)


def _column_word(column: str | None, file: str | Path | None, row: int | str | None) -> str:
    if str(column).startswith("--"):
        return "option"
    if str(row).startswith("[") or str(file).endswith((".toml", ".json")):
        return "key"
    return "option" if file is None and row is None else "column"


class OutputExistsError(BfreplayError):
    """The output exists already, and may not be replaced."""


class SolverUnavailableError(BfreplayError):
    """A solver cannot run here; the message says what is missing and how to get it."""


class LedgerError(BfreplayError):
    """Node time or samples do not add up: a defect of bfreplay, not of the input."""
