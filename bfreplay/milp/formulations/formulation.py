"""What every MILP formulation of an allocation decision can do."""

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
