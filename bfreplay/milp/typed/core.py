"""The core: an exact search among the choices that the relaxation leaves undecided.

With nodes at ``price``, an answer is worth ``relaxation - sum_j loss_j - sum_t price_t x unused_t``; ``loss_j >= 0`` is
what job j gives up against its own best choice at the prices. The answer that loses least is searched by a dynamic
program. Its states are the nodes used of each type by the jobs so far, as one number (mixed radix), in ascending order:
so those that a choice leads to are ascending as well, and all of them are merged (Nemhauser and Ullmann, "Discrete
dynamic programming and capital allocation", 1969). Three things keep them few, as in the problem of one type
(``milp.exact.core``):

- *Deepening.* First only what loses little is looked at; more only when there is no answer.
- *Completion.* The jobs to come must fill what is free of a type, or leave what is too many, and each node of that costs
  them at least the cheapest of their moves.
- *Order.* Jobs with a cheap second choice are decided first: then the others are stiff, and the bound tells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.milp.typed.choices import Choices

FIRST_TRIAL = 1 / 4096
"""Share of the allowance that is tried first."""

GROWTH = 4.0
"""Of the trial allowance, while no answer is found."""

FOUND, NOTHING, TOO_MANY = 1, 0, -1
"""What a search comes to: an answer, the proof that there is none, or more states than are allowed."""

_ROUNDING = 1e-9
"""Completion bounds are lowered by this share, so that the rounding of long sums never excludes an answer."""


@compiled
def _order(choices: Choices, loss: NDArray[np.float64]) -> NDArray[np.int64]:
    """Jobs by the loss of their second choice, ascending."""
    n_jobs = choices.offset.shape[0] - 1
    second = np.full(n_jobs, np.inf)
    for j in range(n_jobs):
        first = np.inf
        for k in range(choices.offset[j], choices.offset[j + 1]):
            if loss[k] < first:
                second[j] = first
                first = loss[k]
            elif loss[k] < second[j]:
                second[j] = loss[k]
    return np.argsort(second, kind="mergesort")  # stable, so the same everywhere


@compiled
def _completion(
    choices: Choices,
    loss: NDArray[np.float64],
    base: NDArray[np.int64],
    order: NDArray[np.int64],
    price: NDArray[np.float64],
    allowance: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """What the jobs after each stage do: ``(nodes at their base (J, T), loss per node more (J, T), per node less)``.

    A node more may also stay unused, for its price.
    """
    n_jobs = order.shape[0]
    n_types = price.shape[0]
    rest = np.zeros((n_jobs, n_types), np.int64)
    up = np.empty((n_jobs, n_types))
    down = np.full((n_jobs, n_types), np.inf)
    up[n_jobs - 1] = price
    for i in range(n_jobs - 1, 0, -1):
        j = order[i]
        rest[i - 1] = rest[i]
        up[i - 1] = up[i]
        down[i - 1] = down[i]
        own = base[j]
        own_kind = choices.kind[own]
        rest[i - 1, own_kind] += choices.count[own]
        for k in range(choices.offset[j], choices.offset[j + 1]):
            if loss[k] > allowance or k == own:
                continue
            kind = choices.kind[k]
            more = choices.count[k] - (choices.count[own] if kind == own_kind else 0)
            if more > 0:
                up[i - 1, kind] = min(up[i - 1, kind], loss[k] / more)
            less = choices.count[own] - (choices.count[k] if kind == own_kind else 0)
            if less > 0:
                down[i - 1, own_kind] = min(down[i - 1, own_kind], loss[k] / less)
    return rest, up, down


@compiled
def _least_loss(
    choices: Choices,
    loss: NDArray[np.float64],
    base: NDArray[np.int64],
    capacity: NDArray[np.int64],
    price: NDArray[np.float64],
    allowance: float,
    most_states: int,
    answer: NDArray[np.int64],
) -> int:
    """Find the choices that lose least, if that is below ``allowance``, and write them to ``answer (J,)``."""
    n_jobs = base.shape[0]
    n_types = capacity.shape[0]
    order = _order(choices, loss)
    rest, up, down = _completion(choices, loss, base, order, price, allowance)
    radix = np.empty(n_types, np.int64)
    radix[0] = 1
    for t in range(1, n_types):
        radix[t] = radix[t - 1] * (capacity[t - 1] + 1)
    code = np.zeros(1, np.int64)  # of the states, ascending
    lost = np.zeros(1)
    # of the states of all stages, one stage after the other
    taken = np.empty(1024, np.int64)
    parent = np.empty(1024, np.int64)
    start = np.empty(n_jobs + 1, np.int64)
    start[0] = 0
    for i in range(n_jobs):
        j = order[i]
        new_code = np.empty(0, np.int64)
        new_lost = np.empty(0, np.float64)
        new_taken = np.empty(0, np.int64)
        new_parent = np.empty(0, np.int64)
        for k in range(choices.offset[j], choices.offset[j + 1]):
            if loss[k] > allowance:
                continue
            kind = choices.kind[k]
            count = choices.count[k]
            shift = count * radix[kind]
            room = new_code.shape[0] + code.shape[0]
            if start[i] + room > most_states:
                return TOO_MANY
            merged_code = np.empty(room, np.int64)
            merged_lost = np.empty(room, np.float64)
            merged_taken = np.empty(room, np.int64)
            merged_parent = np.empty(room, np.int64)
            a = 0
            top = 0
            for s in range(code.shape[0]):
                total = lost[s] + loss[k]
                if not total < allowance:
                    continue
                if (code[s] // radix[kind]) % (capacity[kind] + 1) + count > capacity[kind]:
                    continue
                shifted = code[s] + shift
                while a < new_code.shape[0] and new_code[a] < shifted:
                    merged_code[top] = new_code[a]
                    merged_lost[top] = new_lost[a]
                    merged_taken[top] = new_taken[a]
                    merged_parent[top] = new_parent[a]
                    a += 1
                    top += 1
                if a < new_code.shape[0] and new_code[a] == shifted and new_lost[a] <= total:
                    continue
                if a < new_code.shape[0] and new_code[a] == shifted:
                    a += 1
                merged_code[top] = shifted
                merged_lost[top] = total
                merged_taken[top] = k
                merged_parent[top] = s
                top += 1
            while a < new_code.shape[0]:
                merged_code[top] = new_code[a]
                merged_lost[top] = new_lost[a]
                merged_taken[top] = new_taken[a]
                merged_parent[top] = new_parent[a]
                a += 1
                top += 1
            new_code = merged_code[:top]
            new_lost = merged_lost[:top]
            new_taken = merged_taken[:top]
            new_parent = merged_parent[:top]
        kept = 0
        for s in range(new_code.shape[0]):
            ahead = 0.0
            for t in range(n_types):
                used = (new_code[s] // radix[t]) % (capacity[t] + 1)
                needed = capacity[t] - used - rest[i, t]
                if needed > 0:
                    ahead = max(ahead, needed * up[i, t])
                elif needed < 0:
                    ahead = max(ahead, -needed * down[i, t])
            if new_lost[s] + ahead * (1.0 - _ROUNDING) < allowance:
                new_code[kept] = new_code[s]
                new_lost[kept] = new_lost[s]
                new_taken[kept] = new_taken[s]
                new_parent[kept] = new_parent[s]
                kept += 1
        if kept == 0:
            return NOTHING
        if start[i] + kept > taken.shape[0]:
            wider_taken = np.empty(2 * (start[i] + kept), np.int64)
            wider_parent = np.empty(2 * (start[i] + kept), np.int64)
            wider_taken[: start[i]] = taken[: start[i]]
            wider_parent[: start[i]] = parent[: start[i]]
            taken = wider_taken
            parent = wider_parent
        taken[start[i] : start[i] + kept] = new_taken[:kept]
        parent[start[i] : start[i] + kept] = new_parent[:kept]
        start[i + 1] = start[i] + kept
        code = new_code[:kept].copy()
        lost = new_lost[:kept].copy()
    best = np.inf
    state = -1
    for s in range(code.shape[0]):
        total = lost[s]
        for t in range(n_types):
            total += price[t] * (capacity[t] - (code[s] // radix[t]) % (capacity[t] + 1))
        if total < best:
            best = total
            state = s
    if not best < allowance:
        return NOTHING
    for i in range(n_jobs - 1, -1, -1):
        at = start[i] + state
        answer[order[i]] = taken[at]
        state = parent[at]
    return FOUND


@compiled
def better_answer(
    choices: Choices,
    loss: NDArray[np.float64],
    base: NDArray[np.int64],
    capacity: NDArray[np.int64],
    price: NDArray[np.float64],
    allowance: float,
    most_states: int,
    answer: NDArray[np.int64],
) -> int:
    """Find the choices that lose least, if that is below ``allowance``, and write them to ``answer (J,)``.

    Returns ``FOUND``; ``NOTHING`` when every answer loses that much; ``TOO_MANY`` when that would take more states than
    ``most_states``. ``base (J,)`` are choices that lose nothing.
    """
    trial = FIRST_TRIAL * allowance
    while trial > 0.0 and 2.0 * trial < allowance:  # the smallest numbers round to 0
        said = _least_loss(choices, loss, base, capacity, price, trial, most_states, answer)
        if said != NOTHING:
            return said
        trial *= GROWTH
    return _least_loss(choices, loss, base, capacity, price, allowance, most_states, answer)
