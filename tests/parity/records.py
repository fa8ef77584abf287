"""Recorded results on disk."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_record(path: Path) -> Any:
    """Read a JSON file, compressed or not, once; the result must not be changed."""
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def golden(shared: Path, name: str) -> Any:
    """Read the record ``golden/NAME.json.gz``."""
    return read_record(shared / "golden" / f"{name}.json.gz")
