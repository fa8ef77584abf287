"""Decision table, a row for each decision, and counts of decisions by kind."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.solution import ProcessStatus, Quality, Solution
from bfreplay.policies import Decision, Trigger
from bfreplay.replay.tables import RowTable
from bfreplay.result_folders.records import Amount, Count, RecordPart, TimeUs
from bfreplay.saved_state import restorable

_TRIGGER_WORDS = [
    "+".join(t.name.lower() for t in Trigger if t & mask and t.name) or "window_begin"
    for mask in range(2 * max(Trigger))
]


class SlowestDecision(RecordPart, frozen=True, kw_only=True):
    """Slowest decision, with its time, pool and jobs."""

    decide_s: Amount
    time_us: TimeUs
    n_idle: Count
    n_jobs: Count


@restorable
class PoolChanges(NamedTuple):
    """Changes before a decision: those of its instant, and those that waited for it."""

    joined: int  # nodes that became idle
    left: int  # nodes reclaimed
    preempted: int  # jobs that held one of those
    preemption_cost: float  # samples charged to them

    def plus(self, other: PoolChanges) -> PoolChanges:
        """Return the sums."""
        return PoolChanges(
            self.joined + other.joined,
            self.left + other.left,
            self.preempted + other.preempted,
            self.preemption_cost + other.preemption_cost,
        )


NO_CHANGES = PoolChanges(0, 0, 0, 0.0)


class Outcome(NamedTuple):
    """Effects of a decision on the jobs."""

    rate: float  # samples/s of all jobs
    rescale_cost: float  # samples charged
    scaled_up: int  # jobs
    scaled_down: int  # jobs
    running: int  # jobs
    nodes_used: int


class DecisionPoint(NamedTuple):
    """Time, trigger and pool of a decision."""

    now_us: int
    trigger: int  # a ``Trigger``
    n_idle: int
    counts: NDArray[np.int32]  # (J,) nodes of each active job after it
    samples_since_last: float

    @property
    def n_jobs(self) -> int:
        """J."""
        return int(self.counts.shape[0])


class DecisionLog:
    """Writes the tables ``decisions`` and ``timings`` and counts as it goes."""

    not_saved = ("slowest",)

    def __init__(self, decisions: RowTable, timings: RowTable, policy_name: str) -> None:
        self._decisions = decisions
        self._timings = timings
        self._policy_name = policy_name
        self.by_kind: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()  # by reason
        self.first_message: dict[str, str] = {}  # of each reason
        self.n_scale_ups = 0
        self.n_scale_downs = 0
        self.decide_s = 0.0
        self.slowest: SlowestDecision | None = None

    @property
    def n_rows(self) -> int:
        """Decisions so far."""
        return self._decisions.n_rows

    def write(
        self, point: DecisionPoint, changes: PoolChanges, decision: Decision | None, decide_s: float, outcome: Outcome
    ) -> None:
        """Write one decision; ``decision`` is ``None`` when the policy was not asked."""
        solution = None if decision is None else decision.solution
        verdict = self._without_solution(point, decision) if solution is None else self._of_solution(solution)
        build_s, solve_s = (0.0, 0.0) if solution is None else (solution.build_s, solution.solve_s)
        self._decisions.append(
            (
                point.now_us,
                _TRIGGER_WORDS[point.trigger],
                point.n_idle,
                changes.joined,
                changes.left,
                point.n_jobs,
                outcome.running,
                changes.preempted,
                outcome.scaled_up,
                outcome.scaled_down,
                outcome.nodes_used,
                point.counts,
                outcome.rate,
                point.samples_since_last,
                outcome.rescale_cost,
                changes.preemption_cost,
                None if decision is None else decision.t_fwd_s,
                *verdict,
            )
        )
        self._timings.append((point.now_us, build_s, solve_s, decide_s))
        self.n_scale_ups += outcome.scaled_up
        self.n_scale_downs += outcome.scaled_down
        self.decide_s += decide_s
        if decide_s and (self.slowest is None or decide_s > self.slowest.decide_s):
            self.slowest = SlowestDecision(
                decide_s=decide_s, time_us=point.now_us, n_idle=point.n_idle, n_jobs=point.n_jobs
            )

    def _of_solution(self, solution: Solution) -> tuple[float | str | None, ...]:
        """Columns ``objective`` to ``message``."""
        rejection = solution.rejected
        of_answer = _statuses(solution)
        fell_back_from, *rejected_statuses = (
            (None, None, None, None) if rejection is None else (rejection.solver, *_statuses(rejection))
        )
        self.by_kind[kind_of(*of_answer, fell_back_from)] += 1
        if rejection is not None or solution.counts is None:
            reason = reason_of(rejection or solution)
            self.fallbacks[reason] += 1
            self.first_message.setdefault(reason, solution.message)
        gap = solution.gap
        return (
            None if math.isnan(solution.objective) else solution.objective,
            None if math.isinf(solution.bound) else solution.bound,
            None if math.isinf(gap) else gap,
            solution.solver,
            *of_answer,
            fell_back_from,
            *rejected_statuses,
            solution.message or None,
        )

    def _without_solution(self, point: DecisionPoint, decision: Decision | None) -> tuple[float | str | None, ...]:
        # a policy without a solver, or the first map, has nothing to prove
        process = ProcessStatus.NOT_NEEDED if decision is None else ProcessStatus.OK
        # without jobs or nodes zero is the one feasible answer
        is_trivial = decision is None and not (point.n_jobs and point.n_idle)
        quality = Quality.PROVEN if is_trivial else Quality.FEASIBLE
        self.by_kind[kind_of(process.value, None, quality.value, None)] += 1
        return (None, None, None, self._policy_name, process.value, None, quality.value, *([None] * 5))


def _statuses(solution: Solution) -> tuple[str, str, str]:
    # the plain text: ``value`` takes longer than all the rest of a row
    return solution.process_status._value_, solution.solver_status._value_, solution.quality._value_


def kind_of(process: str, solver: str | None, quality: str, fell_back_from: str | None) -> str:
    """Key of ``summary.decisions`` that a row of the decision table counts under, from its columns.

    A proof belongs to the solver that gave it: that of a fallback does not count as ``proven``.
    """
    if solver is None:  # no solution: a rule or the first map, or nobody was asked
        if process == "ok":
            return "unproven_by_design"
        return "proven_trivially" if quality == "proven" else "not_asked"
    return "proven_by_fallback" if quality == "proven" and fell_back_from is not None else quality


def reason_of(failure: Solution) -> str:
    """Return why an answer was not used, in a word for a table."""
    if failure.process_status is not ProcessStatus.OK:
        return failure.process_status.value
    if failure.quality is Quality.WRONG:
        return "wrong"
    if failure.quality is Quality.FEASIBLE:
        return "not_proven"
    return failure.solver_status.value
