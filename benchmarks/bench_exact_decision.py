"""One exact decision at three sizes, each proven optimal; small ones checked against the dynamic program.

Run it: ``python benchmarks/bench_exact_decision.py``.
"""

from __future__ import annotations

import statistics
from time import perf_counter

import numpy as np
from decisions import optimum_by_dynamic_program, realistic
from measure import heading, table_head, table_row

from bfreplay.milp import ExactSolver, Quality

SIZES = ((10, 129, 64), (10, 640, 64), (35, 640, 64), (70, 4_734, 64), (100, 4_000, 64), (1_000, 10_000, 1_024))
T_FWD_S = (10.0, 120.0, 600.0)
DECISIONS = 40


def main() -> None:
    """Print one table."""
    print(heading("One exact decision (ms)"))
    print("build: the value table; solve: bound and core. Every decision proven optimal.\n")
    table_head("jobs x idle nodes, max_nodes", "build", "solve median", "solve 95 %", "solve max", "dynamic program")
    solver = ExactSolver()
    solver.solve(realistic(3, 20, 8, 60.0, np.random.default_rng(0)))
    for n_jobs, n_idle, max_nodes in SIZES:
        rng = np.random.default_rng(1)
        build, solve, plain = [], [], []
        for k in range(DECISIONS):
            problem = realistic(n_jobs, n_idle, max_nodes, T_FWD_S[k % 3], rng)
            solution = solver.solve(problem)
            assert solution.quality is Quality.PROVEN
            build.append(solution.build_s * 1e3)
            solve.append(solution.solve_s * 1e3)
            if n_jobs <= 100 and k < 6:
                started = perf_counter()
                _, objective = optimum_by_dynamic_program(problem.value, problem.capacity)
                plain.append((perf_counter() - started) * 1e3)
                assert abs(objective - solution.objective) <= 1e-9 * objective
        tail = statistics.quantiles(solve, n=20)[-1]
        checked = f"{statistics.median(plain):.1f}" if plain else "-"
        figures = (statistics.median(build), statistics.median(solve), tail, max(solve))
        table_row(f"{n_jobs:,} x {n_idle:,}, {max_nodes:,}", *(f"{figure:.3f}" for figure in figures), checked)


if __name__ == "__main__":
    main()
