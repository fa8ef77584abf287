"""A small synthetic log and job set that ship with bfreplay, to try everything without any data.

256 nodes for 4 days and 40 jobs, both of seed 0. ``python -m bfreplay.datasets.bundled`` makes the files again.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.synthetic.elastic_jobs import synthetic_jobs
from bfreplay.datasets.synthetic.machine import synthetic_machine
from bfreplay.workload import JobSet

__all__ = ["make_sample_events", "make_sample_jobs", "sample_events_path", "sample_jobs_path"]

_FOLDER = Path(str(files(__name__)))  # the wheel is unpacked on installation, so that resources are files


def sample_events_path() -> Path:
    """Return the path of the bundled log: 256 synthetic nodes, four days."""
    return _FOLDER / "sample-events.parquet"


def sample_jobs_path() -> Path:
    """Return the path of the bundled job set: 40 made-up elastic jobs with times relative to the start of the log."""
    return _FOLDER / "sample-jobs.csv"


def make_sample_events() -> NodeEvents:
    """Generate the bundled log again."""
    return synthetic_machine(n_nodes=256, days=4.0, seed=0)


def make_sample_jobs() -> JobSet:
    """Generate the bundled jobs again."""
    return synthetic_jobs(n_jobs=40, seed=0, days=4.0)
