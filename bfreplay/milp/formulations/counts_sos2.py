"""Counts with piecewise-linear curves as special ordered sets; no nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.curves import add_weighted_curves, kinks, start_counts
from bfreplay.milp.formulations.formulation import NodeMap
from bfreplay.milp.model import Columns, LinearModel, Rows
from bfreplay.milp.problem import AllocationProblem


class CountsSos2:
    """Formulation over node counts: the published model without its nodes, and so without its defect.

    With N = capacity, C_j = current_j and k = change_limit (none: infinite), job j's count lies between
    ``L_j = max(0, C_j - k)`` and ``U_j = min(max_nodes_j, N, C_j + k)``.

    Variables: ``count[j]`` integer in [0, U_j]; ``running[j]``, ``up[j]``, ``down[j]`` binary;
    ``weight[j, b] >= 0`` for the breakpoints b of job j's curve (0, and its kinks from the larger of
    min_nodes_j and L_j to U_j: what lies between is forbidden, so the curve may as well be straight there), an SOS2.

    Maximise ``sum gain_j(b) weight[j, b] - scale_up_loss_j up[j] - scale_down_loss_j down[j]`` subject to

    - ``capacity[0]``: ``sum_j count[j] <= N``
    - ``least[j]``, ``most[j]``: ``min_nodes_j running[j] <= count[j] <= U_j running[j]``
    - ``convex[j]``, ``curve[j]``: ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = count[j]``
    - ``up[j]``: ``count[j] <= C_j + max(0, U_j - C_j) up[j]``
    - ``down[j]``: ``count[j] >= C_j - (C_j - L_j) down[j]``

    Nothing makes ``up`` and ``down`` 0 where they need not be 1 but the losses, which are never negative.

    Size: 4 J + B columns with B <= J (min(K, N) + 1) breakpoints, 6 J + 1 rows, at most 10 J + 2 B entries.

    Source: BFTrainer, arXiv:2106.12091, equations 1 to 16, over counts; special ordered sets are from Beale and
    Tomlin, "Special facilities in a general mathematical programming system for non-convex problems using ordered
    sets of variables", 1970.
    """

    name = "counts_sos2"
    needs_sos = True
    needs_continuous = True
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; the first J columns are the counts."""
        job = np.arange(problem.n_jobs)
        current, limit = problem.current, problem.change_limit
        most = np.minimum(problem.max_nodes, problem.capacity)
        least = np.zeros_like(current)
        if limit is not None:
            most, least = np.minimum(most, current + limit), np.maximum(0, current - limit)

        held = current.astype(np.float64)

        columns, rows = Columns(), Rows()
        count = columns.add("count", job, upper=most.astype(np.float64))
        running = columns.add("running", job)
        up = columns.add("up", job, objective=-problem.scale_up_loss)
        down = columns.add("down", job, objective=-problem.scale_down_loss)

        rows.put(rows.add("capacity", 1, -np.inf, float(problem.capacity)), count, 1.0)
        rows.relate("least", 0.0, np.inf, (count, 1.0), (running, -problem.min_nodes))
        rows.relate("most", -np.inf, 0.0, (count, 1.0), (running, -most))
        points = [_breakpoints(problem.gain[j], int(max(problem.min_nodes[j], least[j])), int(most[j])) for j in job]
        curves = add_weighted_curves(columns, rows, problem.gain, points)
        rows.put(curves.curve_row + job, count, -1.0)
        rows.relate("up", -np.inf, held, (count, 1.0), (up, -np.maximum(most - current, 0)))
        rows.relate("down", held, np.inf, (count, 1.0), (down, current - least))

        start, counts = None, start_counts(problem)
        if counts is not None:
            start = np.zeros(len(columns.names))
            start[count] = counts
            start[running] = counts > 0
            start[down] = counts < current
            start[curves.column] = curves.weights_at(counts)
        return rows.model_of(columns, sets=curves.sets, start=start)

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return the counts, rounded."""
        return np.rint(x[: problem.n_jobs]).astype(np.int64), None


def _breakpoints(gain: NDArray[np.float64], least: int, most: int) -> NDArray[np.int64]:
    """0, and the kinks of ``gain`` from ``least`` to ``most``, where there is any count between them."""
    if most < least:
        return np.zeros(1, dtype=np.int64)
    return np.concatenate((np.zeros(1, dtype=np.int64), least + kinks(gain[least : most + 1])))
