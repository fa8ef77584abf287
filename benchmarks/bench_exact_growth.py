"""How one exact decision grows with the number of jobs, of idle nodes, and of nodes that one job may have.

Run it: ``python benchmarks/bench_exact_growth.py``. Writes ``benchmarks/pictures/exact-growth.png`` and ``.svg``.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
from decisions import distinct, realistic
from matplotlib.figure import Figure
from measure import heading, table_head, table_row

from bfreplay.milp import ExactSolver, Quality

PICTURES = Path(__file__).parent / "pictures"
DECISIONS = 15
T_FWD_S = (10.0, 120.0, 600.0)
SERIES = {
    # what grows: its points, (jobs, idle nodes, most nodes of one job) at a point, and the label of the axis
    "jobs": (
        (10, 30, 100, 300, 1_000, 3_000),
        lambda n_jobs: (n_jobs, 10 * n_jobs, 64),
        "jobs J (10 idle nodes a job, at most 64 for one)",
    ),
    "idle nodes": (
        (100, 300, 1_000, 3_000, 10_000, 30_000),
        lambda n_idle: (100, n_idle, 1_024),
        "idle nodes N (100 jobs, at most 1,024 for one)",
    ),
    "largest job": (
        (16, 64, 256, 1_024, 2_048),
        lambda most: (300, 3_000, most),
        "most nodes of one job K (300 jobs, 3,000 idle nodes)",
    ),
}
KINDS = {"seven models": realistic, "every job another curve": distinct}


def main() -> None:
    """Print one table and draw it."""
    print(heading("Growth of one exact decision (ms, build and solve)"))
    print(f"{DECISIONS} decisions a cell, every one proven optimal; median (95th percentile).\n")
    table_head("grows", "size", *KINDS)
    solver = ExactSolver()
    for make in KINDS.values():
        solver.solve(make(3, 20, 8, 60.0, np.random.default_rng(0)))
    figure = Figure(figsize=(12, 4), layout="constrained")
    for axes, (grows, (points, size_of, label)) in zip(figure.subplots(1, 3, sharey=True), SERIES.items(), strict=True):
        medians: dict[str, list[float]] = {kind: [] for kind in KINDS}
        tails: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for point in points:
            cells = []
            for kind, make in KINDS.items():
                rng = np.random.default_rng(4)
                times = []
                for k in range(DECISIONS):
                    solution = solver.solve(make(*size_of(point), T_FWD_S[k % 3], rng))
                    assert solution.quality is Quality.PROVEN
                    times.append((solution.build_s + solution.solve_s) * 1e3)
                medians[kind].append(statistics.median(times))
                tails[kind].append(statistics.quantiles(times, n=20)[-1])
                cells.append(f"{medians[kind][-1]:.3f} ({tails[kind][-1]:.3f})")
            table_row(grows, f"{point:,}", *cells)
        for kind, style in zip(KINDS, (("#0072B2", "o"), ("#D55E00", "s")), strict=True):
            axes.loglog(points, medians[kind], color=style[0], marker=style[1], label=f"{kind}: median")
            axes.loglog(points, tails[kind], color=style[0], linestyle=":", label=f"{kind}: 95th percentile")
        axes.set_xlabel(label)
        axes.grid(True, which="both", alpha=0.25)
    figure.axes[0].set_ylabel("one exact decision (ms)")
    figure.axes[0].legend(fontsize=8)
    PICTURES.mkdir(exist_ok=True)
    for ending in ("png", "svg"):
        figure.savefig(
            PICTURES / f"exact-growth.{ending}", dpi=120, metadata={"Date": None} if ending == "svg" else None
        )


if __name__ == "__main__":
    main()
