"""Counts that jobs keep, and since when, as far as a policy can know it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.charge_rule import charged_rates, preemption_cost, rescale_costs
from bfreplay.policies.policy import Trigger
from bfreplay.policies.state import PolicyState
from bfreplay.saved_state import restorable


@dataclass(frozen=True, slots=True)
class Measurement:
    """Rate of a job on a count that it kept for long enough.

    Parameters
    ----------
    job
        Its position in the job set.
    model
        Number of its model's name, -1 for none.
    count
        Nodes.
    rate
        Samples per second.
    worth
        Its objective per second there, for a weight of 1.
    """

    job: int
    model: int
    count: int
    rate: float
    worth: float


@restorable
@dataclass(slots=True, eq=False)
class _Hold:
    """Last decision; all (J,)."""

    job: NDArray[np.int64]
    model: NDArray[np.int64]
    count: NDArray[np.int64]
    runs: NDArray[np.bool_]  # on min_nodes or more
    since_us: NDArray[np.int64]  # when it began to make samples on this count
    is_measured: NDArray[np.bool_]  # this hold has been counted
    rate: NDArray[np.float64]  # what the job will have shown if it keeps the count for long enough, and not before
    worth: NDArray[np.float64]


class HoldTracker:
    """Counts from decision to decision, with a measurement for each that a job keeps long enough.

    A hold is the time for which a job keeps the same nodes. It counts from the end of the pause for rescaling. It is
    measured once, at the first decision that finds it ``measure_s`` old or older.

    A policy is asked at every change as long as a job runs. So when one of the jobs has run on, whatever else changed
    has changed at this very instant. When none has, nobody was asked in between (no idle node or no job was left), and
    what ended did so nobody knows when: it counts for nothing.

    Parameters
    ----------
    measure_s
        Shortest hold that gives a measurement, seconds.
    wakes_on
        The events after which the policy is asked.
    """

    def __init__(self, measure_s: float, wakes_on: Trigger) -> None:
        self._measure_us = round(measure_s * 1e6)
        self._sees_reclaims = Trigger.POOL in wakes_on
        self._sees_departures = Trigger.COMPLETION in wakes_on
        self._held: _Hold | None = None
        self._kept: NDArray[np.intp] = np.zeros(0, np.intp)  # (J,) row of the hold that each job still has, or -1

    def observe(self, state: PolicyState) -> list[Measurement]:
        """Return the measurements since the last decision, in the order of the jobs at that time."""
        hold = self._held
        self._kept = np.full(state.n_jobs, -1)
        if hold is None:
            return []
        row_of_hold = _rows_of(hold.job, state.job)  # of each hold in the state, -1 for a job that has left
        current_count = np.where(row_of_hold >= 0, state.current[row_of_hold], 0)
        is_kept = (row_of_hold >= 0) & (current_count == hold.count)
        self._kept[row_of_hold[is_kept]] = np.flatnonzero(is_kept)
        is_proven = is_kept.copy()
        if ((current_count > 0) & (hold.count > 0)).any():
            if self._sees_reclaims:
                is_proven |= row_of_hold >= 0
            if self._sees_departures:
                is_proven |= row_of_hold < 0
        is_old = state.time_us - hold.since_us >= self._measure_us
        new_measurements = np.flatnonzero(is_proven & is_old & hold.runs & ~hold.is_measured)
        hold.is_measured[new_measurements] = True
        # a session may have been given a measured curve since
        rows, counts = row_of_hold[is_kept], hold.count[is_kept]
        hold.rate[is_kept] = state.throughput[rows, counts]
        hold.worth[is_kept] = state.objective[rows, counts] / state.weight[rows]
        columns = (hold.job, hold.model, hold.count, hold.rate, hold.worth)
        return [
            Measurement(*row) for row in zip(*(column[new_measurements].tolist() for column in columns), strict=True)
        ]

    def note_decision(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """Note that the jobs of ``state``, which was observed before, hold ``counts`` (J,) from now on."""
        current, row_of_hold, before = state.current, self._kept, self._held
        # as in the ledger: a job that runs pauses when it gains or loses nodes, and a start from zero is free
        one_a_second = np.ones(state.n_jobs)  # so that costs are seconds
        runs = charged_rates(one_a_second, current, state.min_nodes)
        pause_s = rescale_costs(runs, current, counts, state.scale_up_cost_s, state.scale_down_cost_s)
        is_measured = np.zeros(state.n_jobs, dtype=bool)
        if before is not None:
            job_rows = _rows_of(state.job, before.job)
            is_hit = (job_rows >= 0) & before.runs[job_rows] & (current < before.count[job_rows])
            pause_s += np.where(is_hit, preemption_cost(one_a_second, state.scale_down_cost_s), 0.0)
        since_us = state.time_us + np.ceil(1e6 * pause_s).astype(np.int64)
        if before is not None:
            is_same = (row_of_hold >= 0) & (counts == current)
            since_us[is_same] = before.since_us[row_of_hold[is_same]]
            is_measured[is_same] = before.is_measured[row_of_hold[is_same]]
        all_rows = np.arange(state.n_jobs)
        self._held = _Hold(
            job=state.job.copy(),
            model=state.model.copy(),
            count=np.array(counts, dtype=np.int64),
            runs=counts >= state.min_nodes,
            since_us=since_us,
            is_measured=is_measured,
            rate=state.throughput[all_rows, counts],
            worth=state.objective[all_rows, counts] / state.weight,
        )


def _rows_of(job: NDArray[np.int64], among: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each element of ``job`` in ``among``, -1 if it is missing."""
    if np.array_equal(job, among):
        return np.arange(job.size)
    position_of = {number: position for position, number in enumerate(among.tolist())}
    return np.array([position_of.get(number, -1) for number in job.tolist()], dtype=np.int64)
