"""Beliefs about scalability curves: one for each job, or for each model."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.learning.holds import Measurement
from bfreplay.policies.state import PolicyState
from bfreplay.saved_state import restorable
from bfreplay.scalability.fitting import quick_usl

_COUNTS_FOR_A_SHAPE = 3


@restorable
class Shape(NamedTuple):
    """The universal scalability law without its rate on one node."""

    serial: float
    kappa: float

    def relative(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rate on each number of nodes over the rate on one; 0 on none."""
        slowdown = 1.0 + self.serial * (nodes - 1.0) + self.kappa * nodes * (nodes - 1.0)
        return np.divide(nodes, slowdown, out=np.zeros_like(nodes), where=nodes > 0)


LINEAR = Shape(0.0, 0.0)
"""In proportion to the nodes."""


@restorable
class Assumed(NamedTuple):
    """Assumptions about a job of which nothing, or too little, has been measured."""

    rate: float  # samples/s on one node
    worth: float  # objective per second on one node, for a weight of 1
    shape: Shape


@restorable
class Belief:
    """A curve and its objective: exact where measured, a fitted law elsewhere.

    The law is the universal scalability law through the measured counts (``quick_usl``): Amdahl's after two, with
    coherency from three on. One count tells no shape: an assumed one is put through it. Between two measured counts
    the law is bent to go through both: the ratio of measured rate to law is interpolated, so that a curve that follows
    the law is found exactly. Beyond the smallest and the largest count the ratio stays as it is there.

    The objective is the rate times the ratio of objective to rate, interpolated between measured counts likewise.
    """

    def __init__(self) -> None:
        self._points: dict[int, tuple[int, float, float]] = {}  # count: measurements, mean rate, mean worth
        self._shape: Shape | None = None
        self._is_fitted = False
        self._tables: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self._drawn_with: Assumed | None = None

    def learn(self, count: int, rate: float, worth: float) -> None:
        """Add a measurement on ``count`` >= 1 nodes: samples/s, and the objective per second for a weight of 1."""
        n_measurements, mean_rate, mean_worth = self._points.get(count, (0, 0.0, 0.0))
        means_before = (mean_rate, mean_worth)
        n_measurements += 1
        mean_rate += (rate - mean_rate) / n_measurements
        mean_worth += (worth - mean_worth) / n_measurements
        self._points[count] = (n_measurements, mean_rate, mean_worth)
        if n_measurements == 1 or (mean_rate, mean_worth) != means_before:
            self._is_fitted = False
            self._tables = None

    def point(self, count: int) -> tuple[float, float]:
        """Means of rate and objective measured on ``count`` nodes."""
        _, rate, worth = self._points[count]
        return rate, worth

    @property
    def is_telling(self) -> bool:
        """True if enough counts are measured to know the shape of the curve."""
        return sum(rate > 0 for _, rate, _ in self._points.values()) >= _COUNTS_FOR_A_SHAPE

    @property
    def shape(self) -> Shape | None:
        """The fitted law; ``None`` while fewer than two counts are measured on which the job makes progress."""
        if not self._is_fitted:
            points = [(count, rate, times) for count, (times, rate, _) in sorted(self._points.items()) if rate > 0]
            self._shape = None
            if len(points) > 1:
                _, serial, kappa = quick_usl(*zip(*points, strict=True))
                self._shape = Shape(serial, kappa)
            self._is_fitted = True
        return self._shape

    def tables(self, width: int, assumed: Assumed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rate and objective, for a weight of 1, at 0 to ``width - 1`` nodes."""
        is_known = self._tables is not None and (self.shape is not None or assumed == self._drawn_with)
        if self._tables is None or not is_known or self._tables[0].size < width:
            self._tables = self._draw_tables(width, assumed)
            self._drawn_with = assumed
        rate, worth = self._tables
        return rate[:width], worth[:width]

    def _draw_tables(self, width: int, assumed: Assumed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        relative = (self.shape or assumed.shape).relative
        nodes = np.arange(width, dtype=np.float64)
        counts = sorted(self._points)
        measured_counts = np.array(counts, dtype=np.float64)
        measured_rate, measured_worth = np.array([self.point(count) for count in counts]).reshape(-1, 2).T
        ran = measured_rate > 0
        if ran.any():
            rate = relative(nodes) * np.interp(nodes, measured_counts, measured_rate / relative(measured_counts))
            worth = rate * np.interp(nodes, measured_counts[ran], measured_worth[ran] / measured_rate[ran])
        else:
            rate, worth = assumed.rate * relative(nodes), assumed.worth * relative(nodes)
        n_inside = int(np.searchsorted(measured_counts, width))
        rate[counts[:n_inside]] = measured_rate[:n_inside]
        worth[counts[:n_inside]] = measured_worth[:n_inside]
        return rate, worth


_ASSUMED_RATE_PER_NODE = 1.0
"""While nothing at all has been measured."""

_HOPE = 2.0
"""What a job of which nothing is known is hoped to make on one node, over the best that is known per node."""


@restorable
class Share(StrEnum):
    """Jobs that share their measurements."""

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
        """Add measurements."""
        for measurement in measurements:
            factor = 1.0
            if self._sigma:
                factor = math.exp(self._sigma * self._rng.standard_normal() - self._sigma**2 / 2)
            owner = self._owner(measurement.job, measurement.model)
            belief = self._beliefs.setdefault(owner, Belief())
            belief.learn(measurement.count, factor * measurement.rate, factor * measurement.worth)
            for measure, measured in enumerate(belief.point(measurement.count)):
                self._best_per_node[measure] = max(self._best_per_node[measure], measured / measurement.count)
            if belief.is_telling and belief.shape is not None:
                self._sum_of_shapes += np.subtract(belief.shape, self._shapes.get(owner, LINEAR))
                self._shapes[owner] = belief.shape
        if measurements:
            self._key = None

    def tables(self, state: PolicyState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Believed throughput and objective (J, K + 1), in the layout of the state; read-only."""
        tables_key = (
            state.throughput.shape,
            *(array.tobytes() for array in (state.job, state.max_nodes, state.weight)),
        )
        if tables_key != self._key:
            self._tables = self._build(state)
            self._key = tables_key
        return self._tables

    def _owner(self, job: int, model: int) -> tuple[bool, int]:
        is_shared = self._by_model and model >= 0
        return is_shared, model if is_shared else job

    def _build(self, state: PolicyState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        table_shape = state.throughput.shape
        throughput, objective = np.zeros(table_shape), np.zeros(table_shape)
        mean_shape = Shape(*(self._sum_of_shapes / len(self._shapes)).tolist()) if self._shapes else LINEAR
        rate_1, worth_1 = (_HOPE * best or _ASSUMED_RATE_PER_NODE for best in self._best_per_node)
        assumed = Assumed(rate_1, worth_1, mean_shape)
        for job_row, (job_number, model_number, max_nodes) in enumerate(
            zip(state.job.tolist(), state.model.tolist(), state.max_nodes.tolist(), strict=True)
        ):
            belief = self._beliefs.get(self._owner(job_number, model_number), self._nothing)
            rate, worth = belief.tables(max_nodes + 1, assumed)
            throughput[job_row, : max_nodes + 1] = rate
            objective[job_row, : max_nodes + 1] = state.weight[job_row] * worth
        throughput.flags.writeable = objective.flags.writeable = False
        return throughput, objective
