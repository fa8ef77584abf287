"""Measures every decision on every pair: outcome, and row of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from bfreplay.experiments.formulation_lab.pairs import EXACT, Pair, PairPlan
from bfreplay.experiments.formulation_lab.sampling import LabProgress, LabSettings, SampledDecision, no_progress
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.files.decision_json import FailureFolder
from bfreplay.milp.files.models import file_stem
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.milp_solver import MilpSolver
from bfreplay.milp.named_solvers import COUNTS, small_decision
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, Solver, SolverStatus
from bfreplay.scalability.choice import finite_or_none


class Outcome(StrEnum):
    """Outcome of one answer."""

    PROVEN = "proven"  # feasible, objective recomputed, and optimal (to within --gap) by the exact solver
    FEASIBLE = "feasible"  # feasible and objective recomputed, not proven
    WRONG = "wrong"  # infeasible, a wrong objective, or falsely called optimal or infeasible
    CRASHED = "crashed"  # the worker died
    TIMED_OUT = "timed_out"  # no answer by the deadline: the worker was killed
    # the back end takes no such model (for example as too large), or the formulation no such decision
    REFUSED = "refused"
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


def relative_loss(objective: float, optimum: float) -> float:
    """Return ``(optimum - objective) / max(1, |optimum|)``."""
    return (optimum - objective) / max(1.0, abs(optimum))


WARM_UP_LIMIT_S = 5.0
"""Time limit of the tiny decision for warming up."""


@dataclass(frozen=True, slots=True)
class Optima:
    """Exact optima of one decision: the true one, and under the published limit on changes; ``None`` without one."""

    optimum: float | None
    published_optimum: float | None


class Trials:
    """The exact solver and all pairs. Workers start in ``warm_up`` and end with the block.

    Each back end has one worker process, which its formulations share. A worker that dies or is killed is replaced
    at once, and the new one answers a tiny decision before the next pair is measured on it.

    Parameters
    ----------
    plan, settings
        Pairs, and options of the comparison.
    save_failures
        Folder for the model and the decision of every rejected answer, in a folder per pair.
    most_failures
        Largest number kept per pair and outcome; ``None`` for all.

    Raises
    ------
    InputError
        An option of the solvers is out of range.
    """

    def __init__(
        self, plan: PairPlan, settings: LabSettings, save_failures: Path | None = None, most_failures: int | None = None
    ) -> None:
        self._exact = ExactSolver()
        self._workers = {
            backend.name: IsolatedBackend(
                backend.location, memory_limit_bytes=settings.memory_limit_bytes, grace_s=settings.grace_s
            )
            for backend in plan.backends
        }
        self._pairs = plan.pairs
        self._settings = settings
        self._solvers = []
        for pair in plan.pairs:
            failures = None
            if save_failures is not None:
                failures = FailureFolder(save_failures / file_stem(pair.name), most_failures)
            self._solvers.append(self._solver(pair, settings.time_limit_s, failures))
        self._warm_pair: dict[str, Pair] = {}  # by back end: a pair that has answered the tiny decision

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_exception: object) -> None:
        for worker in self._workers.values():
            worker.close()

    @property
    def worker_starts(self) -> dict[str, int]:
        """Number of workers started so far, by back end."""
        return {backend_name: worker.starts for backend_name, worker in self._workers.items()}

    def warm_up(self, progress: LabProgress = no_progress) -> None:
        """Start every worker and let every pair answer a tiny decision, so that imports are not measured."""
        self._exact.solve(small_decision())
        for n_done, pair in enumerate(self._pairs):
            progress("warm-up", n_done, len(self._pairs), pair.name)
            if self._tiny_works(pair):
                self._warm_pair.setdefault(pair.backend.name, pair)

    def run(
        self, decisions: Sequence[SampledDecision], progress: LabProgress = no_progress
    ) -> tuple[list[Answer], list[Optima]]:
        """Answer every decision with every pair and the exact solver.

        The order of the pairs rotates from decision to decision, so that caches and noise favour no pair.
        """
        answers: list[Answer] = []
        optima: list[Optima] = []
        entrants: list[tuple[Pair | None, Solver]] = [(None, self._exact)]
        entrants += zip(self._pairs, self._solvers, strict=True)
        for position, decision in enumerate(decisions):
            problems = (decision.problem, decision.problem.within_published_limit())
            optima_of_decision = Optima(*(finite_or_none(self._exact.solve(problem).objective) for problem in problems))
            optima.append(optima_of_decision)
            for place in range(len(entrants)):
                pair, solver = entrants[(place + position) % len(entrants)]
                pair_name = EXACT if pair is None else pair.name
                progress("solve", len(answers), len(decisions) * len(entrants), pair_name)
                problem = replace(decision.problem)  # without values cached by another pair
                answers.append(self._answer(decision.index, pair, solver.solve(problem), optima_of_decision))
        return answers, optima

    def _solver(self, pair: Pair, time_limit_s: float, save_failures: FailureFolder | None) -> MilpSolver:
        return MilpSolver(
            pair.formulation.formulation,
            pair.backend.backend,
            time_limit_s=time_limit_s,
            fallback="none",
            referee=self._exact,
            save_failures=save_failures,
            relative_gap=self._settings.relative_gap,
            threads=self._settings.threads,
            seed=self._settings.solver_seed,
            warm_start=self._settings.warm_start,
            reformulate_sets=self._settings.reformulate_sets,
            worker=self._workers[pair.backend.name],
        )

    def _answer(self, decision_index: int, pair: Pair | None, solution: Solution, optima_of_decision: Optima) -> Answer:
        names: dict[str, Any] = {"pair": EXACT, "formulation": COUNTS, "backend": EXACT}
        posed_optimum, is_worker_lost = optima_of_decision.optimum, False
        if pair is not None:
            names = {"pair": pair.name, "formulation": pair.formulation.name, "backend": pair.backend.name}
            if pair.formulation.formulation.change_limited:
                posed_optimum = optima_of_decision.published_optimum
            solution = solution.rejected or solution
            is_worker_lost = solution.process_status in (ProcessStatus.CRASHED, ProcessStatus.TIMED_OUT)
            warm_pair = self._warm_pair.get(pair.backend.name)
            # the new worker answers the tiny decision; if that fails, it gets no more of them
            if is_worker_lost and warm_pair is not None and not self._tiny_works(warm_pair):
                del self._warm_pair[pair.backend.name]
        objective, optimum = finite_or_none(solution.objective), optima_of_decision.optimum
        return Answer(
            decision=decision_index,
            **names,
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
            worker_lost=is_worker_lost,
            message=solution.message,
        )

    def _tiny_works(self, pair: Pair) -> bool:
        limit_s = min(self._settings.time_limit_s, WARM_UP_LIMIT_S)
        return self._solver(pair, limit_s, None).solve(small_decision()).counts is not None
