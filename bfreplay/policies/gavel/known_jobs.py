"""The jobs of the replay as the round mechanism numbers them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
