"""The jobs of the replay as the round mechanism numbers them, and how fast they are in pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.policy import PolicyState


class KnownJobs:
    """Numbers for the jobs that are there, increasing in order of arrival; a job that comes back gets a new one."""

    def __init__(self) -> None:
        self.job: list[int] = []
        self.number: NDArray[np.int64] = np.zeros(0, np.int64)
        self._next = 0

    def still_there(self, job: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the known jobs that are among ``job (J,)`` of a ``PolicyState``, and did not leave meanwhile."""
        return self.number[self._stays(job)]

    def _stays(self, job: NDArray[np.int64]) -> NDArray[np.bool_]:
        row_of = {each: row for row, each in enumerate(job.tolist())}
        stays = np.zeros(len(self.job), np.bool_)
        n_stay = 0
        for k, each in enumerate(self.job):
            stays[k] = row_of.get(each, -1) == n_stay  # one that left and came back stands behind all others
            n_stay += int(stays[k])
        return stays

    def follow(self, job: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Take over the jobs that are there now.

        Parameters
        ----------
        job : (J,) int64
            Of a ``PolicyState``: those that stayed are in the order that they had, new ones behind them.

        Returns
        -------
        left, came
            Numbers of the jobs that are gone, and of the new ones. ``number (J,)`` then has one for each row.
        """
        stays = self._stays(job)
        n_stay = int(np.count_nonzero(stays))
        left = self.number[~stays]
        came = np.arange(self._next, self._next + job.size - n_stay, dtype=np.int64)
        self._next += came.size
        self.number = np.concatenate([self.number[stays], came])
        self.job = job.tolist()
        return left, came


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
