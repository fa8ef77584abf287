"""From a table of values to proven optimal types and counts: relaxation, incumbent, core."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay import defaults
from bfreplay.milp.exact.optimum import PROOF_TOLERANCE
from bfreplay.milp.typed.choices import Choices, choices_of
from bfreplay.milp.typed.core import NOTHING, TOO_MANY, better_answer, stiffest_last
from bfreplay.milp.typed.incumbent import mended
from bfreplay.milp.typed.prices import best_choices, node_prices
from bfreplay.milp.typed.problem import NO_TYPE
from bfreplay.milp.typed.undecided import settle

MOST_STATES = 200_000
"""Of the core's dynamic program, before a MILP solver is asked. Most decisions on three types take some thousands."""

_LARGEST_CODE = 2**62


class Optimum(NamedTuple):
    """An answer, and how good it is at most.

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
    chosen = mended(choices, loss, base, capacity)
    slack = PROOF_TOLERANCE * (value.shape[0] + capacity.size + 1) * magnitude
    allowance = relaxation - _worth(choices, chosen) - slack
    said, message, bound = NOTHING, "", relaxation
    if allowance > 0.0:
        said = TOO_MANY
        if math.prod(c + 1 for c in capacity.tolist()) < _LARGEST_CODE:
            order = stiffest_last(choices, loss)
            said = better_answer(choices, loss, base, order, capacity, price, allowance, most_states, chosen)
        bound = _worth(choices, chosen) + slack
    is_proven = said != TOO_MANY
    if not is_proven:
        found = settle(choices, loss, chosen, capacity, price, allowance + slack, time_limit_s)
        if _worth(choices, found.chosen) > _worth(choices, chosen):
            chosen = found.chosen
        bound, is_proven, message = relaxation - found.least_loss, found.is_proven, found.message
    objective = _worth(choices, chosen)
    counts = choices.nodes[chosen]
    types = np.where(counts > 0, choices.kind[chosen], NO_TYPE)
    return Optimum(types, counts, objective, max(bound, objective), is_proven, message)


def _worth(choices: Choices, chosen: NDArray[np.int64]) -> float:
    return math.fsum(choices.value[chosen].tolist())
