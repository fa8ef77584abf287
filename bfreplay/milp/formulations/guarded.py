"""Calls a formulation, which may be a stranger's, so that whatever it does is one exception with one line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.formulations.formulation import Formulation, NodeMap
from bfreplay.milp.model import LinearModel, model_fault
from bfreplay.milp.problem import AllocationProblem
from bfreplay.registry import one_line


class FormulationError(Exception):
    """A formulation raised, or returned something else than it promised."""


def built(formulation: Formulation, problem: AllocationProblem) -> LinearModel:
    """``formulation.build(problem)``, checked to be a well-formed model.

    Raises
    ------
    FormulationError
        It raised, or what it returned is none.
    """
    try:
        model: Any = formulation.build(problem)
    except Exception as error:  # a defect of the formulation costs this decision, not the replay
        raise _failed(formulation, "build", one_line(error)) from error
    fault = (
        model_fault(model)
        if isinstance(model, LinearModel)
        else f"it returned {_kind(model)}, not a bfreplay.milp.LinearModel"
    )
    if fault:
        raise _failed(formulation, "build", fault)
    return model  # type: ignore[no-any-return]  # checked above


def read(
    formulation: Formulation, problem: AllocationProblem, x: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NodeMap | None]:
    """``formulation.read(problem, x)``, checked to be whole counts for J jobs and ``None`` or a node map for them.

    Raises
    ------
    FormulationError
        It raised, or what it returned is something else.
    """
    try:
        found: Any = formulation.read(problem, x)
    except Exception as error:  # as in ``built``
        raise _failed(formulation, "read", one_line(error)) from error
    if not (isinstance(found, tuple) and len(found) == 2):
        raise _failed(formulation, "read", f"it returned {_kind(found)}, not (counts, node map or None)")
    counts, nodes = found
    if not (isinstance(counts, np.ndarray) and np.issubdtype(counts.dtype, np.integer)):
        raise _failed(formulation, "read", f"its counts are {_kind(counts)}, not an array of whole numbers (int64)")
    if counts.shape != (problem.n_jobs,):
        raise _failed(
            formulation, "read", f"its counts have shape {counts.shape}, expected ({problem.n_jobs},): one a job"
        )
    return counts.astype(np.int64), None if nodes is None else _node_map(formulation, problem, nodes)


def _node_map(formulation: Formulation, problem: AllocationProblem, nodes: Any) -> NodeMap:
    try:
        mapped = tuple(tuple(int(node) for node in mine) for mine in nodes)
        same = all(node == whole for mine, wholes in zip(nodes, mapped, strict=True)
                   for node, whole in zip(mine, wholes, strict=True))  # fmt: skip
    except Exception as error:  # no sequence of sequences of numbers
        raise _failed(formulation, "read", f"its node map is {_kind(nodes)}, not a tuple of tuples") from error
    if len(mapped) != problem.n_jobs:
        raise _failed(formulation, "read", f"its node map is for {len(mapped)} jobs, expected {problem.n_jobs}")
    if not same or any(not 0 <= node < problem.capacity for mine in mapped for node in mine):
        raise _failed(formulation, "read", f"its node map holds something else than nodes 0 to {problem.capacity - 1}")
    return mapped


def _failed(formulation: Formulation, method: str, what: str) -> FormulationError:
    return FormulationError(f"formulation {formulation.name!r} failed in {method}(): {what}")


def _kind(thing: Any) -> str:
    """``"a list"``, ``"an array of float64"``, ``"a tuple of 3"``: for messages."""
    if isinstance(thing, np.ndarray):
        return f"an array of {thing.dtype}"
    if isinstance(thing, tuple):
        return f"a tuple of {len(thing)}"
    return "None" if thing is None else f"a {type(thing).__name__}"
