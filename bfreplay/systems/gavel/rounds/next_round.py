"""One round of Gavel's mechanism: an assignment from the state and the available nodes, and the time received."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.systems.gavel.rounds.allocation import (
    Candidates,
    NodeLists,
    choose_entries,
    micro_tasks,
    place_entries,
    priorities,
    same_nodes,
)
from bfreplay.systems.gavel.rounds.state import NOBODY, Assignment, Entries, RoundRules, RoundState
from bfreplay.systems.gavel.shares.share_problem import ShareProblem, TimeShares

_BY_TASK = tuple(column.name for column in fields(Assignment) if column.name not in ("node", "node_offset"))
"""Columns of an assignment."""


def next_round(
    state: RoundState,
    rules: RoundRules,
    now_s: float,
    node_type: NDArray[np.int16],
    is_available: NDArray[np.bool_],
    steps_left: NDArray[np.float64],
    next_jobs: NDArray[np.int64] | None = None,
    adjust: Callable[[Assignment], Assignment] | None = None,
) -> Assignment:
    """Start a round. Updates ``state``: its last assignment, leases, order of types, priorities.

    Call it after crediting ended micro-tasks, removing and adding jobs, and a reset if due.

    Parameters
    ----------
    now_s
        Start of the round.
    node_type, is_available : (N,)
        Position of each node's type; whether jobs may use it now. Nodes may join and leave between rounds.
    steps_left : (m,) float64
        Remaining steps of the jobs of ``state``, in its order.
    next_jobs : (p,) int64
        Numbers of the jobs that run, alone and on the first type, if they fit; ``None``: those with the highest
        priorities.
    adjust
        Function that changes steps and times of the micro-tasks before they begin.
    """
    jobs = state.jobs
    types = list(rules.type_order)
    if rules.shuffles_types:
        state.rng.shuffle(types)
    state.types = np.array(types, np.int64)
    if next_jobs is None:
        entry, on_type, priority = _choose(
            state, rules, node_type[is_available], np.zeros(jobs.number.shape[0], np.bool_)
        )
    else:
        alone = np.flatnonzero(state.entries.member[:, 1] == NOBODY)
        entry = alone[np.searchsorted(state.entries.member[alone, 0], next_jobs)]
        on_type, priority = np.zeros_like(entry), np.zeros_like(state.entries.share)
    previous = state.last
    ran_as, gang = state.entries.task, state.entries.gang[entry]
    nodes = place_entries(
        gang, on_type, ran_as[entry], previous.node_type, previous.nodes, node_type, is_available.copy(), state.n_types
    )
    task = _task_of_jobs(state, entry)
    tasks = _Tasks(entry, on_type, nodes, same_nodes(jobs.task, previous.nodes, task, nodes))
    assignment = _begin(state, rules, tasks, steps_left, now_s, rules.round_s)
    if adjust is not None:
        assignment = adjust(assignment)
    position = np.arange(entry.shape[0])
    is_extension = same_nodes(ran_as[entry], previous.nodes, position, nodes)
    state.priority = priority
    has_member = np.zeros(previous.n_tasks, np.bool_)
    has_member[jobs.task[jobs.task >= 0]] = True
    state.opportunities += int(np.count_nonzero(has_member))
    state.extensions += int(np.count_nonzero(is_extension))
    state.last = assignment
    state.is_credited = np.zeros(assignment.n_tasks, np.bool_)
    state.entries.task = np.full_like(ran_as, -1)
    state.entries.task[entry] = position
    jobs.task = task
    return assignment


def refill(
    state: RoundState,
    rules: RoundRules,
    now_s: float,
    until_s: float,
    node_type: NDArray[np.int16],
    is_available: NDArray[np.bool_],
    steps_left: NDArray[np.float64],
    continues: NDArray[np.bool_],
) -> Assignment:
    """Give unallocated nodes to entries that do not run, for the rest of a round. Updates ``state``.

    Call it when nodes join or leave in mid-round: micro-tasks that lost one have ended. The types are filled in the
    order of this round, from the highest priority down, as at its start. Micro-tasks that begin here were not on their
    nodes before: they lose ``restart_s``.

    Parameters
    ----------
    now_s, until_s
        Now, and the end of the round.
    node_type, is_available : (N,)
        Position of each node's type; whether jobs may use it now, including nodes of micro-tasks that go on.
    steps_left : (m,) float64
        Remaining steps of the jobs of ``state`` now, in its order.
    continues : (k,) bool
        Micro-tasks of the last assignment that go on as they are. The others have ended and are credited.

    Returns
    -------
    Assignment
        The kept micro-tasks, unchanged, then the new ones.

    Raises
    ------
    ValueError
        A micro-task is neither kept nor credited, or is kept without its nodes.
    """
    previous, jobs, entries = state.last, state.jobs, state.entries
    if not (continues | state.is_credited).all():
        raise ValueError("micro-tasks that ended must be credited before their nodes are reallocated")
    node_continues = np.repeat(continues, np.diff(previous.node_offset))
    in_use = previous.node[node_continues]
    if not is_available[in_use].all():
        raise ValueError("a micro-task that lost a node cannot continue")
    is_free = is_available.copy()
    is_free[in_use] = False
    # positions in the new assignment of micro-tasks that go on
    new_position = np.append(np.where(continues, np.cumsum(continues) - 1, -1), -1)
    jobs.task, entries.task = new_position[jobs.task], new_position[entries.task]
    entry, on_type, _ = _choose(state, rules, node_type[is_free], jobs.task >= 0)
    nowhere = np.full(entry.shape[0], -1)
    nodes = place_entries(
        entries.gang[entry], on_type, nowhere, previous.node_type, previous.nodes, node_type, is_free, state.n_types
    )
    tasks = _Tasks(entry, on_type, nodes, np.zeros(jobs.number.shape[0], np.bool_))
    new_assignment = _begin(state, rules, tasks, steps_left, now_s, max(until_s - now_s, 0.0))
    n_going_on = int(np.count_nonzero(continues))
    sizes = np.concatenate([np.diff(previous.node_offset)[continues], np.diff(nodes.offset)])
    by_task = {
        column: np.concatenate([getattr(previous, column)[continues], getattr(new_assignment, column)])
        for column in _BY_TASK
    }
    state.last = Assignment(
        **by_task, node_offset=np.concatenate([[0], np.cumsum(sizes)]), node=np.concatenate([in_use, nodes.node])
    )
    state.is_credited = np.concatenate([state.is_credited[continues], np.zeros(new_assignment.n_tasks, np.bool_)])
    entries.task[entry] = n_going_on + np.arange(entry.shape[0])
    task_of_job = _task_of_jobs(state, entry)
    jobs.task = np.where(task_of_job >= 0, n_going_on + task_of_job, jobs.task)
    return state.last


def _choose(
    state: RoundState, rules: RoundRules, free_type: NDArray[np.int16], is_busy: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the entries that start, their types, and the priorities of all; ``free_type``: of each free node."""
    n_free = np.bincount(free_type, minlength=state.n_types)
    entries = state.entries
    priority = priorities(entries.share, entries.can_run, entries.time_s, state.total_s)
    candidates = Candidates(
        priority, entries.deficit_s, entries.share, entries.can_run, entries.member_row, entries.gang
    )
    queue_order = state.types, rules.global_queue, rules.runs_only_its_own
    entry, on_type = choose_entries(candidates, n_free, is_busy.copy(), *queue_order)
    if rules.quirks.shareless_jobs_take_nodes:
        has_share = entries.has_share[entry]
        entry, on_type = entry[has_share], on_type[has_share]
    return entry, on_type, priority


def _task_of_jobs(state: RoundState, entry: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position in ``entry`` of each job's entry, -1 for none, (m,)."""
    # one place more, for the missing partner of jobs that run alone
    task = np.full(state.jobs.number.shape[0] + 1, -1)
    entry_row = state.entries.member_row[entry]
    position = np.arange(entry.shape[0])
    task[entry_row[:, 1]] = position
    task[entry_row[:, 0]] = position
    return task[:-1]


class _Tasks(NamedTuple):
    """Entries that have nodes, the types and nodes of each, and the jobs that stay on theirs."""

    entry: NDArray[np.int64]
    kind: NDArray[np.int64]
    nodes: NodeLists
    stays: NDArray[np.bool_]


def _begin(
    state: RoundState, rules: RoundRules, tasks: _Tasks, steps_left: NDArray[np.float64], now_s: float, length_s: float
) -> Assignment:
    """Return the micro-tasks of entries that have nodes."""
    entry, on_type, nodes, stays = tasks
    entries = state.entries
    steps, finish_s, restarts = micro_tasks(
        entries.rate[entry, on_type], entries.member_row[entry], steps_left, stays, now_s, length_s, rules.restart_s
    )
    n_tasks = entry.shape[0]
    member = entries.member[entry]
    # whole steps, the same number on each node but the last
    gang = entries.gang[entry]
    too_few = (steps < gang[:, None]) & (member >= 0)
    return Assignment(
        member=member,
        node_type=on_type,
        node_offset=nodes.offset,
        node=nodes.node,
        steps=steps,
        start_s=np.full(n_tasks, now_s),
        finish_s=finish_s,
        counted_from_s=np.full(n_tasks, state.round_end_s if rules.quirks.stale_round_start else now_s),
        overhead_s=np.zeros(n_tasks),
        restarts=restarts,
        fails=(gang > 1) & too_few.any(axis=1) & rules.quirks.few_steps_fail,
    )


FAILURES_ALLOWED = 5
"""Micro-tasks of a job that may fail before it is given up (``Quirks.few_steps_fail``)."""


def credit(
    state: RoundState, end_s: NDArray[np.float64] | None = None, which: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Credit ended micro-tasks of the last assignment, each once. Updates ``state``.

    A failed micro-task gets no time; it counts as a failure of its jobs.

    Parameters
    ----------
    end_s : (k,) float64
        Times of their ends; as planned if ``None``.
    which : (k,) bool
        Micro-tasks that ended; all if ``None``.

    Returns
    -------
    (d,) int64
        Numbers of the jobs that failed too often and are given up.
    """
    previous, jobs = state.last, state.jobs
    task_end_s = previous.finish_s if end_s is None else end_s
    ends_now = ~state.is_credited if which is None else which & ~state.is_credited
    state.is_credited = state.is_credited | ends_now
    counts = ends_now & ~previous.fails
    ran_s = previous.ran_s(end_s)
    running = np.flatnonzero(np.append(counts, False)[state.entries.task])  # the last one: entries without a task
    task = state.entries.task[running]
    state.entries.time_s[running, previous.node_type[task]] += ran_s[task]
    np.add.at(state.total_s, previous.node_type[counts], ran_s[counts])
    if ends_now.any():
        state.round_end_s = max(state.round_end_s, float(task_end_s[ends_now].max()))
    is_failure = ends_now & previous.fails
    if not is_failure.any():
        return np.zeros(0, np.int64)
    job_fails = (jobs.task >= 0) & is_failure[jobs.task]
    jobs.n_failed = jobs.n_failed + job_fails
    state.changed = True
    return jobs.number[job_fails & (jobs.n_failed >= FAILURES_ALLOWED)]


def reset_is_due(state: RoundState, rules: RoundRules, now_s: float) -> bool:
    """Return whether shares are to be recomputed at the start of a round.

    That is so after a change, if the last time is at least ``least_reset_s`` ago or no job has any share.
    """
    if not state.changed:
        return False
    last_s = state.last_reset_s
    if rules.quirks.reset_at_zero_means_never:
        return not last_s or now_s - last_s >= rules.least_reset_s
    return last_s is None or now_s - last_s >= rules.least_reset_s or not bool((state.entries.share > 0.0).any())


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
    singles = np.nonzero(entries.member[:, 1] == NOBODY)[0]
    _take(entries, singles, entries.member[singles, 0], problem.job, shares.share)
    if shares.pair_share.size:
        pairs = np.nonzero(entries.member[:, 1] != NOBODY)[0]
        member, pair_members = entries.member[pairs], problem.job[problem.pair]
        # one number per pair, in the order of its members
        width = max(int(member.max(initial=0)), int(pair_members.max())) + 1
        pair_key, problem_key = (pair[:, 0] * width + pair[:, 1] for pair in (member, pair_members))
        _take(entries, pairs, pair_key, problem_key, shares.pair_share)
    state.last_reset_s = now_s
    state.changed = False


def _take(
    entries: Entries,
    entry_row: NDArray[np.int64],
    entry_key: NDArray[np.int64],
    problem_key: NDArray[np.int64],
    share: NDArray[np.float64],
) -> None:
    """Set the shares of the rows of ``entries`` whose key is in ``problem_key`` (increasing)."""
    if not problem_key.shape[0]:
        return
    position = np.minimum(np.searchsorted(problem_key, entry_key), problem_key.shape[0] - 1)
    in_problem = problem_key[position] == entry_key
    entries.share[entry_row[in_problem]] = share[position[in_problem]]
    entries.has_share[entry_row[in_problem]] = True
