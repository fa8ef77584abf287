"""Traces and golden results of ElasticFlow's published program, as the tests need them."""

import csv
import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bfreplay.systems.elasticflow.played_back import most_gpus
from bfreplay.systems.elasticflow.published.program import (
    NO_DEADLINE_S,
    Moment,
    PublishedRun,
    Servers,
    TraceJob,
    efficiency,
)

DATA = Path("data/elasticflow")
GOLDEN = Path("golden/elasticflow")


@cache
def rates_by_model(tables: Path):
    """Iterations per second by (model, batch size), then by GPUs; cells without a number, or with 0, are left out."""
    found = {}
    for path in sorted(tables.glob("*.csv")):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                batch = row.pop("global_batch_size")
                cells = {int(n): float(cell) for n, cell in row.items() if cell not in ("", "nan")}
                found[path.stem, batch] = {n: rate for n, rate in cells.items() if rate > 0}
    return found


def trace_jobs(trace: Path, tables: Path):
    """The jobs of a trace in the order of the file, and their names."""
    rates = rates_by_model(tables)
    jobs, names = [], []
    with trace.open(newline="") as file:
        for index, row in enumerate(csv.DictReader(file)):
            of_job = rates[row["model_name"], row["batch_size"]]
            jobs.append(
                TraceJob(
                    index=index,
                    submit_s=int(row.get("submit_time") or row["submission_time"]),
                    deadline_s=NO_DEADLINE_S
                    if row.get("best_effort") == "1"
                    else int(row.get("ddl") or row["deadline"]),
                    gpus=int(row["num_gpu"]),
                    duration_s=int(row["duration"]),
                    iterations=int(row.get("iteration") or row["num_iteration"]),
                    rates=of_job,
                    most_gpus=most_gpus(row["model_name"], int(row["batch_size"]), of_job),
                )
            )
            names.append(row["job_id"])
    return jobs, names


def servers_of(path: Path) -> Servers:
    """The cluster of a file of cluster_specs."""
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    return Servers(int(row["num_switch"]) * int(row["num_node_p_switch"]), int(row["num_gpu_p_node"]))


@cache
def golden_runs(path: Path):
    """The runs of a golden file by name, such as n1g8_syn10tight/themis."""
    with gzip.open(path, "rt") as file:
        return json.load(file)["runs"]


def published_fig10(shared: Path, schedule: str):
    """Start and end by job, and time and jobs of all GPUs by event, as the authors' logs of Fig. 10 have them."""
    folder = shared / GOLDEN / "published_fig10_logs" / schedule
    with (folder / "job.csv").open(newline="") as file:
        ends = {row["job_id"]: [row["start_time"], float(row["end_time"])] for row in csv.DictReader(file)}
    with gzip.open(folder / "scheduling_events.csv.gz", "rt", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return ends, [[float(row[0]), [int(job) if job else None for job in row[1:-1]]] for row in rows]


@dataclass(frozen=True)
class Case:
    """A golden run and what the program was given for it."""

    golden: dict
    jobs: list[TraceJob]
    names: list[str]
    servers: Servers
    slot_s: int

    @classmethod
    def read(cls, shared: Path, file: str, name: str) -> "Case":
        golden = golden_runs(shared / GOLDEN / f"{file}.json.gz")[name]
        meta, data = golden["meta"], shared / DATA
        jobs, names = trace_jobs(data / meta["trace"], data / f"throughputs_{meta['gpu_type']}")
        servers = servers_of(data / "cluster_specs" / meta["cluster_spec"])
        return cls(golden, jobs, names, servers, meta["scheduling_slot"])

    def ends(self, run: PublishedRun, never_set_s: float | None = None):
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

    def gpu_map(self, moment: Moment):
        """Jobs of all GPUs, as pairs of a job, or ``None``, and how many GPUs in a row it has."""
        pairs = []
        for job in self.job_of_gpu(moment):
            if pairs and pairs[-1][0] == job:
                pairs[-1][1] += 1
            else:
                pairs.append([job, 1])
        return pairs

    def job_of_gpu(self, moment: Moment):
        """Job, or ``None``, of every GPU."""
        jobs = [None] * self.servers.n_gpus
        for index, running in moment.running.items():
            for gpu in running.gpus:
                assert jobs[gpu] is None
                jobs[gpu] = index
        return jobs

    def events(self, run: PublishedRun):
        """Times and GPU maps of a run."""
        return [[moment.time_s, self.gpu_map(moment)] for moment in run.moments]

    def efficiencies(self, run: PublishedRun):
        """Efficiency of the cluster at every event."""
        return [efficiency(self.jobs, moment, self.servers.n_gpus) for moment in run.moments]
