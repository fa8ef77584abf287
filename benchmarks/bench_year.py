"""A month, a quarter and a year of a machine of 9,408 nodes, from the log of its scheduler to the report of a replay.

Run it: ``python benchmarks/bench_year.py month quarter year [--folder DIR]``, with the lengths that are wanted; a year
takes minutes. DIR keeps the logs (``year_log.py``), and what was made of them, for the next time. Each command is
measured once. The picture shows memory against length, from two lengths on.
"""

from __future__ import annotations

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from measure import SUMMIT, Figures, heading, process_tree, table_head, table_row
from year_log import write_log

DAYS = {"month": 30, "quarter": 91, "year": 365}
JOBS = [
    "--jobs",
    str(SUMMIT / "ImageNet-imgps-Jbnd-1001J.pkl"),
    "--curves",
    str(SUMMIT / "ImageNet-imgps-JNPs-1001J.pkl"),
]
PICTURE = Path(__file__).with_name("pictures") / "year-memory.png"


def commands(folder: Path, name: str) -> dict[str, list[str]]:
    """Return the arguments of each command, in order: every one reads what those before it wrote."""
    log, events, run = folder / f"{name}.psv", folder / f"{name}.parquet", folder / f"{name}-run"
    page = folder / f"{name}.html"
    at_once = ["--max-parallel", "35", "--unlimited-work"]
    return {
        "ingest": ["ingest", "slurm", str(log), "--tz", "UTC", "--force", "-o", str(events)],
        "describe": ["describe", str(events)],
        "replay": ["replay", str(events), *JOBS, *at_once, "--force", "--out", str(run)],
        "report": ["report", str(run), "--force", "-o", str(page)],
    }


def draw(found: dict[str, dict[str, Figures]]) -> None:
    """Draw the peak of each command against the length of the log."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    lengths = list(found)
    for command in commands(Path(), ""):
        peaks = [found[name][command].peak_mb + found[name][command].peak_children_mb for name in lengths]
        axes.plot([DAYS[name] for name in lengths], peaks, marker="o", label=command)
    axes.set_xlabel("length of the log (days, 5,500 jobs each)")
    axes.set_ylabel("peak memory (MB)")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=120)
    print(f"\nwrote {PICTURE.name}")


def main(names: list[str], folder: Path, only: list[str]) -> None:
    """Print one table, and draw the picture."""
    print(heading("A year of 9,408 nodes: log of the scheduler to report (35 jobs at once, unlimited work)"))
    table_head("log", "command", "wall s", "CPU s", "peak MB", "children's peak MB")
    found: dict[str, dict[str, Figures]] = {}
    for name in names:
        log = folder / f"{name}.psv"
        if not log.exists():  # in a process of its own: its memory would count as that of every later one
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                pool.submit(write_log, log, DAYS[name]).result()
        found[name] = {}
        for command, arguments in commands(folder, name).items():
            if command in only:
                figures = found[name][command] = process_tree(arguments)
                peaks = f"{figures.peak_mb:.0f}", f"{figures.peak_children_mb:.0f}"
                table_row(name, command, f"{figures.wall_s:.1f}", f"{figures.cpu_s:.1f}", *peaks)
    if len(names) > 1 and set(only) == set(commands(folder, "")):
        draw(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lengths", nargs="+", choices=DAYS)
    parser.add_argument("--folder", type=Path, help="keep logs and results here")
    parser.add_argument("--only", nargs="+", choices=commands(Path(), ""), default=list(commands(Path(), "")))
    given = parser.parse_args()
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
        main(given.lengths, given.folder, given.only)
    else:
        with tempfile.TemporaryDirectory() as name:
            main(given.lengths, Path(name), given.only)
