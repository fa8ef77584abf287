"""The exact solver of decisions on several types: a search among the choices that the relaxation leaves undecided.

With nodes at ``price``, an answer is worth ``relaxation - sum_j loss_j - sum_t price_t x unused_t``; ``loss_j >= 0`` is
what job j gives up against its own best choice at the prices. The answer that loses least is searched by a dynamic
program. Its states are the nodes used of each type by the jobs so far, as one number (mixed radix), in ascending order:
so those that a choice leads to are ascending as well, and all of them are merged (Nemhauser and Ullmann, "Discrete
dynamic programming and capital allocation", 1969). Three things keep them few, as in the problem of one type
(``milp.exact.search``):

- *Deepening.* First only what loses little is looked at; more only when there is no answer.
- *Completion.* The jobs to come must fill what is free of a type, or leave what is too many, and each node of that
  costs them at least the cheapest of their moves.
- *Order.* Jobs with a cheap second choice are decided first: then the others are stiff, and the bound tells.
"""

from __future__ import annotations

import math
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay import defaults
from bfreplay._compiled import compiled
from bfreplay.milp.backends.backend import SolveOptions
from bfreplay.milp.backends.highs import Highs
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.exact.solver import LARGEST, PROOF_TOLERANCE, too_large
from bfreplay.milp.model import Columns, LinearModel, Rows
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus
from bfreplay.milp.typed.prices import Choices, best_choices, choices_of, mend, node_prices
from bfreplay.milp.typed.problem import NO_TYPE, TypedProblem, TypedSolution, objective_of, violation
from bfreplay.milp.verify import agrees, magnitude
from bfreplay.registry import one_line

FIRST_TRIAL = 1 / 4096
"""Share of the allowance that is tried first."""

GROWTH = 4.0
"""Of the trial allowance, while no answer is found."""

FOUND, NOTHING, TOO_MANY = 1, 0, -1
"""What a search comes to: an answer, the proof that there is none, or more states than are allowed."""

_ROUNDING = 1e-9
"""Completion bounds are lowered by this share, so that the rounding of long sums never excludes an answer."""


class Relaxed(NamedTuple):
    """Answer of the relaxation for J jobs with A choices, and T types."""

    choices: Choices
    loss: NDArray[np.float64]  # (A,) against the best choice of the job
    base: NDArray[np.int64]  # (J,) choices that lose nothing
    capacity: NDArray[np.int64]  # (T,)
    price: NDArray[np.float64]  # (T,)


def stiffest_last(choices: Choices, loss: NDArray[np.float64]) -> NDArray[np.int64]:
    """``(J,)`` jobs by the loss of their second choice, ascending; first come first served among equals."""
    n_jobs = choices.offset.size - 1
    job_of_choice = np.repeat(np.arange(n_jobs), np.diff(choices.offset))
    by_loss = np.lexsort((loss, job_of_choice))  # the choices of each job stay together
    second = np.full(n_jobs, np.inf)
    has_second = np.diff(choices.offset) > 1
    second[has_second] = loss[by_loss[choices.offset[:-1][has_second] + 1]]
    return np.argsort(second, kind="stable")


@compiled
def _completion(
    relaxation: Relaxed, order: NDArray[np.int64], allowance: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return for the jobs after each stage ``(nodes at their base (J, T), loss per node more (J, T), per node less)``.

    A node more may also stay unused, for its price.
    """
    choices, loss, base, _, price = relaxation
    n_jobs = order.shape[0]
    n_types = price.shape[0]
    rest = np.zeros((n_jobs, n_types), np.int64)
    loss_per_more = np.empty((n_jobs, n_types))
    loss_per_less = np.full((n_jobs, n_types), np.inf)
    loss_per_more[n_jobs - 1] = price
    for i in range(n_jobs - 1, 0, -1):
        job_index = order[i]
        rest[i - 1] = rest[i]
        loss_per_more[i - 1] = loss_per_more[i]
        loss_per_less[i - 1] = loss_per_less[i]
        base_choice = base[job_index]
        base_type = choices.kind[base_choice]
        rest[i - 1, base_type] += choices.nodes[base_choice]
        for choice in range(choices.offset[job_index], choices.offset[job_index + 1]):
            if loss[choice] > allowance or choice == base_choice:
                continue
            node_type = choices.kind[choice]
            n_more = choices.nodes[choice] - (choices.nodes[base_choice] if node_type == base_type else 0)
            if n_more > 0:
                loss_per_more[i - 1, node_type] = min(loss_per_more[i - 1, node_type], loss[choice] / n_more)
            n_fewer = choices.nodes[base_choice] - (choices.nodes[choice] if node_type == base_type else 0)
            if n_fewer > 0:
                loss_per_less[i - 1, base_type] = min(loss_per_less[i - 1, base_type], loss[choice] / n_fewer)
    return rest, loss_per_more, loss_per_less


@compiled
def _merge(
    states: NDArray[np.int64],
    losses: NDArray[np.float64],
    n_states: int,
    others: NDArray[np.int64],
    other_losses: NDArray[np.float64],
    n_other: int,
    merged: NDArray[np.int64],
    merged_losses: NDArray[np.float64],
) -> int:
    """Merge two lists of states by their codes into a third; of equal codes the one that has lost less, or the first.

    Returns how many there are.
    """
    a = 0
    b = 0
    top = 0
    while a < n_states or b < n_other:
        is_first = b == n_other or (a < n_states and states[a, 0] <= others[b, 0])
        if is_first and b < n_other and states[a, 0] == others[b, 0]:
            if other_losses[b] < losses[a]:
                a += 1
                continue
            b += 1
        source = states if is_first else others
        position = a if is_first else b
        for c in range(3):
            merged[top, c] = source[position, c]
        merged_losses[top] = losses[a] if is_first else other_losses[b]
        top += 1
        if is_first:
            a += 1
        else:
            b += 1
    return top


@compiled
def _least_loss(
    relaxation: Relaxed,
    order: NDArray[np.int64],
    allowance: float,
    answer: NDArray[np.int64],
    states: NDArray[np.int64],
) -> int:
    """Find the choices that lose least, if that is below ``allowance``, and write them to ``answer (J,)``.

    ``states (M, 3)`` is room for those of all stages: code, choice that led there, state before.
    """
    choices, loss, base, capacity, price = relaxation
    n_jobs = base.shape[0]
    n_types = capacity.shape[0]
    rest, loss_per_more, loss_per_less = _completion(relaxation, order, allowance)
    radix = np.empty(n_types, np.int64)
    radix[0] = 1
    for t in range(1, n_types):
        radix[t] = radix[t - 1] * (capacity[t - 1] + 1)
    first = np.zeros(n_jobs + 1, np.int64)  # of the states after each stage
    losses = np.zeros(1)
    n_before = 1
    stage_before = np.zeros((1, 3), np.int64)
    for i in range(n_jobs):
        job_index = order[i]
        n_states = 0
        new_states = np.empty((1, 3), np.int64)
        new_losses = np.empty(1)
        for choice in range(choices.offset[job_index], choices.offset[job_index + 1]):
            if loss[choice] > allowance:
                continue
            node_type = choices.kind[choice]
            branch = np.empty((n_before, 3), np.int64)
            branch_losses = np.empty(n_before)
            n_branch = 0
            for s in range(n_before):
                n_used = (stage_before[s, 0] // radix[node_type]) % (capacity[node_type] + 1) + choices.nodes[choice]
                if losses[s] + loss[choice] < allowance and n_used <= capacity[node_type]:
                    branch[n_branch, 0] = stage_before[s, 0] + choices.nodes[choice] * radix[node_type]
                    branch[n_branch, 1] = choice
                    branch[n_branch, 2] = s
                    branch_losses[n_branch] = losses[s] + loss[choice]
                    n_branch += 1
            if first[i] + n_states + n_branch > states.shape[0]:
                return TOO_MANY
            joint = np.empty((n_states + n_branch, 3), np.int64)
            joint_losses = np.empty(n_states + n_branch)
            n_states = _merge(new_states, new_losses, n_states, branch, branch_losses, n_branch, joint, joint_losses)
            new_states = joint
            new_losses = joint_losses
        losses = np.empty(n_states)
        n_before = 0
        stage_before = states[first[i] :]
        for s in range(n_states):
            ahead = 0.0
            for t in range(n_types):
                shortage = capacity[t] - (new_states[s, 0] // radix[t]) % (capacity[t] + 1) - rest[i, t]
                if shortage > 0:
                    ahead = max(ahead, shortage * loss_per_more[i, t])
                elif shortage < 0:
                    ahead = max(ahead, -shortage * loss_per_less[i, t])
            if new_losses[s] + ahead * (1.0 - _ROUNDING) < allowance:
                for c in range(3):
                    stage_before[n_before, c] = new_states[s, c]
                losses[n_before] = new_losses[s]
                n_before += 1
        if n_before == 0:
            return NOTHING
        first[i + 1] = first[i] + n_before
    best = np.inf
    best_state = -1
    for s in range(n_before):
        total = losses[s]
        for t in range(n_types):
            total += price[t] * (capacity[t] - (stage_before[s, 0] // radix[t]) % (capacity[t] + 1))
        if total < best:
            best = total
            best_state = s
    if not best < allowance:
        return NOTHING
    for i in range(n_jobs - 1, -1, -1):
        answer[order[i]] = states[first[i] + best_state, 1]
        best_state = states[first[i] + best_state, 2]
    return FOUND


@compiled
def better_answer(
    relaxation: Relaxed, order: NDArray[np.int64], allowance: float, most_states: int, answer: NDArray[np.int64]
) -> int:
    """Find the choices that lose least, if that is below ``allowance``, and write them to ``answer (J,)``.

    Returns ``FOUND``; ``NOTHING`` when every answer loses that much; ``TOO_MANY`` when that would take more states than
    ``most_states``. ``order (J,)`` is ``stiffest_last``.
    """
    states = np.empty((most_states, 3), np.int64)  # touched as far as it is needed
    trial = FIRST_TRIAL * allowance
    while trial > 0.0 and 2.0 * trial < allowance:  # the smallest numbers round to 0
        outcome = _least_loss(relaxation, order, trial, answer, states)
        if outcome != NOTHING:
            return outcome
        trial *= GROWTH
    return _least_loss(relaxation, order, allowance, answer, states)


class HighsAnswer(NamedTuple):
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


def model_of_undecided(
    relaxed: Relaxed, incumbent: NDArray[np.int64], allowance: float
) -> tuple[LinearModel, NDArray[np.int64]]:
    """Return the model of the choices that lose at most ``allowance`` by themselves, and their numbers, ``(C,)``.

    Variables: ``y[j, t, n]`` binary, job j gets n nodes of type t; ``unused[t]``. Maximise
    ``- sum loss y - sum price unused``, so that the numbers are of the size of what is undecided, subject to
    ``sum y[j, t, n] = 1`` for each job (``one[j]``) and ``sum n y[j, t, n] + unused[t] = capacity[t]`` (``nodes[t]``).
    """
    choices, loss, _, capacity, price = relaxed
    n_jobs = incumbent.size
    is_open = loss <= allowance
    is_open[incumbent] = True
    options = np.flatnonzero(is_open)
    job_of_choice = np.repeat(np.arange(n_jobs), np.diff(choices.offset))[options]
    columns, rows = Columns(), Rows()
    choice_columns = columns.add(
        "y", job_of_choice, choices.kind[options], choices.nodes[options], objective=-loss[options]
    )
    node_types = np.arange(capacity.size)
    capacity_of_type = capacity.astype(np.float64)
    idle_columns = columns.add("unused", node_types, objective=-price, upper=capacity_of_type, integer=False)
    rows.put(rows.add("one", n_jobs, 1.0, 1.0) + job_of_choice, choice_columns, 1.0)
    node_rows = rows.add("nodes", capacity.size, capacity_of_type, capacity_of_type)
    rows.put(node_rows + choices.kind[options], choice_columns, choices.nodes[options].astype(np.float64))
    rows.put(node_rows + node_types, idle_columns, 1.0)
    in_incumbent = np.isin(options, incumbent)
    n_used = np.bincount(choices.kind[incumbent], choices.nodes[incumbent].astype(np.float64), capacity.size)
    start = np.concatenate([in_incumbent.astype(np.float64), capacity_of_type - n_used])
    return rows.model_of(columns, start=start), options


def solve_undecided(
    relaxed: Relaxed, incumbent: NDArray[np.int64], allowance: float, time_limit_s: float
) -> HighsAnswer:
    """Ask HiGHS for the choices that lose least. Never raises for its failure: then nothing is proven."""
    try:
        model, open_choices = model_of_undecided(relaxed, incumbent, allowance)
        answer = Highs().solve(model, SolveOptions(time_limit_s))
    except (ImportError, RuntimeError, ValueError) as error:
        return HighsAnswer(incumbent, 0.0, False, f"HiGHS cannot be asked: {one_line(error)}")
    choice = incumbent
    if answer.x is not None:
        in_answer = open_choices[np.rint(answer.x[: open_choices.size]) == 1]
        job_of_choice = np.searchsorted(relaxed.choices.offset, in_answer, side="right") - 1
        if np.array_equal(job_of_choice, np.arange(incumbent.size)):
            choice = in_answer
    is_proven = answer.solver_status is SolverStatus.OPTIMAL and answer.x is not None
    return HighsAnswer(choice, max(-answer.bound, 0.0), is_proven, "" if is_proven else answer.message)


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
    idle_worth = price * capacity
    magnitude = float(np.abs(worth).sum() + idle_worth.sum())
    relaxation = math.fsum([*idle_worth.tolist(), *worth.tolist()])
    job_of_choice = np.repeat(np.arange(value.shape[0]), np.diff(choices.offset))
    loss = np.maximum(worth[job_of_choice] - (choices.value - price[choices.kind] * choices.nodes), 0.0)
    at_prices = Relaxed(choices, loss, base, capacity, price)
    choice = mend(choices, loss, base, capacity)
    slack = PROOF_TOLERANCE * (value.shape[0] + capacity.size + 1) * magnitude
    allowance = relaxation - _worth(choices, choice) - slack
    outcome, message, bound = NOTHING, "", relaxation
    if allowance > 0.0:
        outcome = TOO_MANY
        if math.prod(c + 1 for c in capacity.tolist()) < _LARGEST_CODE:
            outcome = better_answer(at_prices, stiffest_last(choices, loss), allowance, most_states, choice)
        bound = _worth(choices, choice) + slack
    is_proven = outcome != TOO_MANY
    if not is_proven:
        highs_answer = solve_undecided(at_prices, choice, allowance + slack, time_limit_s)
        if _worth(choices, highs_answer.chosen) > _worth(choices, choice):
            choice = highs_answer.chosen
        bound, is_proven, message = relaxation - highs_answer.least_loss, highs_answer.is_proven, highs_answer.message
    objective = _worth(choices, choice)
    counts = choices.nodes[choice]
    types = np.where(counts > 0, choices.kind[choice], NO_TYPE)
    return Optimum(types, counts, objective, max(bound, objective), is_proven, message)


def _worth(choices: Choices, choice: NDArray[np.int64]) -> float:
    return math.fsum(choices.value[choice].tolist())


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
        start_s = perf_counter()
        value = problem.value
        built_at = perf_counter()
        largest = np.abs(value, where=value != -np.inf, out=np.zeros_like(value)).max(initial=0.0)
        if not largest < LARGEST:  # nan as well: it hides from every other comparison
            return TypedSolution(None, too_large(self.name, built_at - start_s))
        optimum = optimum_of(value, problem.capacity, self.time_limit_s, self.most_states)
        solved_at = perf_counter()
        fault = violation(problem, optimum.types, optimum.counts)
        worth = objective_of(problem, optimum.types, optimum.counts)
        scale = max(magnitude(problem.of_type(node_type)) for node_type in range(problem.n_types))
        if not fault and not (agrees(optimum.objective, worth, scale) and worth <= optimum.bound + 1e-12 * scale):
            fault = f"claims {optimum.objective:.12g} of at most {optimum.bound:.12g}, is worth {worth:.12g}"
        status, quality = SolverStatus.FEASIBLE, Quality.FEASIBLE
        if optimum.is_proven:
            status, quality = SolverStatus.OPTIMAL, Quality.PROVEN
        seconds = built_at - start_s, solved_at - built_at
        if fault:
            none = Solution.without_answer(self.name, status, fault, *seconds)
            return TypedSolution(None, replace(none, quality=Quality.WRONG))
        message = "" if optimum.is_proven else f"not proven optimal: {optimum.message}"
        bound = max(optimum.bound, worth)
        statuses = ProcessStatus.OK, status, quality
        solution = Solution(optimum.counts, worth, bound, *statuses, self.name, *seconds, message)
        return TypedSolution(optimum.types, solution)
