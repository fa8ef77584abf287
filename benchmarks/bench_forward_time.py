"""T_fwd = auto against fixed values: three logs, two published job sets, 10, 35 and 70 jobs at once, unlimited work.

Run it: ``python benchmarks/bench_forward_time.py POZIDRIV CURIE [--picture FILE]``, with the two logs as Parquet (their
``bfreplay ingest`` lines are in docs/forward-time.md). Of CEA-Curie the five days from 2012-06-04 are taken.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

from measure import SUMMIT, heading, table_head, table_row

import bfreplay
from bfreplay.campaigns.workloads import load_workload
from bfreplay.datasets import NodeEvents
from bfreplay.replay import ReplaySettings
from bfreplay.workload import JobSet, JobSource

FIXED_S = (5, 10, 15, 20, 30, 40, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 3600, 7200)
MAX_PARALLEL = (10, 35, 70)
JOB_SETS = {
    "ImageNet": ("ImageNet-imgps-Jbnd-1001J.pkl", "ImageNet-imgps-JNPs-1001J.pkl"),
    "HPO": ("hps-shufflenet-Jbnd-1000J.pkl", "hps-shufflenet-JNPs-1000J.pkl"),
}
_DAY_US = 86_400_000_000


def main() -> None:
    """Print the table, and draw the picture where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pozidriv", type=Path)
    parser.add_argument("curie", type=Path)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    june_us = int(datetime(2012, 6, 4, tzinfo=UTC).timestamp()) * 1_000_000
    logs = {
        "Summit": bfreplay.load_events(SUMMIT / "summit-2021-02-node-events.parquet"),
        "pozidriv": bfreplay.load_events(given.pozidriv),
        "CEA-Curie": bfreplay.load_events(given.curie).between(june_us, june_us + 5 * _DAY_US),
    }
    job_sets = {name: load_workload(*(SUMMIT / file for file in files)) for name, files in JOB_SETS.items()}
    print(heading("T_fwd = auto against fixed values"))
    table_head("log", "jobs", "at once", "best fixed, s", "120 s", "auto", "CPU s fixed", "auto (times)")
    curves: dict[tuple[str, str], tuple[list[float], float]] = {}
    for log_name, log in logs.items():
        for set_name, jobs in job_sets.items():
            for most in MAX_PARALLEL:
                of_fixed = [_samples(log, jobs, most, t_fwd_s)[0] for t_fwd_s in FIXED_S]
                seconds_fixed = _samples(log, jobs, most, 120.0)[1]
                _samples(log, jobs, most, "auto")  # loads what is compiled
                of_auto, seconds_auto = _samples(log, jobs, most, "auto")
                best = max(of_fixed)
                losses, auto = [100 * (each / best - 1) for each in of_fixed], 100 * (of_auto / best - 1)
                if most == MAX_PARALLEL[0]:
                    curves[log_name, set_name] = (losses, auto)
                table_row(
                    log_name, set_name, str(most), f"{FIXED_S[of_fixed.index(best)]}",
                    f"{losses[FIXED_S.index(120)]:+.2f} %", f"{auto:+.2f} %", f"{seconds_fixed:.1f}",
                    f"{seconds_auto:.1f} ({seconds_auto / seconds_fixed:.1f})",
                )  # fmt: skip
    if given.picture is not None:
        draw(curves, list(logs), given.picture)


def _samples(log: NodeEvents, jobs: JobSet | JobSource, most: int, t_fwd_s: float | str) -> tuple[float, float]:
    """Samples of a run, and the CPU seconds that it took."""
    begun = process_time()
    run = bfreplay.replay_log(
        log, jobs, bfreplay.BFTrainerPolicy(t_fwd_s), ReplaySettings(most),
        unlimited_work=True, with_efficiency=False, with_bound=False, with_tables=False,
    )  # fmt: skip
    return run.summary["ledger"]["samples"], process_time() - begun


def draw(curves: Mapping[tuple[str, str], tuple[list[float], float]], logs: Sequence[str], file: Path) -> None:
    """One panel a log: what each fixed value loses against the best one, and auto as a line."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "bfreplay"
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    panels = figure.subplots(1, len(logs), sharey=True)
    colours = dict(zip(JOB_SETS, ("#0072b2", "#d55e00"), strict=True))  # told apart by the colour-blind
    for panel, log_name in zip(panels, logs, strict=True):
        for set_name, colour in colours.items():
            losses, auto = curves[log_name, set_name]
            at = losses.index(max(losses))
            panel.plot(FIXED_S, losses, color=colour, marker=".", label=f"{set_name}: fixed")
            panel.plot(FIXED_S[at], losses[at], color=colour, marker="*", markersize=13, linestyle="none",
                       label=f"{set_name}: best fixed")  # fmt: skip
            panel.axhline(auto, color=colour, linestyle="--", label=f"{set_name}: auto")
        panel.set(title=log_name, xscale="log", ylim=(-12, 1.5), xlabel="T_fwd, s")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("samples against the best fixed value, %")
    panels[-1].legend(loc="lower right", fontsize=8)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
