"""All whole decisions of a small problem, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.verify import objective_of


def all_decisions(problem: AllocationProblem) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every feasible answer with its objective."""
    choices = [np.flatnonzero(np.isfinite(row)).tolist() for row in problem.value]
    for counts in itertools.product(*choices):
        objective = objective_of(problem, np.array(counts, dtype=np.int64))
        if np.isfinite(objective):
            yield counts, objective


def best(problem: AllocationProblem, allowed=lambda counts: True) -> float | None:
    """Objective of the best answer that ``allowed`` lets pass; ``None`` where there is none."""
    return max((objective for counts, objective in all_decisions(problem) if allowed(counts)), default=None)
