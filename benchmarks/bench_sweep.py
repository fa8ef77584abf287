"""A sweep of 60 Summit runs: one process against two, the same with kills in between, and on a Dask scheduler.

Two workloads x 10, 35, 70 jobs at once x ten forward-looking times, exact decisions, with efficiency and bound.

Run it: ``python benchmarks/bench_sweep.py [--small] [--kill] [--dask]``; ``--small`` takes two days of the log.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from measure import SUMMIT, heading, table_head, table_row

SPEC = """
[run]
events = "{summit}/summit-2021-02-node-events.parquet"
{window}

[vary]
max-parallel = [10, 35, 70]
t-fwd = [10, 30, 60, 120, 200, 300, 450, 600, 1200, 3600]

[vary.workload]
shufflenet = {{ jobs = "{summit}/hps-shufflenet-Jbnd-1000J.pkl", curves = "{summit}/hps-shufflenet-JNPs-1000J.pkl" }}
imagenet = {{ jobs = "{summit}/ImageNet-imgps-Jbnd-1001J.pkl", curves = "{summit}/ImageNet-imgps-JNPs-1001J.pkl" }}
"""
DASK = [sys.executable, "-m", "dask"]


class Attempts:
    """Which runs are begun in the folder of a sweep, seen from outside: each makes a temporary folder of its own."""

    def __init__(self, out: Path) -> None:
        self.seen: set[str] = set()
        self._runs = out / "runs"
        self._ended = False
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def end(self) -> int:
        """How many there were."""
        self._ended = True
        self._thread.join()
        return len(self.seen)

    def _look(self) -> None:
        while not self._ended:
            if self._runs.is_dir():
                self.seen.update(path.name for path in self._runs.glob(".*.partial-*"))
            time.sleep(0.01)


def start(spec: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """Begin ``bfreplay sweep``."""
    command = [sys.executable, "-m", "bfreplay.cli", "sweep", str(spec), "--out", str(out), "--quiet", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def ended(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a sweep and its workers, after it has ended well."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the sweep ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def n_done(out: Path) -> int:
    """Runs that are in place."""
    return len([*(out / "runs").glob("[!.]*")])


def wait_for(out: Path, n_runs: int) -> None:
    """Until so many runs are in place."""
    while n_done(out) < n_runs:
        time.sleep(0.05)


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Processes that the sweep has started to work."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children") if children.exists() else []
    found = [int(pid) for task in tasks for pid in task.read_text().split()]
    return [pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@contextmanager
def dask_cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Address of a scheduler on this machine, and its two workers."""
    log = folder / "scheduler.log"
    scheduler_command = [*DASK, "scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1"]
    with log.open("wb") as said:
        started = [subprocess.Popen(scheduler_command, stdout=said, stderr=said, cwd=folder)]
        try:
            while not (found := re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())):
                time.sleep(0.1)
            address = found.group(1)
            for _ in range(2):
                command = [*DASK, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
                started.append(subprocess.Popen(command, stdout=said, stderr=said, cwd=folder))
            while log.read_text().count("Registered to:") < 2:
                time.sleep(0.1)
            yield address, started[1:]
        finally:
            for process in started:
                process.kill()
                process.wait()


def plain(spec: Path, folder: Path, options: list[str]) -> tuple[float, float, bytes]:
    """Wall and CPU seconds of an undisturbed sweep, and its table."""
    out = folder / "-".join(options).strip("-").replace("/", "")
    began = time.perf_counter()
    cpu = ended(start(spec, out, *options))
    return time.perf_counter() - began, cpu, (out / "results.parquet").read_bytes()


def killed(spec: Path, out: Path, n_runs: int, options: list[str], victims: list[int] | None) -> tuple[int, bytes]:
    """How many runs were begun where a worker is killed after a third and the sweep after two thirds; the table."""
    attempts = Attempts(out)
    first = start(spec, out, *options)
    wait_for(out, n_runs // 3)
    os.kill((victims or workers_of(first))[0], signal.SIGKILL)
    wait_for(out, 2 * n_runs // 3)
    first.kill()
    first.wait()
    ended(start(spec, out, *options))
    return attempts.end(), (out / "results.parquet").read_bytes()


def main(arguments: argparse.Namespace) -> None:
    """Print one table for each part."""
    window = 'window = ["2021-02-12", "2021-02-14"]' if arguments.small else ""
    part = "two days" if arguments.small else "two weeks"
    print(heading(f"Sweep of 60 runs on {part} of Summit"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = folder / "sweep.toml"
        spec.write_text(SPEC.format(summit=SUMMIT.resolve(), window=window))
        warm = folder / "warm.toml"  # compiles, and reads the inputs once
        warm.write_text(re.sub(r"= \[(\d+), .*", r"= [\1]", spec.read_text()))
        ended(start(warm, folder / "warm"))
        table_head("processes", "wall s", "CPU s", "ratio", "table")
        one_s, cpu_s, table = plain(spec, folder, ["--processes", "1"])
        table_row("1", f"{one_s:.1f}", f"{cpu_s:.1f}", "1", f"{len(table):,} bytes")
        two_s, cpu_s, again = plain(spec, folder, ["--processes", "2"])
        table_row("2", f"{two_s:.1f}", f"{cpu_s:.1f}", f"{one_s / two_s:.2f}", said(table, again))
        n_runs = pq.read_metadata(folder / "processes-1" / "results.parquet").num_rows
        if arguments.kill or arguments.dask:
            print()
            table_head("killed: a worker, then the sweep", "runs", "begun", "table")
        if arguments.kill:
            begun, again = killed(spec, folder / "killed", n_runs, ["--processes", "2"], None)
            table_row("2 processes", str(n_runs), str(begun), said(table, again))
        if arguments.dask:
            with dask_cluster(folder) as (address, workers):
                begun, again = killed(spec, folder / "dask", n_runs, ["--scheduler", address], [workers[0].pid])
            table_row("Dask, 2 workers", str(n_runs), str(begun), said(table, again))


def said(one: bytes, other: bytes) -> str:
    """Whether two tables are the same."""
    return "the same bytes" if one == other else "ANOTHER TABLE"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option, text in (
        ("--small", "two days of the log"),
        ("--kill", "kill a worker and the sweep"),
        ("--dask", "the same on Dask"),
    ):
        parser.add_argument(option, action="store_true", help=text)
    main(parser.parse_args())
