"""Output files that are complete or not there at all, and removal of what killed processes left of them.

Temporary names say which process writes: ``.NAME.part-MACHINE-PROCESS-STARTED`` for a file, ``.NAME.partial-...`` for a
folder, ``.NAME.replaced-...`` for a folder that holds the earlier ``NAME`` while a new one takes its place.
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
"""Error numbers of writes that a disk, a quota or a limit has no room for."""
_LONGEST_NAME = 200
"""Bytes of a name that its temporary name repeats; file systems allow 255 with what is added."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STARTED_AT = 19
"""Position of the start time behind the name of the process in ``/proc/PID/stat``."""


@contextmanager
def written_whole(files: Sequence[Path], overwrite: bool) -> Iterator[list[Path]]:
    """Temporary names to write to, which become ``files`` when the block ends without an error.

    Raises
    ------
    OutputExistsError
        One of the files is there and ``overwrite`` is false.
    InputError
        The folder is not there, or may not be written to.
    OSError
        The files cannot be written, because the disk is full for one; it names the file.
    """
    for file in files:
        remove_leftovers(file)
    with _written_whole(files, overwrite) as temporary:
        yield temporary


@contextmanager
def _written_whole(files: Sequence[Path], overwrite: bool) -> Iterator[list[Path]]:
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
    temporary = [file.with_name(temporary_name(file.name, "part")) for file in files]
    try:
        with naming(", ".join(map(str, files))):
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
    """Write one text file, in UTF-8; one that is there is replaced. Raises as ``written_whole``.

    For the many files of a folder of results: who makes the folder removes leftovers, no look at it for each file.
    """
    with _written_whole([file], overwrite=True) as (part,):
        part.write_text(text, encoding="utf-8")


@contextmanager
def naming(output: Path | str) -> Iterator[None]:
    """Let failed writes that name no file, such as those to a full disk, name ``output``."""
    try:
        yield
    except OSError as error:
        if error.filename is None and (error.errno in WRITE_ERRORS or type(error) is OSError):
            error.filename = str(output)
        raise


def temporary_name(name: str, kind: str) -> str:
    """Name to use while ``name`` is being written; ``kind`` is part, partial or replaced (see the module)."""
    return f".{_shortened(name)}.{kind}-{_machine()}-{os.getpid()}-{_state_and_start(os.getpid())[1]}"


def _shortened(name: str) -> str:
    """``name``, or the start of a long one with a digest, so that long names with the same start remain distinct."""
    encoded = os.fsencode(name)
    if len(encoded) <= _LONGEST_NAME:
        return name
    return f"{encoded[: _LONGEST_NAME - 9].decode(errors='ignore')}-{hashlib.sha256(encoded).hexdigest()[:8]}"


def scratch_prefix(purpose: str) -> str:
    """Prefix for a temporary folder in the system's place for them; removes those of killed processes first."""
    name = f"bfreplay-{purpose}"
    remove_leftovers(Path(tempfile.gettempdir()) / name)
    return f"{temporary_name(name, 'partial')}-"


def remove_leftovers(target: Path) -> None:
    """Remove what killed processes left when they wrote ``target``; an earlier folder that they moved aside comes back.

    What a living process is writing stays. So does what this machine cannot judge, because another one (or another
    container) writes it: a message of the log names it.
    """
    if not (os.access(target.parent, os.R_OK | os.W_OK | os.X_OK) and target.parent.is_dir()):
        return  # nothing of ours can lie there
    of_target = re.compile(
        rf"\.{re.escape(_shortened(target.name))}\.(part|partial|replaced)-(\w+)(?:-(\d{{1,9}})-(\d+)\b.*)?"
    )
    names = os.listdir(target.parent)  # noqa: PTH208 - fast in folders of many runs
    for match in filter(None, map(of_target.fullmatch, sorted(names))):
        with suppress(FileNotFoundError):  # another process was faster
            _remove_leftover(target, target.parent / match[0], *match.groups())


def _remove_leftover(target: Path, path: Path, kind: str, machine: str, process: str | None, started: str) -> None:
    if path.lstat().st_uid != os.geteuid():
        return
    if machine != _machine() or process is None:
        _LOG.warning(
            "Note: %s was left by another machine, by another container, before a restart, or by an earlier version, "
            "unless it is being written now. If it is not, %s.", path,
            "move what is in it back" if kind == "replaced" else "remove it",
        )  # fmt: skip
    elif not _is_alive(int(process), int(started)):
        if (path / target.name).is_dir() and not target.exists():  # killed between the two renames
            (path / target.name).rename(target)
            _LOG.warning("Note: %s is back: a killed process had moved it aside.", target)
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)  # another process may be removing it as well
    else:
        path.unlink(missing_ok=True)


def _is_alive(process: int, started: int) -> bool:
    """Whether this process of this machine still runs; a later one that has its number started at another time."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError):  # another user's is not the one that wrote our file
        return False
    state, begun = _state_and_start(process)
    return state not in ("Z", "X") and begun == started


def _state_and_start(process: int) -> tuple[str, int]:
    """State letter and start time, in clock ticks since the machine started; ``("", 0)`` without /proc."""
    try:
        behind_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return behind_name[0], int(behind_name[_STARTED_AT])


def _machine() -> str:
    """Digest of the machine's name, its boot and the container, in which process numbers count."""
    namespace = Path("/proc/self/ns/pid")
    container = str(namespace.readlink()) if namespace.is_symlink() else ""
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""  # two machines may have the same name
    return hashlib.sha256(f"{platform.node()} {boot} {container}".encode()).hexdigest()[:8]


def make_folder(folder: Path) -> list[Path]:
    """Make it with its parents; returns those that were not there, innermost first.

    Raises
    ------
    OSError
        It cannot be made; nothing is left of it.
    """
    fresh = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
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


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except PermissionError:  # of a folder above it
        return True
