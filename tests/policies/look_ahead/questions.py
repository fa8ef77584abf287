"""What a policy asks its solver, kept."""

from __future__ import annotations

import numpy as np

from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Solution
from bfreplay.policies import PolicyState
from tests.policies.small_states import SECOND, state_of


class Listening:
    """The exact solver; ``gains`` are what the counts were worth in each question."""

    def __init__(self) -> None:
        self._solver = ExactSolver()
        self.gains: list[np.ndarray] = []

    def solve(self, problem: AllocationProblem) -> Solution:
        self.gains.append(problem.gain.copy())
        return self._solver.solve(problem)

    def describe(self) -> dict[str, object]:
        return self._solver.describe()

    def close(self) -> None:
        self._solver.close()


def pools(*changes: tuple[float, int], **fields: object) -> list[PolicyState]:
    """States of two jobs, (seconds, idle nodes) each."""
    rates = [[0.0, 10.0, 18.0, 24.0], [0.0, 12.0, 20.0, 21.0]]
    given = {"current": [1, 0], "scale_up_cost_s": [20.0, 5.0], "scale_down_cost_s": [5.0, 5.0], **fields}
    return [state_of(rates, n_idle, time_us=round(at_s * SECOND), **given) for at_s, n_idle in changes]
