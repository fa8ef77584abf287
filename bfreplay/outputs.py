"""Output files that are complete or not there at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bfreplay.errors import InputError, OutputExistsError


@contextmanager
def written_whole(files: Sequence[Path], overwrite: bool) -> Iterator[list[Path]]:
    """Temporary names to write to, which become ``files`` when the block ends without an error.

    Raises
    ------
    OutputExistsError
        One of the files is there and ``overwrite`` is false.
    InputError
        The folder is not there, or may not be written to.
    """
    for file in files:
        if not _is_folder(file.parent):
            raise InputError(
                "the folder of the output is not there", file=file, value=str(file.parent), fix="make the folder first"
            )
        if not os.access(file.parent, os.W_OK | os.X_OK):
            raise InputError(
                "the folder of the output may not be written to",
                file=file,
                value=str(file.parent),
                fix="choose another folder, or change its mode: chmod u+wx FOLDER",
            )
        if file.exists() and not overwrite:
            raise OutputExistsError(f"{file} is there already; choose another name, or ask to overwrite it")
    temporary = [file.with_name(f".{file.name}.{os.getpid()}.part") for file in files]
    try:
        yield temporary
        for part, file in zip(temporary, files, strict=True):
            part.replace(file)
    finally:
        for part in temporary:
            part.unlink(missing_ok=True)


def is_there(file: Path) -> bool:
    """Whether something of this name exists; ``InputError`` for a name that nothing can have."""
    try:
        return file.exists()
    except (OSError, ValueError) as error:  # too long, or with a null character
        raise InputError(f"nothing can have this name: {error}", file=file, fix="choose another name") from error


def write_whole(file: Path, text: str) -> None:
    """Write one text file, in UTF-8; one that is there is replaced. Raises as ``written_whole``."""
    with written_whole([file], overwrite=True) as (part,):
        part.write_text(text, encoding="utf-8")


def make_folder(folder: Path) -> list[Path]:
    """Make it with its parents; returns those that were not there, innermost first.

    Raises
    ------
    OSError
        It cannot be made; nothing is left of it.
    """
    fresh = list(_missing(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        remove_empty(fresh)
        raise
    return fresh


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove what ``make_folder`` made, as far as nobody has begun to use it."""
    with suppress(OSError):
        for each in folders:
            each.rmdir()


def _missing(folder: Path) -> Iterator[Path]:
    for each in (folder, *folder.parents):
        if each.exists():
            return
        yield each


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except PermissionError:  # of a folder above it
        return True
