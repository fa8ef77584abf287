"""How fast the jobs of a state are in pairs that share nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.policy import PolicyState


class PairRates:
    """Looks up rates by model and width, and remembers what it found."""

    def __init__(self, type_names: tuple[str, ...]) -> None:
        self._type_names = type_names
        self._known: dict[tuple[int, int, int], NDArray[np.float64]] = {}

    def of_new(
        self, state: PolicyState, gang: NDArray[np.int64], rows: NDArray[np.int64], first_new: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All pairs of jobs with equal widths and known models, at least one of them new.

        Parameters
        ----------
        gang : (J,) int64
            Nodes of each job of the state.
        rows : (m,) int64
            Of the state, which are asked about.
        first_new
            Position in ``rows`` of the first new job.

        Returns
        -------
        pairs : (p, 2) int64
            Positions ``a < b`` in ``rows``.
        rates : (p, T, 2) float64
            Samples/s of ``a`` and of ``b`` on shared nodes of each type; zeros where they cannot share them.
        """
        pairs: list[tuple[int, int]] = []
        rates: list[NDArray[np.float64]] = []
        if state.colocation is not None:
            width, model = gang[rows].tolist(), state.model[rows].tolist()
            for b in range(first_new, len(width)):
                for a in range(b):
                    if width[a] == width[b] and model[a] >= 0 and model[b] >= 0:
                        pairs.append((a, b))
                        rates.append(self._of(state, model[a], model[b], width[a]))
        if not pairs:
            return np.zeros((0, 2), np.int64), np.zeros((0, len(self._type_names), 2))
        return np.array(pairs, np.int64), np.stack(rates)

    def _of(self, state: PolicyState, model: int, other: int, width: int) -> NDArray[np.float64]:
        key = (model, other, width)
        if key not in self._known and state.colocation is not None:
            one, two = state.model_names[model], state.model_names[other]
            self._known[key] = np.array([state.colocation.rates(one, two, width, name) for name in self._type_names])
        return self._known[key]
