"""The published formulation against count formulations, on every back end that takes them: the same decisions.

Run it: ``python benchmarks/bench_formulations.py [TIME_LIMIT_S]``. Half an hour at most.
"""

from __future__ import annotations

import statistics
import sys

import numpy as np
from decisions import realistic
from measure import heading, table_head, table_row

from bfreplay.errors import SolverUnavailableError
from bfreplay.milp import AllocationProblem, ExactSolver, MilpSolver, ProcessStatus, Quality
from bfreplay.milp.isolation import IsolatedBackend

SIZES = {(10, 20): 9, (10, 50): 9, (10, 100): 5, (10, 200): 3, (35, 640): 5, (70, 4_734): 5}
"""Jobs and idle nodes, and how many decisions."""

LARGEST_NODE_LEVEL = 200
"""Idle nodes beyond which node-level models are not tried: they have two binaries for every job and node."""

NODE_LEVEL = ("published", "node_level")
PAIRS = [
    ("published", "cbc"),
    ("published", "gurobi"),
    ("node_level", "cbc"),
    ("node_level", "gurobi"),
    ("counts_sos2", "cbc"),
    ("counts_sos2", "gurobi"),
    ("counts_segments", "cbc"),
    ("counts_segments", "highs"),
    ("counts_segments", "gurobi"),
    ("choices", "cbc"),
    ("choices", "highs"),
    ("choices", "gurobi"),
    ("choices_reduced", "cbc"),
    ("choices_reduced", "highs"),
    ("choices_reduced", "gurobi"),
]


def _times(ratio: float) -> str:
    """Three digits, written out."""
    return f"{float(f'{ratio:.3g}'):,.{0 if ratio >= 100 else 1 if ratio >= 10 else 2}f}"


def main(time_limit_s: float) -> None:
    """Print one table."""
    print(heading("Formulations and back ends: milliseconds a decision, build and solve"))
    print(
        f"Median over the decisions of a size; time limit {time_limit_s:.0f} s. 2/5: proven on two of five, the others "
        "counted as the time limit.\nBelow it, how many times faster than `published` on cbc.\n"
    )
    table_head("solver", *(f"{n_jobs} x {n_idle:,}" for n_jobs, n_idle in SIZES))
    rng = np.random.default_rng(2)
    decisions = {
        (n_jobs, n_idle): [realistic(n_jobs, n_idle, 64, 120.0, rng) for _ in range(many)]
        for (n_jobs, n_idle), many in SIZES.items()
    }
    exact = ExactSolver()
    exact.solve(realistic(3, 20, 8, 60.0, rng))
    published: dict[tuple[int, int], float] = {}
    workers = {name: IsolatedBackend(name) for name in dict.fromkeys(name for _, name in PAIRS)}
    for formulation, backend in PAIRS:
        try:
            solver = MilpSolver(
                formulation, backend, worker=workers[backend], fallback="none", referee=exact, time_limit_s=time_limit_s
            )
        except SolverUnavailableError as error:
            print(f"{formulation} on {backend}: {error}", file=sys.stderr)
            continue
        solver.solve(realistic(2, 4, 4, 60.0, np.random.default_rng(0)))  # starts the worker
        cells = []
        for size, problems in decisions.items():
            if formulation in NODE_LEVEL and size[1] > LARGEST_NODE_LEVEL:
                cells.append("not tried")
                continue
            median, cell = _measured(solver, problems, time_limit_s)
            if (formulation, backend) == PAIRS[0]:
                published[size] = median
            ratio = published.get(size, 0.0) / median if median else 0.0
            cells.append(f"{cell}, x {_times(ratio)}" if ratio and (formulation, backend) != PAIRS[0] else cell)
        table_row(f"{formulation} on {backend}", *cells)
    cells = []
    for size, problems in decisions.items():
        median = statistics.median(_seconds(exact, problem) for problem in problems) * 1e3
        cells.append(f"{median:.3f}" + (f", x {_times(published[size] / median)}" if size in published else ""))
    table_row("exact", *cells)
    for worker in workers.values():
        worker.close()


def _measured(solver: MilpSolver, problems: list[AllocationProblem], time_limit_s: float) -> tuple[float, str]:
    """Median milliseconds (0 when refused), and what to print."""
    times, proven = [], 0
    for problem in problems:
        solution = solver.solve(problem)
        told = solution.rejected or solution
        if told.process_status is ProcessStatus.REFUSED:
            return 0.0, "too large"
        assert told.quality is not Quality.WRONG, told.message
        proven += told.quality is Quality.PROVEN
        times.append(told.build_s + told.solve_s if told.quality is Quality.PROVEN else time_limit_s)
    median = statistics.median(times) * 1e3
    digits = ".2f" if median < 100 else ",.0f"
    return median, f"{median:{digits}}" + (f" ({proven}/{len(problems)})" if proven < len(problems) else "")


def _seconds(exact: ExactSolver, problem: AllocationProblem) -> float:
    solution = exact.solve(problem)
    return solution.build_s + solution.solve_s


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
