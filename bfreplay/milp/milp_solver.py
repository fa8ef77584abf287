"""A formulation on a back end as a solver: checked to fit, isolated, re-verified, with a fallback."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from bfreplay import checks, defaults
from bfreplay.documents import pick
from bfreplay.errors import InputError, SolverUnavailableError
from bfreplay.milp.backends import BACKENDS, Backend, SolveOptions, backend_of, why_not
from bfreplay.milp.backends.arrays import without_sets
from bfreplay.milp.files.decision_json import FailureFolder
from bfreplay.milp.formulations import Formulation, formulation_of
from bfreplay.milp.formulations.formulation import FormulationError, ProblemRefusedError, build_model
from bfreplay.milp.isolation import GRACE_S, InProcessBackend, IsolatedAnswer, IsolatedBackend
from bfreplay.milp.judgement import Judgement, apply_referee, judge
from bfreplay.milp.model import LinearModel, ModelSize
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, Solver, SolverStatus
from bfreplay.milp.verify import violation

MAX_SEED = 2**31 - 2
"""Solvers take 32-bit seeds, and CBC needs one more."""

MAX_TIME_LIMIT_S = 1e6
"""Eleven days: waiting times are counted in 32-bit milliseconds."""


def pairing_fault(formulation: Formulation, backend: Backend, *, reformulate_sets: bool = False) -> str:
    """Return why ``backend`` cannot take the models of ``formulation``; empty when it can."""
    abilities = backend.capabilities
    if formulation.needs_sos and not abilities.sos and not reformulate_sets:
        return (
            f"{backend.name} takes no special ordered sets, which {formulation.name} needs; take another formulation "
            "(choices_reduced needs none), another back end (cbc takes them), or have the sets posed by binaries "
            "(--reformulate-sets)"
        )
    if formulation.needs_continuous and not abilities.continuous:
        return (
            f"{backend.name} takes integer columns only, and {formulation.name} has continuous ones; take another "
            "formulation (choices_reduced has none) or another back end"
        )
    return ""


def check_options(time_limit_s: float, relative_gap: float, threads: int, seed: int) -> None:
    """Raise ``InputError`` for an option of ``SolveOptions`` that is out of range."""
    checks.number("time_limit_s", time_limit_s, above=0, most=MAX_TIME_LIMIT_S)
    if not 0 <= relative_gap < 1:
        raise InputError("the gap is out of range", value=relative_gap, expected="0 <= gap < 1, relative")
    checks.whole("threads", threads, 1, checks.MOST_THREADS)
    checks.whole("seed", seed, 0, MAX_SEED)


def location_of(backend: Backend) -> str:
    """``"package.module:Class"`` of an instance; ``InputError`` where a worker could not import it."""
    backend_class = type(backend)
    if backend_class.__module__ == "__main__" or "<locals>" in backend_class.__qualname__:
        raise InputError(
            "a worker process cannot import this back end",
            value=backend_class.__qualname__,
            expected="a class in an importable module",
            fix="move it to a module of its own, or pass isolated=False",
        )
    return f"{backend_class.__module__}:{backend_class.__qualname__}"


Fallback = Literal["exact", "keep", "none"]
_DENIALS = (SolverStatus.INFEASIBLE, SolverStatus.UNBOUNDED)
"""Claims that there is no best answer."""

FALLBACKS: tuple[Fallback, ...] = ("exact", "keep", "none")


class MilpSolver:
    """Solver of decisions by a MILP; every answer of its back end is checked.

    Parameters
    ----------
    formulation
        Registered name, ``package.module:Class``, or an instance.
    backend
        Registered name, ``package.module:Class``, or an instance (with ``isolated`` its class is made anew in the
        worker).
    time_limit_s
        For the back end, per decision. In a worker our own deadline follows ``grace_s`` later.
    fallback
        What answers instead of a crash, a time-out, no answer, a wrong one, an exception in the formulation or a
        decision that it refuses.
        ``"exact"``: the referee, on the problem as it is. ``"keep"``: every job keeps what it holds, also instead of
        an answer that is feasible but not proven (the published program's rule). ``"none"``: nothing, ``counts`` is
        ``None``.
    referee
        An exact solver. It checks every claimed optimum (on the same problem, the formulation's change limit
        included) and is what ``fallback="exact"`` asks. ``None``: claimed optima are believed once they are feasible
        and worth what they claim.
    isolated
        Solve in a worker process, so that crashes and hangs are statuses.
    save_failures
        Folder that gets the model of every rejected answer as MPS, and its decision as JSON.
    grace_s, memory_limit_bytes
        Of the worker.
    relative_gap, threads, seed
        Passed to the back end.
    warm_start
        Give the back end the formulation's start (the current counts), where it can use one.
    reformulate_sets
        Where the back end takes no special ordered sets, pose them by binaries instead of refusing.
    worker
        Runs the back end instead of a worker of this solver's own, so that several formulations share one process, or
        to use another Python interpreter. Whoever made it closes it.

    Raises
    ------
    InputError
        Unknown names, options out of range, or ``fallback="exact"`` without a referee.
    SolverUnavailableError
        The back end does not work here, or cannot take the formulation's special ordered sets or continuous columns.

    Notes
    -----
    ``quality`` and ``bound`` refer to the problem with the formulation's change limit: ``PROVEN`` by the formulation
    ``published`` is the published program's optimum, which may be worse than the true one.
    """

    def __init__(
        self,
        formulation: str | Formulation = defaults.MILP_FORMULATION,
        backend: str | Backend = "cbc",
        *,
        time_limit_s: float = defaults.TIME_LIMIT_S,
        fallback: Fallback = "exact",
        referee: Solver | None = None,
        isolated: bool = True,
        save_failures: str | Path | FailureFolder | None = None,
        grace_s: float = GRACE_S,
        memory_limit_bytes: int | None = None,
        relative_gap: float = 0.0,
        threads: int = 1,
        seed: int = 0,
        warm_start: bool = True,
        reformulate_sets: bool = False,
        worker: IsolatedBackend | None = None,
    ) -> None:
        checks.one_of("fallback", fallback, FALLBACKS)
        if fallback == "exact" and referee is None:
            raise InputError(
                "fallback 'exact' needs a solver to fall back to",
                fix="pass referee=ExactSolver(), or fallback='keep' or 'none'",
            )
        check_options(time_limit_s, relative_gap, threads, seed)
        self._formulation, instance = formulation_of(formulation), backend_of(backend)
        if worker is None and (reason := why_not(instance)):  # a given worker may have packages that are not here
            raise SolverUnavailableError(f"{instance.name} does not work here: {reason}")
        if refusal := pairing_fault(self._formulation, instance, reformulate_sets=reformulate_sets):
            raise SolverUnavailableError(refusal)
        self.name = f"{self._formulation.name} on {instance.name}"
        """``"choices on cbc"``."""
        self._options = SolveOptions(time_limit_s, relative_gap, threads, seed)
        self._fallback: Fallback = fallback
        self._referee = referee
        self._failures = FailureFolder(Path(save_failures)) if isinstance(save_failures, str | Path) else save_failures
        self._warm_start = warm_start and instance.capabilities.warm_start
        self._without_sets = not instance.capabilities.sos
        self._reformulates = reformulate_sets
        self._memory_limit_bytes = memory_limit_bytes
        self._own_worker = worker is None
        self._runner: IsolatedBackend | InProcessBackend = InProcessBackend(instance)
        if worker is not None or isolated:
            location = BACKENDS.location(backend) if isinstance(backend, str) else location_of(backend)
            if worker is not None and worker.location != location:
                raise InputError("the worker runs another back end", value=worker.location, expected=location)
            self._runner = worker or IsolatedBackend(location, memory_limit_bytes=memory_limit_bytes, grace_s=grace_s)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}, fallback {self._fallback}>"

    def solve(self, problem: AllocationProblem) -> Solution:
        """Answer one decision; failures are statuses, and ``rejected`` holds what a fallback replaced."""
        if problem.n_jobs == 0 or problem.capacity == 0:
            objective = float(problem.value[:, 0].sum()) if problem.n_jobs else 0.0
            counts = np.zeros(problem.n_jobs, dtype=np.int64)
            solution = Solution.proven(counts, objective, objective, self.name, 0.0, 0.0)
            return replace(solution, process_status=ProcessStatus.NOT_NEEDED)
        question = problem.within_published_limit() if self._formulation.change_limited else problem
        start_s = time.perf_counter()
        try:
            model = build_model(self._formulation, problem)
            adapted_model = self._adapt(model)
        except ProblemRefusedError as error:
            failure = Solution.without_answer(self.name, SolverStatus.UNKNOWN, str(error))
            refusal = replace(failure, process_status=ProcessStatus.REFUSED)
            return self._instead(problem, question, refusal, None)
        except FormulationError as error:
            build_s = time.perf_counter() - start_s
            failure = Solution.without_answer(self.name, SolverStatus.ERROR, str(error), build_s)
            self._keep(problem, None, failure)
            return self._instead(problem, question, failure, None)
        build_time_s = time.perf_counter() - start_s
        outcome = _cut_back(self._runner.solve(adapted_model, self._options), model, adapted_model)
        try:
            verdict, exact = self._judge(problem, question, model, outcome)
        except FormulationError as error:
            verdict, exact = Judgement(Quality.NONE, message=str(error)), None
            outcome = replace(outcome, answer=None)  # nothing can be read from it: an error, whatever the back end says
        solution = _solution(self.name, outcome, verdict, build_time_s, adapted_model.size)
        is_feasible, within_gap = verdict.quality is Quality.FEASIBLE, solution.solver_status is SolverStatus.OPTIMAL
        if verdict.quality is Quality.PROVEN or (is_feasible and (within_gap or self._fallback != "keep")):
            return solution
        if not (is_feasible or solution.process_status is ProcessStatus.REFUSED):
            self._keep(problem, adapted_model, solution)
        return self._instead(problem, question, solution, exact)

    def describe(self) -> dict[str, object]:
        """Formulation, back end, and every option that may change an answer."""
        return {
            "name": self.name,
            **pick(self._options, "time_limit_s", "relative_gap", "threads", "seed"),
            "warm_start": self._warm_start,
            "reformulate_sets": self._reformulates,
            "memory_limit_bytes": self._memory_limit_bytes,
            "fallback": self._fallback,
            "referee": None if self._referee is None else self._referee.name,
        }

    def close(self) -> None:
        """End the worker, unless it was given; the referee stays open."""
        if self._own_worker:
            self._runner.close()

    def _adapt(self, model: LinearModel) -> LinearModel:
        """Return the model as this back end takes it: without a start or sets that it cannot use."""
        if model.start is not None and not self._warm_start:
            model = replace(model, start=None)
        if model.sets and self._without_sets:
            try:
                return without_sets(model)
            except InputError as error:
                raise FormulationError(
                    f"formulation {self._formulation.name!r}: its sets cannot be reformulated: {error.problem}"
                ) from error
        return model

    def _judge(
        self, problem: AllocationProblem, question: AllocationProblem, model: LinearModel, outcome: IsolatedAnswer
    ) -> tuple[Judgement, Solution | None]:
        """Return the verdict, and the referee's answer to ``question`` where it was asked."""
        if outcome.answer is None:
            return Judgement(Quality.NONE, message=outcome.message), None
        relative_gap = self._options.relative_gap
        verdict = judge(question, self._formulation, model, outcome.answer, relative_gap, built_from=problem)
        is_denial = verdict.quality is Quality.NONE and outcome.answer.solver_status in _DENIALS
        is_answer = verdict.quality in (Quality.PROVEN, Quality.FEASIBLE)
        if self._referee is None or not (is_denial or is_answer):
            return verdict, None
        reference = self._referee.solve(question)
        claims_optimum = outcome.answer.solver_status is SolverStatus.OPTIMAL
        return apply_referee(question, verdict, reference, relative_gap if claims_optimum else None), reference

    def _instead(
        self, problem: AllocationProblem, question: AllocationProblem, failure: Solution, exact: Solution | None
    ) -> Solution:
        """Return the fallback's answer, with ``failure`` in ``rejected``."""
        reason = f"{failure.solver} rejected: {failure.message}"
        if self._fallback == "exact" and self._referee is not None:
            answer = exact if exact is not None and question is problem else self._referee.solve(problem)
            message = reason if not answer.message else f"{answer.message}; {reason}"
            return replace(answer, rejected=failure, message=message)
        if self._fallback == "keep":
            return _keep_current(problem, failure, reason)
        none = Solution.without_answer(self.name, failure.solver_status, reason, failure.build_s, failure.solve_s)
        return replace(none, process_status=failure.process_status, size=failure.size, rejected=failure)

    def _keep(self, problem: AllocationProblem, model: LinearModel | None, failure: Solution) -> None:
        """Save a failure, if the user asked for it."""
        if self._failures is not None:
            statuses = pick(failure, "process_status", "solver_status", "quality", "message")
            counts = None if failure.counts is None else failure.counts.tolist()
            about = {"options": self.describe(), **statuses, "claimed_counts": counts}
            self._failures.keep(self.name, problem, model, about)


def _cut_back(outcome: IsolatedAnswer, model: LinearModel, adapted_model: LinearModel) -> IsolatedAnswer:
    """Return the answer to ``adapted_model`` as one to ``model``, without the columns added to reformulate sets."""
    answer = outcome.answer
    if adapted_model.n_columns == model.n_columns or answer is None or not isinstance(answer.x, np.ndarray):
        return outcome
    if answer.x.shape != (adapted_model.n_columns,):
        return outcome  # judged, and rejected, as it is
    return replace(outcome, answer=replace(answer, x=answer.x[: model.n_columns]))


def _keep_current(problem: AllocationProblem, failure: Solution, reason: str) -> Solution:
    """Return the answer that keeps all counts. A job that may not run on its own is worth nothing."""
    counts = problem.current.astype(np.int64, copy=True)
    fault = violation(problem, counts)
    width = problem.gain.shape[1]
    worth = problem.value[np.arange(problem.n_jobs), np.minimum(counts, width - 1)]
    worth = np.where((counts < width) & np.isfinite(worth), worth, problem.gain[:, 0])
    return Solution(
        counts=counts,
        objective=float(worth.sum()),
        bound=math.inf,
        process_status=ProcessStatus.OK,
        solver_status=SolverStatus.FEASIBLE if not fault else SolverStatus.INFEASIBLE,
        quality=Quality.FEASIBLE if not fault else Quality.WRONG,
        solver="keep",
        message=f"the current counts are kept{': ' + fault if fault else ''}; {reason}",
        rejected=failure,
    )


def _solution(
    solver_name: str, outcome: IsolatedAnswer, verdict: Judgement, build_time_s: float, model_size: ModelSize
) -> Solution:
    answer = outcome.answer
    claimed_s = 0.0 if answer is None else answer.build_s
    # a stranger's may be anything
    transfer_s = claimed_s if isinstance(claimed_s, float | int) and math.isfinite(claimed_s) else 0.0
    status = SolverStatus.UNKNOWN if outcome.process_status is not ProcessStatus.OK else SolverStatus.ERROR
    if answer is not None and isinstance(answer.solver_status, SolverStatus):
        status = answer.solver_status
    return Solution(
        counts=verdict.counts,
        objective=verdict.objective,
        bound=verdict.bound,
        process_status=outcome.process_status,
        solver_status=status,
        quality=verdict.quality,
        solver=solver_name,
        build_s=build_time_s + transfer_s,
        solve_s=max(0.0, outcome.elapsed_s - transfer_s),
        message=verdict.message,
        nodes=verdict.nodes,
        size=model_size,
    )
