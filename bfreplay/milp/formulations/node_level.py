"""The node-level model, corrected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.formulation import NodeMap
from bfreplay.milp.formulations.node_rows import build_node_model, read_node_model
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem


class NodeLevel:
    """Node level with M = 2 n_idle, the smallest that never binds, in the no-migration rows.

    Its optimum is the true one. Variables, constraints and size: ``node_rows.build_node_model``.
    """

    name = "node_level"
    needs_sos = True
    needs_continuous = True
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model with M = 2 capacity."""
        return build_node_model(problem, migration_constant=2 * problem.capacity)

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return counts and node map."""
        return read_node_model(problem, x)
