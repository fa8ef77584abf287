"""Output files that are complete or not there at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except PermissionError:  # of a folder above it
        return True
