"""Time that micro-tasks ran goes to their entries when they end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.policies.gavel.rounds.state import RoundState

FAILURES_ALLOWED = 5
"""Micro-tasks of a job that may fail before it is dropped (``Quirks.few_steps_fail``)."""


def credit(
    state: RoundState, ended_s: NDArray[np.float64] | None = None, which: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Credit micro-tasks of the last assignment that ended. Updates ``state``. Nothing is credited twice.

    A micro-task that failed gets no time: it counts against its jobs.

    Parameters
    ----------
    ended_s : (k,) float64
        When they ended; as planned if ``None``.
    which : (k,) bool
        Those that ended; all if ``None``.

    Returns
    -------
    (d,) int64
        Numbers of the jobs that failed once too often and are to be dropped.
    """
    last, jobs = state.last, state.jobs
    ended = last.finish_s if ended_s is None else ended_s
    now = ~state.is_credited if which is None else which & ~state.is_credited
    state.is_credited = state.is_credited | now
    counted = now & ~last.fails
    _add_time(
        state.entries.time_s, state.total_s, state.entries.task, last.node_type, ended - last.counted_from_s, counted
    )
    if now.any():
        state.round_end_s = max(state.round_end_s, float(ended[now].max()))
    failed = now & last.fails
    if not failed.any():
        return np.zeros(0, np.int64)
    failed_job = (jobs.task >= 0) & failed[jobs.task]
    jobs.n_failed = jobs.n_failed + failed_job
    state.changed = True
    dropped: NDArray[np.int64] = jobs.number[failed_job & (jobs.n_failed >= FAILURES_ALLOWED)]
    return dropped


@compiled
def _add_time(
    time_s: NDArray[np.float64],
    total_s: NDArray[np.float64],
    entry_task: NDArray[np.int64],
    node_type: NDArray[np.int64],
    ran_s: NDArray[np.float64],
    counted: NDArray[np.bool_],
) -> None:
    """Add what micro-tasks ran to their entries, where these are there still, and to the totals of the types."""
    for i in range(entry_task.shape[0]):
        if entry_task[i] >= 0 and counted[entry_task[i]]:
            time_s[i, node_type[entry_task[i]]] += ran_s[entry_task[i]]
    for k in range(node_type.shape[0]):
        if counted[k]:
            total_s[node_type[k]] += ran_s[k]
