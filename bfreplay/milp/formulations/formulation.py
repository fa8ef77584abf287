"""Interface of formulations, checked calls of formulations of other packages, and maps of nodes."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import LinearModel, model_fault
from bfreplay.milp.problem import AllocationProblem, value_table
from bfreplay.registry import one_line

NodeMap = tuple[tuple[int, ...], ...]
"""For each job the abstract node numbers it gets, ascending."""


@runtime_checkable
class Formulation(Protocol):
    """Turns a decision into a linear model, and the model's answer back into counts.

    One that reads ``scale_up_loss`` or ``scale_down_loss`` says ``needs_constant_losses = True``, and is not given
    decisions whose losses depend on the count; one that does not say so takes them.
    """

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


class ProblemRefusedError(FormulationError):
    """A formulation cannot take the decision, as it declares."""


def needs_constant_losses(formulation: Formulation) -> bool:
    """Return whether the formulation takes only decisions with ``has_constant_losses``; no is the default."""
    return bool(getattr(formulation, "needs_constant_losses", False))


def build_model(formulation: Formulation, problem: AllocationProblem) -> LinearModel:
    """``formulation.build(problem)``, checked to be a well-formed model.

    Raises
    ------
    ProblemRefusedError
        The losses of the decision depend on the count, which it does not take.
    FormulationError
        It raised, it changed the decision, or what it returned is none.
    """
    if needs_constant_losses(formulation) and not problem.has_constant_losses:
        raise ProblemRefusedError(
            f"{formulation.name} takes one loss of a job that gains nodes and one of a job that loses nodes, and the "
            "losses of this decision depend on the new count; take another formulation (choices_reduced, choices, "
            "counts_segments, counts_sos2 and node_level take them) or the exact solver"
        )
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
    right = {name: array.copy() for name, array in problem.arrays().items()}
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
