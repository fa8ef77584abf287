"""The exact solver of decisions on several types."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay import defaults
from bfreplay.milp.backends.backend import SolveOptions
from bfreplay.milp.backends.highs import Highs
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.exact.solver import LARGEST, PROOF_TOLERANCE, too_large
from bfreplay.milp.model import Columns, LinearModel, Rows
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus
from bfreplay.milp.typed.prices import Choices, best_choices, choices_of, mend, node_prices
from bfreplay.milp.typed.problem import NO_TYPE, TypedProblem, TypedSolution, objective_of, violation
from bfreplay.milp.typed.search import NOTHING, TOO_MANY, Relaxed, better_answer, stiffest_last
from bfreplay.milp.verify import agrees, magnitude
from bfreplay.registry import one_line


class Settled(NamedTuple):
    """Answer of HiGHS.

    Parameters
    ----------
    chosen : (J,) int64
        Choices; the incumbent's where it found none.
    least_loss
        No answer loses less, it says.
    is_proven
        It says that ``chosen`` loses least.
    message
        Why not.
    """

    chosen: NDArray[np.int64]
    least_loss: float
    is_proven: bool
    message: str


def undecided_model(
    relaxed: Relaxed, incumbent: NDArray[np.int64], allowance: float
) -> tuple[LinearModel, NDArray[np.int64]]:
    """Return the model of the choices that lose at most ``allowance`` by themselves, and their numbers, ``(C,)``.

    Variables: ``y[j, t, n]`` binary, job j gets n nodes of type t; ``unused[t]``. Maximise
    ``- sum loss y - sum price unused``, so that the numbers are of the size of what is undecided, subject to
    ``sum y[j, t, n] = 1`` for each job (``one[j]``) and ``sum n y[j, t, n] + unused[t] = capacity[t]`` (``nodes[t]``).
    """
    choices, loss, _, capacity, price = relaxed
    n_jobs = incumbent.size
    kept = loss <= allowance
    kept[incumbent] = True
    left = np.flatnonzero(kept)
    job = np.repeat(np.arange(n_jobs), np.diff(choices.offset))[left]
    columns, rows = Columns(), Rows()
    y = columns.add("y", job, choices.kind[left], choices.nodes[left], objective=-loss[left])
    types = np.arange(capacity.size)
    room = capacity.astype(np.float64)
    unused = columns.add("unused", types, objective=-price, upper=room, integer=False)
    rows.put(rows.add("one", n_jobs, 1.0, 1.0) + job, y, 1.0)
    nodes = rows.add("nodes", capacity.size, room, room)
    rows.put(nodes + choices.kind[left], y, choices.nodes[left].astype(np.float64))
    rows.put(nodes + types, unused, 1.0)
    is_chosen = np.isin(left, incumbent)
    used = np.bincount(choices.kind[incumbent], choices.nodes[incumbent].astype(np.float64), capacity.size)
    start = np.concatenate([is_chosen.astype(np.float64), room - used])
    return rows.model_of(columns, start=start), left


def settle(relaxed: Relaxed, incumbent: NDArray[np.int64], allowance: float, time_limit_s: float) -> Settled:
    """Ask HiGHS for the choices that lose least. Never raises for its failure: then nothing is proven."""
    try:
        import_module("highspy")
        model, left = undecided_model(relaxed, incumbent, allowance)
        answer = Highs().solve(model, SolveOptions(time_limit_s))
    except (ImportError, RuntimeError, ValueError) as error:
        return Settled(incumbent, 0.0, False, f"HiGHS cannot be asked: {one_line(error)}")
    chosen = incumbent
    if answer.x is not None:
        taken = left[np.rint(answer.x[: left.size]) == 1]
        job = np.searchsorted(relaxed.choices.offset, taken, side="right") - 1
        if np.array_equal(job, np.arange(incumbent.size)):
            chosen = taken
    is_proven = answer.solver_status is SolverStatus.OPTIMAL and answer.x is not None
    return Settled(chosen, max(-answer.bound, 0.0), is_proven, "" if is_proven else answer.message)


MOST_STATES = 200_000
"""Of the core's dynamic program, before a MILP solver is asked. Most decisions on three types take some thousands."""

_LARGEST_CODE = 2**62


class Optimum(NamedTuple):
    """Answer with its bound.

    Parameters
    ----------
    types, counts : (J,) int64
    objective
        What they are worth.
    bound
        No answer is worth more.
    is_proven
        There is no better answer, but for rounding.
    message
        Why it is not proven.
    """

    types: NDArray[np.int64]
    counts: NDArray[np.int64]
    objective: float
    bound: float
    is_proven: bool
    message: str


def optimum_of(
    value: NDArray[np.float64],
    capacity: NDArray[np.int64],
    time_limit_s: float = defaults.TIME_LIMIT_S,
    most_states: int = MOST_STATES,
) -> Optimum:
    """Optimal types and counts for the table ``value (J, T, K + 1)`` and ``capacity (T,)`` nodes.

    Column 0 of the table is the same for all types and allowed: so there always is an answer. Sums of its numbers are
    finite. Answers that differ by no more than ``PROOF_TOLERANCE`` times J + T + 1 times the relaxation's magnitude
    count as equal. Where the core would take more than ``most_states`` states HiGHS is asked, for ``time_limit_s`` at
    most.
    """
    choices = choices_of(np.ascontiguousarray(value))
    capacity = np.ascontiguousarray(capacity, dtype=np.int64)
    price = node_prices(choices, capacity)
    base, worth = best_choices(choices, price)
    unused = price * capacity
    magnitude = float(np.abs(worth).sum() + unused.sum())
    relaxation = math.fsum([*unused.tolist(), *worth.tolist()])
    job = np.repeat(np.arange(value.shape[0]), np.diff(choices.offset))
    loss = np.maximum(worth[job] - (choices.value - price[choices.kind] * choices.nodes), 0.0)
    relaxed = Relaxed(choices, loss, base, capacity, price)
    chosen = mend(choices, loss, base, capacity)
    slack = PROOF_TOLERANCE * (value.shape[0] + capacity.size + 1) * magnitude
    allowance = relaxation - _worth(choices, chosen) - slack
    outcome, message, bound = NOTHING, "", relaxation
    if allowance > 0.0:
        outcome = TOO_MANY
        if math.prod(c + 1 for c in capacity.tolist()) < _LARGEST_CODE:
            outcome = better_answer(relaxed, stiffest_last(choices, loss), allowance, most_states, chosen)
        bound = _worth(choices, chosen) + slack
    is_proven = outcome != TOO_MANY
    if not is_proven:
        found = settle(relaxed, chosen, allowance + slack, time_limit_s)
        if _worth(choices, found.chosen) > _worth(choices, chosen):
            chosen = found.chosen
        bound, is_proven, message = relaxation - found.least_loss, found.is_proven, found.message
    objective = _worth(choices, chosen)
    counts = choices.nodes[chosen]
    types = np.where(counts > 0, choices.kind[chosen], NO_TYPE)
    return Optimum(types, counts, objective, max(bound, objective), is_proven, message)


def _worth(choices: Choices, chosen: NDArray[np.int64]) -> float:
    return math.fsum(choices.value[chosen].tolist())


class TypedExactSolver:
    """Solves every ``TypedProblem`` to proven optimality, without a licence.

    With one type it asks the exact solver of one type. Every other answer is checked against the problem itself. Among
    equally good answers the one it meets first is kept, and it meets them in a fixed order, so the same problem always
    gets the same answer. Decisions that take too large a search, as some on more than four types do, are handed to
    HiGHS, reduced to what is undecided.

    Parameters
    ----------
    time_limit_s
        For HiGHS. After it the best answer so far is given, feasible and not proven, with a bound.
    most_states
        Size of the search at which HiGHS is asked.
    """

    def __init__(self, time_limit_s: float = defaults.TIME_LIMIT_S, most_states: int = MOST_STATES) -> None:
        self.time_limit_s = time_limit_s
        self.most_states = most_states
        self._of_one_type = ExactSolver()

    @property
    def name(self) -> str:
        """``"exact"``."""
        return self._of_one_type.name

    def solve(self, problem: TypedProblem) -> TypedSolution:
        """Return optimal types and counts; ``SolverStatus.ERROR`` when numbers or their sums are not finite."""
        if problem.n_types == 1:
            solution = self._of_one_type.solve(problem.of_type(0))
            types = None if solution.counts is None else (solution.counts > 0) - 1
            return TypedSolution(types, solution)
        started = perf_counter()
        value = problem.value
        built = perf_counter()
        largest = np.abs(value, where=value != -np.inf, out=np.zeros_like(value)).max(initial=0.0)
        if not largest < LARGEST:  # nan as well: it hides from every other comparison
            return TypedSolution(None, too_large(self.name, built - started))
        found = optimum_of(value, problem.capacity, self.time_limit_s, self.most_states)
        solved = perf_counter()
        fault = violation(problem, found.types, found.counts)
        worth = objective_of(problem, found.types, found.counts)
        scale = max(magnitude(problem.of_type(t)) for t in range(problem.n_types))
        if not fault and not (agrees(found.objective, worth, scale) and worth <= found.bound + 1e-12 * scale):
            fault = f"claims {found.objective:.12g} of at most {found.bound:.12g}, is worth {worth:.12g}"
        status = SolverStatus.OPTIMAL if found.is_proven else SolverStatus.FEASIBLE
        if fault:
            none = Solution.without_answer(self.name, status, fault, built - started, solved - built)
            return TypedSolution(None, replace(none, quality=Quality.WRONG))
        return TypedSolution(
            found.types,
            Solution(
                found.counts,
                worth,
                max(found.bound, worth),
                ProcessStatus.OK,
                status,
                Quality.PROVEN if found.is_proven else Quality.FEASIBLE,
                self.name,
                built - started,
                solved - built,
                "" if found.is_proven else f"not proven optimal: {found.message}",
            ),
        )
