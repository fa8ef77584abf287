"""Errors of jobs and curves, which know no file, told where in a file they happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bfreplay.errors import InputError


def located(
    error: InputError, file: str | Path, row: int | str | None, column: str | None = None, curve: bool = False
) -> InputError:
    """Return the same error with file and row; the column too where the error names none, or a part of a curve.

    Parameters
    ----------
    error
        As it was raised.
    file, row
        Where the values came from.
    column
        Column of the file that it is about.
    curve
        The error is about a point: ``column`` then replaces its ``nodes`` or ``values``.
    """
    return error.changed(file=file, row=row, column=column if curve or error.column is None else error.column)


@contextmanager
def placed(file: str | Path, row: int | str | None, column: str | None = None, curve: bool = False) -> Iterator[None]:
    """Errors that are raised inside and name no file are told where they happened; see ``located``."""
    try:
        yield
    except InputError as error:
        raise error if error.file else located(error, file, row, column, curve) from error
