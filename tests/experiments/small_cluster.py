"""Throughputs of two job types on two node types, a trace of four jobs, and the options of a run on six nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bfreplay.experiments.run_options import RunOptions

THROUGHPUTS = {
    "fast": {"('LM', 1)": {"null": 10.0}, "('LM', 2)": {"null": 16.0}, "('A3C', 1)": {"null": 4.0}},
    "slow": {"('LM', 1)": {"null": 5.0}, "('LM', 2)": {"null": 8.0}, "('A3C', 1)": {"null": 3.0}},
}
# job type, nodes at once, steps, arrival
TRACE = [("LM", 1, 3000, 0), ("LM", 2, 4800, 0), ("A3C", 1, 1200, 60), ("LM", 1, 600, 400)]
CLUSTER = "fast=2,slow=4"


def write_files(folder: Path) -> Path:
    """``throughputs.json`` and ``four.trace``; returns the folder."""
    (folder / "throughputs.json").write_text(json.dumps(THROUGHPUTS))
    lines = (
        "\t".join((kind, "-", "-", "--steps", "0", str(steps), str(gang), "1", "-1", str(arrival)))
        for kind, gang, steps, arrival in TRACE
    )
    (folder / "four.trace").write_text("".join(f"{line}\n" for line in lines))
    return folder


def options(folder: Path, **changed: Any) -> RunOptions:
    """A run of the four jobs on six nodes in rounds of a minute."""
    given = {
        "cluster": CLUSTER,
        "jobs": folder / "four.trace",
        "curves": folder / "throughputs.json",
        "policy": "gavel.max_min_fairness_perf",
        "round": 60,
    }
    return RunOptions(**{**given, **changed})
