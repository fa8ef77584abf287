"""Time that entries received: credited when micro-tasks end, reset when shares are recomputed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.systems.gavel.rounds.state import NOBODY, Entries, RoundRules, RoundState
from bfreplay.systems.gavel.shares.share_problem import ShareProblem, TimeShares

FAILURES_ALLOWED = 5
"""Micro-tasks of a job that may fail before it is given up (``Quirks.few_steps_fail``)."""


def credit(
    state: RoundState, ended_s: NDArray[np.float64] | None = None, which: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Credit ended micro-tasks of the last assignment, each once. Updates ``state``.

    A failed micro-task gets no time; it counts as a failure of its jobs.

    Parameters
    ----------
    ended_s : (k,) float64
        Times of their ends; as planned if ``None``.
    which : (k,) bool
        Micro-tasks that ended; all if ``None``.

    Returns
    -------
    (d,) int64
        Numbers of the jobs that failed too often and are given up.
    """
    last, jobs = state.last, state.jobs
    ended = last.finish_s if ended_s is None else ended_s
    now = ~state.is_credited if which is None else which & ~state.is_credited
    state.is_credited = state.is_credited | now
    counted = now & ~last.fails
    ran_s = last.ran_s(ended_s)
    running = np.flatnonzero(np.append(counted, False)[state.entries.task])  # the last one: entries without a task
    task = state.entries.task[running]
    state.entries.time_s[running, last.node_type[task]] += ran_s[task]
    np.add.at(state.total_s, last.node_type[counted], ran_s[counted])
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


def reset_is_due(state: RoundState, rules: RoundRules, now_s: float) -> bool:
    """Return whether shares are to be recomputed at the start of a round.

    That is so after a change, if the last time is at least ``least_reset_s`` ago or no job has any share.
    """
    if not state.changed:
        return False
    last = state.last_reset_s
    if rules.quirks.reset_at_zero_means_never:
        return not last or now_s - last >= rules.least_reset_s
    return last is None or now_s - last >= rules.least_reset_s or not bool((state.entries.share > 0.0).any())


def reset(state: RoundState, rules: RoundRules, now_s: float, problem: ShareProblem, shares: TimeShares) -> None:
    """Take new shares, and restart the counts of time. Updates ``state``.

    Time that the old shares promised since the last recomputation and rounds did not give goes to the deficits.

    Parameters
    ----------
    problem, shares
        Problem and answer. Jobs and pairs of ``problem`` without an entry are ignored; an entry that ``problem`` does
        not have gets no share. There may be no jobs.
    """
    entries = state.entries
    half_s = rules.round_s / 2
    elapsed_s = now_s - (state.last_reset_s or 0.0)
    entries.deficit_s = entries.deficit_s + (entries.share * elapsed_s - (entries.time_s - half_s))
    entries.time_s = np.full_like(entries.time_s, half_s)
    state.total_s = np.full_like(state.total_s, half_s * entries.member.shape[0])
    entries.share = np.zeros_like(entries.share)
    entries.has_share = np.zeros_like(entries.has_share)
    alone = np.nonzero(entries.member[:, 1] == NOBODY)[0]
    _take(entries, alone, entries.member[alone, 0], problem.job, shares.share)
    if problem.n_pairs:
        paired = np.nonzero(entries.member[:, 1] != NOBODY)[0]
        member, asked = entries.member[paired], problem.job[problem.pair]
        # one number per pair, in the order of its members
        width = max(int(member.max(initial=0)), int(asked.max())) + 1
        key, asked_key = (pair[:, 0] * width + pair[:, 1] for pair in (member, asked))
        _take(entries, paired, key, asked_key, shares.pair_share)
    state.last_reset_s = now_s
    state.changed = False


def _take(
    entries: Entries,
    row: NDArray[np.int64],
    key: NDArray[np.int64],
    asked: NDArray[np.int64],
    share: NDArray[np.float64],
) -> None:
    """Set the shares of the rows of ``entries`` whose key is in ``asked`` (increasing)."""
    if not asked.shape[0]:
        return
    place = np.minimum(np.searchsorted(asked, key), asked.shape[0] - 1)
    known = asked[place] == key
    entries.share[row[known]] = share[place[known]]
    entries.has_share[row[known]] = True
