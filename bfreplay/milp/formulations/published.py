"""The node-level model as published, defect included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.formulation import NodeMap
from bfreplay.milp.formulations.node_rows import build_node_model, read_node_model
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem


class Published:
    """Node level with the published M = n_idle + 1 in the no-migration rows.

    No job can then gain, or lose, more than ``floor((n_idle + 1) / 2)`` nodes in one decision
    (``published_change_limit``): its optimum may be worse than the true one. For parity with the published program;
    ``node_level`` is the same model put right. Variables, constraints and size: ``node_rows.build_node_model``.
    """

    name = "published"
    needs_sos = True
    needs_continuous = True
    change_limited = True

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model with M = capacity + 1."""
        return build_node_model(problem, migration_constant=problem.capacity + 1)

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return counts and node map."""
        return read_node_model(problem, x)
