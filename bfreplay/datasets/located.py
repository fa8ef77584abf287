"""File and row of an error: the first bad row, and the location for errors of jobs and curves, which have none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bfreplay.errors import InputError


def first_true(marks: Any) -> int | None:
    """Return the index of the first ``True`` of an array, ``(R,) bool``: the row that an error is about."""
    return int(marks.argmax()) if marks.any() else None


def with_location(
    error: InputError, file: str | Path, row_number: int | str | None, column: str | None = None, curve: bool = False
) -> InputError:
    """Return the same error with file and row; the column too if the error names none, or a part of a curve.

    Parameters
    ----------
    error
        The error as it was raised.
    file, row_number
        Location of the values.
    column
        Column of the file that it is about.
    curve
        The error is about a point: ``column`` then replaces its ``nodes`` or ``values``.
    """
    return error.with_changes(
        file=file, row=row_number, column=column if curve or error.column is None else error.column
    )


@contextmanager
def locate_errors(
    file: str | Path, row_number: int | str | None, column: str | None = None, curve: bool = False
) -> Iterator[None]:
    """Add the location to errors that are raised inside and name no file; see ``with_location``."""
    try:
        yield
    except InputError as error:
        raise error if error.file else with_location(error, file, row_number, column, curve) from error
