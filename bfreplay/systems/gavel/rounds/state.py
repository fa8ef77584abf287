"""What rounds go by, and what they remember: who runs where, jobs, the entries of their queues, the time these got."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.systems.gavel.quirks import Quirks


@dataclass(frozen=True, slots=True)
class RoundRules:
    """Parameters of the round mechanism (Gavel, OSDI'20, section 5).

    Parameters
    ----------
    type_order
        Positions of the node types in the order in which they are filled, fastest first in the published program (v100,
        p100, k80). A type that is not in it is never used.
    round_s
        Length of a round.
    least_reset_s
        Least time between two recomputations of shares; 0 recomputes at the first round after every arrival and
        completion. 1,920 in the published program.
    shuffles_types
        Types are filled in a random order, drawn anew every round: for policies that do not know them apart.
    runs_only_its_own
        Nothing runs that has no priority, even on nodes that would stay empty: the FIFO policies.
    global_queue
        The highest priority of all types goes first, instead of type after type.
    restart_s
        Time lost at the start of a round by a job that did not run on the same nodes in the round before. Shorter than
        a round. 0 in the published simulator.
    seed
        Of the random order of types.
    quirks
        Defects of the published program to repeat.

    Raises
    ------
    InputError
        A time is out of range.
    """

    type_order: tuple[int, ...]
    round_s: float = 360.0
    least_reset_s: float = 0.0
    shuffles_types: bool = False
    runs_only_its_own: bool = False
    global_queue: bool = False
    restart_s: float = 0.0
    seed: int = 0
    quirks: Quirks = field(default_factory=Quirks)

    def __post_init__(self) -> None:
        for what, value, fits, expected in (
            ("round_s", self.round_s, 0.0 < self.round_s < float("inf"), "seconds above 0"),
            ("least_reset_s", self.least_reset_s, self.least_reset_s >= 0.0, "0 s or more"),
            ("restart_s", self.restart_s, 0.0 <= self.restart_s < self.round_s, "0 s or more, less than round_s"),
        ):
            if not fits:
                raise InputError(f"{what} of Gavel's rounds is out of range", value=value, expected=expected)


NOBODY = -1
"""Second member of a job that runs alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """The k micro-tasks of a round: a job alone, or a pair of jobs that share nodes, for one round on one node type.

    Parameters
    ----------
    member : (k, 2) int64
        Job numbers, the lower one first; ``NOBODY`` second where a job runs alone.
    node_type : (k,) int64
        Position of the type.
    node_offset : (k + 1,) int64
        Micro-task i runs on ``node[node_offset[i]:node_offset[i + 1]]``.
    node : (sum of gangs,) int64
        Node numbers, increasing within a micro-task.
    steps : (k, 2) float64
        Steps that each member does until ``finish_s``; 0 for nobody.
    start_s, finish_s : (k,) float64
        A pair finishes when its later member does; restarts lie in between.
    counted_from_s : (k,) float64
        What the time that a micro-task ran is counted from: its start, unless that is stale (``Quirks``).
    overhead_s : (k,) float64
        Part of the time that a micro-task ran which does not count for it; 0 in Gavel.
    restarts : (k, 2) bool
        Whether a member did not run on these very nodes in the round before, and so loses ``restart_s`` of its rules.
    fails : (k,) bool
        Its steps will not count (``Quirks.few_steps_fail``).
    """

    member: NDArray[np.int64]
    node_type: NDArray[np.int64]
    node_offset: NDArray[np.int64]
    node: NDArray[np.int64]
    steps: NDArray[np.float64]
    start_s: NDArray[np.float64]
    finish_s: NDArray[np.float64]
    counted_from_s: NDArray[np.float64]
    overhead_s: NDArray[np.float64]
    restarts: NDArray[np.bool_]
    fails: NDArray[np.bool_]

    @property
    def n_tasks(self) -> int:
        """Number k of micro-tasks."""
        return int(self.node_type.shape[0])

    def ran_s(self, ended_s: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """(k,) seconds that count for the micro-tasks until ``ended_s (k,)``, by default until they finish."""
        ended = self.finish_s if ended_s is None else ended_s
        ran: NDArray[np.float64] = (ended - self.counted_from_s) - self.overhead_s
        return ran

    def nodes_of(self, task: int) -> NDArray[np.int64]:
        """Node numbers of a micro-task, increasing."""
        return self.node[self.node_offset[task] : self.node_offset[task + 1]]


def nothing_runs() -> Assignment:
    """The assignment of no micro-tasks."""
    no_times = np.zeros(0)
    return Assignment(
        member=np.zeros((0, 2), np.int64),
        node_type=np.zeros(0, np.int64),
        node_offset=np.zeros(1, np.int64),
        node=np.zeros(0, np.int64),
        steps=np.zeros((0, 2)),
        start_s=no_times,
        finish_s=no_times,
        counted_from_s=no_times,
        overhead_s=no_times,
        restarts=np.zeros((0, 2), np.bool_),
        fails=np.zeros(0, np.bool_),
    )


_SEED_OFFSET = 5
"""The published program seeds each of its random orders apart; that of the node types by seed + 5."""


@dataclass(slots=True, eq=False)
class Jobs:
    """The m jobs that wait or run, in order of arrival: one row each.

    Parameters
    ----------
    number : (m,) int64
        Increasing.
    gang : (m,) int64
        Nodes that it uses at once.
    task : (m,) int64
        Its micro-task in the last assignment, -1 for none.
    n_failed : (m,) int64
        Micro-tasks that failed (``Quirks.few_steps_fail``).
    """

    number: NDArray[np.int64]
    gang: NDArray[np.int64]
    task: NDArray[np.int64]
    n_failed: NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Entries:
    """The e entries of the queues: jobs alone and pairs of jobs that may share nodes, on each of n node types.

    A job comes after all earlier ones; behind it the pairs that it forms with them, by the earlier member. Ties between
    priorities go to whoever comes first here.

    Parameters
    ----------
    member, member_row : (e, 2) int64
        Job numbers and rows in ``Jobs``, the earlier one first; ``NOBODY`` second for a job alone.
    gang : (e,) int64
        Nodes used at once.
    rate : (e, n, 2) float64
        Steps/s of each member; 0 where it cannot run.
    can_run : (e, n) bool
        Whether all members have a rate.
    share : (e, n) float64
        ``X`` of the last recomputation.
    has_share : (e,) bool
        Whether the last recomputation knew it, be its share 0.
    time_s : (e, n) float64
        Run since the last recomputation, and half a round.
    deficit_s : (e, n) float64
        Time promised and not given before the last recomputation.
    task : (e,) int64
        Its micro-task in the last assignment, -1 for none.
    """

    member: NDArray[np.int64]
    member_row: NDArray[np.int64]
    gang: NDArray[np.int64]
    rate: NDArray[np.float64]
    can_run: NDArray[np.bool_]
    share: NDArray[np.float64]
    has_share: NDArray[np.bool_]
    time_s: NDArray[np.float64]
    deficit_s: NDArray[np.float64]
    task: NDArray[np.int64]


@dataclass(slots=True, eq=False)
class RoundState:
    """State of the mechanism. The functions of this package that take it update it; nobody else does.

    Parameters
    ----------
    jobs, entries
        Rows that follow arrivals and completions.
    total_s : (n,) float64
        Time that all entries ran on a type since the last recomputation, and half a round for each entry there was.
    last_reset_s
        Time of the last recomputation, ``None`` before the first.
    changed
        Something happened since then that makes it worth while to recompute.
    round_end_s
        Latest finish of the last micro-tasks there were; 0 before the first.
    last
        Last assignment.
    is_credited : (k,) bool
        Which of its micro-tasks have been credited.
    extensions, opportunities
        Leases: how often a job alone, or a pair, of the last assignment got the very same nodes again, of how many
        times a member of it was still there.
    priority : (e, n) float64
        Of the last round, before its micro-tasks ran; of the entries there were then.
    types
        Order in which the last round filled the types.
    rng
        Draws the order of types.
    """

    jobs: Jobs
    entries: Entries
    total_s: NDArray[np.float64]
    rng: random.Random
    last_reset_s: float | None = None
    changed: bool = False
    round_end_s: float = 0.0
    last: Assignment = field(default_factory=nothing_runs)
    is_credited: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    extensions: int = 0
    opportunities: int = 0
    priority: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    types: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def n_types(self) -> int:
        """Number n of node types."""
        return int(self.total_s.shape[0])


def first_state(n_types: int, rules: RoundRules) -> RoundState:
    """State before any job."""
    none = np.zeros(0, np.int64)
    jobs = Jobs(number=none, gang=none, task=none, n_failed=none)
    entries = _new_entries(rules, jobs, np.zeros((0, 2), np.int64), np.zeros((0, n_types, 2)))
    return RoundState(jobs, entries, total_s=np.zeros(n_types), rng=random.Random(rules.seed + _SEED_OFFSET))


def add_jobs(
    state: RoundState,
    rules: RoundRules,
    job: NDArray[np.int64],
    gang: NDArray[np.int64],
    rate: NDArray[np.float64],
    pair: NDArray[np.int64] | None = None,
    pair_rate: NDArray[np.float64] | None = None,
) -> None:
    """Add jobs that arrived. Updates ``state``.

    Parameters
    ----------
    job, gang : (a,) int64
        Numbers, increasing and above those of all jobs there were; nodes used at once.
    rate : (a, n) float64
        Steps/s on ``gang`` nodes of each type, 0 where a job cannot run.
    pair : (b, 2) int64
        Pairs of job numbers that may share nodes, the lower one first, the higher one among ``job``.
    pair_rate : (b, n, 2) float64
        Steps/s of both members when they share nodes of a type.

    Raises
    ------
    ValueError
        Numbers are not in order of arrival, or a pair has no new member.
    """
    jobs = state.jobs
    number = np.concatenate([jobs.number, job])
    if (number[1:] <= number[:-1]).any():
        raise ValueError(f"jobs must be numbered in order of arrival: {job.tolist()} after {jobs.number.tolist()[-1:]}")
    a, n = job.shape[0], state.n_types
    member = np.stack([job, np.full(a, NOBODY)], axis=1)
    # the second rate of a job alone is that of nobody
    member_rate = np.stack([rate, np.zeros((a, n))], axis=2)
    if pair is not None and pair_rate is not None and pair.shape[0]:
        if not np.isin(pair[:, 1], job).all() or (pair[:, 0] >= pair[:, 1]).any():
            raise ValueError("a pair is an earlier job and one of those that arrive now")
        member = np.concatenate([member, pair])
        member_rate = np.concatenate([member_rate, pair_rate])
        arrival = np.lexsort((member[:, 0], member[:, 1] != NOBODY, member.max(axis=1)))
        member, member_rate = member[arrival], member_rate[arrival]
    new_jobs = Jobs(number=job, gang=gang, task=np.full(a, -1), n_failed=np.zeros(a, np.int64))
    _extend(jobs, new_jobs)
    _extend(state.entries, _new_entries(rules, jobs, member, member_rate))
    state.changed = True


def _new_entries(rules: RoundRules, jobs: Jobs, member: NDArray[np.int64], member_rate: NDArray[np.float64]) -> Entries:
    """Rows of ``member (e, 2)``, all of them among ``jobs``, which make ``member_rate (e, n, 2)``; none has run yet."""
    e, n, _ = member_rate.shape
    is_pair = member[:, 1] != NOBODY
    row = _rows(jobs.number, member)
    # pairs start at 0 in the published program, jobs at half a round; shares wait for the recomputation that evens it
    started = np.where(is_pair, 0.0, rules.round_s / 2)
    return Entries(
        member=member,
        member_row=row,
        gang=jobs.gang[row[:, 0]],
        rate=member_rate,
        can_run=(member_rate[:, :, 0] > 0.0) & ((member_rate[:, :, 1] > 0.0) | ~is_pair[:, None]),
        share=np.zeros((e, n)),
        has_share=np.zeros(e, np.bool_),
        time_s=np.repeat(started[:, None], n, axis=1),
        deficit_s=np.zeros((e, n)),
        task=np.full(e, -1),
    )


def _extend(rows: Jobs | Entries, more: Jobs | Entries) -> None:
    """Append the rows of ``more``, which are of the same kind."""
    for column in fields(rows):
        setattr(rows, column.name, np.concatenate([getattr(rows, column.name), getattr(more, column.name)]))


def _keep(rows: Jobs | Entries, stays: NDArray[np.bool_]) -> None:
    """Drop the rows that do not stay."""
    for column in fields(rows):
        setattr(rows, column.name, getattr(rows, column.name)[stays])


def remove_jobs(state: RoundState, job: NDArray[np.int64]) -> None:
    """Remove jobs that ended, and all pairs that they are in. Updates ``state``. Credit their micro-tasks first.

    Raises
    ------
    ValueError
        A job is not there.
    """
    jobs, entries = state.jobs, state.entries
    place = np.searchsorted(jobs.number, job)
    if (place == jobs.number.shape[0]).any() or (jobs.number[place] != job).any():
        raise ValueError(f"no such jobs: {np.setdiff1d(job, jobs.number).tolist()}")
    # one place more, for the nobody of those that run alone
    stays = np.ones(jobs.number.shape[0] + 1, np.bool_)
    stays[place] = False
    row = entries.member_row
    _keep(jobs, stays[:-1])
    _keep(entries, stays[row[:, 0]] & stays[row[:, 1]])
    entries.member_row = _rows(jobs.number, entries.member)
    state.changed = True


def forget_places(state: RoundState, lost: NDArray[np.bool_]) -> None:
    """Jobs (m,) that lost nodes of their last micro-task start anew wherever they run next. Updates ``state``."""
    jobs, entries = state.jobs, state.entries
    tasks = jobs.task[lost]
    if tasks.size:
        entries.task = np.where(np.isin(entries.task, tasks), -1, entries.task)
        jobs.task = np.where(np.isin(jobs.task, tasks), -1, jobs.task)


def set_rates(state: RoundState, rate: NDArray[np.float64]) -> bool:
    """Let jobs run at other rates from now on. Updates ``state``; returns whether one is another.

    Parameters
    ----------
    rate : (m, n) float64
        Steps/s of each job alone, in the order of ``state.jobs``.
    """
    entries = state.entries
    alone = np.flatnonzero(entries.member[:, 1] == NOBODY)
    if np.array_equal(entries.rate[alone, :, 0], rate):
        return False
    entries.rate[alone, :, 0] = rate
    entries.can_run[alone] = rate > 0.0
    return True


def note_change(state: RoundState) -> None:
    """Something else happened that makes it worth while to recompute (nodes came or went). Updates ``state``."""
    state.changed = True


def _rows(number: NDArray[np.int64], member: NDArray[np.int64]) -> NDArray[np.int64]:
    """(e, 2) rows of job numbers, ``NOBODY`` where there is none."""
    return np.where(member == NOBODY, NOBODY, np.searchsorted(number, member))
