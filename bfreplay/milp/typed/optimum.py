"""From a table of values to proven optimal types and counts: relaxation, incumbent, core."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.exact.optimum import PROOF_TOLERANCE
from bfreplay.milp.typed.choices import choices_of
from bfreplay.milp.typed.core import TOO_MANY, better_answer
from bfreplay.milp.typed.incumbent import mended
from bfreplay.milp.typed.prices import best_choices, node_prices
from bfreplay.milp.typed.problem import NO_TYPE

MOST_STATES = 4_000_000
"""Of the core's dynamic program, some 100 MB. Decisions with a hundred jobs take some thousands."""

_LARGEST_CODE = 2**62


class Optimum(NamedTuple):
    """An answer, and how good it is at most.

    Parameters
    ----------
    types, counts : (J,) int64
    objective
        What they are worth; not finite where the table's numbers are too large to add.
    bound
        No answer is worth more.
    is_proven
        ``bound`` is ``objective`` but for rounding.
    """

    types: NDArray[np.int64]
    counts: NDArray[np.int64]
    objective: float
    bound: float
    is_proven: bool


def optimum_of(value: NDArray[np.float64], capacity: NDArray[np.int64], most_states: int = MOST_STATES) -> Optimum:
    """Optimal types and counts for the table ``value (J, T, K + 1)`` and ``capacity (T,)`` nodes.

    Column 0 of the table is the same for all types and allowed: so there always is an answer. Answers that differ by no
    more than ``PROOF_TOLERANCE`` times J + T + 1 times the relaxation's magnitude count as equal.
    """
    choices = choices_of(np.ascontiguousarray(value))
    capacity = np.ascontiguousarray(capacity, dtype=np.int64)
    price = node_prices(choices, capacity)
    base, worth = best_choices(choices, price)
    unused = price * capacity
    relaxation = math.fsum([*unused.tolist(), *worth.tolist()])
    magnitude = float(np.abs(worth).sum() + unused.sum())
    job = np.repeat(np.arange(value.shape[0]), np.diff(choices.offset))
    loss = np.maximum(worth[job] - (choices.value - price[choices.kind] * choices.count), 0.0)
    chosen = mended(choices, loss, base, capacity)
    objective = math.fsum(choices.value[chosen].tolist())
    slack = PROOF_TOLERANCE * (value.shape[0] + capacity.size + 1) * magnitude
    bound = max(relaxation, objective)
    is_proven = relaxation - objective <= slack
    if not is_proven and math.isfinite(magnitude):
        n_codes = math.prod(c + 1 for c in capacity.tolist())
        allowance = relaxation - objective - slack
        said = TOO_MANY
        if n_codes < _LARGEST_CODE:
            said = better_answer(choices, loss, base, capacity, price, allowance, most_states, chosen)
        if said != TOO_MANY:
            objective = math.fsum(choices.value[chosen].tolist())
            bound, is_proven = objective + slack, True
    counts = choices.count[chosen]
    return Optimum(np.where(counts > 0, choices.kind[chosen], NO_TYPE), counts, objective, bound, is_proven)
