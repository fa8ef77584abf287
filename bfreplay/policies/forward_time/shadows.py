"""Shadow replays: what would have come of the events so far with other forward-looking times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.forward_time.shadow_loops import step
from bfreplay.policies.policy import PolicyState

_LARGEST = 1e280
"""Values above this are not decided on: sums of them would overflow."""


class Shadows:
    """Replays beside the real one, one for each candidate, over counts of nodes and only as far as it has come.

    Each follows the real pool and the real jobs, and decides with its own forward-looking time. It is worth what its
    jobs make by their objective curves, less what rescaling and preemption are charged (at once, as in the published
    accounting).

    Parameters
    ----------
    candidates_s : (E,) float64
        Forward-looking times, seconds.
    """

    def __init__(self, candidates_s: NDArray[np.float64]) -> None:
        self._candidates_s = candidates_s
        self._job: NDArray[np.int64] = np.zeros(0, np.int64)
        self._held: NDArray[np.int64] = np.zeros(0, np.int64)  # by the real jobs, since the last decision
        self._counts: NDArray[np.int64] = np.zeros((candidates_s.size, 0), np.int64)
        self._made = np.zeros(candidates_s.size)  # per second, since the last decision
        self._charged = np.zeros(candidates_s.size)
        self._time_us = 0

    def follow(self, state: PolicyState) -> NDArray[np.float64]:
        """Go on to ``state``; returns what each shadow has gained since the one before, (E,)."""
        if not self._job.size:
            self._begin(state)
        elapsed_s = (state.time_us - self._time_us) * 1e-6
        self._renumber(state.job)
        lost = np.maximum(self._held - state.current, 0)
        if self._held.any() and not state.current.any():
            elapsed_s = 0.0  # the pool was empty, and nobody was asked: since when is not known
        self._time_us = state.time_us
        gained = self._made * elapsed_s
        largest = float(np.abs(state.objective).max(initial=0.0)) * state.n_jobs * float(self._candidates_s[-1])
        if not largest < _LARGEST:
            return np.zeros_like(gained)
        # copied, and so all of one kind: each other one (strided, read-only) would compile the loop anew
        step(
            self._counts, self._candidates_s, self._held, lost, state.n_idle, state.objective.copy(),
            state.min_nodes.copy(), state.max_nodes.copy(), state.scale_up_cost_s.copy(),
            state.scale_down_cost_s.copy(), self._charged, self._made,
        )  # fmt: skip
        return gained - self._charged

    def decided(self, counts: NDArray[np.int64]) -> None:
        """The real jobs hold ``counts`` (J,) from now on."""
        self._held = np.array(counts, dtype=np.int64)

    def rest(self) -> None:
        """Stop here; the next time all begin with what the real jobs hold then."""
        self._job = np.zeros(0, np.int64)

    def _begin(self, state: PolicyState) -> None:
        self._job, self._held, self._time_us = state.job.copy(), state.current.copy(), state.time_us
        self._counts = np.tile(state.current, (self._candidates_s.size, 1))

    def _renumber(self, job: NDArray[np.int64]) -> None:
        """Keep the counts of the jobs that go on; those that are new hold nothing yet."""
        if np.array_equal(job, self._job):
            return
        counts = np.zeros((self._candidates_s.size, job.size), np.int64)
        held = np.zeros(job.size, np.int64)
        _, here, before = np.intersect1d(job, self._job, assume_unique=True, return_indices=True)
        counts[:, here] = self._counts[:, before]
        held[here] = self._held[before]
        self._job, self._counts, self._held = job.copy(), counts, held
