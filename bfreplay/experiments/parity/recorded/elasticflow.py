"""Recorded runs of ElasticFlow's published programs, and our reruns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import pandas as pd

from bfreplay.experiments.parity.recorded.records import golden
from bfreplay.systems.elasticflow.played_back import Program, trace_jobs
from bfreplay.systems.elasticflow.published.chronus import ChronusRun, chronus
from bfreplay.systems.elasticflow.published.deadline_schedulers import (
    edf,
    edf_with_admission,
    elastic_sharing,
    elasticflow,
)
from bfreplay.systems.elasticflow.published.gandiva import gandiva
from bfreplay.systems.elasticflow.published.program import JobEnd, Moment, PublishedRun, Servers, TraceJob, efficiency
from bfreplay.systems.elasticflow.published.themis import NO_START_S, themis
from bfreplay.systems.elasticflow.published.tiresias import tiresias
from bfreplay.systems.elasticflow.throughputs import Throughputs, read_throughputs
from bfreplay.systems.elasticflow.trace import WHOLE_HOUR_S, read_trace

PROGRAMS: Mapping[str, Program] = {
    "ef-accessctrl": elasticflow,
    "ef": elastic_sharing,
    "edf": edf,
    "edf-accessctrl": edf_with_admission,
    "dlas-gpu": tiresias,
    "gandiva": gandiva,
    "themis": partial(themis, only_contended=False),
}
"""Our program for each schedule, by the published names."""

FILES = ("small_n1g8", "25job_n4g8", "fig10_n16g8", "195job_n16g8")
_EVENT_DIGITS = 9  # of efficiencies


@cache
def tables(shared: Path, gpu_type: str) -> Throughputs:
    """Read the throughputs on GPUs of a type."""
    return read_throughputs(shared / f"data/elasticflow/throughputs_{gpu_type}")


def jobs_of(shared: Path, trace: str, gpu_type: str) -> tuple[list[TraceJob], list[str]]:
    """Read the jobs of a trace in the order of the file, with its times, and their names."""
    path = shared / "data/elasticflow" / trace
    jobs = read_trace(path, tables(shared, gpu_type))
    rows = pd.read_csv(path, dtype={"job_id": str}).rename(columns={"submission_time": "submit_time"})
    start_s = int(rows["submit_time"].min()) // WHOLE_HOUR_S * WHOLE_HOUR_S  # the times of a job set count from it
    of_name = {job.name: trace for job, trace in zip(jobs, trace_jobs(jobs.jobs), strict=True)}
    names = rows["job_id"].tolist()
    shifted = []
    for index, job in enumerate(of_name[name] for name in names):
        deadline_s = job.deadline_s if job.is_best_effort else job.deadline_s + start_s
        shifted.append(replace(job, index=index, submit_s=job.submit_s + start_s, deadline_s=deadline_s))
    return shifted, names


def servers_of(path: Path) -> Servers:
    """Read the cluster of a file of cluster_specs."""
    row = pd.read_csv(path).iloc[0]
    return Servers(int(row["num_switch"] * row["num_node_p_switch"]), int(row["num_gpu_p_node"]))


@dataclass
class RecordedRun:
    """Recorded run of one schedule, and the inputs of the program."""

    name: str
    record: dict[str, Any]
    jobs: list[TraceJob]
    names: list[str]
    servers: Servers

    @classmethod
    def read(cls, shared: Path, file: str, name: str) -> Self:
        """Read the run ``name`` of a file, such as ``n1g8_syn10tight/themis`` of small_n1g8."""
        record = golden(shared, f"elasticflow/{file}")["runs"][name]
        meta = record["meta"]
        jobs, names = jobs_of(shared, meta["trace"], meta["gpu_type"])
        servers = servers_of(shared / "data/elasticflow/cluster_specs" / meta["cluster_spec"])
        return cls(name, record, jobs, names, servers)

    @property
    def schedule(self) -> str:
        """Published name of the schedule."""
        return str(self.record["meta"]["schedule"])

    @cached_property
    def rerun(self) -> PublishedRun:
        """Rerun by our program."""
        return PROGRAMS[self.schedule](self.jobs, self.servers, self.record["meta"]["scheduling_slot"])

    def ends(self) -> dict[str, list[Any]]:
        """Return start, end, GPUs, and whether the end is in time, by job that ended in our run."""
        return {
            self.names[end.index]: [
                None if end.start_s == NO_START_S else end.start_s,
                end.end_s,
                end.gpus,
                self._is_in_time(end),
            ]
            for end in self.rerun.ends
        }

    def _is_in_time(self, end: JobEnd) -> bool | None:
        job = self.jobs[end.index]
        return None if job.is_best_effort else end.end_s <= job.deadline_s

    def recorded_ends(self) -> dict[str, list[Any]]:
        """Return the same of the record."""
        return {row[0]: row[1:] for row in self.record["per_job"]}

    def events(self) -> list[list[Any]]:
        """Return time, GPU map and efficiency of each event of our run."""
        return [
            [each.time_s, self.gpu_map(each), round(self.efficiency(each), _EVENT_DIGITS)]
            for each in self.rerun.moments
        ]

    def efficiency(self, moment: Moment) -> float:
        """Return the efficiency of the cluster, see ``published.program.efficiency``."""
        return efficiency(self.jobs, moment, self.servers.n_gpus)

    def job_of_gpu(self, moment: Moment) -> list[int | None]:
        """Return job, or ``None``, of every GPU."""
        jobs: list[int | None] = [None] * self.servers.n_gpus
        for index, running in moment.running.items():
            for gpu in running.gpus:
                if jobs[gpu] is not None:
                    raise ValueError(f"GPU {gpu} has two jobs at {moment.time_s} s")
                jobs[gpu] = index
        return jobs

    def gpu_map(self, moment: Moment) -> list[list[int | None]]:
        """Return jobs of all GPUs, as pairs of a job, or ``None``, and its number of GPUs in a row."""
        return [[job, len(list(in_a_row))] for job, in_a_row in groupby(self.job_of_gpu(moment))]


def runs(shared: Path, files: Sequence[str] = FILES) -> list[RecordedRun]:
    """Read all recorded runs of these files."""
    return [
        RecordedRun.read(shared, file, name) for file in files for name in golden(shared, f"elasticflow/{file}")["runs"]
    ]


def published_log(shared: Path, schedule: str) -> dict[str, list[Any]]:
    """Read start, end, GPUs of each job from the published log of figure 10."""
    log = pd.read_csv(shared / f"golden/elasticflow/published_fig10_logs/{schedule}/job.csv", dtype={"job_id": str})
    rows = log[["job_id", "start_time", "end_time", "num_gpu"]].itertuples(index=False)
    return {job: [float(start) if start < NO_START_S else None, float(end), gpus] for job, start, end, gpus in rows}


class ChronusRecord(RecordedRun):
    """Recorded run of Chronus, and the inputs of the program."""

    @classmethod
    def load(cls, shared: Path, name: str) -> Self:
        """Read the run ``name``, such as ``fig10/greedy_fallback``."""
        record = chronus_records(shared)[name]
        meta = record["meta"]
        jobs, names = jobs_of(shared, f"traces/{meta['trace']}.csv", meta["gpu_type"])
        return cls(name, record, jobs, names, Servers(meta["nodes"], meta["gpus_per_node"]))

    @cached_property
    def rerun(self) -> ChronusRun:
        """Rerun by our program."""
        meta, slot_s = self.record["meta"], 60 if self.name.endswith("slot60") else 240
        lease_s = meta["lease_term_interval"]
        return chronus(self.jobs, self.servers, meta["check_time_interval"], lease_s=lease_s, slot_s=slot_s)

    def ends(self) -> dict[str, list[Any]]:
        """Return end, GPUs, stops, starts, and whether the deadline was met, by job that ended in our run."""
        stops, starts = self.rerun.stops, self.rerun.starts
        return {
            self.names[end.index]: [end.end_s, end.gpus, stops[end.index], starts[end.index], end.is_met]
            for end in self.rerun.ends
        }

    def log(self, times_s: Sequence[float]) -> list[tuple[int, int, float]]:
        """Return free GPUs, running jobs and efficiency of our run at these times."""
        events = {each.time_s: each for each in self.rerun.moments}
        rows, last = [], Moment(0.0, {})
        for time_s in times_s:
            last = events.get(time_s, last)
            used = sum(len(each.gpus) for each in last.running.values())
            rows.append((self.servers.n_gpus - used, len(last.running), self.efficiency(last)))
        return rows


def chronus_records(shared: Path) -> dict[str, Any]:
    """Read the recorded runs of Chronus by name."""
    found: dict[str, Any] = golden(shared, "elasticflow/chronus")["runs"]
    return found


def published_chronus_log(shared: Path) -> tuple[list[float], list[tuple[int, int, float]]]:
    """Read times, and rows as in ``ChronusRecord.log``, from the published log of figure 10."""
    path = shared / "golden/elasticflow/published_fig10_logs/chronus/resource.csv.gz"
    table = pd.read_csv(path, converters={"time": float, "ce": float})
    return table["time"].tolist(), list(
        table[["free_resource", "running_num", "ce"]].itertuples(index=False, name=None)
    )
