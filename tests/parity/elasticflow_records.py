"""Records of ElasticFlow's published programs and their authors' logs, and our runs of the same."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pytest

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of
from bfreplay.replay import ReplaySettings
from bfreplay.systems.elasticflow.played_back import Program, trace_jobs
from bfreplay.systems.elasticflow.published.chronus import ChronusRun, chronus
from bfreplay.systems.elasticflow.published.deadline_schedulers import (
    edf,
    edf_with_admission,
    elastic_sharing,
    elasticflow,
)
from bfreplay.systems.elasticflow.published.gandiva import gandiva
from bfreplay.systems.elasticflow.published.program import JobEnd, Moment, PublishedRun, Servers, TraceJob
from bfreplay.systems.elasticflow.published.themis import NO_START_S, missing_solver, themis
from bfreplay.systems.elasticflow.published.tiresias import tiresias
from bfreplay.systems.elasticflow.throughputs import Throughputs, read_throughputs
from bfreplay.systems.elasticflow.trace import WHOLE_HOUR_S, read_trace
from tests.parity.records import golden

needs_ecos = pytest.mark.skipif(bool(missing_solver()), reason=missing_solver())

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

POLICIES = {
    "ef-accessctrl": "elasticflow",
    "ef": "elastic",
    "edf": "edf",
    "edf-accessctrl": "edf_admission",
    "dlas-gpu": "tiresias",
    "gandiva": "gandiva",
    "themis": "themis",
}
"""Our policy for each schedule."""

KEEP_ORDER = ("dlas-gpu", "gandiva", "themis")
"""Schedules whose record has the ends in order, and counts deadlines as the program does, not by logged ends."""

TRACES = {
    "n1g8_resnet_cifar_trace": "small_n1g8",
    "n1g8_syn10_600lam_max8_seed0_ddlseed12345": "small_n1g8",
    "n1g8_syn10tight": "small_n1g8",
    "n4g8_195job_first25": "25job_n4g8",
    "n4g8_195job_rows35to59": "25job_n4g8",
    "fig10": "fig10_n16g8",
    "n16g8_195job": "195job_n16g8",
}
"""File of the recorded runs of each trace and cluster."""


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
    @cache
    def load(cls, shared: Path, name: str) -> Self:
        """Read the run ``name``, such as ``n1g8_syn10tight/themis``; once, and so it is repeated once."""
        record = golden(shared, f"elasticflow/{TRACES[name.split('/')[0]]}")["runs"][name]
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

    @property
    def keeps_order(self) -> bool:
        """True for schedules of ``KEEP_ORDER``."""
        return self.schedule in KEEP_ORDER

    def ends(self, run: PublishedRun | None = None) -> dict[str, list[Any]]:
        """Return start, end, GPUs, and whether the end is in time, by job that ended in our run, or in another one."""
        return {
            self.names[end.index]: [
                None if end.start_s == NO_START_S else end.start_s,
                end.end_s,
                end.gpus,
                end.is_met if self.keeps_order else self._is_in_time(end),
            ]
            for end in (run or self.rerun).ends
        }

    def _is_in_time(self, end: JobEnd) -> bool | None:
        job = self.jobs[end.index]
        return None if job.is_best_effort else end.end_s <= job.deadline_s

    def recorded_ends(self) -> dict[str, list[Any]]:
        """Return the same of the record."""
        return {row[0]: row[1:] for row in self.record["per_job"]}

    def counts(self, run: PublishedRun | None = None) -> dict[str, Any]:
        """Return jobs accepted, declined and never run, number of events, and jobs by their ends, of our run."""
        run = run or self.rerun
        order = [self.names[end.index] for end in run.ends]
        return {
            "accepted": run.accepted,
            "declined": run.declined,
            "never run": sorted(self.names[index] for index in run.refused),
            "events": len(run.moments),
            "order of ends": order if self.keeps_order else sorted(order),
        }

    def recorded_counts(self) -> dict[str, Any]:
        """Return the same of the record."""
        order = [row[0] for row in self.record["per_job"]]
        return {
            "accepted": self.record["accepted"],
            "declined": self.record["declined"],
            "never run": sorted(self.record["never_run_job_ids"]),
            "events": self.record["n_scheduling_rows"],
            "order of ends": order if self.keeps_order else sorted(order),
        }

    def events(self) -> list[dict[str, Any]]:
        """Return time, GPU map and efficiency of each event of our run."""
        return [
            {"time": each.time_s, "jobs of GPUs": self.gpu_map(each), "efficiency": self.efficiency(each)}
            for each in self.rerun.moments
        ]

    def recorded_events(self) -> list[dict[str, Any]]:
        """Return the same of the record, which has few runs with events."""
        names = ("time", "jobs of GPUs", "efficiency")
        return [dict(zip(names, event, strict=True)) for event in self.record.get("events", [])]

    def efficiency(self, moment: Moment) -> float:
        """Return the throughput of all running jobs over that on one GPU each, per GPU; it may exceed 1."""
        total = 0.0
        for index, running in moment.running.items():
            rates = self.jobs[index].rates
            total += rates[len(running.gpus)] / rates[1]
        return total / self.servers.n_gpus

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


def replay(shared: Path, recorded: RecordedRun) -> dict[str, Any]:
    """Return ends of jobs in microseconds of the replay, and counts, of a recorded run by our policy."""
    meta = recorded.record["meta"]
    path = shared / "data/elasticflow" / meta["trace"]
    servers, slot_s = recorded.servers, meta["scheduling_slot"]
    spec = f"published=true, slot_s={slot_s}, gpus_each={servers.gpus_each}"
    policy = policy_of(f"elasticflow.{POLICIES[recorded.schedule]}({spec})", t_fwd_s=60.0, solver=ExactSolver())
    run = replay_log(
        fixed_cluster(f"a100={servers.n_gpus}"),
        read_trace(path, tables(shared, meta["gpu_type"])),
        policy,
        ReplaySettings(max_parallel=5000, until_done=True),
    )
    ends = run.jobs.dropna(subset=["finished"]).set_index("job")["finished"].dt.as_unit("us").astype("int64")
    return {
        "ends (us)": ends.to_dict(),
        "deadlines met": run.summary["deadlines"]["met"],
        "policy": run.summary["policy"],
        "declined": sorted(run.summary["declined"]),
    }


def recorded_replay(shared: Path, recorded: RecordedRun) -> dict[str, Any]:
    """Return what the replay has to give: the times of a replay count from the whole hour before the first job."""
    record = recorded.record
    submitted_s = pd.read_csv(shared / "data/elasticflow" / record["meta"]["trace"]).iloc[:, 1]
    start_s = int(submitted_s.min()) // WHOLE_HOUR_S * WHOLE_HOUR_S
    return {
        "ends (us)": {name: round((end_s - start_s) * 1e6) for name, _, end_s, _, _ in record["per_job"]},
        "deadlines met": record["n_deadline_met_recomputed"],
        "policy": {"accepted": record["accepted"], "declined": record["declined"]},
        "declined": sorted(record["never_run_job_ids"]),
    }


LOGS = "golden/elasticflow/published_fig10_logs"


def published_log(shared: Path, schedule: str) -> dict[str, list[Any]]:
    """Read start, end, GPUs of each job from the published log of figure 10."""
    log = pd.read_csv(shared / LOGS / schedule / "job.csv", dtype={"job_id": str})
    rows = log[["job_id", "start_time", "end_time", "num_gpu"]].itertuples(index=False)
    return {job: [float(start) if start < NO_START_S else None, float(end), gpus] for job, start, end, gpus in rows}


def published_events(shared: Path, schedule: str) -> list[tuple[float, list[int | None]]]:
    """Read time, and job of each GPU, of each event of the published log of figure 10."""
    with gzip.open(shared / LOGS / schedule / "scheduling_events.csv.gz", "rt", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [(float(row[0]), [int(job) if job else None for job in row[1:-1]]) for row in rows]


class ChronusRecord(RecordedRun):
    """Recorded run of Chronus, and the inputs of the program."""

    @classmethod
    @cache
    def load(cls, shared: Path, name: str) -> Self:
        """Read the run ``name``, such as ``fig10/greedy_fallback``; once, and so it is repeated once."""
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

    def ends(self, run: PublishedRun | None = None) -> dict[str, list[Any]]:
        """Return end, GPUs, stops, starts, and whether the deadline was met, by job that ended in our run."""
        stops, starts = self.rerun.stops, self.rerun.starts
        return {
            self.names[end.index]: [end.end_s, end.gpus, stops[end.index], starts[end.index], end.is_met]
            for end in self.rerun.ends
        }

    def counts(self, run: PublishedRun | None = None) -> dict[str, Any]:
        """Return the number and share of deadlines met, and whether running jobs have the GPUs that they asked for."""
        met, declined = self.rerun.accepted, self.rerun.declined
        n_placed = [
            (self.job_of_gpu(moment).count(index), self.jobs[index].gpus)
            for moment in self.rerun.moments
            for index in moment.running
        ]
        return {
            "deadlines met": met,
            "share": met / (met + declined),
            "GPUs as asked for": all(n == wanted for n, wanted in n_placed),
        }

    def recorded_counts(self) -> dict[str, Any]:
        """Return the same of the record."""
        share = self.record["ddl_satis_ratio_reported"]
        return {"deadlines met": self.record["satisfied"], "share": share, "GPUs as asked for": True}

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
    table = pd.read_csv(shared / LOGS / "chronus/resource.csv.gz", converters={"time": float, "ce": float})
    return table["time"].tolist(), list(
        table[["free_resource", "running_num", "ce"]].itertuples(index=False, name=None)
    )
