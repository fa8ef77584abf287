"""What became of one decision with one pair, in one word and a row of numbers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum

from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus


class Outcome(StrEnum):
    """What became of one answer: exactly one of these."""

    PROVEN = "proven"  # feasible, objective recomputed, optimal (with --gap, within it): the exact solver agrees
    FEASIBLE = "feasible"  # feasible and objective recomputed, not proven
    WRONG = "wrong"  # breaks a bound, is not worth what it claims, "optimal" and is not, "infeasible" and is not
    CRASHED = "crashed"  # the worker died
    TIMED_OUT = "timed_out"  # no word by the deadline: the worker was killed
    REFUSED = "refused"  # the back end does not take this model: too large, say
    ERROR = "error"  # the formulation or the back end raised
    NO_ANSWER = "no_answer"  # stopped without one


SOLVED = (Outcome.PROVEN, Outcome.FEASIBLE)
"""Outcomes with a verified answer."""

_OF_PROCESS = {
    ProcessStatus.CRASHED: Outcome.CRASHED,
    ProcessStatus.TIMED_OUT: Outcome.TIMED_OUT,
    ProcessStatus.REFUSED: Outcome.REFUSED,
}
_OF_QUALITY = {Quality.PROVEN: Outcome.PROVEN, Quality.FEASIBLE: Outcome.FEASIBLE, Quality.WRONG: Outcome.WRONG}


def outcome_of(solution: Solution, *, has_optimum: bool) -> Outcome:
    """One word for ``solution``; ``has_optimum``: the decision as posed has an answer, so "infeasible" is wrong."""
    if solution.process_status in _OF_PROCESS:
        return _OF_PROCESS[solution.process_status]
    within_gap = solution.quality is Quality.FEASIBLE and solution.solver_status is SolverStatus.OPTIMAL
    if within_gap and math.isfinite(solution.bound):
        return Outcome.PROVEN  # as good as was asked for: --gap
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
        In one word; behind it the three statuses.
    objective, bound, gap
        Recomputed objective of the counts (also of a wrong answer's where they are feasible); the upper bound that is
        proven; ``bound - objective`` relative to the larger of 1 and the objective's magnitude.
    posed_optimum, optimum
        Exact optimum of the decision as the formulation poses it (the published limit on changes included), and of
        the decision itself.
    relative_loss
        ``(optimum - objective) / max(1, |optimum|)``.
    build_s, solve_s, total_s
        Seconds to make the model and hand it over, to solve it, and their sum.
    columns, integer_columns, rows, entries, sets
        Size of the model that was solved.
    worker_lost
        The worker died or was killed.
    message
        Why it is not proven.
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
        """Whether that answer is a verified optimum of the decision as posed, to within ``--gap``."""
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
    """Make the row of what one pair said to one decision."""
    objective = known(solution.objective)
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
        bound=known(solution.bound),
        gap=known(solution.gap),
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
    """``(optimum - objective) / max(1, |optimum|)``."""
    return (optimum - objective) / max(1.0, abs(optimum))


def known(number: float) -> float | None:
    """``None`` for ``nan`` and infinities."""
    return number if math.isfinite(number) else None
