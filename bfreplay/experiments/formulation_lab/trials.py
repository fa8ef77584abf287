"""Measures every decision on every pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bfreplay.experiments.formulation_lab.answers import Answer, answer_of, finite_or_none
from bfreplay.experiments.formulation_lab.pairs import EXACT, Pair, PairPlan
from bfreplay.experiments.formulation_lab.sampling import LabSettings, SampledDecision
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.files.decision_json import FailureFolder
from bfreplay.milp.files.models import file_stem
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.milp_solver import MilpSolver
from bfreplay.milp.named_solvers import COUNTS
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus, Solution
from bfreplay.milp.solver import Solver

WARM_UP_LIMIT_S = 5.0
"""Time limit of the tiny decision for warming up."""

TrialProgress = Callable[[int, int, str], None]
"""Called before every solve with (solves done, solves to do, pair)."""


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
            kept = None
            if save_failures is not None:
                kept = FailureFolder(save_failures / file_stem(pair.name), most_failures)
            self._solvers.append(self._solver(pair, settings.time_limit_s, kept))
        self._warm_pair: dict[str, Pair] = {}  # by back end: a pair that has answered the tiny decision

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *_exception: object) -> None:
        for worker in self._workers.values():
            worker.close()

    @property
    def worker_starts(self) -> dict[str, int]:
        """Number of workers started so far, by back end."""
        return {name: worker.starts for name, worker in self._workers.items()}

    def warm_up(self, progress: TrialProgress | None = None) -> None:
        """Start every worker and let every pair answer a tiny decision, so that imports are not measured."""
        self._exact.solve(_tiny())
        for done, pair in enumerate(self._pairs):
            if progress is not None:
                progress(done, len(self._pairs), pair.name)
            if self._tiny_works(pair):
                self._warm_pair.setdefault(pair.backend.name, pair)

    def run(
        self, decisions: Sequence[SampledDecision], progress: TrialProgress | None = None
    ) -> tuple[list[Answer], list[Optima]]:
        """Answer every decision with every pair and the exact solver.

        The order of the pairs rotates from decision to decision, so that caches and noise favour no pair.
        """
        answers: list[Answer] = []
        optima: list[Optima] = []
        entrants: list[tuple[Pair | None, Solver]] = [(None, self._exact)]
        entrants += zip(self._pairs, self._solvers, strict=True)
        for position, decision in enumerate(decisions):
            posed = (decision.problem, decision.problem.within_published_limit())
            best = Optima(*(finite_or_none(self._exact.solve(problem).objective) for problem in posed))
            optima.append(best)
            for place in range(len(entrants)):
                pair, solver = entrants[(place + position) % len(entrants)]
                if progress is not None:
                    progress(len(answers), len(decisions) * len(entrants), EXACT if pair is None else pair.name)
                problem = replace(decision.problem)  # without values cached by another pair
                answers.append(self._answer(decision.index, pair, solver.solve(problem), best))
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

    def _answer(self, index: int, pair: Pair | None, solution: Solution, best: Optima) -> Answer:
        if pair is None:
            return answer_of(
                solution,
                decision=index,
                pair=EXACT,
                formulation=COUNTS,
                backend=EXACT,
                optimum=best.optimum,
                posed_optimum=best.optimum,
            )
        own = solution.rejected or solution
        lost = own.process_status in (ProcessStatus.CRASHED, ProcessStatus.TIMED_OUT)
        warm = self._warm_pair.get(pair.backend.name)
        # the new worker answers the tiny decision; if that fails, it gets no more of them
        if lost and warm is not None and not self._tiny_works(warm):
            del self._warm_pair[pair.backend.name]
        limited = pair.formulation.formulation.change_limited
        return answer_of(
            own,
            decision=index,
            pair=pair.name,
            formulation=pair.formulation.name,
            backend=pair.backend.name,
            optimum=best.optimum,
            posed_optimum=best.published_optimum if limited else best.optimum,
            worker_lost=lost,
        )

    def _tiny_works(self, pair: Pair) -> bool:
        limit_s = min(self._settings.time_limit_s, WARM_UP_LIMIT_S)
        return self._solver(pair, limit_s, None).solve(_tiny()).counts is not None


def _tiny() -> AllocationProblem:
    """Return a decision of two jobs on three nodes."""
    return AllocationProblem(
        current=np.array([2, 0], dtype=np.int64),
        min_nodes=np.array([1, 2], dtype=np.int64),
        max_nodes=np.array([3, 3], dtype=np.int64),
        gain=np.array([[0.0, 10.0, 16.0, 18.0], [0.0, 7.0, 14.0, 21.0]]),
        scale_up_loss=np.array([1.0, 0.0]),
        scale_down_loss=np.array([5.0, 0.0]),
        capacity=3,
    )
