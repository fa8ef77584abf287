"""Whether a file is the one the catalogue means, and how it is brought into the form that its name promises."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import zlib
from pathlib import Path
from typing import Literal

from bfreplay.datasets.public_logs.entries import LogFile

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20

Form = Literal["as it is", "plain", "gzip"]


def sha256(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def recognised(file: LogFile, path: Path) -> Form | None:
    """How the file at ``path`` holds ``file``: byte by byte, or its content plain or compressed; ``None`` if not."""
    size = path.stat().st_size
    if size in (file.bytes, file.content_bytes):
        digest = sha256(path)
        if digest == file.sha256:
            return "as it is"
        if digest == file.content_sha256:
            return "plain"
    if _is_gzip(path) and _unpacked_sha256(path, file.content_bytes) == file.content_sha256:
        return "gzip"
    return None


def could_hold(file: LogFile, path: Path) -> bool:
    """Whether sizes allow it: a quick look before ``recognised``, for folders full of other things."""
    size = path.stat().st_size
    if size in (file.bytes, file.content_bytes):
        return True
    if size < 18 or not _is_gzip(path):
        return False
    with path.open("rb") as stream:
        stream.seek(-4, 2)
        # RFC 1952, section 2.3.1: the last four bytes are the length of the content modulo 2**32
        return int.from_bytes(stream.read(4), "little") == file.content_bytes % 2**32


def in_its_form(file: LogFile, path: Path) -> bool:
    """Whether ``path`` is ``file`` and compressed as its name says."""
    form = recognised(file, path)
    return form == "as it is" or (form == "gzip" and _named_gzip(file))


def bring_into_form(file: LogFile, path: Path, form: Form) -> None:
    """Compress or unpack ``path`` in place if its name asks for the other."""
    if form == "as it is" or (form == "gzip") == _named_gzip(file):
        return
    other = path.with_name(f"{path.name}.form")
    try:
        if form == "plain":
            # no name and no time in the header: the same content gives the same bytes
            with path.open("rb") as source, other.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as target:
                shutil.copyfileobj(source, target, _CHUNK)
        else:
            with gzip.open(path, "rb") as packed, other.open("wb") as plain:
                shutil.copyfileobj(packed, plain, _CHUNK)
        other.replace(path)
    finally:
        other.unlink(missing_ok=True)


def _named_gzip(file: LogFile) -> bool:
    return file.name.endswith(".gz")


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == _GZIP_MAGIC


def _unpacked_sha256(path: Path, length: int) -> str | None:
    """SHA-256 of the content; ``None`` if it is damaged or longer than ``length`` bytes (unpacking stops there)."""
    digest, left = hashlib.sha256(), length
    try:
        with gzip.open(path, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    return None
                digest.update(chunk)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return None
    return digest.hexdigest()
