"""The Lagrangian relaxation: the price of a node of each type at which the jobs' own choices bound the optimum best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled


class Choices(NamedTuple):
    """The choices of job j are at ``offset[j]`` to ``offset[j + 1] - 1``: none first, then by type, then by count.

    Parameters
    ----------
    offset : (J + 1,) int64
    kind : (A,) int64
        Node type; 0 for no nodes.
    nodes : (A,) int64
        How many.
    value : (A,) float64
        What the job is worth with them.
    """

    offset: NDArray[np.int64]
    kind: NDArray[np.int64]
    nodes: NDArray[np.int64]
    value: NDArray[np.float64]


def choices_of(value: NDArray[np.float64]) -> Choices:
    """Return the choices with the values ``value (J, T, K + 1)``; ``-inf`` is what a job may not have.

    A count that is worth no more than fewer nodes of the same type, or than none, is left out: nodes that nobody uses
    cost nothing, so some best answer does without it.
    """
    best = np.maximum.accumulate(value, axis=2)
    is_choice = np.zeros(value.shape, np.bool_)
    is_choice[:, 0, 0] = True
    is_choice[:, :, 1:] = value[:, :, 1:] > best[:, :, :-1]
    _, kind, nodes = map(np.ascontiguousarray, np.nonzero(is_choice))
    offset = np.concatenate([[0], np.cumsum(is_choice.sum(axis=(1, 2)))])
    return Choices(offset, kind, nodes, value[is_choice])


_CLOSE = 1e-13
"""Gap between bound and master at which prices are as good as they get, relative to the relaxation's magnitude."""

_MOST_PIVOTS = 200
"""Times T + 1. Any prices give a valid bound, so degenerate steps may end it early."""

_NO_PIVOT = 1e-11


@compiled
def best_choices(choices: Choices, price: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the choice of every job by itself with nodes at ``price (T,)``: ``(choice (J,), what it is worth (J,))``.

    Among equals the first.
    """
    n_jobs = choices.offset.shape[0] - 1
    best_choice = np.empty(n_jobs, np.int64)
    worth = np.empty(n_jobs, np.float64)
    for job_index in range(n_jobs):
        best = -np.inf
        for choice in range(choices.offset[job_index], choices.offset[job_index + 1]):
            at_price = choices.value[choice] - price[choices.kind[choice]] * choices.nodes[choice]
            if at_price > best:
                best = at_price
                best_choice[job_index] = choice
        worth[job_index] = best
    return best_choice, worth


@compiled
def node_prices(choices: Choices, capacity: NDArray[np.int64]) -> NDArray[np.float64]:
    """Prices ``(T,)``, not negative, that minimise ``sum_t price_t capacity_t + sum_j max (value - price x count)``.

    It is the dual of the linear relaxation, solved by Dantzig-Wolfe decomposition (1960): the master chooses a mixture
    of proposals within the capacities, its duals are prices, and what all jobs choose at these is the next proposal.
    The master has T + 1 rows and is kept by the revised simplex method. The prices of the lowest bound that was met are
    returned.
    """
    n_types = capacity.shape[0]
    size = n_types + 1
    price = np.zeros(n_types)
    best_price = np.zeros(n_types)
    best_bound = np.inf
    inverse = np.zeros((size, size))
    for row_index in range(size):
        inverse[row_index, row_index] = 1.0
    cost = np.zeros(size)
    level = np.empty(size)
    for node_type in range(n_types):
        level[node_type] = capacity[node_type]
    level[n_types] = 1.0
    for job_index in range(choices.offset.shape[0] - 1):  # the first proposal: nobody gets anything
        cost[n_types] += choices.value[choices.offset[job_index]]
    column = np.empty(size)
    direction = np.empty(size)
    for _ in range(_MOST_PIVOTS * size):
        lowest = 0
        for node_type in range(n_types):
            price[node_type] = 0.0
            for row_index in range(size):
                price[node_type] += cost[row_index] * inverse[row_index, node_type]
            if price[node_type] < price[lowest]:
                lowest = node_type
        for row_index in range(size):
            column[row_index] = 0.0
        if price[lowest] < 0.0:  # a slack enters
            column[lowest] = 1.0
            column_cost = 0.0
            if best_bound < np.inf and -price[lowest] * capacity[lowest] <= _CLOSE * abs(best_bound):
                break
        else:
            proposal, worth = best_choices(choices, price)
            bound = 0.0
            for node_type in range(n_types):
                bound += price[node_type] * capacity[node_type]
            magnitude = bound
            column_cost = 0.0
            for job_index in range(proposal.shape[0]):
                bound += worth[job_index]
                magnitude += abs(worth[job_index])
                column[choices.kind[proposal[job_index]]] += choices.nodes[proposal[job_index]]
                column_cost += choices.value[proposal[job_index]]
            column[n_types] = 1.0
            if bound < best_bound:
                best_bound = bound
                for node_type in range(n_types):
                    best_price[node_type] = price[node_type]
            master = 0.0
            for row_index in range(size):
                master += cost[row_index] * level[row_index]
            if not bound - master > _CLOSE * magnitude:
                break
        leaving = -1
        ratio = np.inf
        for row_index in range(size):
            direction[row_index] = 0.0
            for entry in range(size):
                direction[row_index] += inverse[row_index, entry] * column[entry]
            if direction[row_index] > _NO_PIVOT and level[row_index] / direction[row_index] < ratio:
                ratio = level[row_index] / direction[row_index]
                leaving = row_index
        if leaving < 0:
            break
        for entry in range(size):
            inverse[leaving, entry] /= direction[leaving]
        for row_index in range(size):
            if row_index != leaving:
                for entry in range(size):
                    inverse[row_index, entry] -= direction[row_index] * inverse[leaving, entry]
                level[row_index] = max(level[row_index] - direction[row_index] * ratio, 0.0)
        level[leaving] = ratio
        cost[leaving] = column_cost
    return best_price


@compiled
def mend(
    choices: Choices, loss: NDArray[np.float64], start_choice: NDArray[np.int64], capacity: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Choices ``(J,)`` within the capacities, from ``start_choice (J,)`` by steps that change one job.

    As long as a type has too few nodes, the step of least loss for each node that is too many; then the step that is
    worth most, as long as there is one. Among equals the first.
    """
    n_types = capacity.shape[0]
    n_jobs = start_choice.shape[0]
    answer = start_choice.copy()
    free = capacity.copy()
    for job_index in range(n_jobs):
        free[choices.kind[answer[job_index]]] -= choices.nodes[answer[job_index]]
    while True:
        is_over = False
        for node_type in range(n_types):
            is_over = is_over or free[node_type] < 0
        best = np.inf if is_over else 0.0
        best_job = -1
        best_step = -1
        for job_index in range(n_jobs):
            now_at = answer[job_index]
            old_type = choices.kind[now_at]
            if is_over and not (free[old_type] < 0 and choices.nodes[now_at] > 0):
                continue
            for choice in range(choices.offset[job_index], choices.offset[job_index + 1]):
                new_type = choices.kind[choice]
                room = free[new_type] + (choices.nodes[now_at] if new_type == old_type else 0)
                if is_over:
                    relief = choices.nodes[now_at] - (choices.nodes[choice] if new_type == old_type else 0)
                    relief = min(relief, -free[old_type])
                    if relief <= 0 or (new_type != old_type and choices.nodes[choice] > room):
                        continue
                    rank = (loss[choice] - loss[now_at]) / relief
                else:
                    if choices.nodes[choice] > room:
                        continue
                    rank = choices.value[now_at] - choices.value[choice]
                if rank < best:
                    best = rank
                    best_job = job_index
                    best_step = choice
        if best_job < 0:
            return answer
        free[choices.kind[answer[best_job]]] += choices.nodes[answer[best_job]]
        free[choices.kind[best_step]] -= choices.nodes[best_step]
        answer[best_job] = best_step
