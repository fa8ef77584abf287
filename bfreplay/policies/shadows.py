"""Shadow replays: what would have come of the events so far with other forward-looking times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.milp.charge_rule import charged_rate, preemption_cost, rescale_cost
from bfreplay.milp.exact.solver import PROOF_TOLERANCE, optimal_counts
from bfreplay.policies.state import JobTables, PolicyState


@compiled
def _given_up(jobs: JobTables, counts: NDArray[np.int64], j: int) -> float:
    """Return the rate of job ``j`` now, which it gives up while it rescales; 0 below its minimum."""
    return charged_rate(jobs.rate[j, counts[j]], counts[j], jobs.min_nodes[j])


@compiled
def reclaim(
    counts: NDArray[np.int64], held: NDArray[np.int64], lost: NDArray[np.int64], n_idle: int, jobs: JobTables
) -> float:
    """Take nodes from a shadow's ``counts (J,)``; returns what the jobs that lose some are charged.

    Which nodes a shadow's jobs would have held is not known, only what the real ones held and lost (``held``, ``lost``,
    both (J,)). Nodes that the shadow left free and the real jobs took are the first to go. Of the rest, a job loses the
    share of its nodes that the real one lost, rounded up, in order of admission. What does not fit into ``n_idle``
    after that goes from the largest.
    """
    cost = 0.0
    total = counts.sum()
    to_go = lost.sum() - max(0, held.sum() - total)
    for j in range(counts.shape[0]):
        if to_go > 0 and lost[j] > 0 and counts[j] > 0:
            gone = min(counts[j], to_go, -(-lost[j] * counts[j] // held[j]))
            cost += preemption_cost(_given_up(jobs, counts, j), jobs.scale_down_cost_s[j])
            counts[j] -= gone
            total -= gone
            to_go -= gone
    while total > n_idle:
        largest = 0
        for j in range(1, counts.shape[0]):
            if counts[j] > counts[largest]:
                largest = j
        gone = min(counts[largest], total - n_idle)
        cost += preemption_cost(_given_up(jobs, counts, largest), jobs.scale_down_cost_s[largest])
        counts[largest] -= gone
        total -= gone
    return cost


@compiled
def decide(
    counts: NDArray[np.int64], t_fwd_s: float, n_idle: int, jobs: JobTables, value: NDArray[np.float64]
) -> tuple[float, float]:
    """Decide as BFTrainer does (arXiv:2106.12091, section III) and write ``counts (J,)``; ``value (J, K + 1)`` is room.

    Returns (what rescaling is charged, what the jobs make per second from now on). Where the numbers are too large
    to decide on, all stays as it is.
    """
    rate, min_nodes, max_nodes, scale_up_cost_s, scale_down_cost_s = jobs
    n_jobs, width = rate.shape
    for j in range(n_jobs):
        held = counts[j]
        given_up = _given_up(jobs, counts, j)
        most = min(max_nodes[j], n_idle, width - 1)
        value[j, :] = -np.inf
        loss = rescale_cost(given_up, held, 0, scale_up_cost_s[j], scale_down_cost_s[j])
        value[j, 0] = t_fwd_s * rate[j, 0] - loss
        for n in range(min_nodes[j], most + 1):
            loss = rescale_cost(given_up, held, n, scale_up_cost_s[j], scale_down_cost_s[j])
            value[j, n] = t_fwd_s * rate[j, n] - loss
    found, _, _, stage = optimal_counts(value, n_idle, PROOF_TOLERANCE)
    cost = 0.0
    made = 0.0
    for j in range(n_jobs):
        if stage >= 0:
            given_up = _given_up(jobs, counts, j)
            cost += rescale_cost(given_up, counts[j], found[j], scale_up_cost_s[j], scale_down_cost_s[j])
            counts[j] = found[j]
        made += _given_up(jobs, counts, j)
    return cost, made


@compiled
def step(
    counts: NDArray[np.int64],
    candidates_s: NDArray[np.float64],
    held: NDArray[np.int64],
    lost: NDArray[np.int64],
    n_idle: int,
    jobs: JobTables,
    charged: NDArray[np.float64],
    made: NDArray[np.float64],
) -> None:
    """One instant of all E shadows: nodes go, each decides with its own forward-looking time.

    Writes ``counts (E, J)``, ``charged (E,)`` and ``made (E,)``: what each is charged now, and makes per second after.
    """
    value = np.empty(jobs.rate.shape)
    for e in range(counts.shape[0]):
        preempted = reclaim(counts[e], held, lost, n_idle, jobs)
        rescaled, made[e] = decide(counts[e], candidates_s[e], n_idle, jobs, value)
        charged[e] = preempted + rescaled


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
        jobs = JobTables._make(table.copy() for table in state.tables)
        step(self._counts, self._candidates_s, self._held, lost, state.n_idle, jobs, self._charged, self._made)
        return gained - self._charged

    def note_decision(self, counts: NDArray[np.int64]) -> None:
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
