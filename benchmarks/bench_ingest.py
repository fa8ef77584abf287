"""Scheduler logs to node events: the process from file to file, and how it grows with the log.

Run it: ``python benchmarks/bench_ingest.py [RUNS]``. CEA-Curie ten times in a row has its submit times moved on; the
made-up sacct log has a node list for every job.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from measure import SHARED, heading, spread, table_head, table_row, whole_process

from bfreplay import load_events

LOGS = SHARED / "data" / "logs"
CURIE = LOGS / "CEA-Curie-2011-2.1-cln.swf.gz"
SPAN_S = 600 * 86_400
START = datetime(2024, 1, 1, tzinfo=UTC)


def repeated_curie(copies: int, path: Path) -> int:
    """Write CEA-Curie ``copies`` times in a row; returns the rows."""
    lines = gzip.decompress(CURIE.read_bytes()).decode().splitlines()
    rows = [line.split() for line in lines if not line.startswith(";")]
    with path.open("w") as out:
        out.writelines(f"{line}\n" for line in lines if line.startswith(";"))
        for copy in range(copies):
            for row in rows:
                job, submit = int(row[0]) + copy * 10**7, int(row[1]) + copy * SPAN_S
                out.write(f"{job} {submit} {' '.join(row[2:])}\n")
    return copies * len(rows)


def made_up_sacct(n_jobs: int, path: Path) -> int:
    """Write a Slurm log of jobs of 1 to 64 neighbouring nodes out of 4,000; returns the rows."""
    rng = np.random.default_rng(0)
    width = np.minimum(64, 1 + rng.geometric(0.12, n_jobs))
    first = rng.integers(1, 4_000 - 64, n_jobs)
    start = np.sort(rng.integers(0, n_jobs * 100, n_jobs))
    length = rng.integers(60, 40_000, n_jobs)
    with path.open("w") as out:
        out.write("JobIDRaw|State|Start|End|ElapsedRaw|NNodes|NodeList\n")
        for i in range(n_jobs):
            times = [f"{START + timedelta(seconds=int(s)):%Y-%m-%dT%H:%M:%S}" for s in (start[i], start[i] + length[i])]
            nodes = f"cn[{first[i]:04d}-{first[i] + width[i] - 1:04d}]"
            out.write(f"{i}|COMPLETED|{times[0]}|{times[1]}|{length[i]}|{width[i]}|{nodes}\n")
    return n_jobs


def written(write: Callable[[int, Path], int], n: int, path: Path) -> int:
    """Write a log in a process of its own: what it needs would count as the peak of every process started later."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(write, n, path).result()


def main(runs: int) -> None:
    """Print one table."""
    print(heading("Ingest: scheduler log to events.parquet (whole process, medians)"))
    table_head("log", "rows", "nodes", "rows of events", "wall s (min to max)", "CPU s", "peak MB")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        long, sacct, sacct_long = folder / "curie10.swf", folder / "sacct.psv", folder / "sacct10.psv"
        cases = [
            ("xdmod-pozidriv (sacct)", LOGS / "xdmod-pozidriv-sacct.psv.gz", 11_704, ["slurm"]),
            ("KTH-SP2 (SWF)", LOGS / "KTH-SP2-1996-2.1-cln.swf.gz", 27_992, ["swf"]),
            ("SDSC-BLUE (SWF)", LOGS / "SDSC-BLUE-2000-4.2-cln.swf.gz", 243_306, ["swf"]),
            ("CEA-Curie (SWF)", CURIE, 312_826, ["swf"]),
            ("CEA-Curie x 10, plain text", long, written(repeated_curie, 10, long), ["swf"]),
            ("made-up sacct, 4,000 nodes", sacct, written(made_up_sacct, 300_000, sacct), ["slurm", "--tz", "UTC"]),
            ("made-up sacct x 10", sacct_long, written(made_up_sacct, 3_000_000, sacct_long), ["slurm", "--tz", "UTC"]),
        ]
        for title, file, rows, (reader, *options) in cases:
            out = folder / "events.parquet"
            arguments = ["ingest", reader, str(file), *options, "--quiet", "--force", "-o", str(out)]
            wall, cpu, peak = zip(
                *whole_process(arguments, runs=1 if " x 10" in title else runs, warm_up=0 if " x 10" in title else 1),
                strict=True,
            )
            log = load_events(out)
            events = log.metadata.notes["ingest"]["facts"]["rows of events"]
            cells = [spread(list(wall), 1), f"{sorted(cpu)[len(cpu) // 2]:.1f}", f"{max(peak):.0f}"]
            table_row(title, f"{rows:,}", f"{len(log.nodes):,}", f"{events:,}", *cells)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
