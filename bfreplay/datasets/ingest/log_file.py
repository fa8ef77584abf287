"""Log files, plain or compressed, alone, in folders, in tar or zip archives, read as streams."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BufferedReader, FileIO
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast

from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.documents import LONGEST_LINE, ZIP, endless_line, other_kind, unpacked_limit
from bfreplay.errors import InputError
from bfreplay.outputs import WRITE_ERRORS, naming, scratch_prefix

HEAD_BYTES = 65_536
JOINED_ROWS = "several rows on one line: a file without a line end at its end was joined to another"
BARE_RETURNS = "lines end in a carriage return alone, or a cell has one: each was taken as the end of a line"
AS_READ = "all rows of such lines were read as others are"
"""Reason that neither changes the idle nodes."""
_BUFFER = 1 << 20
_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_TAR_MAGIC_AT = 257
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, tarfile.TarError)

Progress = Callable[[int], None]


class LogFile:
    """File of a log, compressed or not, read as often as wanted.

    Parameters
    ----------
    path
        The file on disk.
    name
        Name in messages: the path as given; for a member of an archive ``"archive.tar:member"``.
    progress
        Called with the bytes (on disk) read since the last call.
    is_named
        True if the user named this file, false if it lies in a named folder or archive.

    Attributes
    ----------
    has_bare_returns
        Whether a carriage return without a line feed was taken as the end of a line, as far as it was read.
    joined_at
        Numbers of the lines that were cut into several records.
    """

    def __init__(
        self, path: Path, name: str | None = None, progress: Progress | None = None, is_named: bool = True
    ) -> None:
        self.is_named = is_named
        self.path = path
        self.name = str(path) if name is None else name
        self._progress = progress
        self._head: bytes | None = None
        self.has_bare_returns = False
        self.joined_at: list[int] = []

    def __repr__(self) -> str:
        return f"<LogFile {self.name}>"

    @property
    def short_name(self) -> str:
        """Name in messages, without folders."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.path.stat().st_size

    def head(self) -> bytes:
        """Return the first bytes of the content, decompressed: at most 64 KiB."""
        if self._head is None:
            with self._open(None) as stream:
                self._head = self._guard(stream.read, HEAD_BYTES)
        return self._head

    def head_lines(self) -> list[str]:
        """Return the first lines, as ``lines``; the last one only if it is whole."""
        head_bytes = self.head()
        head_lines = _with_line_feeds(head_bytes).decode("utf-8", "surrogateescape").split("\n")
        if head_lines and (not head_lines[-1] or (len(head_bytes) == HEAD_BYTES and len(head_lines) > 1)):
            head_lines.pop()
        return head_lines

    def first_rows(self, most: int | None = None) -> list[str]:
        """Return those of the first (``most``) lines that are not blank."""
        return [line_text for line_text in self.head_lines()[:most] if line_text.strip()]

    @contextmanager
    def binary(self) -> Iterator[IO[bytes]]:
        """Open the content, decompressed, to be read only. A cut or damaged file raises ``InputError`` on reading."""
        with self._open(self._progress) as stream:
            yield cast(IO[bytes], SimpleNamespace(read=partial(self._guard, stream.read)))

    def lines(self, record_start: re.Pattern[str] | None = None) -> Iterator[tuple[int, str]]:
        """Yield line number (from 1) and line without its end (LF, CR LF or CR); other bytes than UTF-8 as surrogates.

        Raises
        ------
        InputError
            The file is cut or damaged, or a line is longer than 16 MiB.
        """
        return ((line_number, line_text) for line_number, line_text, _ in self.lines_with_ends(record_start))

    def blocks(self, block_size: int = 8 * _BUFFER) -> Iterator[bytes]:
        """Yield whole lines of the content with line feeds at their ends, about ``block_size`` bytes at a time."""
        with self._open(self._progress) as stream:
            partial_line = returns = b""
            while True:
                read = self._guard(stream.read, block_size)
                byte_block = returns + read
                if not byte_block:
                    break
                returns = byte_block[len(byte_block.rstrip(b"\r")) :] if read else b""  # a line feed may follow
                byte_block = byte_block[: len(byte_block) - len(returns)]
                if b"\r" in byte_block:
                    self.has_bare_returns |= _BARE_RETURN.search(byte_block) is not None
                    byte_block = _with_line_feeds(byte_block)
                line_end = byte_block.rfind(b"\n") + 1
                if line_end:
                    yield partial_line + byte_block[:line_end]
                    partial_line = byte_block[line_end:]
                elif len(partial_line) + len(byte_block) > LONGEST_LINE:
                    raise endless_line(self.name, partial_line + byte_block[:60])
                else:
                    partial_line += byte_block
            if partial_line:
                yield partial_line

    def lines_with_ends(self, record_start: re.Pattern[str] | None = None) -> Iterator[tuple[int, str, bool]]:
        """Yield lines as ``lines``, and whether each has its end: the last one may have been cut.

        A record in which ``record_start`` matches again is cut there, and noted.
        """
        if record_start is not None:
            for line_number, line_text, is_whole in self.lines_with_ends():
                starts = [match.start() for match in record_start.finditer(line_text)]
                cuts = starts if starts[:1] == [0] else [0]
                if len(cuts) > 1:
                    self.joined_at.append(line_number)
                for record_begin, record_end in pairwise((*cuts, len(line_text))):
                    yield line_number, line_text[record_begin:record_end], is_whole or record_end < len(line_text)
            return
        line_number = 0
        for byte_block in self.blocks():
            *whole_lines, remainder = byte_block.decode("utf-8", "surrogateescape").split("\n")
            for line_text in whole_lines:
                line_number += 1
                yield line_number, line_text, True
            if remainder:
                yield line_number + 1, remainder, False

    def error(self, problem: str, **parts: Any) -> InputError:
        """Return an error about this file; ``parts`` as in ``InputError``."""
        return InputError(problem, file=self.name, **parts)

    def wrong_start(self, problem: str, *, value: str | None = None, expected: str, fix: str) -> InputError:
        """Return the error for a file with a wrong beginning; ``value`` ``None``: its first line."""
        value = (self.head_lines() or [""])[0] if value is None else value
        return self.error(problem, row="line 1", value=value, expected=expected, fix=fix)

    def _open(self, progress: Progress | None) -> IO[bytes]:
        raw_stream = BufferedReader(_Counted(self.path, progress), _BUFFER)
        first_bytes = raw_stream.peek(8)
        if first_bytes.startswith(_GZIP):
            return cast(IO[bytes], BufferedReader(gzip.GzipFile(fileobj=raw_stream), _BUFFER))
        if first_bytes.startswith(_BZIP2):
            return cast(IO[bytes], BufferedReader(bz2.BZ2File(raw_stream), _BUFFER))
        if first_bytes.startswith(_XZ):
            return cast(IO[bytes], BufferedReader(lzma.LZMAFile(raw_stream), _BUFFER))
        if first_bytes.startswith(_ZSTD):
            import pyarrow as pa

            return cast(IO[bytes], BufferedReader(pa.CompressedInputStream(raw_stream, "zstd"), _BUFFER))
        return cast(IO[bytes], raw_stream)

    def _guard(self, read: Callable[[int], bytes], size: int = -1) -> bytes:
        try:
            return read(size)
        except _DAMAGED as error:
            raise self._damage_error(error) from error

    def _damage_error(self, error: BaseException) -> InputError:
        return self.error(
            f"the file is cut or damaged: {' '.join(str(error).split()) or type(error).__name__}",
            expected="a whole file, plain or compressed with gzip, bzip2, xz or zstd",
            fix="copy or compress the file again",
        )


def _with_line_feeds(content: bytes) -> bytes:
    """Return text with LF at the end of each line; before an LF any number of CR belong to the same end."""
    return content if b"\r" not in content else _ENDS.sub(b"\n", content.replace(b"\r\n", b"\n"))


_BARE_RETURN = re.compile(rb"\r(?!\r*\n)")
_ENDS = re.compile(rb"\r+\n|\r")


class _Counted(FileIO):
    """Binary stream that reports how much has been read."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        super().__init__(path)
        self._progress = progress

    def readinto(self, buffer: Any) -> int:
        n_bytes = super().readinto(buffer) or 0
        if self._progress is not None and n_bytes:
            self._progress(n_bytes)
        return n_bytes


class OpenedLog(ExitStack):
    """Files behind the given paths: files as they are, folders as their files, archives as their members.

    Use as a context: members of archives lie in temporary folders until its end.

    Attributes
    ----------
    files
        In the order given; files of a folder or an archive by name.
    sources
        The named files on disk, or those in named folders, with their digests.
    n_bytes
        Total size of ``files`` on reading.
    """

    def __init__(self, paths: Sequence[Path], progress: Progress | None = None) -> None:
        super().__init__()
        self._progress = progress
        on_disk = [(file, not path.is_dir()) for path in paths for file in _files_of(path)]
        self.sources = tuple(SourceFile.of(file) for file, _ in on_disk)
        try:
            self.files = [member for file, is_named in on_disk for member in self._members(file, is_named)]
        except BaseException:
            self.close()
            raise
        if not self.files:
            file, expected = on_disk[0][0], "files of a log"
            raise InputError("the archive has no files", file=file, expected=expected, fix="check the archive")
        self.n_bytes = sum(file.size for file in self.files)

    def _members(self, path: Path, is_named: bool) -> list[LogFile]:
        log_file = LogFile(path, progress=self._progress, is_named=is_named)
        if path.stat().st_size == 0:
            raise InputError(
                "the file is empty",
                file=path,
                expected="a log",
                fix="check the command that wrote it (sacct writes nothing if it does not know a column)",
            )
        file_kind = other_kind(log_file.head())
        if file_kind is not None and file_kind[0] == ZIP:
            archive_members = _zip_members(log_file)
        elif log_file.head()[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar":
            archive_members = _tar_members(log_file)
        else:
            return [log_file]
        folder = Path(self.enter_context(tempfile.TemporaryDirectory(prefix=scratch_prefix("unpacked"))))
        log_files: list[LogFile] = []
        most_bytes = n_remaining = unpacked_limit(path)
        try:
            for member_name, member_size, content in archive_members:
                if Path(member_name).name.startswith("."):
                    continue
                n_remaining -= member_size
                if n_remaining < 0:
                    raise InputError(
                        "the archive claims to unpack to far more than its size",
                        file=path,
                        value=f"{member_name}: {member_size:,} bytes",
                        expected=f"at most {most_bytes:,} bytes in all, from the size of the archive",
                        fix="do not trust this file; or unpack it yourself, and give the folder",
                    )
                # our own file names: an archive must not choose paths on this disk
                member_path = folder / f"{len(log_files)}"
                with naming(member_path), member_path.open("wb") as target:
                    shutil.copyfileobj(content, target)
                log_files.append(LogFile(member_path, f"{path}:{member_name}", self._progress, is_named=False))
        except (*_DAMAGED, zipfile.BadZipFile, RuntimeError) as error:  # zipfile: encrypted, or an unknown compression
            if isinstance(error, OSError) and error.errno in WRITE_ERRORS:
                raise
            raise log_file._damage_error(error) from error
        return sorted(log_files, key=lambda member: member.name)


def _tar_members(log_file: LogFile) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield name, claimed size and content of each non-empty file in a tar archive."""
    with LogFile(log_file.path).binary() as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for tar_member in archive:
            content = archive.extractfile(tar_member) if tar_member.isfile() and tar_member.size else None
            if content is not None:
                yield tar_member.name, tar_member.size, content


def _zip_members(log_file: LogFile) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield name, claimed size and content of each non-empty file in a zip archive."""
    with zipfile.ZipFile(log_file.path) as archive:
        for zip_member in archive.infolist():
            if zip_member.file_size:
                with archive.open(zip_member) as content:
                    yield zip_member.filename, zip_member.file_size, content


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        check_is_file(path)
        return [path]
    file_paths = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    file_paths = [file for file in file_paths if file.stat().st_size]
    if not file_paths:
        expected = "a folder with log files"
        raise InputError("this folder has no files", file=path, expected=expected, fix="check the path")
    for file in file_paths:
        check_is_file(file)
    return file_paths
