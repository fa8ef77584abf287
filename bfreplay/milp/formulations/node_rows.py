"""The node-level model: which node goes to which job, with SOS2 curves and the no-migration rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.entries import Rows
from bfreplay.milp.formulations.formulation import NodeMap
from bfreplay.milp.formulations.kinks import kinks
from bfreplay.milp.model import LinearModel, SpecialOrderedSet
from bfreplay.milp.problem import AllocationProblem


@dataclass(frozen=True, slots=True)
class Columns:
    """Where each kind of variable starts: x (J * N), count (J), running (J), gained (J), lost (J), weights (B)."""

    n_jobs: int
    n_nodes: int

    @property
    def count(self) -> int:
        """First ``count[j]``."""
        return self.n_jobs * self.n_nodes

    @property
    def running(self) -> int:
        """First ``running[j]``."""
        return self.count + self.n_jobs

    @property
    def gained(self) -> int:
        """First ``gained[j]``."""
        return self.running + self.n_jobs

    @property
    def lost(self) -> int:
        """First ``lost[j]``."""
        return self.gained + self.n_jobs

    @property
    def weight(self) -> int:
        """First ``weight[j, b]``."""
        return self.lost + self.n_jobs


def held_nodes(problem: AllocationProblem) -> NDArray[np.bool_]:
    """``(J, N)``: which abstract nodes each job holds now.

    Nodes are interchangeable, so the ones held are numbered consecutively in job order and free ones come last.
    """
    end = np.cumsum(problem.current)
    node = np.arange(problem.capacity)
    return (node >= (end - problem.current)[:, None]) & (node < end[:, None])


def build_node_model(problem: AllocationProblem, migration_constant: int) -> LinearModel:
    """Build the node-level model with ``migration_constant`` as M of the no-migration rows.

    Variables (N = capacity): ``x[j, n]`` binary, job j gets node n; ``count[j]``; ``running[j]``, ``gained[j]``,
    ``lost[j]`` binary; ``weight[j, b] >= 0`` for the breakpoints b of job j's curve (its kinks on
    0..min(max_nodes, N)), an SOS2.

    Maximise ``sum gain_j(b) weight[j, b] - scale_up_loss_j gained[j] - scale_down_loss_j lost[j]`` subject to

    - ``node[n]``: ``sum_j x[j, n] <= 1``
    - ``count[j]``: ``sum_n x[j, n] = count[j]``
    - ``least[j]``, ``most[j]``: ``min_nodes_j running[j] <= count[j] <= max_nodes_j running[j]``
    - ``convex[j]``, ``curve[j]``: ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = count[j]``
    - ``gain[j]``, ``loss[j]``: with G_j (L_j) the number of nodes that job j gets and does not hold (holds and does
      not get), ``G_j + L_j <= (count_j - current_j) + M lost_j`` and ``G_j + L_j <= (current_j - count_j) + M
      gained_j``. As ``count_j - current_j = G_j - L_j`` they are ``2 L_j <= M lost_j`` and ``2 G_j <= M gained_j``
    - ``either[j]``: ``gained[j] + lost[j] <= 1``: nothing migrates

    The last three kinds cap every change at ``floor(M / 2)`` nodes. ``problem.change_limit`` goes the same way: M is
    at most twice the limit.

    Size: J (N + 4) + B columns with B <= J (min(K, N) + 1) breakpoints (about 8 a job for published curves),
    N + 8 J rows, 3 J N + 2 B + 10 J entries at most.

    Source: BFTrainer, arXiv:2106.12091, equations 1 to 16; no-migration rows as measured in the published program.
    """
    jobs, nodes = problem.n_jobs, problem.capacity
    at = Columns(jobs, nodes)
    job = np.arange(jobs)
    x = np.arange(jobs * nodes).reshape(jobs, nodes)
    held = held_nodes(problem)
    limit = migration_constant if problem.change_limit is None else min(migration_constant, 2 * problem.change_limit)

    points = [kinks(problem.gain[j, : min(int(problem.max_nodes[j]), nodes) + 1]) for j in range(jobs)]
    sizes = np.array([len(p) for p in points])
    owner = np.repeat(job, sizes)
    point = np.concatenate(points)
    weight = at.weight + np.arange(point.shape[0])

    rows = Rows()
    first = rows.add("node", nodes, -np.inf, 1.0)
    rows.put(first + np.arange(nodes), x, 1.0)
    first = rows.add("count", jobs, 0.0, 0.0)
    rows.put((first + job)[:, None], x, 1.0)
    rows.put(first + job, at.count + job, -1.0)
    first = rows.add("least", jobs, 0.0, np.inf)
    rows.put(first + job, at.count + job, 1.0)
    rows.put(first + job, at.running + job, -problem.min_nodes.astype(np.float64))
    first = rows.add("most", jobs, -np.inf, 0.0)
    rows.put(first + job, at.count + job, 1.0)
    rows.put(first + job, at.running + job, -problem.max_nodes.astype(np.float64))
    first = rows.add("convex", jobs, 1.0, 1.0)
    rows.put(first + owner, weight, 1.0)
    first = rows.add("curve", jobs, 0.0, 0.0)
    rows.put((first + owner)[point > 0], weight[point > 0], point[point > 0].astype(np.float64))
    rows.put(first + job, at.count + job, -1.0)
    first = rows.add("gain", jobs, -np.inf, 0.0)
    free_job, free_node = np.nonzero(~held)
    rows.put(first + free_job, x[free_job, free_node], 2.0)
    rows.put(first + job, at.gained + job, -float(limit))
    first = rows.add(
        "loss", jobs, -np.inf, -2.0 * problem.current.astype(np.float64)
    )  # 2 (current - held and kept) <= M lost
    held_job, held_node = np.nonzero(held)
    rows.put(first + held_job, x[held_job, held_node], -2.0)
    rows.put(first + job, at.lost + job, -float(limit))
    first = rows.add("either", jobs, -np.inf, 1.0)
    rows.put(first + job, at.gained + job, 1.0)
    rows.put(first + job, at.lost + job, 1.0)

    n_columns = at.weight + point.shape[0]
    objective = np.zeros(n_columns)
    objective[at.gained : at.lost] = -problem.scale_up_loss
    objective[at.lost : at.weight] = -problem.scale_down_loss
    objective[at.weight :] = problem.gain[owner, point]
    upper = np.ones(n_columns)
    upper[at.count : at.running] = np.minimum(problem.max_nodes, nodes)
    is_integer = np.ones(n_columns, dtype=np.bool_)
    is_integer[at.count : at.running] = False
    is_integer[at.weight :] = False
    starts = np.concatenate(([0], np.cumsum(sizes)))
    sets = tuple(
        SpecialOrderedSet(2, weight[starts[j] : starts[j + 1]], points[j].astype(np.float64))
        for j in range(jobs)
        if sizes[j] > 1
    )
    names = [f"x[{j},{n}]" for j in range(jobs) for n in range(nodes)]
    for kind in ("count", "running", "gained", "lost"):
        names.extend([f"{kind}[{j}]" for j in range(jobs)])
    names.extend([f"weight[{j},{b}]" for j, b in zip(owner.tolist(), point.tolist(), strict=True)])
    return rows.model(objective=objective, column_upper=upper, is_integer=is_integer, column_names=names, sets=sets)


def read_node_model(problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap]:
    """Return counts and node map from the values of the ``x[j, n]`` columns."""
    size = problem.n_jobs * problem.capacity
    gets = np.rint(x[:size]).reshape(problem.n_jobs, problem.capacity) >= 1
    nodes = tuple(tuple(np.flatnonzero(row).tolist()) for row in gets)
    return gets.sum(axis=1, dtype=np.int64), nodes


def map_violation(problem: AllocationProblem, nodes: NodeMap) -> str:
    """Say what is wrong with a node map: a node given twice, or a job that both gains and loses; else nothing."""
    taken = np.zeros(problem.capacity, dtype=np.int64)
    held = held_nodes(problem)
    for j, mine in enumerate(nodes):
        gets = np.zeros(problem.capacity, dtype=np.bool_)
        gets[list(mine)] = True
        taken += gets
        if (gets & ~held[j]).any() and (held[j] & ~gets).any():
            return f"job {j} migrates: it gives nodes up and gets others"
    if (taken > 1).any():
        return f"node {int(np.argmax(taken > 1))} is given to {int(taken.max())} jobs"
    return ""
