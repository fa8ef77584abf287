"""CPU and memory of ``bfreplay follow`` beside a real Slurm of 1,000 nodes, most of them unreachable, and Slurm's CPU.

Run it: ``python benchmarks/bench_follow.py [MINUTES [PORT]]`` as root, with Slurm installed (see
examples/real-slurm/README.md).
Twelve nodes have a daemon and take batch jobs; a poll every 2 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import heading, table_head

from bfreplay.datasets.snapshots.texts import JOBS_COMMAND, NODES_COMMAND

REPOSITORY = Path(__file__).parents[1]
EXAMPLE = REPOSITORY / "examples" / "real-slurm"
POLL_S = 2.0
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


def cpu_ms(pid: int) -> tuple[float, float]:
    """Return the CPU milliseconds of a process, and of the processes that it waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, of_children_user, of_children_system = map(int, fields[11:15])
    return (user + system) * TICK_MS, (of_children_user + of_children_system) * TICK_MS


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def slurmctld_of(folder: Path) -> int:
    """Return the process of the controller of a cluster."""
    return int((folder / "run" / "slurmctld.pid").read_text().split()[0])


def of_controller_ms(controller: int, environment: dict[str, str]) -> float:
    """Return the CPU of slurmctld for one poll: of polls without a pause, less that of as long a time without any."""

    def cpu_of(seconds: float, act: Callable[[], object]) -> tuple[float, int]:
        start_ms, end_s, n = cpu_ms(controller)[0], time.monotonic() + seconds, 0
        while time.monotonic() < end_s:
            act()
            n += 1
        return cpu_ms(controller)[0] - start_ms, n

    def poll() -> None:
        for command in (NODES_COMMAND, JOBS_COMMAND):
            subprocess.run(command, env=environment, check=True, capture_output=True)

    still_ms, _ = cpu_of(30, lambda: time.sleep(0.5))
    polled_ms, n_polls = cpu_of(30, poll)
    return (polled_ms - still_ms) / n_polls


def measure(minutes: float, port: str) -> None:
    """Follow for some minutes, after one to warm up, and print the figures of each quarter."""
    folder = Path(tempfile.mkdtemp(prefix="bench-follow-"))
    folder.chmod(0o755)
    cluster = [sys.executable, str(EXAMPLE / "cluster.py")]
    place = ["--dir", str(folder / "slurm")]
    subprocess.run(
        [*cluster, "start", *place, "--nodes", "12", "--unreachable", "988", "--port-base", port], check=True
    )
    try:
        env_text = subprocess.run([*cluster, "env", *place], check=True, capture_output=True, text=True).stdout
        conf = env_text.split("SLURM_CONF=")[1].split()[0].strip("'\"")
        environment = {**os.environ, "SLURM_CONF": conf}
        load_words = ["ordinary", *place, "--minutes", str(minutes + 3), "--log", str(folder / "load.jsonl")]
        load = subprocess.Popen([sys.executable, str(EXAMPLE / "load.py"), *load_words])
        controller = slurmctld_of(folder / "slurm")
        print(heading("bfreplay follow beside 1,000 nodes"))
        print(f"slurmctld: {of_controller_ms(controller, environment):.1f} ms a poll\n")
        words = ["slurm", "--jobs", "sample", "--out", str(folder / "live"), "--poll", f"{POLL_S}s", "--quiet"]
        more = ["--page", str(folder / "now.html"), "--metrics", str(folder / "now.prom")]
        follower = subprocess.Popen([sys.executable, "-m", "bfreplay", "follow", *words, *more], env=environment)
        time.sleep(60)
        table_head("minute", "follow, CPU ms a poll", "its two commands", "memory MB")
        for quarter in range(4):
            own, of_commands = cpu_ms(follower.pid)
            start_s = time.monotonic()
            time.sleep(minutes * 15)
            polls = (time.monotonic() - start_s) / POLL_S
            own_after, of_commands_after = cpu_ms(follower.pid)
            figures = (own_after - own) / polls, (of_commands_after - of_commands) / polls, memory_mb(follower.pid)
            cells = [f"{1 + (quarter + 1) * minutes / 4:.1f}", *(f"{figure:.1f}" for figure in figures)]
            print("| " + " | ".join(cells) + " |", flush=True)
        follower.terminate()
        follower.wait(timeout=60)
        load.terminate()
    finally:
        subprocess.run([*cluster, "stop", *place], check=False)


if __name__ == "__main__":
    given = [*sys.argv[1:], *("10", "17700")[len(sys.argv) - 1 :]]
    measure(float(given[0]), given[1])
