"""What a formulation is, and the abstract nodes of those that say which job holds which."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem

NodeMap = tuple[tuple[int, ...], ...]
"""For each job the abstract node numbers it gets, ascending."""


@runtime_checkable
class Formulation(Protocol):
    """Turns a decision into a linear model, and the model's answer back into counts."""

    @property
    def name(self) -> str:
        """Registered name, e.g. ``"choices"``."""
        ...

    @property
    def needs_sos(self) -> bool:
        """Whether the model holds special ordered sets, which not every solver takes."""
        ...

    @property
    def needs_continuous(self) -> bool:
        """Whether the model has columns that are not integer, which solvers of pure integer models do not take."""
        ...

    @property
    def change_limited(self) -> bool:
        """Whether its optimum is that of the problem with ``published_change_limit(capacity)`` added."""
        ...

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model. ``problem`` is valid, holds at least one job and has at least one node."""
        ...

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return counts ``(J,)``, and the node map for node-level formulations, from column values ``(C,)``.

        ``problem`` is the one that the model was built from.
        """
        ...


def held_nodes(problem: AllocationProblem) -> NDArray[np.bool_]:
    """``(J, N)``: which abstract nodes each job holds now.

    Nodes are interchangeable, so the ones held are numbered consecutively in job order and free ones come last.
    """
    end = np.cumsum(problem.current)
    node = np.arange(problem.capacity)
    return (node >= (end - problem.current)[:, None]) & (node < end[:, None])


def pairs(problem: AllocationProblem) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Job and node of every ``x[j, n]``, ordered by job: two ``(J N,)`` arrays."""
    job, node = np.divmod(np.arange(problem.n_jobs * problem.capacity), problem.capacity)
    return job, node


def read_node_map(problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap]:
    """Return counts and node map from column values of which the first J N are ``x[j, n]``, ordered by job."""
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
