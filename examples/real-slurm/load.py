"""Drives load on the Slurm that cluster.py started: jobs from a seed, admin operations at stated times, all noted.

python load.py ordinary --dir D --minutes 5 --log load.jsonl --export FOLDER
python load.py oversubscribed --dir D --minutes 5 --log load.jsonl --export FOLDER
python load.py sparse --dir D --minutes 10 --seed 1 --log load.jsonl --export FOLDER       also writes FOLDER/batch.csv
"""

import argparse
import csv
import json
import math
import random
import re
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple, TextIO

from cluster import Cluster, ClusterError

# of an oversubscribed run: second of five minutes, action, its nodes (a number: so many that no other action has;
# a name: those of that action), command
OPERATIONS = (
    (20, "array", 0, "array"),
    (35, "requeue", 0, "scontrol requeue {RUNNING}"),
    (45, "cancel running", 0, "scancel {RUNNING}"),
    (50, "cancel pending", 0, "scancel {PENDING}"),
    (60, "drain", 2, "scontrol update nodename={nodes} state=drain reason=load"),
    (75, "reserve", 2, "scontrol create reservation reservationname=load users=root start=now duration=60 nodes={nodes}"
     " flags=ignore_jobs"),
    (90, "maintain", 2, "scontrol create reservation reservationname=works users=root start=now duration=60"
     " nodes={nodes} flags=maint,ignore_jobs"),
    (100, "down", "drain", "scontrol update nodename={nodes} state=down reason=load"),
    (115, "resume", "drain", "scontrol update nodename={nodes} state=resume"),
    (120, "node dies", 1, "{cluster} kill-node {nodes} --dir {dir}"),
    (130, "end of reservation", "reserve", "scontrol delete reservation=load"),
    (150, "end of maintenance", "maintain", "scontrol delete reservation=works"),
    (160, "power down", "power", "scontrol update nodename={nodes} state=power_down_asap"),
    (175, "node returns", "node dies", "{cluster} restore-node {nodes} --dir {dir}"),
    (200, "requeue", 0, "scontrol requeue {RUNNING}"),
    (215, "power up", "power", "scontrol update nodename={nodes} state=power_up"),
    (240, "cancel running", 0, "scancel {RUNNING}"),
    (250, "array", 0, "array"),
)  # fmt: skip
# columns as `bfreplay ingest slurm --how` asks for them; of these, the ones that this version's `sacct -e` lists
COLUMNS = "JobIDRaw JobID Cluster Partition State Submit Eligible Start End ElapsedRaw Suspended TimelimitRaw NNodes"
COLUMNS += " NodeList Reservation Restarts"
BATCH_COLUMNS = ("number", "job", "n_nodes", "seconds", "submitted", "started")


class SparseJob(NamedTuple):
    """A batch job of a sparse load, submitted `at_s` after the beginning."""

    number: int
    at_s: float
    n_nodes: int
    seconds: float


def sparse_jobs(seed: int, minutes: float) -> list[SparseJob]:
    """Return one job of 1 to 5 nodes every 35 to 65 s, of 40 to 150 s, from the seed alone: two runs are a pair."""
    draw = random.Random(seed)
    jobs: list[SparseJob] = []
    at_s = draw.uniform(5, 35)
    while at_s < minutes * 60:
        jobs.append(SparseJob(len(jobs) + 1, at_s, draw.randint(1, 5), round(draw.uniform(40, 150), 1)))
        at_s += draw.uniform(35, 65)
    return jobs


class Load:
    """One run: submits jobs of an ordinary user, operates as root, and writes each action as a line of JSON."""

    def __init__(self, cluster: Cluster, log: TextIO, seed: int) -> None:
        self.cluster = cluster
        self.log = log
        self.seed = seed
        self.random = random.Random(seed)
        self.batch: list[tuple] = []  # of a sparse load: number, job id, nodes, seconds, time of submission
        self.taken = {"power": cluster.settings["power_save"]}  # nodes of each operation
        self.changes: Counter[str] = Counter()
        self.busy: dict[str, bool] = {}
        self.weights: dict[str, int] = {}

    def note(self, action: str, nodes: list[str], *, began: float = 0, **more: object) -> None:
        """Write one line: when (now, unless it began before), what, on which nodes."""
        line = {"time": round(began or time.time(), 3), "action": action, "nodes": nodes, **more}
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()

    def submit(self, n_nodes: int, seconds: float, *more: str, number: int = 0) -> None:
        """Submit a batch job that sleeps; one with a number first writes when it really started."""
        began = time.time()
        script = f"date +%s.%N >starts/$SLURM_JOB_ID; sleep {seconds:.1f}" if number else f"sleep {seconds:.1f}"
        place = ("-D", str(self.cluster.folder / "work"), "-o", "/dev/null", f"--uid={self.cluster.settings['user']}")
        size = (f"-N{n_nodes}", "-t", str(math.ceil(seconds / 60) + 1), *more)
        job = self.cluster.ask("sbatch", "--parsable", "-p", "batch", *place, *size, "--wrap", script)
        if number:
            self.batch.append((number, job.strip(), n_nodes, seconds, began))
        self.note("submit", [], began=began, job=job.strip(), n_nodes=n_nodes, seconds=round(seconds, 1), more=more)

    def operate(self, action: str, wanted: int | str, command: str) -> None:
        """Carry out an operation and note it; one that Slurm refuses is noted with its message."""
        if command == "array":
            return self.submit(1, 12, "--array=1-6")
        if isinstance(wanted, int):
            free = set(self.cluster.nodes()).difference(*self.taken.values())
            nodes = self.taken[action] = sorted(self.random.sample(sorted(free), wanted))
        else:
            nodes = self.taken[wanted]
        values = {"nodes": ",".join(nodes), "dir": self.cluster.folder}
        values["cluster"] = f"{sys.executable} {Path(__file__).with_name('cluster.py')}"
        for state in re.findall(r"{([A-Z]+)}", command):
            jobs = self.cluster.ask("squeue", "-h", "-p", "batch", "-t", state, "-o", "%A").split()
            values[state] = self.random.choice(jobs) if jobs else "none"
        command, began = command.format(**values), time.time()
        try:
            self.cluster.ask(*command.split())
        except ClusterError as error:
            return self.note(action, nodes, began=began, command=command, refused=str(error))
        return self.note(action, nodes, began=began, command=command)

    def watch(self, *, even: bool) -> None:
        """Count how often each node changed; if `even`, those with more changes get a higher weight: later jobs."""
        for name, state in self.cluster.states().items():
            busy = state.startswith(("ALLOCATED", "MIXED"))
            self.changes[name] += self.busy.get(name, busy) != busy
            self.busy[name] = busy
        weights = {name: 1 + self.changes[name] // 2 for name in self.cluster.nodes()}
        for weight in sorted(set(weights.values())) if even else ():
            names = [name for name, new in weights.items() if new == weight != self.weights.get(name)]
            if names:
                self.cluster.ask("scontrol", "update", f"nodename={','.join(names)}", f"weight={weight}", check=False)
        self.weights = weights

    def submit_due(self, kind: str, since_s: float) -> None:
        """Submit the job whose time has come, if any."""
        if kind == "sparse":
            number = len(self.batch) + 1  # one that Slurm refused is tried again
            for job in self.jobs[number - 1 : number]:
                if since_s >= job.at_s:
                    self.submit(job.n_nodes, job.seconds, number=number)
        elif since_s >= self.next_s:
            ordinary = kind == "ordinary"
            self.next_s = since_s + (self.random.triangular(5, 15, 6) if ordinary else self.random.uniform(2.5, 7.5))
            longer = self.random.random()
            seconds = 10 * 6 ** (longer * longer) if ordinary else 10 + 50 * longer
            self.submit(self.random.randint(1, 4), seconds)

    def run(self, minutes: float, kind: str) -> None:
        """Submit jobs until the time is over, then end all batch jobs; an oversubscribed load has operations, too.

        Ordinary: one job of 1 to 4 nodes every 5 to 15 s, of 10 to 60 s, the shorter ones more often. Oversubscribed:
        twice as many, no length more often than another: more than the nodes can do. Sparse: see `sparse_jobs`.
        """
        begin, self.next_s, self.jobs = time.time(), 0.0, sparse_jobs(self.seed, minutes)
        operations = list(OPERATIONS) if kind == "oversubscribed" else []
        starts = self.cluster.folder / "work" / "starts"
        starts.mkdir(exist_ok=True)
        shutil.chown(starts, self.cluster.settings["user"])
        self.note("begin", self.cluster.nodes())
        while time.time() < begin + minutes * 60:
            try:
                self.watch(even=kind == "ordinary")
                self.submit_due(kind, time.time() - begin)
            except ClusterError as error:  # without a controller nobody can submit
                self.note("refused", [], message=str(error))
            while operations and time.time() >= begin + operations[0][0] * minutes / 5:
                self.operate(*operations.pop(0)[1:])
            time.sleep(0.3)
        self.note("end", self.cluster.nodes())
        self.cancel()
        time.sleep(3)  # accounting is sent once in a while

    def cancel(self) -> None:
        """End all jobs of the load: those of its partition, since workers of the same user may run in another."""
        own = (f"--user={self.cluster.settings['user']}", "--partition=batch")
        for state in ("PENDING", "RUNNING"):
            self.cluster.ask("scancel", *own, f"--state={state}", check=False)
        self.cluster.wait("all jobs have ended", lambda: not self.cluster.ask("squeue", "-h", *own), 30)

    def write_batch(self, file: Path) -> None:
        """Write when each job of a sparse load was submitted and really started; empty for one that never did."""
        with file.open("w", newline="") as table:
            rows = csv.writer(table, lineterminator="\n")
            rows.writerow(BATCH_COLUMNS)
            for number, job, n_nodes, seconds, submitted in self.batch:
                start = self.cluster.folder / "work" / "starts" / job
                started = start.read_text().strip() if start.exists() else ""
                rows.writerow((number, job, n_nodes, seconds, f"{submitted:.6f}", started))


def export(cluster: Cluster, folder: Path, since: float) -> None:
    """Write the accounting of the run as the three files that `bfreplay ingest slurm` reads."""
    cluster.env["TZ"] = "UTC"
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since - 1))
    known = cluster.ask("sacct", "-e").lower().split()
    columns = ",".join(name for name in COLUMNS.split() if name.lower() in known)
    jobs = cluster.ask("sacct", "-a", "-X", "-D", "-P", "-S", begin, "-E", "now", "-o", columns, limit_s=30)
    (folder / "jobs.psv").write_text(jobs)
    columns = "format=Cluster,NodeName,Start,End,State,Reason,User"
    outages = cluster.ask("sacctmgr", "-P", "show", "event", "All_Time", f"Start={begin}", columns, limit_s=30)
    (folder / "outages.psv").write_text(outages)
    columns = "format=Cluster,Name,Start,End,NodeNames,Flags"
    reservations = cluster.ask("sacctmgr", "-P", "show", "reservation", f"Start={begin}", columns, limit_s=30)
    (folder / "resv.psv").write_text(reservations)


def main() -> int:
    """Run a load and report how often the nodes changed."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("load", choices=("ordinary", "oversubscribed", "sparse"))
    parser.add_argument("--dir", type=Path, required=True, help="folder of the cluster")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True, help="JSON lines of what was done and when")
    parser.add_argument("--export", type=Path, help="folder for jobs.psv, outages.psv and resv.psv")
    options = parser.parse_args()
    cluster = Cluster(options.dir)
    begin = time.time()
    try:
        with options.log.open("w") as log:
            load = Load(cluster, log, options.seed)
            load.run(options.minutes, options.load)
        if options.export:
            export(cluster, options.export, begin)
            if options.load == "sparse":
                load.write_batch(options.export / "batch.csv")
    except (ClusterError, OSError) as error:
        print(f"load.py: {error}", file=sys.stderr)
        return 1
    counts = {name: load.changes[name] for name in cluster.nodes()}
    print(f"how often nodes became busy or free: {min(counts.values())} to {max(counts.values())} times; {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
