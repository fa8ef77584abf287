"""A small synthetic log and job set that ship with bfreplay, to try everything without any data.

256 nodes for 4 days and 40 jobs, both of seed 0. ``python benchmarks/synthetic_sample.py`` makes the files again.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

_FOLDER = Path(str(files(__name__)))  # the wheel is unpacked on installation, so that resources are files


def sample_events_path() -> Path:
    """Return the path of the bundled log: 256 synthetic nodes, four days."""
    return _FOLDER / "sample-events.parquet"


def sample_jobs_path() -> Path:
    """Return the path of the bundled job set: 40 made-up elastic jobs with times relative to the start of the log."""
    return _FOLDER / "sample-jobs.csv"
