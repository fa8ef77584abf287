"""Kills commands with SIGKILL at random moments, and checks what they leave behind.

Run from the repository's root::

    python fuzz/kills.py --kills 30 --seed 1

Each of ``ingest``, ``replay``, ``report`` and ``sweep`` is run once to its end for the expected output, then killed so
many times with that output in place (and for every other kill, without). After each kill, what lies under the final
name must be absent, or complete and equal to the expected output; then the command is run again, which must give the
same bytes and leave no other file, in its folder or among temporary files. A sweep is killed on its way to its first
table and resumed instead. Exit code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ("session.json", "timings.parquet")
"""Files that hold measured times; all others depend on the inputs alone."""
SWEEP = """
[run]
events = "sample"
jobs = "sample"
efficiency = false
bound = false

[vary]
t-fwd = [60, 120, 300]
"""
INGEST = ["ingest", "swf", "jobs.swf", "--nodes", "512", "--procs-per-node", "1", "-o", "out/events.parquet", "--force"]
COMMANDS = {
    "ingest": (INGEST, "out/events.parquet"),
    "replay": (["replay", "sample", "--jobs", "sample", "--out", "out/run", "--force"], "out/run"),
    "report": (["report", "run", "-o", "out/page.html", "--force"], "out/page.html"),
    "sweep": (["sweep", "sweep.toml", "--out", "out/sweep", "--processes", "2"], "out/sweep"),
}


def write_inputs(folder: Path) -> None:
    """Write a log of 5,000 jobs, a finished run and a sweep's spec, in ``folder``."""
    rng = random.Random(0)
    rows = [f"{n} {60 * n} 0 {rng.randint(60, 9000)} {rng.randint(1, 8)}" + " -1" * 13 for n in range(1, 5_001)]
    (folder / "jobs.swf").write_text("\n".join(["; UnixStartTime: 1700000000", "; MaxNodes: 512", *rows, ""]))
    (folder / "sweep.toml").write_text(SWEEP)
    run(folder, ["replay", "sample", "--jobs", "sample", "--out", "run"])


def start(folder: Path, words: list[str]) -> subprocess.Popen[bytes]:
    """Start a bfreplay command in ``folder``, in a process group and with temporary files of its own."""
    # small runs on disk, so that an import has some
    script = (
        "from bfreplay.datasets.ingest.occupancy.spool import JobSpool as s; s.__init__.__defaults__ = (500, 4_000); "
    )
    return subprocess.Popen(
        [sys.executable, "-c", script + "from bfreplay.__main__ import main; main()", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def run(folder: Path, words: list[str]) -> float:
    """Run a command to its end; returns the seconds that it took."""
    begun = time.monotonic()
    process = start(folder, words)
    complaints = process.communicate()[1].decode()
    if process.returncode:
        raise RuntimeError(f"bfreplay {' '.join(words)} failed:\n{complaints}")
    return time.monotonic() - begun


def digests(path: Path) -> dict[str, str]:
    """Content of a file, or of the files below a folder, by name; without locks and what was measured."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.name not in MEASURED and file.suffix != ".lock"
    }


def leftovers(folder: Path) -> list[str]:
    """Temporary files and folders of bfreplay that lie anywhere in ``folder``."""
    return [str(path.relative_to(folder)) for path in folder.rglob(".*") if ".part" in path.name or ".rep" in path.name]


def findings(folder: Path, name: str, expected: dict[str, str], had_output: bool, state: dict[str, int]) -> list[str]:
    """What is wrong after a kill, and after the command was run again."""
    words, output = COMMANDS[name]
    found, target = [], folder / output
    state["left something"] += bool(leftovers(folder))
    moved_aside = [*target.parent.glob(f".{target.name}.replaced-*/{target.name}")]
    state["killed between two renames"] += bool(moved_aside) and not target.exists()
    if name == "sweep":  # runs are complete or absent; the table comes last
        finished = [path for path in target.glob("runs/*") if not path.name.startswith(".")]
        for path in finished:
            inside = {f"runs/{path.name}/{file}": digest for file, digest in digests(path).items()}
            if any(expected.get(file) != digest for file, digest in inside.items()) or not inside:
                found.append(f"half a run: {path.name}")
        if (target / "results.parquet").exists() and digests(target) != expected:
            found.append("a table of results of an unfinished sweep")
    else:
        there = target if target.exists() else moved_aside[0] if moved_aside else None
        if there is not None and digests(there) != expected:
            found.append("half output under the final name")
        if there is None and had_output:
            found.append("the earlier output is gone")
    run(folder, words)
    if digests(target) != expected:
        found.append("run again, it gives other bytes")
    if left := leftovers(folder):
        found.append(f"left behind after running again: {left}")
    return found


def main() -> int:
    """Kill each command so many times and tell what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30, help="of each command")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    asked = parser.parse_args()
    rng, failed = random.Random(asked.seed), 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("tmp", "out"):
            (folder / name).mkdir()
        write_inputs(folder)
        for name in asked.commands:
            words, output = COMMANDS[name]
            run(folder, words)
            expected, seconds = digests(folder / output), run(folder, words)
            state = dict.fromkeys(("killed", "ended before", "left something", "killed between two renames"), 0)
            tries = 0
            while state["killed"] < asked.kills:
                tries += 1
                had_output = name != "sweep" and tries % 2 == 0
                if not had_output:
                    path = folder / output
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                process = start(folder, words)
                if tries % 3:  # most of the time nothing is being written yet: wait until something is
                    while process.poll() is None and not leftovers(folder):
                        time.sleep(0.001)
                    time.sleep(rng.uniform(0, 0.1 * seconds))
                else:
                    time.sleep(rng.uniform(0, 1.1 * seconds))
                process.kill()
                is_killed = process.wait() == -9
                process.communicate()
                state["killed" if is_killed else "ended before"] += 1
                for finding in findings(folder, name, expected, had_output, state):
                    failed += 1
                    print(f"{name}, try {tries}: {finding}", flush=True)
            print(f"{name}: " + ", ".join(f"{n} {what}" for what, n in state.items()), flush=True)
    print(f"{failed} findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
