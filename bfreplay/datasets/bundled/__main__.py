"""Make the bundled files again: ``python -m bfreplay.datasets.bundled [FOLDER]``."""

from __future__ import annotations

import sys
from pathlib import Path

from bfreplay.datasets import bundled
from bfreplay.datasets.jobs.load import write_jobs
from bfreplay.datasets.log.load import write_events


def main(arguments: list[str]) -> None:
    """Write both files into the given folder, or over those of the package."""
    events_path, jobs_path = bundled.sample_events_path(), bundled.sample_jobs_path()
    if arguments:
        folder = Path(arguments[0])
        events_path, jobs_path = folder / events_path.name, folder / jobs_path.name
    write_events(bundled.make_sample_events(), events_path, overwrite=True)
    write_jobs(bundled.make_sample_jobs(), jobs_path, overwrite=True)
    for path in (events_path, jobs_path):
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
