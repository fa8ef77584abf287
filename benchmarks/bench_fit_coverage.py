"""How often all parameters of a fitted law lie in their 95 % intervals: the true coverage, law by law.

Run it: ``python benchmarks/bench_fit_coverage.py [SEEDS]``. Two minutes for the 2,000 seeds that it takes by itself.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from measure import heading, table_head, table_row

from bfreplay.scalability import (
    Amdahl,
    CommunicationStrong,
    CommunicationWeak,
    Gustafson,
    PowerLaw,
    UniversalScalability,
    fit,
)

TRUE = (
    Amdahl(2831.0, 0.02),
    Amdahl(100.0, 0.0),
    Gustafson(120.0, 0.15),
    UniversalScalability(500.0, 0.03, 3e-4),
    UniversalScalability(500.0, 0.03, 0.0),
    PowerLaw(80.0, 0.85),
    CommunicationWeak(300.0, 0.08, 0.004),
    CommunicationWeak(300.0, 0.02, 0.0),
    CommunicationStrong(300.0, 0.02, 2e-4),
)
DESIGNS = (
    ("1 to 64, 3 times", np.repeat([1, 2, 4, 8, 16, 32, 64], 3), 0.04),
    ("1 to 64, once, 5 %", np.array([1, 2, 4, 8, 16, 32, 64]), 0.05),
)


def main(seeds: int) -> None:
    """Print one table."""
    print(heading("Fits of scalability laws: coverage of the simultaneous 95 % intervals"))
    print(
        f"{seeds:,} seeds each, log-normal scatter (4 % where not said); standard error about "
        f"{100 * math.sqrt(0.05 * 0.95 / seeds):.1f} points.\n"
    )
    table_head("law", "measured at", "all inside", "each parameter inside")
    for law in TRUE:
        for design, nodes, scatter in DESIGNS:
            together, apart = 0, np.zeros(len(law.values))
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                found = fit(nodes, law.rates(nodes) * np.exp(scatter * rng.standard_normal(len(nodes))), type(law))
                inside = [low <= value <= high for value, (low, high) in zip(law.values, found.intervals, strict=True)]
                together += all(inside)
                apart += inside
            label = f"{law.law} ({', '.join(f'{value:g}' for value in law.values)})"
            table_row(label, design, f"{together / seeds:.1%}", ", ".join(f"{share:.1%}" for share in apart / seeds))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
