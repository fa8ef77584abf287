"""The job's own objective curve: what the user gave, or the throughput."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.problem import AllocationProblem
from bfreplay.policies.objectives.objective import problem_from
from bfreplay.policies.policy import PolicyState

OWN = "own"
"""Its name, and the spec of the default."""


def own(state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """``weight x O(n)``, in the curve's own unit: BFTrainer's objective (arXiv:2106.12091, section III).

    ``O`` is the job's objective curve (the published ``Os``), the throughput for a job without one. Use it when the
    users' curves say what they want, and say it in one unit: the values of different jobs are added.
    """
    return state.objective


class OwnObjective:
    """``own`` by itself, the default: its numbers were checked when the jobs came in, and are not checked again."""

    spec = OWN

    def problem(self, state: PolicyState, t_fwd_s: float) -> AllocationProblem:
        """``gain_j(n) = t_fwd_s * O_j(n)``.

        While it rescales, a job gives up what it makes now, ``r_j = O_j(current_j)``, or nothing if it runs on fewer
        than ``min_nodes``: so a start from zero is free.
        """
        rate_now = state.objective[np.arange(state.n_jobs), state.current]
        return problem_from(state, t_fwd_s * state.objective, rate_now)

    def describe(self) -> dict[str, object]:
        """It has no parameter."""
        return {"spec": self.spec, "terms": [{"name": OWN, "weight": 1.0, "parameters": {}}]}
