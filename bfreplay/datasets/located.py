"""Where in a file an error happened: the first bad row; file and row for errors of jobs and curves, which know none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bfreplay.errors import InputError


def first_marked(marks: Any) -> int | None:
    """Return the index of the first ``True`` of an array, ``(R,) bool``: the row that an error is about."""
    return int(marks.argmax()) if marks.any() else None


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
