"""What the benchmarks share: where the data are, machine and date for the report, and whole-process figures."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

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


def table_head(*columns: str) -> None:
    """Print the head of a Markdown table."""
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def table_row(*cells: str) -> None:
    """Print one row at once, so that a long benchmark shows where it is."""
    print(f"| {' | '.join(cells)} |", flush=True)
