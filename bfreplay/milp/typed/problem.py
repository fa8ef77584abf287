"""One decision on nodes of several types, its answer, and the check that an answer is feasible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.milp.charge_rule import move_cost
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Solution
from bfreplay.milp.verify import violation as violation_of_one_type

NO_TYPE = -1
"""Type of a job without nodes."""


@dataclass(frozen=True, eq=False)
class TypedProblem:
    """One decision: how many nodes each of J jobs gets, all of one of T types.

    Maximise ``sum_j f_j(t_j, n_j)``, where the jobs of type t get at most ``capacity[t]`` nodes together and every job
    has ``n_j = 0`` or ``min_nodes_j <= n_j <= max_nodes_j``. On the type that a job holds now, ``f_j`` is that of the
    problem of one type (``AllocationProblem``): gain less the loss for a scale-up or a scale-down. A job without nodes
    pays for a start what it would pay there: ``scale_up_loss``.

    A job that moves to another type loses ``move_cost(scale_up_loss, scale_down_loss)``: it gives up all its nodes and
    gains others. That is BFTrainer's cost (arXiv:2106.12091, section III), ``r (up [gains nodes] + down [loses
    nodes])`` with r its rate before, in the one case in which both brackets are 1; on nodes of one type the constraint
    against migration excludes it. A move so never costs less than to scale on the nodes where the job is.

    Parameters
    ----------
    current : (J,) int64
        Nodes each job holds now.
    current_type : (J,) int64
        Their type, ``NO_TYPE`` exactly where ``current`` is 0.
    min_nodes, max_nodes : (J,) int64
        Bounds of a running job, ``1 <= min_nodes <= max_nodes <= K``.
    gain : (J, T, K + 1) float64
        ``gain[j, t, n]`` is what job j on n nodes of type t is worth until the next decision. The same at n = 0 for all
        types. Columns above ``max_nodes[j]`` are not read.
    scale_up_loss, scale_down_loss : (J,) float64
        Objective given up when the job gains, or loses, at least one node; finite and not negative.
    capacity : (T,) int64
        Idle nodes of each type, held ones included.
    """

    current: NDArray[np.int64]
    current_type: NDArray[np.int64]
    min_nodes: NDArray[np.int64]
    max_nodes: NDArray[np.int64]
    gain: NDArray[np.float64]
    scale_up_loss: NDArray[np.float64]
    scale_down_loss: NDArray[np.float64]
    capacity: NDArray[np.int64]

    @property
    def n_jobs(self) -> int:
        """J."""
        return int(self.current.shape[0])

    @property
    def n_types(self) -> int:
        """T."""
        return int(self.capacity.shape[0])

    @cached_property
    def value(self) -> NDArray[np.float64]:
        """``(J, T, K + 1)``: f_j(t, n), and ``-inf`` where job j may not have n nodes of type t. Computed once.

        Without nodes a job has no type: column 0 is the same for all.
        """
        value = np.stack([self.of_type(node_type).value for node_type in range(self.n_types)], axis=1)
        value[:, :, 0] = (self.gain[:, 0, 0] - np.where(self.current > 0, self.scale_down_loss, 0.0))[:, None]
        return value

    def of_type(self, t: int) -> AllocationProblem:
        """Return the decision on the nodes of type ``t`` alone: to a job that is elsewhere its nodes there are a start.

        With one type this is the decision itself.
        """
        is_here = self.current_type == t
        moves = (self.current > 0) & ~is_here
        return AllocationProblem(
            current=np.where(is_here, self.current, 0),
            min_nodes=self.min_nodes,
            max_nodes=self.max_nodes,
            gain=self.gain[:, t],
            scale_up_loss=np.where(moves, move_cost(self.scale_up_loss, self.scale_down_loss), self.scale_up_loss),
            scale_down_loss=self.scale_down_loss,
            capacity=int(self.capacity[t]),
        )

    def validate(self) -> None:
        """Raise ``InputError`` where shapes, bounds or numbers are off; solvers trust a validated problem."""
        if not (isinstance(self.capacity, np.ndarray) and np.issubdtype(self.capacity.dtype, np.integer)):
            raise InputError("capacity is no array of whole numbers", column="capacity", expected="(T,) int64")
        if self.capacity.ndim != 1 or not self.capacity.size:
            raise InputError("capacity has the wrong shape", value=self.capacity.shape, expected="(T,), T >= 1")
        if not (isinstance(self.gain, np.ndarray) and self.gain.ndim == 3 and self.gain.shape[1] == self.n_types):
            description = self.gain.shape if isinstance(self.gain, np.ndarray) else type(self.gain).__name__
            raise InputError("gain has the wrong shape", value=description, expected=f"(J, {self.n_types}, K + 1)")
        types = self.current_type
        if not (isinstance(types, np.ndarray) and np.issubdtype(types.dtype, np.integer)):
            raise InputError("current_type is no array of whole numbers", column="current_type", expected="(J,) int64")
        if types.shape != np.shape(self.current):
            raise InputError("current_type has the wrong shape", value=types.shape, expected="(J,), as current")
        wrong = np.where(self.current > 0, (types < 0) | (types >= self.n_types), types != NO_TYPE)
        if wrong.any():
            job_index = int(np.argmax(wrong))
            expected = f"0 to {self.n_types - 1} for a job with nodes, {NO_TYPE} for one without"
            problem = f"current_type of job {job_index} is out of range"
            raise InputError(problem, column="current_type", value=int(types[job_index]), expected=expected)
        for node_type in range(self.n_types):
            self.of_type(node_type).validate()
        if (self.gain[:, :, 0] != self.gain[:, :1, 0]).any():
            problem, expected = "gain differs between types at no node", "gain[:, t, 0] the same for all t"
            raise InputError(problem, column="gain", expected=expected)


@dataclass(frozen=True, slots=True, eq=False)
class TypedSolution:
    """Counts with their statuses, and the types.

    Parameters
    ----------
    types : (J,) int64 or None
        Type of each job's nodes, ``NO_TYPE`` for a job without any; ``None`` when there is no answer.
    solution
        The counts, their worth, and the statuses.
    """

    types: NDArray[np.int64] | None
    solution: Solution


def violation(problem: TypedProblem, types: NDArray[np.int64], counts: NDArray[np.int64]) -> str:
    """Return what is wrong with an answer in one sentence, or an empty string when it is feasible.

    Parameters
    ----------
    problem
        What was asked.
    types : (J,) int64
        Type of each job's nodes, ``NO_TYPE`` for a job without any.
    counts : (J,) int64
        How many.
    """
    for array_name, array in (("types", types), ("counts", counts)):
        if not (isinstance(array, np.ndarray) and np.issubdtype(array.dtype, np.integer)):
            return f"{array_name} are no array of whole numbers"
        if array.shape != (problem.n_jobs,):
            return f"{array_name} have shape {array.shape}, expected ({problem.n_jobs},)"
    wrong = np.where(counts > 0, (types < 0) | (types >= problem.n_types), types != NO_TYPE)
    if wrong.any():
        job_index = int(np.argmax(wrong))
        return (
            f"job {job_index} gets {int(counts[job_index])} nodes of type {int(types[job_index])} of {problem.n_types}"
        )
    for node_type in range(problem.n_types):
        fault = violation_of_one_type(problem.of_type(node_type), np.where(types == node_type, counts, 0))
        if fault:
            return f"type {node_type}: {fault}"
    negative = np.flatnonzero(counts < 0)
    return f"job {negative[0]} gets {int(counts[negative[0]])} nodes" if negative.size else ""


def objective_of(problem: TypedProblem, types: NDArray[np.int64], counts: NDArray[np.int64]) -> float:
    """``sum_j f_j(types_j, counts_j)``, and ``-inf`` when a bound or a capacity is broken."""
    if violation(problem, types, counts):
        return float("-inf")
    return float(problem.value[np.arange(problem.n_jobs), np.maximum(types, 0), counts].sum())
