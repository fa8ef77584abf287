"""What the benchmarks share: where the data are, machine and date for the report, and whole-process figures."""

from __future__ import annotations

import os
import platform
import re
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("BFREPLAY_COMPILE", "wait")  # nothing that is measured is interpreted
SHARED = Path(os.environ.get("BFREPLAY_SHARED") or Path(__file__).resolve().parents[2] / "shared")
SUMMIT = SHARED / "data" / "bftrainer"


def heading(title: str) -> str:
    """Title, date and machine: figures without them are worth nothing."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"## {title}\n\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} shared cores, {memory:.0f} GiB, "
        f"{platform.machine()}, Python {platform.python_version()}\n"
    )


def spread(values: list[float], digits: int = 2) -> str:
    """Median (minimum to maximum)."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def whole_process(arguments: list[str], runs: int, warm_up: int = 1) -> list[tuple[float, float, float]]:
    """(wall s, CPU s, peak MB) of ``python -m bfreplay.cli ARGUMENTS``, ``runs`` times after ``warm_up`` more."""
    figures = []
    for run in range(warm_up + runs):
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "bfreplay.cli", *arguments], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        if status:
            raise SystemExit(f"bfreplay {' '.join(arguments)} ended with status {status}")
        if run >= warm_up:
            figures.append((wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
    return figures


class Figures(NamedTuple):
    """What one process needed: ``cpu_s`` with its children, which had at most ``peak_children_mb`` together."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    peak_children_mb: float


def process_tree(arguments: list[str]) -> Figures:
    """Measure ``python -m bfreplay.cli ARGUMENTS`` and its children once; on Linux, where /proc tells of both.

    Memory that children share with each other counts once for each.
    """
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "bfreplay.cli", *arguments], stdout=subprocess.DEVNULL)
    peak_mb = peak_children_mb = 0.0
    while True:
        peak_mb = max(peak_mb, _memory_mb(process.pid, "VmHWM"))
        children_mb = sum(_memory_mb(child, "VmRSS") for child in _descendants(process.pid))
        peak_children_mb = max(peak_children_mb, children_mb)
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        time.sleep(_EVERY_S)
    wall = time.perf_counter() - started
    if status:
        raise SystemExit(f"bfreplay {' '.join(arguments)} ended with status {status}")
    return Figures(wall, usage.ru_utime + usage.ru_stime, peak_mb, peak_children_mb)


_EVERY_S = 0.05


def _descendants(pid: int) -> list[int]:
    try:
        lists = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it ended meanwhile
        return []
    children = [int(child) for each in lists for child in each]
    return children + [each for child in children for each in _descendants(child)]


def _memory_mb(pid: int, line: str) -> float:
    """Return the memory of a process: ``VmHWM`` at its peak so far, ``VmRSS`` now; 0 once it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(rf"{line}:\s+(\d+) kB", text)
    return 0.0 if found is None else int(found[1]) / 1024


def table_head(*columns: str) -> None:
    """Print the head of a Markdown table."""
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def table_row(*cells: str) -> None:
    """Print one row at once, so that a long benchmark shows where it is."""
    print(f"| {' | '.join(cells)} |", flush=True)
