"""Completion of values, asked for as a shell does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bfreplay.datasets.public_logs.entries import catalogue
from bfreplay.milp.names import BACKENDS
from bfreplay.policies.names import OBJECTIVES, POLICIES

ROOT = Path(__file__).resolve().parents[2]


def completions(words: str, folder: Path, *options: str) -> tuple[list[str], str]:
    """What bash gets for the last of the words, and what Python says on stderr."""
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_BFREPLAY_COMPLETE": "bash_complete"}
    command = [sys.executable, *options, "-c", "from bfreplay.__main__ import main; main()"]
    environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("bfreplay replay sample --policy ", POLICIES.names()),
        ("bfreplay finish sample --policy look", ["look-ahead"]),
        ("bfreplay replay sample --objective ", OBJECTIVES.names()),
        ("bfreplay replay sample --solver ", ["exact", *BACKENDS.names()]),
        ("bfreplay replay sample --formulation counts_", ["counts_sos2", "counts_segments"]),
        ("bfreplay ingest s", ["slurm", "swf", "snapshots"]),
        ("bfreplay datasets fetch ", [log.name for log in catalogue()]),
        ("bfreplay plot idle", ["idle-intervals"]),
    ],
)
def test_values_are_completed_by_their_names(words, names, tmp_path):
    assert completions(words, tmp_path)[0] == [f"plain,{name}" for name in names]


@pytest.mark.parametrize("option", ["--policy", "--objective", "--solver", "--formulation"])
def test_no_completion_imports_what_takes_long(option, tmp_path):
    _, imports = completions(f"bfreplay replay sample {option} ", tmp_path, "-X", "importtime")
    modules = {line.rpartition("|")[2].strip() for line in imports.splitlines()}
    assert "bfreplay.policies.names" in modules
    assert modules & {"numpy", "pandas", "pyarrow", "numba", "matplotlib", "plotly"} == set()
