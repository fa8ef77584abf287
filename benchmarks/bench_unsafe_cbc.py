"""What becomes of the answers of a CBC that aborts, hangs and lies (mip 2.0.0 with cbcbox 2.935).

Run it: ``make unsafe-cbc``, then ``python benchmarks/bench_unsafe_cbc.py [ENVIRONMENT]``. Five minutes.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
from decisions import realistic
from measure import heading, table_head, table_row

from bfreplay.milp import ExactSolver, MilpSolver, ProcessStatus, Quality
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.testing.decisions import random_decisions

ROOT = Path(__file__).resolve().parents[1]
NAIVE = "tests.milp.naive_cbc:NaiveCbc"
FORMULATIONS = (
    "tests.milp.big_m_sos2:BigMSos2",
    "counts_sos2",
    "node_level",
    "published",
    "choices",
    "choices_reduced",
)
TIME_LIMIT_S, GRACE_S = 3.0, 2.0


def main(environment: Path) -> None:
    """Print one table."""
    rng = np.random.default_rng(0)
    larger = [realistic(10, 50, 64, 120.0, rng) for _ in range(20)]
    small = [problem for problem in random_decisions(60) if ExactSolver().solve(problem).counts is not None][:40]
    print(heading("An unsafe CBC in a worker: what becomes of its answers"))
    print(
        f"Naive: python-mip's own calls and CBC's own settings. 2.935: mip 2.0.0, as `pip install mip` brings it. "
        f"{len(small)} small random decisions, and 20 of 10 jobs x 50 nodes (not for published). {TIME_LIMIT_S:.0f} s, "
        f"and {GRACE_S:.0f} s of grace. Every fallback was the exact solver's answer.\n"
    )
    table_head("formulation", "CBC", "proven", "feasible", "wrong", "crashed", "hung", "no answer", "workers started")
    for formulation in FORMULATIONS:
        decisions = small if formulation == "published" else [*larger, *small]
        for label, backend, python in (
            ("naive, 2.935", NAIVE, environment / "bin" / "python"),
            ("naive, build in use", NAIVE, None),
            ("bfreplay's", "cbc", None),
        ):
            with IsolatedBackend(backend, python=python, grace_s=GRACE_S) as worker:
                solver = MilpSolver(
                    formulation, backend, worker=worker, referee=ExactSolver(), time_limit_s=TIME_LIMIT_S
                )
                outcomes: Counter[str] = Counter()
                for problem in decisions:
                    solution = solver.solve(problem)
                    assert solution.counts is not None  # the decision was made, whatever CBC did
                    told = solution.rejected or solution
                    outcomes[_outcome(told.process_status, told.quality)] += 1
                row = [outcomes[kind] for kind in ("proven", "feasible", "wrong", "crashed", "hung", "none")]
                table_row(formulation, label, *map(str, row), str(worker.starts))


def _outcome(process: ProcessStatus, quality: Quality) -> str:
    if process is ProcessStatus.CRASHED:
        return "crashed"
    if process is ProcessStatus.TIMED_OUT:
        return "hung"
    return quality.value


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".venv-unsafe-cbc")
