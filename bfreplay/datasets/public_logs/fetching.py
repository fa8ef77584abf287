"""Fetching of public logs into the data folder, each whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from bfreplay.datasets.public_logs import download
from bfreplay.datasets.public_logs.download import Download
from bfreplay.datasets.public_logs.entries import LogFile, NotSuppliedError, PublicLog, headline, public_log
from bfreplay.errors import BfreplayError, InputError, OutputExistsError
from bfreplay.outputs import make_folder, remove_empty, written_whole

FOLDER_VARIABLE = "BFREPLAY_DATA"

Progress: TypeAlias = Callable[[LogFile, int], None]
"""Called with a file and the number of bytes received."""


def data_folder() -> Path:
    """Return the folder of fetched logs: ``$BFREPLAY_DATA``, or the user's cache folder of this system."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("bfreplay"))


def is_right(file: LogFile, folder: Path) -> bool:
    """Return whether ``file`` is in ``folder`` under its name, with the right content."""
    path = folder / file.name
    return path.is_file() and download.in_its_form(file, path)


def fetch_state(log: PublicLog, folder: Path) -> Literal["yes", "no", "in part", "wrong file"]:
    """Return the state of ``log`` in ``folder``; hashes are checked."""
    states = [is_right(file, folder) for file in log.files]
    if all(states):
        return "yes"
    if any(not right and (folder / file.name).exists() for file, right in zip(log.files, states, strict=True)):
        return "wrong file"
    return "in part" if any(states) else "no"


def fetch(
    log: str | PublicLog,
    folder: Path | str | None = None,
    *,
    source: Path | str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Fetch one log; files that exist with the right content are not fetched again.

    Parameters
    ----------
    log
        A name of the catalogue, or an entry.
    folder
        Target folder, by default ``data_folder()``; created if missing.
    source
        A folder that holds the files under any names; nothing is downloaded.
    overwrite
        Replace a file of the right name and wrong content.
    progress
        Called while files are downloaded.

    Returns
    -------
    tuple of Path
        Its files, in the order of the catalogue.

    Raises
    ------
    InputError
        No such log, or not in ``source``.
    OutputExistsError
        A file of that name has other content, and ``overwrite`` is false.
    DownloadError
        No address gave the right bytes. Nothing of this log was written.
    """
    entry = public_log(log) if isinstance(log, str) else log
    return fetch_all([entry], folder, source=source, overwrite=overwrite, progress=progress)[entry.name]


def fetch_all(
    logs: Sequence[str | PublicLog],
    folder: Path | str | None = None,
    *,
    source: Path | str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, tuple[Path, ...]]:
    """Fetch several logs, as ``fetch``; a failure does not stop the others.

    Returns
    -------
    dict
        Name to files.

    Raises
    ------
    InputError, OutputExistsError, DownloadError
        As ``fetch``. Names and existing files are checked before anything is written; failures are reported together
        at the end.
    """
    entries = {log.name: log for log in (public_log(log) if isinstance(log, str) else log for log in logs)}
    target = data_folder() if folder is None else Path(folder)
    supply: Download | LocalFolder = Download(progress) if source is None else LocalFolder(Path(source))
    missing = {log.name: [file for file in log.files if not is_right(file, target)] for log in entries.values()}
    if not overwrite:
        _refuse_wrong_files([target / file.name for group in missing.values() for file in group])
    failures = []
    for log in entries.values():
        try:
            _place(missing[log.name], target, supply, overwrite=overwrite)
        except NotSuppliedError as failure:
            failures.append((log, failure))
    if failures:
        raise supply.error(failures, asked=len(entries))
    return {log.name: tuple(target / file.name for file in log.files) for log in entries.values()}


def _refuse_wrong_files(paths: Sequence[Path]) -> None:
    existing = [path for path in paths if path.exists()]
    if existing:
        lines = [f"  {path}{f' (sha256 {download.sha256(path)})' if path.is_file() else ''}" for path in existing]
        raise OutputExistsError(
            "\n".join(["files exist with other content than published, so nothing was fetched:", *lines])
            + "\n  fix:      move it away, or replace it with --force"
        )


def _place(files: Sequence[LogFile], target: Path, supply: Download | LocalFolder, *, overwrite: bool) -> None:
    if not files:
        return
    fresh = make_folder(target)
    try:
        with written_whole([target / file.name for file in files], overwrite=overwrite) as parts:
            for file, part in zip(files, parts, strict=True):
                supply.bring(file, part)
    except BaseException:  # Ctrl-C too leaves no empty folder behind
        remove_empty(fresh)
        raise


class LocalFolder:
    """Folder that finds files by name, here or at their addresses, compressed or not; then by hash.

    Parameters
    ----------
    folder
        The folder, without its subfolders.

    Raises
    ------
    InputError
        It is not a folder.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError("the folder to take files from is not there", value=str(folder), expected="a folder")
        self._folder = folder

    def bring(self, file: LogFile, path: Path) -> None:
        """Copy ``file`` to ``path``. Raises ``NotSuppliedError`` if nothing in the folder holds it."""
        others = []
        for found in self._candidates(file):
            form = download.find_form(file, found)
            if form is not None:
                shutil.copyfile(found, path)
                download.bring_into_form(file, path, form)
                return
            others.append(f"{found.name} in it is another file (sha256 {download.sha256(found)})")
        wanted = f"neither a file of its name nor one with sha256 {file.sha256} or {file.content_sha256}"
        where = [f"available at {address}" for address in file.addresses] or [f"{file.about}" or "see its page"]
        raise NotSuppliedError(file, [*others, wanted, *where])

    def error(self, failures: Sequence[tuple[PublicLog, NotSuppliedError]], asked: int) -> BfreplayError:
        """Return one error for all files that are not in the folder."""
        return InputError(
            headline(failures, asked),
            file=self._folder,
            fix="put the files into the folder, under their own names or any other",
        )

    def _candidates(self, file: LogFile) -> Iterator[Path]:
        """Yield files with a matching name, then files with a matching size."""
        present = {
            each.name: each for each in sorted(self._folder.iterdir()) if each.is_file() and os.access(each, os.R_OK)
        }
        for name in _names(file):
            if name in present:
                yield present.pop(name)
        yield from (each for each in present.values() if download.could_hold(file, each))


def _names(file: LogFile) -> list[str]:
    """Return its names here or at its addresses, with and without ``.gz``, each once."""
    names = [file.name, *(PurePosixPath(address).name for address in file.addresses)]
    both = [other for name in names for other in (name, name.removesuffix(".gz"), f"{name.removesuffix('.gz')}.gz")]
    return list(dict.fromkeys(both))
