"""T_fwd = auto against fixed values: three logs, two published job sets, 10, 35 and 70 jobs at once, work without end.

Run it: ``python benchmarks/bench_forward_time.py [--picture FILE] [--logs ...] [--parallel ...]``. On pozidriv, two
days long, one decision taken otherwise changes all that follow: its figures are means over five windows that start ten
minutes apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time

from measure import heading, table_head, table_row
from real_logs import JOB_SETS, published_jobs, real_logs

from bfreplay import BFTrainerPolicy, JobSet, LookAheadPolicy, NodeEvents, Policy, ReplaySettings, replay_log

FIXED_S = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1800, 7200)
_TEN_MINUTES_US = 600_000_000


def main() -> None:
    """Print the table, and draw the picture where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--parallel", default="10,35,70", help="Jobs at once, with commas between.")
    parser.add_argument("--logs", help="Some of them, with commas between.")
    given = parser.parse_args()
    parallel = [int(each) for each in given.parallel.split(",")]
    wanted = None if given.logs is None else given.logs.split(",")
    logs = {name: [log] for name, log in real_logs().items() if wanted is None or name in wanted}
    if "pozidriv" in logs:
        (whole,) = logs["pozidriv"]
        logs["pozidriv"] = [
            whole.between(whole.window_start_us + k * _TEN_MINUTES_US, whole.window_end_us) for k in range(5)
        ]
    print(heading("T_fwd = auto against fixed values"))
    table_head("log", "jobs", "at once", "best fixed, s", "120 s", "auto", "look-ahead", "CPU s fixed", "auto (times)")
    curves: dict[tuple[str, str], tuple[list[float], float]] = {}
    for log_name, windows in logs.items():
        for set_name in JOB_SETS:
            jobs = published_jobs(set_name)
            for most in parallel:
                of_fixed = [_mean(windows, jobs, most, t_fwd_s)[0] for t_fwd_s in FIXED_S]
                seconds_fixed = _mean(windows[:1], jobs, most, 120.0)[1]
                _mean(windows[:1], jobs, most, "auto")  # loads what is compiled
                of_auto, seconds_auto = _mean(windows, jobs, most, "auto")
                ahead = _mean(windows, jobs, most, None)[0] if most == parallel[0] else None
                best = max(of_fixed)
                losses, auto = [100 * (each / best - 1) for each in of_fixed], 100 * (of_auto / best - 1)
                if most == parallel[0]:
                    curves[log_name, set_name] = (losses, auto)
                table_row(
                    log_name,
                    set_name,
                    str(most),
                    f"{FIXED_S[of_fixed.index(best)]}",
                    f"{losses[FIXED_S.index(120)]:+.2f} %",
                    f"{auto:+.2f} %",
                    "" if ahead is None else f"{100 * (ahead / best - 1):+.2f} %",
                    f"{seconds_fixed:.1f}",
                    f"{seconds_auto:.1f} ({seconds_auto / seconds_fixed:.1f})",
                )
    if given.picture is not None:
        draw(curves, list(logs), given.picture)


def _mean(windows: Sequence[NodeEvents], jobs: JobSet, most: int, t_fwd_s: float | str | None) -> tuple[float, float]:
    """Samples per idle node-hour, and CPU seconds of a run, means over the windows; look-ahead for ``None``."""
    begun = process_time()
    shares = []
    for log in windows:
        policy: Policy = LookAheadPolicy() if t_fwd_s is None else BFTrainerPolicy(t_fwd_s)
        ledger = replay_log(
            log,
            jobs,
            policy,
            ReplaySettings(most),
            unlimited_work=True,
            efficiency=False,
            bound=False,
            with_tables=False,
        ).summary["ledger"]
        shares.append(ledger["samples"] / ledger["node_hours"]["idle"])
    return sum(shares) / len(shares), (process_time() - begun) / len(shares)


def draw(curves: Mapping[tuple[str, str], tuple[list[float], float]], logs: Sequence[str], file: Path) -> None:
    """One panel a log: what each fixed value loses against the best one, and auto as a line."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "bfreplay"
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    panels = figure.subplots(1, len(logs), sharey=True, squeeze=False)[0]
    colours = dict(zip(JOB_SETS, ("#0072b2", "#d55e00"), strict=True))  # told apart by the colour-blind
    for panel, log_name in zip(panels, logs, strict=True):
        for set_name, colour in colours.items():
            losses, auto = curves[log_name, set_name]
            at = losses.index(max(losses))
            panel.plot(FIXED_S, losses, color=colour, marker=".", label=f"{set_name}: fixed")
            panel.plot(
                FIXED_S[at],
                losses[at],
                color=colour,
                marker="*",
                markersize=13,
                linestyle="none",
                label=f"{set_name}: best fixed",
            )
            panel.axhline(auto, color=colour, linestyle="--", label=f"{set_name}: auto")
        panel.set(title=log_name, xscale="log", ylim=(-12, 1.5), xlabel="T_fwd, s")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("samples against the best fixed value, %")
    panels[-1].legend(loc="lower right", fontsize=8)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
