"""Recorded runs of ElasticFlow's published program, and the authors' logs, as the tests need them."""

import csv
import gzip
from pathlib import Path

import pytest

from bfreplay.experiments.parity.recorded.elasticflow import RecordedRun
from bfreplay.systems.elasticflow.published.program import PublishedRun
from bfreplay.systems.elasticflow.published.themis import missing_solver

needs_ecos = pytest.mark.skipif(bool(missing_solver()), reason=missing_solver())
DATA = Path("data/elasticflow")


def published_fig10(shared: Path, schedule: str):
    """Start and end by job, and time and jobs of all GPUs by event, as the authors' logs of Fig. 10 have them."""
    folder = shared / "golden/elasticflow/published_fig10_logs" / schedule
    with (folder / "job.csv").open(newline="") as file:
        ends = {row["job_id"]: [row["start_time"], float(row["end_time"])] for row in csv.DictReader(file)}
    with gzip.open(folder / "scheduling_events.csv.gz", "rt", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return ends, [[float(row[0]), [int(job) if job else None for job in row[1:-1]]] for row in rows]


class Case(RecordedRun):
    """A recorded run, held against a program that the test runs."""

    @property
    def slot_s(self) -> int:
        return self.record["meta"]["scheduling_slot"]

    def ends_of(self, run: PublishedRun, never_set_s: float | None = None):
        """Ends of a run as the golden file has them; a start that is ``never_set_s`` is ``None``."""
        return [
            [
                self.names[end.index],
                None if end.start_s == never_set_s else end.start_s,
                end.end_s,
                end.gpus,
                end.is_met,
            ]
            for end in run.ends
        ]

    def events_of(self, run: PublishedRun):
        """Times and GPU maps of a run."""
        return [[moment.time_s, self.gpu_map(moment)] for moment in run.moments]

    def efficiencies(self, run: PublishedRun):
        """Efficiency of the cluster at every event."""
        return [self.efficiency(moment) for moment in run.moments]
