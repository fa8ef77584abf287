"""Which counts an optimal answer may still have, by the Lagrangian bound: reduced-cost fixing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.exact.incumbent import best_exchange
from bfreplay.milp.exact.optimum import PROOF_TOLERANCE
from bfreplay.milp.exact.relaxation import concave_hulls, critical_price
from bfreplay.milp.problem import AllocationProblem

CORE = 1024
"""Where more counts than this are left beyond one a job, a better incumbent is sought among so many of least loss."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """What is left of a decision.

    Parameters
    ----------
    kept : (J, K + 1) bool
        Counts that are left. All are allowed, but that a job without any allowed count keeps 0.
    incumbent : (J,) int64 or None
        Feasible counts, all of them kept; ``None`` when there are none (then each job's least allowed count is kept,
        which is proof enough) or when the numbers are too large to compare.
    """

    kept: NDArray[np.bool_]
    incumbent: NDArray[np.int64] | None


def reduction(problem: AllocationProblem) -> Reduction:
    """Drop the counts that no answer better than the incumbent can have.

    ``milp.exact`` has the sources. With a node priced at ``price``, an answer is worth the relaxation less its
    jobs' losses at that price less ``price`` for each unused node, and no loss is negative. So an answer that is
    better than the incumbent has only counts whose own loss is below the gap between relaxation and incumbent; all of
    these are kept (and those at the gap, or above it by no more than rounding, as well). The incumbent's counts are
    kept too: if no answer is better, it is an optimal one, so an optimal answer is among the kept counts either way.
    """
    value, capacity = problem.value, problem.capacity
    job, count = np.arange(problem.n_jobs), np.arange(problem.value.shape[1])
    allowed = value > -np.inf
    least = np.argmax(allowed, axis=1)
    if not allowed.any(axis=1).all() or int(least.sum()) > capacity:
        return Reduction(count == least[:, None], None)
    points, start, stop = concave_hulls(value, capacity)
    price, incumbent = 0.0, points[stop - 1]
    if int(incumbent.sum()) > capacity:
        price, broken, vertex = critical_price(value, points, start, stop, capacity)
        incumbent = points[vertex]
        gained, own, other, others = best_exchange(value, capacity, broken, incumbent)
        if gained > 0.0:
            incumbent[broken] = own
            if other >= 0:
                incumbent[other] = others
    with np.errstate(over="ignore", invalid="ignore"):  # seen in the relaxation
        at_price = value - price * count
        best = at_price.max(axis=1)
        loss = best[:, None] - at_price
        relaxation = price * capacity + float(best.sum())
    if not np.isfinite(relaxation):
        return Reduction(allowed, None)
    slack = PROOF_TOLERANCE * (job.shape[0] + 2) * (abs(price * capacity) + float(np.abs(best).sum()))
    kept = loss <= relaxation - float(value[job, incumbent].sum()) + slack
    if np.count_nonzero(kept) > job.shape[0] + CORE:
        incumbent = _best_in_core(value, loss, capacity, incumbent)
        kept = loss <= relaxation - float(value[job, incumbent].sum()) + slack
    kept[job, incumbent] = True
    return Reduction(kept, incumbent)


def _best_in_core(
    value: NDArray[np.float64], loss: NDArray[np.float64], capacity: int, counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the best answer among ``counts`` and the counts of least loss, by a dynamic program over their sums.

    The idea of a core is Pisinger's: the best answers differ from the relaxed one in what costs least to change.
    """
    jobs = np.arange(value.shape[0])
    core = np.zeros(value.shape, dtype=np.bool_)
    core.ravel()[np.argsort(loss, axis=None, kind="stable")[: value.shape[0] + CORE]] = True
    core &= np.isfinite(loss)
    core[jobs, counts] = True
    choices = [np.flatnonzero(row) for row in core]
    answer = np.array([each[0] for each in choices])
    room = capacity - int(answer.sum())
    best = np.zeros(1)  # by the nodes used beyond each job's least
    taken: list[tuple[int, NDArray[np.int64]]] = []
    for j in np.flatnonzero(core.sum(axis=1) > 1).tolist():
        extra = choices[j] - answer[j]
        wider = np.full(min(room, best.shape[0] - 1 + int(extra[-1])) + 1, -np.inf)
        choice = np.zeros(wider.shape[0], dtype=np.int64)
        for more, worth in zip(extra.tolist(), value[j, choices[j]].tolist(), strict=True):
            reached = best[: max(0, wider.shape[0] - more)] + worth
            here = slice(more, more + reached.shape[0])
            better = reached > wider[here]
            wider[here][better] = reached[better]
            choice[here][better] = more
        best = wider
        taken.append((j, choice))
    state = int(np.argmax(best))
    for j, choice in reversed(taken):
        more = int(choice[state])
        answer[j] += more
        state -= more
    return answer
