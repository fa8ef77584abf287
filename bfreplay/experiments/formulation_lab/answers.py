"""Outcome and row of numbers of one decision with one pair."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum

from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus


class Outcome(StrEnum):
    """Outcome of one answer."""

    PROVEN = "proven"  # feasible, objective recomputed, and optimal (to within --gap) by the exact solver
    FEASIBLE = "feasible"  # feasible and objective recomputed, not proven
    WRONG = "wrong"  # infeasible, a wrong objective, or falsely called optimal or infeasible
    CRASHED = "crashed"  # the worker died
    TIMED_OUT = "timed_out"  # no answer by the deadline: the worker was killed
    REFUSED = "refused"  # the back end rejected the model, for example as too large
    ERROR = "error"  # the formulation or the back end raised
    NO_ANSWER = "no_answer"  # stopped without an answer


SOLVED = (Outcome.PROVEN, Outcome.FEASIBLE)
"""Outcomes with a verified answer."""

_OF_PROCESS = {
    ProcessStatus.CRASHED: Outcome.CRASHED,
    ProcessStatus.TIMED_OUT: Outcome.TIMED_OUT,
    ProcessStatus.REFUSED: Outcome.REFUSED,
}
_OF_QUALITY = {Quality.PROVEN: Outcome.PROVEN, Quality.FEASIBLE: Outcome.FEASIBLE, Quality.WRONG: Outcome.WRONG}


def outcome_of(solution: Solution, *, has_optimum: bool) -> Outcome:
    """Return the outcome of ``solution``; with ``has_optimum`` "infeasible" is wrong."""
    if solution.process_status in _OF_PROCESS:
        return _OF_PROCESS[solution.process_status]
    within_gap = solution.quality is Quality.FEASIBLE and solution.solver_status is SolverStatus.OPTIMAL
    if within_gap and math.isfinite(solution.bound):
        return Outcome.PROVEN  # within --gap
    if solution.quality in _OF_QUALITY:
        return _OF_QUALITY[solution.quality]
    if solution.solver_status is SolverStatus.ERROR:
        return Outcome.ERROR
    if has_optimum and solution.solver_status in (SolverStatus.INFEASIBLE, SolverStatus.UNBOUNDED):
        return Outcome.WRONG
    return Outcome.NO_ANSWER


@dataclass(frozen=True, slots=True)
class Answer:
    """One row of ``answers.parquet``: a decision and a pair (or the exact solver). ``None`` is unknown.

    Parameters
    ----------
    decision
        The decision's ``index``.
    pair, formulation, backend
        Names.
    outcome
        Outcome, from the three statuses.
    objective, bound, gap
        Recomputed objective of the counts (also of a wrong answer with feasible counts); proven upper bound;
        ``bound - objective`` relative to the larger of 1 and the objective's magnitude.
    posed_optimum, optimum
        Exact optimum of the decision as the formulation poses it (the published limit on changes included), and of
        the decision itself.
    relative_loss
        ``(optimum - objective) / max(1, |optimum|)``.
    build_s, solve_s, total_s
        Seconds to make and pass the model, to solve it, and their sum.
    columns, integer_columns, rows, entries, sets
        Size of the solved model.
    worker_lost
        The worker died or was killed.
    message
        Reason for not being proven.
    """

    decision: int
    pair: str
    formulation: str
    backend: str
    outcome: Outcome
    process_status: str
    solver_status: str
    quality: str
    objective: float | None
    bound: float | None
    gap: float | None
    posed_optimum: float | None
    optimum: float | None
    relative_loss: float | None
    build_s: float
    solve_s: float
    total_s: float
    columns: int | None = None
    integer_columns: int | None = None
    rows: int | None = None
    entries: int | None = None
    sets: int | None = None
    worker_lost: bool = False
    message: str = ""

    @property
    def is_proven(self) -> bool:
        """True for a verified optimum of the decision as posed, to within ``--gap``."""
        return self.outcome is Outcome.PROVEN


def answer_of(
    solution: Solution,
    *,
    decision: int,
    pair: str,
    formulation: str,
    backend: str,
    optimum: float | None,
    posed_optimum: float | None,
    worker_lost: bool = False,
) -> Answer:
    """Make the row of one decision and pair."""
    objective = finite_or_none(solution.objective)
    return Answer(
        decision=decision,
        pair=pair,
        formulation=formulation,
        backend=backend,
        outcome=outcome_of(solution, has_optimum=posed_optimum is not None),
        process_status=solution.process_status.value,
        solver_status=solution.solver_status.value,
        quality=solution.quality.value,
        objective=objective,
        bound=finite_or_none(solution.bound),
        gap=finite_or_none(solution.gap),
        posed_optimum=posed_optimum,
        optimum=optimum,
        relative_loss=None if objective is None or optimum is None else relative_loss(objective, optimum),
        build_s=solution.build_s,
        solve_s=solution.solve_s,
        total_s=solution.build_s + solution.solve_s,
        **({} if solution.size is None else asdict(solution.size)),
        worker_lost=worker_lost,
        message=solution.message,
    )


def relative_loss(objective: float, optimum: float) -> float:
    """Return ``(optimum - objective) / max(1, |optimum|)``."""
    return (optimum - objective) / max(1.0, abs(optimum))


def finite_or_none(number: float) -> float | None:
    """Return the number, or ``None`` for ``nan`` and infinities."""
    return number if math.isfinite(number) else None
