"""A good answer before the proof: the jobs' own choices at the prices, mended one job at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.milp.typed.choices import Choices


@compiled
def mended(
    choices: Choices, loss: NDArray[np.float64], chosen: NDArray[np.int64], capacity: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Choices ``(J,)`` within the capacities, from ``chosen (J,)`` by steps that change one job.

    As long as a type has too few nodes, the step of least loss for each node that is too many; then the step that is
    worth most, as long as there is one. Among equals the first.
    """
    n_types = capacity.shape[0]
    n_jobs = chosen.shape[0]
    answer = chosen.copy()
    free = capacity.copy()
    for j in range(n_jobs):
        free[choices.kind[answer[j]]] -= choices.nodes[answer[j]]
    while True:
        is_over = False
        for t in range(n_types):
            is_over = is_over or free[t] < 0
        best = np.inf if is_over else 0.0
        job = -1
        step = -1
        for j in range(n_jobs):
            here = answer[j]
            was = choices.kind[here]
            if is_over and not (free[was] < 0 and choices.nodes[here] > 0):
                continue
            for k in range(choices.offset[j], choices.offset[j + 1]):
                to = choices.kind[k]
                room = free[to] + (choices.nodes[here] if to == was else 0)
                if is_over:
                    relief = choices.nodes[here] - (choices.nodes[k] if to == was else 0)
                    relief = min(relief, -free[was])
                    if relief <= 0 or (to != was and choices.nodes[k] > room):
                        continue
                    rank = (loss[k] - loss[here]) / relief
                else:
                    if choices.nodes[k] > room:
                        continue
                    rank = choices.value[here] - choices.value[k]
                if rank < best:
                    best = rank
                    job = j
                    step = k
        if job < 0:
            return answer
        free[choices.kind[answer[job]]] += choices.nodes[answer[job]]
        free[choices.kind[step]] -= choices.nodes[step]
        answer[job] = step
