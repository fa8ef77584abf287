"""A call in a process of its own: what it refuses, and how much memory it takes until then."""

import json
import subprocess
import sys
from dataclasses import dataclass

_CODE = """
import importlib, json, resource, sys
from pathlib import Path
from bfreplay.errors import InputError

module, function, *arguments = sys.argv[1:]
call = getattr(importlib.import_module(module), function)
import pyarrow.csv, pyarrow.parquet
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
try:
    call(*map(Path, arguments))
except InputError as error:
    found = {key: str(getattr(error, key)) for key in ("problem", "file", "row", "expected", "fix")}
    print(json.dumps([found, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024]))
"""
MOST_MB = 300


@dataclass(frozen=True)
class Refusal:
    problem: str
    file: str
    row: str
    expected: str
    fix: str


def refusal_of(function, *arguments):
    """The ``InputError`` of ``module:function``; asserts that it comes, and before 300 MB more are taken."""
    command = [sys.executable, "-c", _CODE, *function.split(":"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    assert done.stdout, "it was not refused"
    found, taken_mb = json.loads(done.stdout)
    assert taken_mb < MOST_MB
    return Refusal(**found)
