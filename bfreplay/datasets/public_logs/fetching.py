"""Fetching of public logs into the data folder, each whole or not at all, by pooch or from a folder."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from bfreplay import __version__
from bfreplay.datasets.public_logs.entries import (
    DownloadError,
    LogFile,
    NotSuppliedError,
    PublicLog,
    headline,
    public_log,
)
from bfreplay.errors import BfreplayError, InputError, OutputExistsError
from bfreplay.outputs import make_folder, remove_empty, written_whole
from bfreplay.wording import count

CONNECT_S = 10.0
READ_S = 30.0
_CHUNK = 1 << 16
_SEE_PAGE = "see its page"

# Uncompressed in transit: the announced length is that of the file, so a cut-off transfer is noticed.
_HEADERS = {"User-Agent": f"bfreplay/{__version__}", "Accept-Encoding": "identity"}

_GZIP_MAGIC = b"\x1f\x8b"
_COPY_CHUNK = 1 << 20

Form = Literal["as it is", "plain", "gzip"]


class Download:
    """Downloader that tries the addresses of a file in turn; a host that cannot be reached is tried once.

    Parameters
    ----------
    progress
        Called with the file and the bytes received.
    """

    def __init__(self, progress: Callable[[LogFile, int], None] | None = None) -> None:
        self._progress = progress
        self._unreachable: set[str] = set()

    def obtain(self, log_file: LogFile, file_path: Path) -> None:
        """Download ``log_file`` to ``file_path``. Raises ``NotSuppliedError`` if no address gives the right bytes."""
        reasons = []
        for address in log_file.addresses:
            reason = self._attempt(address, log_file, file_path)
            if reason is None:
                return
            reasons.append(f"{address}\n      {reason}")
        raise NotSuppliedError(log_file, reasons or [f"no address serves it as it is: {log_file.about or _SEE_PAGE}"])

    def error(self, failures: Sequence[tuple[PublicLog, NotSuppliedError]], n_logs: int) -> BfreplayError:
        """Return one error for all failed downloads, with the steps to get the files by hand."""
        names = " ".join(entry.name for entry, _ in failures)
        return DownloadError(
            f"{headline(failures, n_logs)}\n"
            "  fix:      get the files yourself, with a browser or on another machine, put them into a folder, then\n"
            f"            bfreplay datasets fetch {names} --from FOLDER"
        )

    def _attempt(self, address: str, log_file: LogFile, file_path: Path) -> str | None:
        """Download from one address; return the reason for a failure, ``None`` for success."""
        import requests
        from pooch import HTTPDownloader

        host = urlsplit(address).netloc
        if host in self._unreachable:
            return f"not tried: {host} could not be reached"
        watch = _Watch(log_file, file_path, self._progress)
        file_path.unlink(missing_ok=True)
        options = {"chunk_size": _CHUNK, "timeout": (CONNECT_S, READ_S), "headers": _HEADERS}
        try:
            HTTPDownloader(progressbar=watch, **options)(address, str(file_path), None)
        except _TooLongError:
            return f"the download is longer than the log ({count(watch.most, 'byte')}): it is something else"
        except requests.exceptions.HTTPError as error:
            answer = error.response
            return f"the server answers {answer.status_code} {answer.reason}" if answer is not None else str(error)
        except requests.exceptions.RequestException as error:
            if _is_connection_failure(error):
                self._unreachable.add(host)
                return f"{host} cannot be reached: {_why(error)}"
            came = _size(file_path)
            reason = f"the transfer broke off after {count(came, 'byte')}" if came else "nothing came"
            return f"{reason}: {_why(error)}"
        except ValueError as error:  # the length in the answer is not a number
            return f"invalid answer of the server: {error}"
        form = find_form(log_file, file_path)
        if form is None:
            content = f"{count(_size(file_path), 'byte')}, sha256 {sha256(file_path)}"
            return f"the download is another file: {content} instead of {log_file.sha256}"
        convert_form(log_file, file_path, form)
        return None


class _TooLongError(Exception):
    """The download is longer than the log in any form."""


class _Watch:
    """Progress bar for pooch. It measures the file, as pooch counts whole chunks."""

    def __init__(self, log_file: LogFile, path: Path, progress: Callable[[LogFile, int], None] | None) -> None:
        self.total = 0
        self.most = max(log_file.bytes, log_file.content_bytes)
        self._file = log_file
        self._path = path
        self._progress = progress

    def update(self, _: int) -> None:
        size = _size(self._path)
        if size > self.most:
            raise _TooLongError
        if self._progress is not None:
            self._progress(self._file, size)

    def reset(self) -> None:
        """Do nothing: no count is kept."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


def _size(file_path: Path) -> int:
    return file_path.stat().st_size if file_path.exists() else 0


def _root(error: Exception) -> Any:
    """Return the reason of urllib3 that requests has wrapped, if there is one."""
    inner = error.args[0] if error.args else error
    return getattr(inner, "reason", None) or inner


def _is_connection_failure(error: Exception) -> bool:
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError

    return isinstance(_root(error), ConnectTimeoutError | NewConnectionError | ProxyError)


def _why(error: Exception) -> str:
    """Describe the cause in a few words."""
    from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

    root = _root(error)
    if isinstance(root, NameResolutionError):
        return "its name cannot be looked up; is there a network?"
    # in urllib3's classes a refusal is a time-out too
    if isinstance(root, ConnectTimeoutError) and not isinstance(root, NewConnectionError):
        return f"no answer within {CONNECT_S:g} s"
    cause = getattr(root, "__cause__", None)
    reason = getattr(cause, "strerror", None) or (root.args[0] if isinstance(root, Exception) and root.args else root)
    return " ".join(str(reason).split()) or type(error).__name__


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def find_form(log_file: LogFile, path: Path) -> Form | None:
    """Return the form of ``log_file`` at ``path``: identical, or its content plain or compressed; else ``None``."""
    size = path.stat().st_size
    if size in (log_file.bytes, log_file.content_bytes):
        digest = sha256(path)
        if digest == log_file.sha256:
            return "as it is"
        if digest == log_file.content_sha256:
            return "plain"
    if _is_gzip(path) and _sha256_of_content(path, log_file.content_bytes) == log_file.content_sha256:
        return "gzip"
    return None


def may_contain(log_file: LogFile, path: Path) -> bool:
    """Return whether the sizes allow it: a quick check before ``find_form`` in folders with many files."""
    size = path.stat().st_size
    if size in (log_file.bytes, log_file.content_bytes):
        return True
    if size < 18 or not _is_gzip(path):
        return False
    with path.open("rb") as stream:
        stream.seek(-4, 2)
        # RFC 1952, section 2.3.1: the last four bytes are the length of the content modulo 2**32
        return int.from_bytes(stream.read(4), "little") == log_file.content_bytes % 2**32


def convert_form(log_file: LogFile, path: Path, form: Form) -> None:
    """Compress or unpack ``path`` in place if its name asks for the other."""
    if form == "as it is" or (form == "gzip") == _has_gzip_name(log_file):
        return
    temporary = path.with_name(f"{path.name}.form")
    try:
        with path.open("rb") as source, temporary.open("wb") as target:
            if form == "plain":
                # no name and no time in the header: the same content gives the same bytes
                with gzip.GzipFile("", "wb", 9, target, mtime=0) as compressed:
                    shutil.copyfileobj(source, compressed, _COPY_CHUNK)
            else:
                shutil.copyfileobj(gzip.GzipFile(fileobj=source), target, _COPY_CHUNK)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _has_gzip_name(log_file: LogFile) -> bool:
    return log_file.name.endswith(".gz")


def _is_gzip(file_path: Path) -> bool:
    with file_path.open("rb") as stream:
        return stream.read(2) == _GZIP_MAGIC


def _sha256_of_content(file_path: Path, length: int) -> str | None:
    """Return the SHA-256 of the content; ``None`` if damaged or over ``length`` bytes (unpacking stops there)."""
    digest, n_remaining = hashlib.sha256(), length
    try:
        with gzip.open(file_path, "rb") as stream:
            while chunk := stream.read(_COPY_CHUNK):
                n_remaining -= len(chunk)
                if n_remaining < 0:
                    return None
                digest.update(chunk)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return None
    return digest.hexdigest()


FOLDER_VARIABLE = "BFREPLAY_DATA"

Progress: TypeAlias = Callable[[LogFile, int], None]
"""Called with a file and the number of bytes received."""


def data_folder() -> Path:
    """Return the folder of fetched logs: ``$BFREPLAY_DATA``, or the user's cache folder of this system."""
    folder_name = os.environ.get(FOLDER_VARIABLE)
    if folder_name:
        return Path(folder_name).expanduser()
    import pooch

    return Path(pooch.os_cache("bfreplay"))


def is_complete(log_file: LogFile, folder: Path) -> bool:
    """Return whether ``log_file`` is in ``folder`` under its name, with the right content, compressed as it says."""
    file_path = folder / log_file.name
    form = find_form(log_file, file_path) if file_path.is_file() else None
    return form == "as it is" or (form == "gzip" and _has_gzip_name(log_file))


def fetch_state(log: PublicLog, folder: Path) -> Literal["yes", "no", "in part", "wrong file"]:
    """Return the state of ``log`` in ``folder``; hashes are checked."""
    states = [is_complete(log_file, folder) for log_file in log.files]
    if all(states):
        return "yes"
    if any(not right and (folder / log_file.name).exists() for log_file, right in zip(log.files, states, strict=True)):
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
    entries = list(dict.fromkeys(public_log(log) if isinstance(log, str) else log for log in logs))
    target = data_folder() if folder is None else Path(folder)
    supply: Download | LocalFolder = Download(progress) if source is None else LocalFolder(Path(source))
    missing = [[log_file for log_file in entry.files if not is_complete(log_file, target)] for entry in entries]
    existing = [target / log_file.name for files in missing for log_file in files if (target / log_file.name).exists()]
    if existing and not overwrite:
        lines = [f"  {path}{f' (sha256 {sha256(path)})' if path.is_file() else ''}" for path in existing]
        raise OutputExistsError(
            "\n".join(["files exist with other content than published, so nothing was fetched:", *lines])
            + "\n  fix:      move it away, or replace it with --force"
        )
    failures = []
    for entry, files in zip(entries, missing, strict=True):
        try:
            _place(files, target, supply, overwrite=overwrite)
        except NotSuppliedError as failure:
            failures.append((entry, failure))
    if failures:
        raise supply.error(failures, n_logs=len(entries))
    return {entry.name: tuple(target / log_file.name for log_file in entry.files) for entry in entries}


def _place(files: Sequence[LogFile], target: Path, supply: Download | LocalFolder, *, overwrite: bool) -> None:
    if not files:
        return
    fresh = make_folder(target)
    try:
        with written_whole([target / log_file.name for log_file in files], overwrite=overwrite) as parts:
            for log_file, part in zip(files, parts, strict=True):
                supply.obtain(log_file, part)
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

    def obtain(self, log_file: LogFile, file_path: Path) -> None:
        """Copy ``log_file`` to ``file_path``. Raises ``NotSuppliedError`` if nothing in the folder holds it."""
        others = []
        for candidate in self._candidates(log_file):
            form = find_form(log_file, candidate)
            if form is not None:
                shutil.copyfile(candidate, file_path)
                convert_form(log_file, file_path, form)
                return
            others.append(f"{candidate.name} in it is another file (sha256 {sha256(candidate)})")
        missing_text = f"neither a file of its name nor one with sha256 {log_file.sha256} or {log_file.content_sha256}"
        sources = [f"available at {address}" for address in log_file.addresses] or [log_file.about or _SEE_PAGE]
        raise NotSuppliedError(log_file, [*others, missing_text, *sources])

    def error(self, failures: Sequence[tuple[PublicLog, NotSuppliedError]], n_logs: int) -> BfreplayError:
        """Return one error for all files that are not in the folder."""
        fix = "put the files into the folder, under their own names or any other"
        return InputError(headline(failures, n_logs), file=self._folder, fix=fix)

    def _candidates(self, log_file: LogFile) -> Iterator[Path]:
        """Yield files with a matching name, then files with a matching size."""
        paths = (path for path in sorted(self._folder.iterdir()) if path.is_file() and os.access(path, os.R_OK))
        present = {path.name: path for path in paths}
        yield from (present.pop(file_name) for file_name in _names(log_file) if file_name in present)
        yield from (path for path in present.values() if may_contain(log_file, path))


def _names(log_file: LogFile) -> list[str]:
    """Return its names here or at its addresses, with and without ``.gz``, each once."""
    spellings: dict[str, None] = {}
    for file_name in (log_file.name, *(PurePosixPath(address).name for address in log_file.addresses)):
        plain = file_name.removesuffix(".gz")
        spellings |= dict.fromkeys((file_name, plain, f"{plain}.gz"))
    return list(spellings)
