"""Entities that share a cluster, and the jobs of each: how fast everyone's level grows under water filling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.policies.gavel.shares.share_problem import ShareProblem

Growth = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""From which jobs are frozen (m,) to the weight (m,) with which the level of each of the others grows (``W_i``)."""

INNER = ("fairness", "fifo")


@dataclass(frozen=True, slots=True)
class Entity:
    """A team, project or user that shares the cluster with others.

    Parameters
    ----------
    weight
        Of the entity among the others, > 0.
    inner
        How its jobs share what it has: ``fairness`` by their weights, ``fifo`` one after the other as they came.

    Raises
    ------
    InputError
        The weight is not a positive number, or there is no such inner policy.
    """

    weight: float
    inner: Literal["fairness", "fifo"] = "fairness"

    def __post_init__(self) -> None:
        if not 0 < self.weight < np.inf:
            raise InputError("An entity needs a weight", value=self.weight, expected="a number > 0")
        if self.inner not in INNER:
            raise InputError("No such policy inside an entity", value=self.inner, expected=f"one of {', '.join(INNER)}")


class Hierarchy:
    """Fairness among entities first, and inside each by its own policy (Gavel, OSDI'20, section 4.3).

    Parameters
    ----------
    entities
        By name.
    entity_of
        The name of the entity of a job, from its number.
    """

    def __init__(self, entities: Mapping[str, Entity], entity_of: Callable[[int], str]) -> None:
        self._position = {name: k for k, name in enumerate(entities)}
        self._weight = np.array([entity.weight for entity in entities.values()], dtype=np.float64)
        self._is_fifo = np.array([entity.inner == "fifo" for entity in entities.values()], dtype=np.bool_)
        self._entity_of = entity_of

    def growth(self, problem: ShareProblem) -> Growth:
        """Weights for the jobs of ``problem``: what an entity has goes to those of its jobs that are not frozen.

        Under fairness each gets ``E_e w_i / sum(w)``, under FIFO the first gets all of ``E_e``. An entity all of whose
        jobs are frozen asks for no more.

        Raises
        ------
        InputError
            A job belongs to an entity that there is not.
        """
        entity = np.array([self._position_of(int(job)) for job in problem.job], dtype=np.int64)
        n_entities, weight = len(self._position), problem.weight

        def growth(frozen: NDArray[np.bool_]) -> NDArray[np.float64]:
            open_weight = np.where(frozen, 0.0, weight)
            together = np.bincount(entity, open_weight, minlength=n_entities)[entity]
            fair = np.divide(open_weight, together, out=np.zeros_like(open_weight), where=together > 0)
            candidates = np.flatnonzero(~frozen)
            first = np.zeros(frozen.shape)
            first[candidates[np.unique(entity[candidates], return_index=True)[1]]] = 1.0
            part: NDArray[np.float64] = np.where(self._is_fifo[entity], first, fair)
            return self._weight[entity] * part

        return growth

    def _position_of(self, job: int) -> int:
        name = self._entity_of(job)
        if name not in self._position:
            raise InputError(
                f"Job {job} belongs to an entity that there is not",
                value=name,
                expected=f"one of {', '.join(self._position)}",
            )
        return self._position[name]


def by_weight(problem: ShareProblem) -> Growth:
    """No entities: each job grows with its own weight until it is frozen."""

    def growth(frozen: NDArray[np.bool_]) -> NDArray[np.float64]:
        grows: NDArray[np.float64] = np.where(frozen, 0.0, problem.weight)
        return grows

    return growth
