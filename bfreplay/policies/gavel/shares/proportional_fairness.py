"""Proportional fairness: the largest product of all jobs' throughputs, by an interior-point method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled

MOST_STEPS = 200
"""Far more than the method needs: about 20."""


@compiled
def largest_product(
    relative: NDArray[np.float64], gang: NDArray[np.float64], n_nodes: NDArray[np.float64], gap: float
) -> tuple[NDArray[np.float64], float]:
    """Maximise ``sum_i log(sum_j a_ij x_ij)`` over x >= 0, ``sum_j x_ij <= 1``, ``sum_i s_i x_ij <= c_j``.

    A primal-dual interior-point method (Boyd and Vandenberghe, Convex Optimization, section 11.7). Only the n rows of
    nodes join the jobs, so a step takes m systems of size n and one more: O(m n^3). The answer is in the middle of
    those that are optimal, if there are many; the throughputs are the same in all.

    Parameters
    ----------
    relative : (m, n)
        ``a_ij``: rates, the best of each job about 1 (none 0 altogether).
    gang : (m,)
        ``s_i`` >= 0. A job of gang 0 is as if it were not there for the others.
    n_nodes : (n,)
        ``c_j`` > 0.
    gap
        How far the sum of logarithms may be from the optimum.

    Returns
    -------
    x : (m, n)
        Shares, inside the feasible set.
    gap
        By which the sum is below the optimum at most, from the dual; NaN where the method did not come to its end.
    """
    m, n = relative.shape
    # inside: time and nodes are left over
    fill = 0.9 * min(1.0, n_nodes.sum() / max(gang.sum(), 1e-300))
    x = np.empty((m, n))
    z = np.empty((m, n))
    time_left, time_price = np.empty(m), np.empty(m)
    nodes_left, node_price = np.empty(n), np.empty(n)
    barrier = 1.0
    for i in range(m):
        for j in range(n):
            x[i, j] = fill * n_nodes[j] / n_nodes.sum()
            z[i, j] = barrier / x[i, j]
        time_left[i] = 1.0 - x[i].sum()
        time_price[i] = barrier / time_left[i]
    for j in range(n):
        nodes_left[j] = n_nodes[j] - (gang * x[:, j]).sum()
        node_price[j] = barrier / nodes_left[j]
    n_products = m * n + m + n
    inverse = np.empty((m, n, n))
    free = np.empty((m, n))
    dx, dz = np.empty((m, n)), np.empty((m, n))
    rate = np.empty(m)
    for _ in range(200):
        bound = 0.0
        for i in range(m):
            rate[i] = (relative[i] * x[i]).sum()
            worth = 0.0
            for j in range(n):
                worth = max(worth, relative[i, j] / rate[i] - gang[i] * node_price[j])
            bound += worth
        bound += (n_nodes * node_price).sum() - m
        if bound <= gap:
            return x, bound
        products = (x * z).sum() + (time_left * time_price).sum() + (nodes_left * node_price).sum()
        barrier = 0.1 * products / n_products
        # each job: K dx + s dprice = free, with K^-1 kept
        matrix = np.zeros((n, n))
        right = np.zeros(n)
        for i in range(m):
            stiff = np.empty((n, n))
            for j in range(n):
                for k in range(n):
                    stiff[j, k] = relative[i, j] * relative[i, k] / rate[i] ** 2 + time_price[i] / time_left[i]
                stiff[j, j] += z[i, j] / x[i, j]
                free[i, j] = (
                    relative[i, j] / rate[i] - gang[i] * node_price[j] + barrier / x[i, j] - barrier / time_left[i]
                )
            inverse[i] = np.linalg.inv(stiff)
            for j in range(n):
                for k in range(n):
                    matrix[j, k] += gang[i] ** 2 * inverse[i, j, k]
                    right[j] += gang[i] * inverse[i, j, k] * free[i, k]
        for j in range(n):
            matrix[j, j] += nodes_left[j] / node_price[j]
            right[j] += (barrier - nodes_left[j] * node_price[j]) / node_price[j]
        d_node_price = np.linalg.solve(matrix, right)
        # to the border, and a little less
        step_x, step_price = 1.0, 1.0
        for i in range(m):
            d_time = 0.0
            for j in range(n):
                dx[i, j] = 0.0
                for k in range(n):
                    dx[i, j] += inverse[i, j, k] * (free[i, k] - gang[i] * d_node_price[k])
                d_time += dx[i, j]
                dz[i, j] = (barrier - z[i, j] * dx[i, j]) / x[i, j] - z[i, j]
                if dx[i, j] < 0:
                    step_x = min(step_x, -0.99 * x[i, j] / dx[i, j])
                if dz[i, j] < 0:
                    step_price = min(step_price, -0.99 * z[i, j] / dz[i, j])
            if d_time > 0:
                step_x = min(step_x, 0.99 * time_left[i] / d_time)
            d_time_price = (barrier + time_price[i] * d_time) / time_left[i] - time_price[i]
            if d_time_price < 0:
                step_price = min(step_price, -0.99 * time_price[i] / d_time_price)
        for j in range(n):
            used = (gang * dx[:, j]).sum()
            if used > 0:
                step_x = min(step_x, 0.99 * nodes_left[j] / used)
            if d_node_price[j] < 0:
                step_price = min(step_price, -0.99 * node_price[j] / d_node_price[j])
        step = min(step_x, step_price)
        for i in range(m):
            d_time = dx[i].sum()
            time_price[i] += step * ((barrier + time_price[i] * d_time) / time_left[i] - time_price[i])
            for j in range(n):
                x[i, j] += step * dx[i, j]
                z[i, j] += step * dz[i, j]
            time_left[i] -= step * d_time
        for j in range(n):
            node_price[j] += step * d_node_price[j]
            nodes_left[j] -= step * (gang * dx[:, j]).sum()
    return x, np.nan
