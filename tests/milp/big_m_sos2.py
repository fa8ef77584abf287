"""A formulation with special ordered sets and a big M, on which naive calls of CBC go wrong: the first ``counts_sos2``.

Its curves are of gains alone; binaries with a big M charge the loss of a job that gains or loses nodes.
"""

from __future__ import annotations

import numpy as np

from bfreplay.milp.formulations.curves import add_weighted_curves, kinks
from bfreplay.milp.formulations.formulation import start_counts
from bfreplay.milp.model import Columns, Rows


class BigMSos2:
    name = "big_m_sos2"
    needs_sos = True
    needs_continuous = True
    change_limited = False
    needs_constant_losses = True

    def build(self, problem):
        index = np.arange(problem.n_jobs)
        current, limit = problem.current, problem.change_limit
        upper = np.minimum(problem.max_nodes, problem.capacity)
        lower = np.zeros_like(current)
        if limit is not None:
            upper, lower = np.minimum(upper, current + limit), np.maximum(0, current - limit)

        columns, rows = Columns(), Rows()
        count = columns.add("count", index, upper=upper.astype(np.float64))
        running = columns.add("running", index)
        scales_up = columns.add("up", index, objective=-problem.scale_up_loss)
        scales_down = columns.add("down", index, objective=-problem.scale_down_loss)

        rows.put(rows.add("capacity", 1, -np.inf, float(problem.capacity)), count, 1.0)
        rows.constrain("least", 0.0, np.inf, (count, 1.0), (running, -problem.min_nodes))
        rows.constrain("most", -np.inf, 0.0, (count, 1.0), (running, -upper))
        points = [_breakpoints(problem.gain[j], int(max(problem.min_nodes[j], lower[j])), int(upper[j])) for j in index]
        curves = add_weighted_curves(columns, rows, problem.gain, points)
        rows.put(curves.curve_row + index, count, -1.0)
        rows.constrain("up", -np.inf, current, (count, 1.0), (scales_up, -np.maximum(upper - current, 0)))
        rows.constrain("down", current, np.inf, (count, 1.0), (scales_down, current - lower))

        start, counts = None, start_counts(problem)
        if counts is not None:
            start = np.zeros(len(columns.names))
            start[count] = counts
            start[running] = counts > 0
            start[scales_down] = counts < current
            start[curves.column] = curves.weights_at(counts)
        return rows.model_of(columns, sets=curves.sets, start=start)

    def read(self, problem, x):
        return np.rint(x[: problem.n_jobs]).astype(np.int64), None


def _breakpoints(gain, least, most):
    """0, and the kinks of ``gain`` from ``least`` to ``most``, where there is any count between them."""
    if most < least:
        return np.zeros(1, dtype=np.int64)
    return np.concatenate((np.zeros(1, dtype=np.int64), least + kinks(gain[least : most + 1])))
