"""Writes output files whole or not at all, and removes leftovers of killed processes.

Temporary names have the writing process: ``.NAME.part-MACHINE-PROCESS-STARTED`` for a file, ``.NAME.partial-...`` for a
folder, ``.NAME.replaced-...`` for a folder that keeps the earlier ``NAME`` while it is replaced.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from bfreplay.errors import InputError, OutputExistsError

_LOG = logging.getLogger(__name__)
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of writes beyond the space of a disk, a quota or a limit."""
_LONGEST_NAME = 200
"""Largest part of a name in its temporary name, in bytes; file systems allow 255 in all."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STARTED_AT = 19
"""Position of the start time after the name of the process in ``/proc/PID/stat``."""


@contextmanager
def written_whole(files: Sequence[Path], overwrite: bool) -> Iterator[list[Path]]:
    """Yield temporary files to write, renamed to ``files`` when the block succeeds.

    Raises
    ------
    OutputExistsError
        A file exists and ``overwrite`` is false.
    InputError
        The folder does not exist, or is not writable.
    OSError
        Writing fails, for example on a full disk; the error names the file.
    """
    for file in files:
        remove_leftovers(file)
    with _rename_when_done(files, overwrite) as temporary:
        yield temporary


@contextmanager
def _rename_when_done(files: Sequence[Path], overwrite: bool) -> Iterator[list[Path]]:
    for file in files:
        folder = str(file.parent)
        if not _is_folder(file.parent):
            problem = "the folder of the output does not exist"
            raise InputError(problem, file=file, value=folder, fix="make the folder first")
        if not os.access(file.parent, os.W_OK | os.X_OK):
            remedy = "choose another folder, or change its mode: chmod u+wx FOLDER"
            raise InputError("the folder of the output is not writable", file=file, value=folder, fix=remedy)
        if file.exists() and not overwrite:
            raise OutputExistsError(f"{file} exists already; choose another name, or overwrite it")
    temporary = [file.with_name(temporary_name(file.name, "part")) for file in files]
    try:
        with naming(", ".join(map(str, files))):
            yield temporary
        for temporary_file, file in zip(temporary, files, strict=True):
            temporary_file.replace(file)
    finally:
        for temporary_file in temporary:
            temporary_file.unlink(missing_ok=True)


def is_there(file: Path) -> bool:
    """Return whether a file exists; ``InputError`` for an impossible name."""
    try:
        return file.exists()
    except (OSError, ValueError) as error:  # too long, or with a null character
        raise InputError(f"this name is impossible: {error}", file=file, fix="choose another name") from error


def write_whole(file: Path, text: str) -> None:
    """Write or replace one text file in UTF-8. Raises as ``written_whole``.

    Does not look for leftovers, which the maker of a folder of results removes once for its many files.
    """
    with _rename_when_done([file], overwrite=True) as (temporary_file,):
        temporary_file.write_text(text, encoding="utf-8")


@contextmanager
def naming(output: Path | str) -> Iterator[None]:
    """Name ``output`` in errors of writes without a file name, such as on a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and (error.errno in WRITE_ERRORS or type(error) is OSError):
            error.filename = str(output)
        raise


def temporary_name(name: str, kind: str) -> str:
    """Name to use while ``name`` is being written; ``kind`` is part, partial or replaced (see the module)."""
    return f".{_shorten(name)}.{kind}-{_machine()}-{os.getpid()}-{_state_and_start(os.getpid())[1]}"


def _shorten(name: str) -> str:
    """``name``, or the start of a long one with a digest, so that long names with the same start remain distinct."""
    name_bytes = os.fsencode(name)
    if len(name_bytes) <= _LONGEST_NAME:
        return name
    return f"{name_bytes[: _LONGEST_NAME - 9].decode(errors='ignore')}-{hashlib.sha256(name_bytes).hexdigest()[:8]}"


def scratch_prefix(purpose: str) -> str:
    """Return a prefix for temporary folders of the system, after removing those of killed processes."""
    folder_name = f"bfreplay-{purpose}"
    remove_leftovers(Path(tempfile.gettempdir()) / folder_name)
    return f"{temporary_name(folder_name, 'partial')}-"


def remove_leftovers(target: Path) -> None:
    """Remove leftovers of killed processes that wrote ``target``, and restore an earlier folder that they moved aside.

    Files of living processes stay, as do those of another machine or container, which a log message names.
    """
    if not (os.access(target.parent, os.R_OK | os.W_OK | os.X_OK) and target.parent.is_dir()):
        return  # no leftovers possible
    of_target = re.compile(
        rf"\.{re.escape(_shorten(target.name))}\.(part|partial|replaced)-(\w+)(?:-(\d{{1,9}})-(\d+)\b.*)?"
    )
    names = os.listdir(target.parent)  # noqa: PTH208 - fast in folders of many runs
    for match in filter(None, map(of_target.fullmatch, sorted(names))):
        with suppress(FileNotFoundError):  # another process was faster
            _remove_leftover(target, target.parent / match[0], *match.groups())


def _remove_leftover(target: Path, path: Path, kind: str, machine: str, process: str | None, start_ticks: str) -> None:
    if path.lstat().st_uid != os.geteuid():
        return
    if machine != _machine() or process is None:
        _LOG.warning(
            "Note: %s was left by another machine, by another container, before a restart, or by an earlier version, "
            "unless it is being written now. If it is not, %s.",
            path,
            "move what is in it back" if kind == "replaced" else "remove it",
        )
    elif not _is_alive(int(process), int(start_ticks)):
        if (path / target.name).is_dir() and not target.exists():  # killed between the two renames
            (path / target.name).rename(target)
            _LOG.warning("Note: %s was restored: a killed process had moved it aside.", target)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)  # another process may be removing it as well
        else:
            path.unlink(missing_ok=True)


def _is_alive(process: int, start_ticks: int) -> bool:
    """Return whether a process of this machine still runs; the start time tells it from a later one."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError):  # a process of another user did not write our file
        return False
    state, begin_ticks = _state_and_start(process)
    return state not in ("Z", "X") and begin_ticks == start_ticks


def _state_and_start(process: int) -> tuple[str, int]:
    """Return state letter and start time in clock ticks since boot; ``("", 0)`` without /proc."""
    try:
        behind_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return behind_name[0], int(behind_name[_STARTED_AT])


def _machine() -> str:
    """Return a digest of the machine's name, its boot and the container, the scope of process numbers."""
    namespace = Path("/proc/self/ns/pid")
    container = str(namespace.readlink()) if namespace.is_symlink() else ""
    boot_id = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""  # two machines may have the same name
    return hashlib.sha256(f"{platform.node()} {boot_id} {container}".encode()).hexdigest()[:8]


def make_folder(folder: Path) -> list[Path]:
    """Make a folder with its parents, and return the new ones, innermost first.

    Raises
    ------
    OSError
        It cannot be made; no new folder is left.
    """
    fresh = list(takewhile(lambda parent: not parent.exists(), (folder, *folder.parents)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        remove_empty(fresh)
        raise
    return fresh


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove the folders that ``make_folder`` made, as far as they are empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except PermissionError:  # of a folder above it
        return True
