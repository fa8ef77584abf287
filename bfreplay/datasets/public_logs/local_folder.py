"""Logs out of a folder into which somebody put them by hand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from bfreplay.datasets.public_logs.content import bring_into_form, could_hold, recognised, sha256
from bfreplay.datasets.public_logs.entries import LogFile, PublicLog
from bfreplay.datasets.public_logs.supplies import NotSuppliedError, headline
from bfreplay.errors import BfreplayError, InputError


class LocalFolder:
    """Finds files by name, here or at their addresses, compressed or not; then by hash, whatever they are called.

    Parameters
    ----------
    folder
        Where to look. Folders in it are not looked into.

    Raises
    ------
    InputError
        It is no folder.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError("the folder to take files from is not there", value=str(folder), expected="a folder")
        self._folder = folder

    def bring(self, file: LogFile, path: Path) -> None:
        """Copy ``file`` to ``path``. Raises ``NotSuppliedError`` if nothing in the folder holds it."""
        others = []
        for found in self._candidates(file):
            form = recognised(file, found)
            if form is not None:
                shutil.copyfile(found, path)
                bring_into_form(file, path, form)
                return
            others.append(f"{found.name} there is another file (sha256 {sha256(found)})")
        wanted = f"neither a file of its name nor one with sha256 {file.sha256} or {file.content_sha256}"
        where = [f"it can be had at {address}" for address in file.addresses] or [f"{file.about}" or "see its page"]
        raise NotSuppliedError(file, [*others, wanted, *where])

    def error(self, failures: Sequence[tuple[PublicLog, NotSuppliedError]], asked: int) -> BfreplayError:
        """Tell of all files that are not in the folder at once."""
        return InputError(
            headline(failures, asked),
            file=self._folder,
            fix="put the files into the folder, under their own names or any other",
        )

    def _candidates(self, file: LogFile) -> Iterator[Path]:
        """Files of a fitting name, then those of a fitting size."""
        present = {
            each.name: each for each in sorted(self._folder.iterdir()) if each.is_file() and os.access(each, os.R_OK)
        }
        for name in _names(file):
            if name in present:
                yield present.pop(name)
        yield from (each for each in present.values() if could_hold(file, each))


def _names(file: LogFile) -> list[str]:
    """Names that it has here or at its addresses, with and without ``.gz``; each once."""
    names = [file.name, *(PurePosixPath(address).name for address in file.addresses)]
    both = [other for name in names for other in (name, name.removesuffix(".gz"), f"{name.removesuffix('.gz')}.gz")]
    return list(dict.fromkeys(both))
