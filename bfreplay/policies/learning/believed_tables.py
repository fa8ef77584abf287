"""Tables of a state as far as they are known: one belief a job, or one a model."""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.learning.belief import LINEAR, Assumed, Belief, Shape
from bfreplay.policies.learning.holds import Measurement
from bfreplay.policies.policy import PolicyState

_ASSUMED_RATE_PER_NODE = 1.0
"""While nothing at all has been measured."""

_HOPE = 2.0
"""What a job of which nothing is known is hoped to make on one node, over the best that is known per node."""


class Share(StrEnum):
    """Who learns from whom."""

    JOB = "job"  # every job from itself alone
    MODEL = "model"  # jobs that train the same model from one another; a job without one from itself alone


class BelievedTables:
    """All beliefs of a replay.

    A job of which nothing is known is hoped to make on one node twice what the best known job makes per node: with
    less, it would not be tried while nodes that others hold are as good. How its rate grows with nodes, as long as
    fewer than two counts are measured, is taken from the others: the mean serial share and coherency of all that are
    known at three counts or more; while there is none, in proportion to the nodes.

    Parameters
    ----------
    share
        Who learns from whom.
    noise
        Standard deviation of one measurement relative to the true rate. The factor is log-normal with mean 1: rates
        stay above 0.
    seed
        Of the noise.
    """

    def __init__(self, share: Share, noise: float, seed: int) -> None:
        self._by_model = share is Share.MODEL
        self._sigma = math.sqrt(math.log1p(noise**2))  # of the logarithm of the factor
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._beliefs: dict[tuple[bool, int], Belief] = {}
        self._nothing = Belief()
        self._shapes: dict[tuple[bool, int], Shape] = {}  # of those that tell one
        self._sum_of_shapes = np.zeros(2)
        self._best_per_node = [0.0, 0.0]  # rate, worth
        self._key: tuple[object, ...] | None = None
        self._tables = (np.zeros((0, 0)), np.zeros((0, 0)))

    def learn(self, measurements: list[Measurement]) -> None:
        """Take in what has been measured."""
        for one in measurements:
            factor = 1.0
            if self._sigma:
                factor = math.exp(self._sigma * self._rng.standard_normal() - self._sigma**2 / 2)
            owner = self._owner(one.job, one.model)
            belief = self._beliefs.setdefault(owner, Belief())
            belief.learn(one.count, factor * one.rate, factor * one.worth)
            for k, value in enumerate(belief.point(one.count)):
                self._best_per_node[k] = max(self._best_per_node[k], value / one.count)
            if belief.is_telling and belief.shape is not None:
                self._sum_of_shapes += np.subtract(belief.shape, self._shapes.get(owner, LINEAR))
                self._shapes[owner] = belief.shape
        if measurements:
            self._key = None

    def tables(self, state: PolicyState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Believed throughput and objective (J, K + 1), in the layout of the state; read-only."""
        key = (state.throughput.shape, *(a.tobytes() for a in (state.job, state.max_nodes, state.weight)))
        if key != self._key:
            self._tables = self._build(state)
            self._key = key
        return self._tables

    def _owner(self, job: int, model: int) -> tuple[bool, int]:
        is_shared = self._by_model and model >= 0
        return is_shared, model if is_shared else job

    def _build(self, state: PolicyState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        shape = state.throughput.shape
        throughput, objective = np.zeros(shape), np.zeros(shape)
        usual = Shape(*(self._sum_of_shapes / len(self._shapes)).tolist()) if self._shapes else LINEAR
        rate_1, worth_1 = (_HOPE * best or _ASSUMED_RATE_PER_NODE for best in self._best_per_node)
        assumed = Assumed(rate_1, worth_1, usual)
        for j, (job, model, most) in enumerate(
            zip(state.job.tolist(), state.model.tolist(), state.max_nodes.tolist(), strict=True)
        ):
            belief = self._beliefs.get(self._owner(job, model), self._nothing)
            rate, worth = belief.tables(most + 1, assumed)
            throughput[j, : most + 1] = rate
            objective[j, : most + 1] = state.weight[j] * worth
        throughput.flags.writeable = objective.flags.writeable = False
        return throughput, objective
