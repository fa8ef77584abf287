"""Node-level against count formulations on the same back end: the same decisions, side by side.

Run it: ``python benchmarks/bench_formulations_on_cbc.py``.
"""

from __future__ import annotations

import statistics

import numpy as np
from decisions import realistic
from measure import heading, table_head, table_row

from bfreplay.milp import ExactSolver, solver_of

SIZES = ((10, 20), (10, 50), (10, 100))
DECISIONS = 12
TIME_LIMIT_S = 120.0


def main() -> None:
    """Print one table."""
    print(heading("Formulations on CBC (python-mip), seconds a decision, build and solve"))
    print(f"{DECISIONS} decisions a size; time limit {TIME_LIMIT_S:.0f} s; exact: the default solver.\n")
    table_head("jobs x idle nodes", "exact", "choices", "node_level", "published", "node_level / choices")
    names = ("choices", "node_level", "published")
    solvers = {name: solver_of("cbc", name, time_limit_s=TIME_LIMIT_S) for name in names}
    exact = ExactSolver()
    for solver in (exact, *solvers.values()):
        solver.solve(realistic(2, 4, 4, 60.0, np.random.default_rng(0)))
    for n_jobs, n_idle in SIZES:
        rng = np.random.default_rng(2)
        seconds: dict[str, list[float]] = {name: [] for name in ("exact", *names)}
        unproven = dict.fromkeys(names, 0)
        for _ in range(DECISIONS):
            problem = realistic(n_jobs, n_idle, 64, 120.0, rng)
            best = exact.solve(problem)
            seconds["exact"].append(best.build_s + best.solve_s)
            for name, solver in solvers.items():
                solution = solver.solve(problem)
                tried = solution.rejected or solution
                seconds[name].append(tried.build_s + tried.solve_s)
                unproven[name] += tried.quality != "proven"
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        cells = [f"{medians['exact'] * 1e3:.3f} ms"] + [
            f"{medians[name]:.3f}" + (f" ({unproven[name]} not proven)" if unproven[name] else "") for name in names
        ]
        ratio = medians["node_level"] / medians["choices"]
        table_row(f"{n_jobs} x {n_idle}", *cells, f"{ratio:.2f}")
    for solver in solvers.values():
        solver.close()


if __name__ == "__main__":
    main()
