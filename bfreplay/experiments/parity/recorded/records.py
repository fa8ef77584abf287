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
    """Read a JSON file, compressed or not, once; the result must not be changed.

    Raises
    ------
    InputError
        Not a JSON file.
    """
    try:
        content = path.read_bytes()
        return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"this record cannot be read: {error}", file=path, expected="JSON, perhaps gzipped") from error


def golden(shared: Path, name: str) -> Any:
    """Read the record ``golden/NAME.json.gz``."""
    return read_record(shared / "golden" / f"{name}.json.gz")
