"""What it costs to solve in a worker process: the same back end with and without one, and a worker's start.

Run it: ``python benchmarks/bench_isolation.py``.
"""

from __future__ import annotations

import statistics
from time import perf_counter

import numpy as np
from decisions import realistic
from measure import heading, table_head, table_row

from bfreplay.milp import ExactSolver, MilpSolver, SolveOptions
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.isolation import IsolatedBackend

PAIRS = (("choices_reduced", "highs"), ("choices_reduced", "cbc"), ("choices", "highs"), ("node_level", "cbc"))
SIZE = (10, 100)
DECISIONS = 60
STARTS = 5


def main() -> None:
    """Print two tables."""
    print(heading("Isolation: ms a decision, in this process and in a worker"))
    print(f"{SIZE[0]} jobs x {SIZE[1]} idle nodes, {DECISIONS} decisions, one after the other in turn; medians.\n")
    table_head("pair", "entries of A", "in process", "in a worker", "median of the differences")
    rng = np.random.default_rng(6)
    problems = [realistic(*SIZE, 64, 120.0, rng) for _ in range(DECISIONS)]
    for formulation, backend in PAIRS:
        inside, apart = (
            MilpSolver(formulation, backend, isolated=isolated, fallback="none", referee=ExactSolver())
            for isolated in (False, True)
        )
        for solver in (inside, apart):
            solver.solve(problems[0])
        seconds: dict[bool, list[float]] = {False: [], True: []}
        entries = []
        for k, problem in enumerate(problems):
            for solver in (inside, apart) if k % 2 else (apart, inside):
                solution = solver.solve(problem)
                seconds[solver is apart].append((solution.build_s + solution.solve_s) * 1e3)
                entries.append(solution.size.entries if solution.size else 0)
        apart.close()
        differences = [b - a for a, b in zip(seconds[False], seconds[True], strict=True)]
        medians = (statistics.median(seconds[False]), statistics.median(seconds[True]), statistics.median(differences))
        table_row(f"{formulation} on {backend}", f"{statistics.median(entries):,.0f}", *(f"{m:.2f}" for m in medians))
    print()
    table_head("back end", "start of a worker and its first decision, s")
    model = formulation_of("choices_reduced").build(problems[0])
    for backend in ("highs", "cbc"):
        starts = []
        for _ in range(STARTS):
            with IsolatedBackend(backend) as worker:
                started = perf_counter()
                worker.solve(model, SolveOptions(10.0))
                starts.append(perf_counter() - started)
        table_row(backend, f"{statistics.median(starts):.2f}")


if __name__ == "__main__":
    main()
