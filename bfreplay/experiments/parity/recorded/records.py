"""Recorded results on disk."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from bfreplay.errors import InputError


@cache
def read_record(path: Path) -> Any:
    """The content of a JSON file, compressed or not, read once; not to be changed.

    Raises
    ------
    InputError
        It is no JSON file.
    """
    try:
        content = path.read_bytes()
        return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"this record cannot be read: {error}", file=path, expected="JSON, perhaps gzipped") from error


def golden(shared: Path, name: str) -> Any:
    """The record ``golden/NAME.json.gz``."""
    return read_record(shared / "golden" / f"{name}.json.gz")
