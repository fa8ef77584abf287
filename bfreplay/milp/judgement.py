"""Verification of a solver's claim: every answer is checked against the problem, whatever its status says."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends.backend import BackendAnswer
from bfreplay.milp.formulations.formulation import Formulation, NodeMap, map_violation, read
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Quality, Solution, SolverStatus
from bfreplay.milp.verify import agrees, largest_coefficient, magnitude, objective_of, violation

INTEGRALITY_TOLERANCE = 1e-5
"""Largest distance from a whole number that an integer column may have."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Result of checking a claim.

    Parameters
    ----------
    quality
        ``WRONG`` with the reason in ``message``; ``NONE`` when there was nothing to check.
    counts, nodes
        ``None`` when they could not be read.
    objective
        Recomputed; ``nan`` without feasible counts.
    bound
        Proven upper bound; ``inf`` when nothing is known.
    """

    quality: Quality
    counts: NDArray[np.int64] | None = None
    nodes: NodeMap | None = None
    objective: float = math.nan
    bound: float = math.inf
    message: str = ""


def judge(
    problem: AllocationProblem,
    formulation: Formulation,
    model: LinearModel,
    answer: BackendAnswer,
    relative_gap: float = 0.0,
    *,
    built_from: AllocationProblem | None = None,
) -> Judgement:
    """Check one answer against ``problem`` (with the formulation's own change limit in it).

    Right are: finite whole columns, feasible counts, a node map that gives no node twice and migrates nothing, an
    objective that is what was claimed (an unproven answer may be worth more than it claims), and for a claimed
    optimum a bound that is not below it. Whether a claimed optimum is one is for ``apply_referee``. With
    ``relative_gap`` above 0 what the solver calls optimal is no more than within that gap of it: feasible, not proven.
    ``built_from`` is the problem that the model was built from, where that is another one (without the limit): it is
    what the formulation reads the answer for.

    Raises
    ------
    FormulationError
        The formulation cannot read the answer.
    """
    status = answer.solver_status
    if fault := _type_fault(answer):
        return Judgement(Quality.WRONG, message=fault)
    if status not in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE):
        return Judgement(Quality.NONE, message=f"no answer: solver status {status}" + _detail(answer))
    if answer.x is None:
        return Judgement(Quality.WRONG, message=f"claims {status} without an answer" + _detail(answer))
    values = np.asarray(answer.x, dtype=np.float64)
    if values.shape != (model.n_columns,):
        return Judgement(Quality.WRONG, message=f"{values.shape} column values for {model.n_columns} columns")
    if not np.isfinite(values).all():
        return Judgement(Quality.WRONG, message="a column value is not finite")
    distance = np.where(model.is_integer, np.abs(values - np.rint(values)), 0.0)
    if distance.max(initial=0.0) > INTEGRALITY_TOLERANCE:
        worst = int(np.argmax(distance))
        return Judgement(Quality.WRONG, message=f"{model.column_names[worst]} = {values[worst]:.9g} is not whole")
    counts, nodes = read(formulation, problem if built_from is None else built_from, values)
    fault = violation(problem, counts) or ("" if nodes is None else _map_fault(problem, counts, nodes))
    if fault:
        return Judgement(Quality.WRONG, counts, nodes, message=fault)
    objective = objective_of(problem, counts)
    scale = largest_coefficient(problem)
    claims_optimum = status is SolverStatus.OPTIMAL
    wrong = Judgement(Quality.WRONG, counts, nodes, objective)
    is_modest = not claims_optimum and answer.objective < objective
    if not (is_modest or agrees(answer.objective, objective, scale)):
        return replace(wrong, message=f"claims {answer.objective:.12g}, is worth {objective:.12g}")
    if answer.bound < objective and not agrees(answer.bound, objective, scale):
        return replace(wrong, message=f"its bound {answer.bound:.12g} is below its own answer's {objective:.12g}")
    if claims_optimum and relative_gap == 0.0:
        return Judgement(Quality.PROVEN, counts, nodes, objective, objective)
    bound = answer.bound if math.isfinite(answer.bound) else math.inf
    reason = (
        f"called optimal within a gap of {relative_gap:g}" if claims_optimum else f"not proven optimal{_detail(answer)}"
    )
    return Judgement(Quality.FEASIBLE, counts, nodes, objective, max(bound, objective), reason)


def apply_referee(
    problem: AllocationProblem, judgement: Judgement, referee: Solution, relative_gap: float | None
) -> Judgement:
    """Check a claim against an exact solver's answer to the same problem.

    A denial (no best answer: infeasible, unbounded) is wrong where the referee has one. A claimed optimum goes to
    ``against_referee``. Of an unproven answer the bound is checked, and where it was called optimal within
    ``relative_gap`` that it is.
    """
    if judgement.quality is Quality.PROVEN:
        return against_referee(problem, judgement, referee)
    if referee.counts is None:
        return judgement
    if judgement.quality is Quality.NONE:
        worth = f"{referee.solver} has an answer worth {referee.objective:.12g}"
        return _wrong(judgement, f"{judgement.message}, but {worth}")
    if referee.quality is not Quality.PROVEN:
        return judgement
    coefficient = largest_coefficient(problem)
    if judgement.bound < referee.objective and not agrees(judgement.bound, referee.objective, coefficient):
        message = f"its bound {judgement.bound:.12g} is below the optimum {referee.objective:.12g} ({referee.solver})"
        return _wrong(judgement, message)
    if relative_gap is None:
        return judgement
    loss = referee.objective - judgement.objective
    slack = relative_gap * max(abs(judgement.objective), abs(referee.objective))
    if loss > slack and not agrees(judgement.objective + slack, referee.objective, magnitude(problem)):
        claim = f"within a gap of {relative_gap:g} at {judgement.objective:.12g}"
        return _wrong(judgement, f"called optimal {claim}, but {referee.solver} has {referee.objective:.12g}")
    return replace(judgement, bound=max(judgement.objective, referee.bound))


def against_referee(problem: AllocationProblem, judgement: Judgement, referee: Solution) -> Judgement:
    """Check that a claimed optimum is not worse than an exact solver's answer to the same problem.

    One that is worse by no more than MILP solvers' own tolerance stays proven; its bound then is the referee's, so that
    its gap tells how much worse.
    """
    if judgement.quality is not Quality.PROVEN:
        return judgement
    unproven = replace(judgement, quality=Quality.FEASIBLE, bound=math.inf)
    if referee.counts is None:
        if referee.solver_status is not SolverStatus.ERROR:
            return judgement
        return replace(unproven, message=f"called optimal, which {referee.solver} could not check: {referee.message}")
    if agrees(judgement.objective, referee.objective, magnitude(problem)):
        bound = referee.bound if referee.quality is Quality.PROVEN else judgement.bound
        return replace(judgement, bound=max(judgement.objective, bound))
    if judgement.objective < referee.objective:
        claim = f"called optimal at {judgement.objective:.12g}"
        return _wrong(judgement, f"{claim}, but {referee.solver} has {referee.objective:.12g}")
    if referee.quality is Quality.PROVEN:
        better = f"better ({judgement.objective:.12g}) than what {referee.solver} calls optimal "
        defect = f"({referee.objective:.12g}): a defect of {referee.solver}, please report it"
        return replace(unproven, message=better + defect)
    return judgement


def _wrong(judgement: Judgement, message: str) -> Judgement:
    return replace(judgement, quality=Quality.WRONG, bound=math.inf, message=message)


def _map_fault(problem: AllocationProblem, counts: NDArray[np.int64], nodes: NodeMap) -> str:
    for job_index, (count, of_job) in enumerate(zip(counts.tolist(), nodes, strict=True)):
        if len(set(of_job)) != count:
            return f"job {job_index} gets {count} nodes, but its node map names {len(set(of_job))}"
    return map_violation(problem, nodes)


def _type_fault(answer: BackendAnswer) -> str:
    """Return which part of a back end's answer has the wrong type; empty if none has."""
    if not isinstance(answer.solver_status, SolverStatus):
        return f"the back end's solver_status is {answer.solver_status!r}, not a SolverStatus"
    for field_name in ("objective", "bound", "build_s", "solve_s"):
        number = getattr(answer, field_name)
        if not isinstance(number, float | int | np.floating | np.integer):
            return f"the back end's {field_name} is {number!r}, not a number"
    if not isinstance(answer.message, str):
        return f"the back end's message is a {type(answer.message).__name__}, not text"
    if answer.x is not None and not (isinstance(answer.x, np.ndarray) and answer.x.dtype.kind in "fiub"):
        return f"the back end's x is a {type(answer.x).__name__}, not an array of numbers"
    return ""


def _detail(answer: BackendAnswer) -> str:
    return f" ({answer.message})" if answer.message else ""
