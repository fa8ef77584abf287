"""Formulations over single nodes: as the BFTrainer authors published it, defect included; and corrected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.curves import add_value_curves, add_weighted_curves, kinks
from bfreplay.milp.formulations.formulation import NodeMap, node_holdings, pairs, read_node_map, start_counts
from bfreplay.milp.model import Columns, LinearModel, Rows
from bfreplay.milp.problem import AllocationProblem


class Published:
    """The published program's own structure, so that its size and its hardness are the published ones.

    With N = capacity, M = N + 1, c[j, n] = 1 where job j holds node n now and C_j their number. There is no count
    variable: S_j stands for ``sum_n x[j, n]``, written out over the nodes in every row.

    Variables: ``x[j, n]`` binary, job j gets node n; ``change[j, n]`` binary, it gains or loses that node;
    ``low[j]``, ``high[j]``, ``migr[j]``, ``up[j]``, ``down[j]`` binary; ``weight[j, b]`` in [0, 1] for the
    breakpoints b of job j's curve (its kinks on 0..max_nodes), an SOS2.

    Maximise ``sum gain_j(b) weight[j, b] - scale_up_loss_j up[j] - scale_down_loss_j down[j]`` subject to

    - ``node[n]``: ``sum_j x[j, n] <= 1``
    - ``min[j]``, ``low[j]``: ``S_j >= min_nodes_j - M low_j`` and ``S_j <= M (1 - low_j)``
    - ``max[j]``, ``high[j]``: ``S_j - M high_j <= max_nodes_j`` and ``S_j <= M (1 - high_j)``
    - ``change_1[j, n]`` to ``change_4[j, n]``: ``change <= x + c``, ``change >= x - c``, ``change >= c - x``,
      ``change <= 2 - x - c``
    - ``migr_1[j]``, ``migr_2[j]``: ``S_j - C_j >= sum_n change[j, n] - M migr_j`` and
      ``S_j - C_j <= -sum_n change[j, n] + M (1 - migr_j)``
    - ``convex[j]``, ``curve[j]``: ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = S_j``
    - ``up_1[j]``, ``up_2[j]``: ``S_j <= C_j + (M - C_j) up_j`` and ``S_j >= (C_j + 1) up_j``
    - ``down_1[j]``, ``down_2[j]``: ``S_j <= (C_j - 1) + (M - C_j + 1) (1 - down_j)`` and
      ``S_j >= C_j (1 - down_j)``

    The ``migr`` rows forbid to gain and to lose nodes at once. With this M, where 2 N is needed, they also cap every
    gain and every loss at floor((N + 1) / 2) nodes: the defect, see ``published_change_limit``.
    ``problem.change_limit`` goes the same way: there M is 2 change_limit where that is less.

    One fault of the published rows is not reproduced. With ``min_nodes_j > N + 1`` their ``min`` row cannot hold,
    and the whole decision is infeasible; here its M is max(N + 1, min_nodes_j) and the job stays without nodes.

    ``up`` and ``down`` have one loss each, so decisions whose losses depend on the new count are refused.

    Size: J (2 N + 5) + B columns with B <= J (K + 1) breakpoints (about 8 a job for published curves),
    N + J (4 N + 12) rows, 22 J N + 9 J + 2 B entries, one fewer for each job that holds nothing (and 2 J fewer under
    a change limit of 0).

    Source: BFTrainer, arXiv:2106.12091, equations 1 to 16; rows as in the published log replayer.
    """

    name = "published"
    needs_sos = True
    needs_continuous = True
    change_limited = True
    needs_constant_losses = True

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; the first J N columns are ``x``, ordered by job. Starts from the nodes held."""
        n_jobs, nodes = problem.n_jobs, problem.capacity
        job_index, pair = np.arange(n_jobs), pairs(problem)
        holdings = node_holdings(problem).astype(np.float64)
        min_nodes, max_nodes, current = (
            array.astype(np.float64) for array in (problem.min_nodes, problem.max_nodes, problem.current)
        )
        big_m = nodes + 1.0

        columns, rows = Columns(), Rows()
        gets_node = columns.add("x", *pair).reshape(n_jobs, nodes)
        change = columns.add("change", *pair).reshape(n_jobs, nodes)
        below_min, above_max = columns.add("low", job_index), columns.add("high", job_index)
        migrates = columns.add("migr", job_index)
        scales_up = columns.add("up", job_index, objective=-problem.scale_up_loss)
        scales_down = columns.add("down", job_index, objective=-problem.scale_down_loss)

        rows.put(rows.add("node", nodes, -np.inf, 1.0) + np.arange(nodes), gets_node, 1.0)
        rows.constrain("min", min_nodes, np.inf, (gets_node, 1.0), (below_min, np.maximum(big_m, min_nodes)))
        rows.constrain("low", -np.inf, big_m, (gets_node, 1.0), (below_min, big_m))
        rows.constrain("max", -np.inf, max_nodes, (gets_node, 1.0), (above_max, -big_m))
        rows.constrain("high", -np.inf, big_m, (gets_node, 1.0), (above_max, big_m))

        flat = holdings.ravel()
        for label, sign, lower, upper in (
            ("change_1", -1.0, -np.inf, flat),
            ("change_2", -1.0, -flat, np.inf),
            ("change_3", 1.0, flat, np.inf),
            ("change_4", 1.0, -np.inf, 2.0 - flat),
        ):
            first = rows.add(label, n_jobs * nodes, lower, upper, *pair)
            rows.put(first + gets_node, change, 1.0)  # x is numbered from 0, as these rows are
            rows.put(first + gets_node, gets_node, sign)

        change_cap = big_m if problem.change_limit is None else min(big_m, 2.0 * problem.change_limit)
        rows.constrain("migr_1", current, np.inf, (gets_node, 1.0), (migrates, change_cap), (change, -1.0))
        rows.constrain("migr_2", -np.inf, current + change_cap, (gets_node, 1.0), (migrates, change_cap), (change, 1.0))

        points = [kinks(problem.gain[job_number, : int(problem.max_nodes[job_number]) + 1]) for job_number in job_index]
        curves = add_weighted_curves(columns, rows, problem.gain, points)
        rows.put((curves.curve_row + job_index)[:, None], gets_node, -1.0)
        rows.constrain("up_1", -np.inf, current, (gets_node, 1.0), (scales_up, current - big_m))
        rows.constrain("up_2", 0.0, np.inf, (gets_node, 1.0), (scales_up, -(current + 1.0)))
        rows.constrain("down_1", -np.inf, big_m, (gets_node, 1.0), (scales_down, big_m - current + 1.0))
        rows.constrain("down_2", current, np.inf, (gets_node, 1.0), (scales_down, current))

        start, counts = None, start_counts(problem.within_published_limit())
        if counts is not None:
            start = np.zeros(len(columns.names))
            keeps = holdings * (counts > 0)[:, None]
            start[gets_node] = keeps
            start[change] = holdings - keeps
            start[below_min] = counts == 0
            start[migrates] = start[scales_down] = counts < problem.current
            start[curves.column] = curves.weights_at(counts)
        return rows.model_of(columns, sets=curves.sets, start=start)

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return counts and node map."""
        return read_node_map(problem, x)


class NodeLevel:
    """Formulation over single nodes, with the true optimum and far fewer, tighter rows than ``published``.

    It differs from the published program in this: what a job is worth at each count, f_j, losses included, is one curve
    over its allowed counts; the nodes that it gains are counted from ``x`` and the map held now, without a binary for
    each; and there is no M, as the curve holds minimum, maximum and change limit.

    Variables (N = capacity, C_j = current_j): ``x[j, n]`` binary, job j gets node n; ``weight[j, b] >= 0`` for the
    breakpoints b of job j, an SOS2, and ``stretch[j, a]`` binary for its stretches of allowed counts, as in
    ``counts_sos2``: on the kinks of f_j, and on C_j.

    Maximise ``sum f_j(b) weight[j, b]`` subject to

    - ``node[n]``: ``sum_j x[j, n] <= 1``
    - ``convex[j]``, ``curve[j]``: ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = sum_n x[j, n]``
    - ``stretch[j, a]``: ``sum_b weight[j, b] = stretch[j, a]`` over the breakpoints in that stretch
    - ``gained[j]``: ``sum_b max(0, b - C_j) weight[j, b] = sum_n x[j, n]`` over the nodes that job j does not hold. As
      no piece of the curve goes past C_j, this is its count less C_j, or 0: it takes others' nodes only beyond those
      that it holds, all of which it keeps then. Nothing migrates

    Size: J N + B + T columns with B <= J (min(K, N) + 1) breakpoints and T stretches (see ``counts_sos2``),
    N + 3 J + T rows, at most 3 J N + 4 B + T entries, fewer by the nodes that are held.

    Source: BFTrainer, arXiv:2106.12091, equations 1 to 16, aggregated; for gaps and jumps see ``counts_sos2``.
    """

    name = "node_level"
    needs_sos = True
    needs_continuous = True
    change_limited = False

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model; the first J N columns are ``x``, ordered by job. Starts from the nodes held."""
        jobs, nodes = problem.n_jobs, problem.capacity
        job_index = np.arange(jobs)
        holdings = node_holdings(problem)
        columns, rows = Columns(), Rows()
        x = columns.add("x", *pairs(problem)).reshape(jobs, nodes)
        rows.put(rows.add("node", nodes, -np.inf, 1.0) + np.arange(nodes), x, 1.0)
        values = add_value_curves(columns, rows, problem)
        curves = values.curves
        rows.put((curves.curve_row + job_index)[:, None], x, -1.0)
        gained = rows.add("gained", jobs, 0.0, 0.0)
        rows.put((gained + job_index)[:, None], x, np.where(holdings, 0.0, -1.0))
        n_gained = np.maximum(curves.point - problem.current[curves.owner], 0)
        rows.put(gained + curves.owner, curves.column, n_gained)

        start, counts = None, start_counts(problem)
        if counts is not None:
            start = np.zeros(len(columns.names))
            start[x] = holdings & (counts > 0)[:, None]
            start[curves.column] = curves.weights_at(counts)
            start[values.column] = values.stretches.holds(counts)
        return rows.model_of(columns, sets=curves.sets, start=start)

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return counts and node map."""
        return read_node_map(problem, x)
