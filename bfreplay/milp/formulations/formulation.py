"""Interface of formulations, checked calls of formulations of other packages, and parts that formulations share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import Columns, LinearModel, Rows, SpecialOrderedSet, model_fault
from bfreplay.milp.problem import ARRAYS, AllocationProblem, value_table
from bfreplay.registry import one_line

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
        """True if the model holds special ordered sets, which not every solver takes."""
        ...

    @property
    def needs_continuous(self) -> bool:
        """True if the model has columns that are not integer, which solvers of pure integer models do not take."""
        ...

    @property
    def change_limited(self) -> bool:
        """True if its optimum is that of the problem with ``published_change_limit(capacity)`` added."""
        ...

    def build(self, problem: AllocationProblem) -> LinearModel:
        """Build the model. ``problem`` is valid, holds at least one job and has at least one node."""
        ...

    def read(self, problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap | None]:
        """Return counts ``(J,)``, and the node map for node-level formulations, from column values ``(C,)``.

        ``problem`` is the one that the model was built from.
        """
        ...


class FormulationError(Exception):
    """A formulation raised, or returned something else than it promised."""


def build_model(formulation: Formulation, problem: AllocationProblem) -> LinearModel:
    """``formulation.build(problem)``, checked to be a well-formed model.

    Raises
    ------
    FormulationError
        It raised, it changed the decision, or what it returned is none.
    """
    model = _call(formulation, "build", problem)
    if not isinstance(model, LinearModel):
        raise _failure(formulation, "build", f"it returned {_kind(model)}, not a bfreplay.milp.LinearModel")
    if fault := model_fault(model):
        raise _failure(formulation, "build", fault)
    return model


def read(
    formulation: Formulation, problem: AllocationProblem, x: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NodeMap | None]:
    """``formulation.read(problem, x)``, checked to be whole counts for J jobs and ``None`` or a node map for them.

    Raises
    ------
    FormulationError
        It raised, it changed the decision, or what it returned is something else.
    """
    result = _call(formulation, "read", problem, x)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise _failure(formulation, "read", f"it returned {_kind(result)}, not (counts, node map or None)")
    counts, nodes = result
    if not (isinstance(counts, np.ndarray) and np.issubdtype(counts.dtype, np.integer)):
        raise _failure(formulation, "read", f"its counts are {_kind(counts)}, not an array of whole numbers (int64)")
    if counts.shape != (problem.n_jobs,):
        raise _failure(
            formulation, "read", f"its counts have shape {counts.shape}, expected ({problem.n_jobs},): one a job"
        )
    return counts.astype(np.int64), None if nodes is None else _node_map(formulation, problem, nodes)


def _call(formulation: Formulation, method: str, problem: AllocationProblem, *arguments: Any) -> Any:
    """Call a method; undo and refuse changes to arrays of the decision, as the referee would answer another one.

    A defect of the formulation is a ``FormulationError``: it costs this decision, not the replay.
    """
    right = {name: getattr(problem, name).copy() for name in ARRAYS}
    try:
        result = getattr(formulation, method)(problem, *arguments)
    except Exception as error:
        raise _failure(formulation, method, one_line(error)) from error
    finally:
        changed = [name for name in right if not np.array_equal(right[name], getattr(problem, name), equal_nan=True)]
        for name in changed:
            getattr(problem, name)[...] = right[name]
        if "value" in vars(problem) and not np.array_equal(table := value_table(problem), problem.value):
            problem.value[...] = table
            changed.append("value")
    if changed:
        raise _failure(formulation, method, f"it changed problem.{', problem.'.join(changed)} in place: change a copy")
    return result


def _node_map(formulation: Formulation, problem: AllocationProblem, nodes: Any) -> NodeMap:
    try:
        node_map = tuple(tuple(int(node_index) for node_index in of_job) for of_job in nodes)
        is_whole = all(
            node_index == as_int
            for of_job, as_ints in zip(nodes, node_map, strict=True)
            for node_index, as_int in zip(of_job, as_ints, strict=True)
        )
    except Exception as error:  # no sequence of sequences of numbers
        raise _failure(formulation, "read", f"its node map is {_kind(nodes)}, not a tuple of tuples") from error
    if len(node_map) != problem.n_jobs:
        raise _failure(formulation, "read", f"its node map is for {len(node_map)} jobs, expected {problem.n_jobs}")
    if not is_whole or any(not 0 <= node_index < problem.capacity for of_job in node_map for node_index in of_job):
        raise _failure(formulation, "read", f"its node map holds something else than nodes 0 to {problem.capacity - 1}")
    return node_map


def _failure(formulation: Formulation, method: str, reason: str) -> FormulationError:
    return FormulationError(f"formulation {formulation.name!r} failed in {method}(): {reason}")


def _kind(value: Any) -> str:
    """``"a list"``, ``"an array of float64"``, ``"a tuple of 3"``: for messages."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"


def node_holdings(problem: AllocationProblem) -> NDArray[np.bool_]:
    """``(J, N)``: which abstract nodes each job holds now.

    Nodes are interchangeable, so the ones held are numbered consecutively in job order and free ones come last.
    """
    end_of_job = np.cumsum(problem.current)
    node = np.arange(problem.capacity)
    return (node >= (end_of_job - problem.current)[:, None]) & (node < end_of_job[:, None])


def pairs(problem: AllocationProblem) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Job and node of every ``x[j, n]``, ordered by job: two ``(J N,)`` arrays."""
    job_index, node_index = np.divmod(np.arange(problem.n_jobs * problem.capacity), problem.capacity)
    return job_index, node_index


def read_node_map(problem: AllocationProblem, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NodeMap]:
    """Return counts and node map from column values of which the first J N are ``x[j, n]``, ordered by job."""
    size = problem.n_jobs * problem.capacity
    gets_node = np.rint(x[:size]).reshape(problem.n_jobs, problem.capacity) >= 1
    nodes = tuple(tuple(np.flatnonzero(row_of_job).tolist()) for row_of_job in gets_node)
    return gets_node.sum(axis=1, dtype=np.int64), nodes


def map_violation(problem: AllocationProblem, nodes: NodeMap) -> str:
    """Say what is wrong with a node map: a node given twice, or a job that both gains and loses; else nothing."""
    n_takers = np.zeros(problem.capacity, dtype=np.int64)
    holdings = node_holdings(problem)
    for job_index, of_job in enumerate(nodes):
        is_given = np.zeros(problem.capacity, dtype=np.bool_)
        is_given[list(of_job)] = True
        n_takers += is_given
        if (is_given & ~holdings[job_index]).any() and (holdings[job_index] & ~is_given).any():
            return f"job {job_index} migrates: it gives nodes up and gets others"
    if (n_takers > 1).any():
        return f"node {int(np.argmax(n_takers > 1))} is given to {int(n_takers.max())} jobs"
    return ""


def start_counts(problem: AllocationProblem) -> NDArray[np.int64] | None:
    """``(J,)``: every job keeps what it holds, or stops where it may not run on that; ``None`` if it may not either.

    (A job may be left below its minimum by nodes taken back, and held above 0 by a change limit.) The counts are
    feasible: their sum is at most that of ``problem.current``.
    """
    job_index = np.arange(problem.n_jobs)
    inside = np.minimum(problem.current, problem.gain.shape[1] - 1)
    keeps = (inside == problem.current) & (problem.value[job_index, inside] > -np.inf)
    if not (keeps | (problem.value[:, 0] > -np.inf)).all():
        return None
    return np.where(keeps, problem.current, 0)


STRAIGHT = 1e-13
"""A second difference below this share of the curve's largest magnitude is rounding, not a kink."""

EXACT = 1e-10
"""Largest interpolation error at any count, as that share; with a larger one every count is kept."""


def kinks(table: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the counts at which ``table`` (value at 0, 1, ..., k) bends, with both ends, ascending.

    Linear interpolation between them gives the table back at every whole count.
    """
    last = table.shape[0] - 1
    if last <= 1:
        return np.arange(last + 1)
    scale = float(np.abs(table).max())
    bends = np.flatnonzero(np.abs(np.diff(table, n=2)) > STRAIGHT * scale) + 1
    points = np.concatenate(([0], bends, [last]))
    counts = np.arange(last + 1)
    error = np.abs(np.interp(counts, points, table[points]) - table).max()
    return points if error <= EXACT * scale else counts


@dataclass(frozen=True, slots=True)
class WeightedCurves:
    """The weights of all jobs' breakpoints, B in all, ordered by job, then count.

    Parameters
    ----------
    points
        For each job the counts at its breakpoints, ascending.
    owner, point : (B,) int64
        Job and count of each.
    column : (B,) int64
        Column of its weight.
    curve_row
        First of J rows ``sum_b b weight[j, b] = 0``, to which the caller adds minus the count.
    """

    points: Sequence[NDArray[np.int64]]
    owner: NDArray[np.int64]
    point: NDArray[np.int64]
    column: NDArray[np.int64]
    curve_row: int

    @property
    def sets(self) -> tuple[SpecialOrderedSet, ...]:
        """An SOS2 for each job with more than one breakpoint."""
        ends = np.cumsum([len(point) for point in self.points])
        return tuple(
            SpecialOrderedSet(2, self.column[stop - len(of_job) : stop], of_job.astype(np.float64))
            for stop, of_job in zip(ends.tolist(), self.points, strict=True)
            if len(of_job) > 1
        )

    def weights_at(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(B,)``: the weights that interpolate at ``counts (J,)``, which lie within each job's breakpoints."""
        return np.concatenate(
            [_hats(of_job, count) for of_job, count in zip(self.points, counts.tolist(), strict=True)]
        )


def add_weighted_curves(
    columns: Columns, rows: Rows, gain: NDArray[np.float64], points: Sequence[NDArray[np.int64]]
) -> WeightedCurves:
    """Add ``weight[j, b] >= 0``, worth ``gain[j, b]``, and the rows ``convex[j]`` and ``curve[j]``.

    ``sum_b weight[j, b] = 1`` and ``sum_b b weight[j, b] = count_j``, whose right-hand side is left to the caller.
    """
    owner = np.repeat(np.arange(len(points)), [len(point) for point in points])
    point = np.concatenate(points)
    column = columns.add("weight", owner, point, objective=gain[owner, point], integer=False)
    convex = rows.add("convex", len(points), 1.0, 1.0)
    rows.put(convex + owner, column, 1.0)
    curve = rows.add("curve", len(points), 0.0, 0.0)
    rows.put(curve + owner, column, point.astype(np.float64))
    return WeightedCurves(points, owner, point, column, curve)


def _hats(points: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    weight = np.zeros(points.shape[0])
    right = int(np.searchsorted(points, count))
    weight[right] = 1.0
    if points[right] != count:
        share = (count - points[right - 1]) / (points[right] - points[right - 1])
        weight[right - 1 : right + 1] = 1.0 - share, share
    return weight
