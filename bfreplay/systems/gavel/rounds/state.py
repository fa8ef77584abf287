"""Rules and state of the rounds: assignments, jobs, the entries of their queues, and the time that these received."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from bfreplay.saved_state import restorable
from bfreplay.systems.gavel.quirks import Quirks
from bfreplay.systems.gavel.rounds.allocation import NodeLists


@restorable
@dataclass(frozen=True, slots=True)
class RoundRules:
    """Parameters of the round mechanism (Gavel, OSDI'20, section 5), checked by ``GavelOptions``.

    Parameters
    ----------
    type_order
        Positions of the node types in the order in which they are filled, fastest first in the published program (v100,
        p100, k80). Other types are never used.
    round_s
        Length of a round.
    least_reset_s
        Least time between two recomputations of shares; 0 recomputes at the first round after every arrival and
        completion. 1,920 in the published program.
    shuffles_types
        Types are filled in a random order, drawn in every round: for policies that ignore types.
    runs_only_its_own
        Entries without priority never run, even on nodes that would stay empty: the FIFO policies.
    global_queue
        The highest priority of all types goes first, instead of type after type.
    restart_s
        Time lost at the start of a round by a job that did not run on the same nodes in the round before. Shorter than
        a round. 0 in the published simulator.
    seed
        Seed of the random order of types.
    quirks
        Defects of the published program to repeat.
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


NOBODY = -1
"""Second member of an entry with one job."""


@restorable
@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """k micro-tasks of a round: a job alone, or a pair of jobs that share nodes, for one round on one node type.

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
        Steps that each member does until ``finish_s``; 0 for a missing one.
    start_s, finish_s : (k,) float64
        A pair finishes when its later member does; restarts lie in between.
    counted_from_s : (k,) float64
        Start of the time that counts: that of the micro-task, unless stale (``Quirks``).
    overhead_s : (k,) float64
        Part of a micro-task's time that does not count; 0 in Gavel.
    restarts : (k, 2) bool
        Whether a member ran elsewhere or not at all in the round before, and so loses ``restart_s``.
    fails : (k,) bool
        Whether its steps will not count (``Quirks.few_steps_fail``).
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

    def ran_s(self, end_s: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the seconds of the micro-tasks that count until ``end_s (k,)``, by default their finish, (k,)."""
        task_end_s = self.finish_s if end_s is None else end_s
        return (task_end_s - self.counted_from_s) - self.overhead_s

    @property
    def nodes(self) -> NodeLists:
        """Nodes of all micro-tasks."""
        return NodeLists(self.node_offset, self.node)

    def nodes_of(self, task: int) -> NDArray[np.int64]:
        """Return the node numbers of a micro-task, increasing."""
        return self.node[self.node_offset[task] : self.node_offset[task + 1]]


def nothing_runs() -> Assignment:
    """Return the assignment of no micro-tasks."""
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
"""The published program seeds its random order of node types by seed + 5."""


@restorable
@dataclass(slots=True, eq=False)
class Jobs:
    """m jobs that wait or run, one row each, in order of arrival.

    Parameters
    ----------
    number : (m,) int64
        Increasing.
    gang : (m,) int64
        Nodes that it uses at once.
    task : (m,) int64
        Its micro-task in the last assignment, -1 for none.
    n_failed : (m,) int64
        Failed micro-tasks (``Quirks.few_steps_fail``).
    """

    number: NDArray[np.int64]
    gang: NDArray[np.int64]
    task: NDArray[np.int64]
    n_failed: NDArray[np.int64]


@restorable
@dataclass(slots=True, eq=False)
class Entries:
    """e entries of the queues: jobs alone and pairs of jobs that may share nodes, on each of n node types.

    A job comes after all earlier ones, followed by its pairs with them, by the earlier member. The first entry wins
    ties.

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
        Whether the last recomputation had this entry, even with share 0.
    time_s : (e, n) float64
        Run since the last recomputation, and half a round.
    deficit_s : (e, n) float64
        Time promised and not received before the last recomputation.
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


@restorable
@dataclass(slots=True, eq=False)
class RoundState:
    """State of the mechanism. Only the functions of this package update it.

    Parameters
    ----------
    jobs, entries
        Rows that follow arrivals and completions.
    total_s : (n,) float64
        Time that all entries ran on a type since the last recomputation, and half a round for each entry there was.
    last_reset_s
        Time of the last recomputation, ``None`` before the first.
    changed
        Whether something happened since then that calls for a recomputation, such as a node that joined or left.
    round_end_s
        Latest finish of the last micro-tasks; 0 before the first.
    last
        Last assignment.
    is_credited : (k,) bool
        Whether each of its micro-tasks has been credited.
    extensions, opportunities
        Leases: the times that an entry of the last assignment got the same nodes again, and the times that a
        member was still active.
    priority : (e, n) float64
        Priorities of the last round before its micro-tasks ran, for its entries.
    types
        Order in which the last round filled the types.
    rng
        Generator of the order of types.
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

    def add_jobs(
        self,
        rules: RoundRules,
        job_numbers: NDArray[np.int64],
        gang: NDArray[np.int64],
        rate: NDArray[np.float64],
        pair: NDArray[np.int64] | None = None,
        pair_rate: NDArray[np.float64] | None = None,
    ) -> None:
        """Add jobs that arrived.

        Parameters
        ----------
        job_numbers, gang : (a,) int64
            Numbers, increasing and above all earlier ones; nodes used at once.
        rate : (a, n) float64
            Steps/s on ``gang`` nodes of each type, 0 where a job cannot run.
        pair : (b, 2) int64
            Pairs of job numbers that may share nodes, the lower one first, the higher one among ``job_numbers``.
        pair_rate : (b, n, 2) float64
            Steps/s of both members when they share nodes of a type.

        Raises
        ------
        ValueError
            Numbers are not in order of arrival, or a pair has no new member.
        """
        jobs = self.jobs
        number = np.concatenate([jobs.number, job_numbers])
        if (number[1:] <= number[:-1]).any():
            raise ValueError(
                f"jobs must be numbered in order of arrival: {job_numbers.tolist()} after {jobs.number.tolist()[-1:]}"
            )
        n_new, n_types = job_numbers.shape[0], self.n_types
        member = np.stack([job_numbers, np.full(n_new, NOBODY)], axis=1)
        # a job alone has no second rate
        member_rate = np.stack([rate, np.zeros((n_new, n_types))], axis=2)
        if pair is not None and pair_rate is not None and pair.shape[0]:
            if not np.isin(pair[:, 1], job_numbers).all() or (pair[:, 0] >= pair[:, 1]).any():
                raise ValueError("a pair needs an earlier job and a new one")
            member = np.concatenate([member, pair])
            member_rate = np.concatenate([member_rate, pair_rate])
            arrival = np.lexsort((member[:, 0], member[:, 1] != NOBODY, member.max(axis=1)))
            member, member_rate = member[arrival], member_rate[arrival]
        new_jobs = Jobs(number=job_numbers, gang=gang, task=np.full(n_new, -1), n_failed=np.zeros(n_new, np.int64))
        _extend(jobs, new_jobs)
        _extend(self.entries, _new_entries(rules, jobs, member, member_rate))
        self.changed = True

    def remove_jobs(self, job_numbers: NDArray[np.int64]) -> None:
        """Remove jobs that ended, and all pairs that they are in. Credit their micro-tasks first.

        Raises
        ------
        ValueError
            An unknown job.
        """
        jobs, entries = self.jobs, self.entries
        positions = np.searchsorted(jobs.number, job_numbers)
        if (positions == jobs.number.shape[0]).any() or (jobs.number[positions] != job_numbers).any():
            raise ValueError(f"no such jobs: {np.setdiff1d(job_numbers, jobs.number).tolist()}")
        # one place more, for the missing partner of jobs that run alone
        stays = np.ones(jobs.number.shape[0] + 1, np.bool_)
        stays[positions] = False
        member_rows = entries.member_row
        _keep(jobs, stays[:-1])
        _keep(entries, stays[member_rows[:, 0]] & stays[member_rows[:, 1]])
        entries.member_row = _rows(jobs.number, entries.member)
        self.changed = True

    def forget_places(self, has_lost_nodes: NDArray[np.bool_]) -> None:
        """Make jobs (m,) that lost nodes of their last micro-task restart wherever they run next."""
        jobs, entries = self.jobs, self.entries
        tasks = jobs.task[has_lost_nodes]
        if tasks.size:
            entries.task = np.where(np.isin(entries.task, tasks), -1, entries.task)
            jobs.task = np.where(np.isin(jobs.task, tasks), -1, jobs.task)

    def set_rates(self, rate: NDArray[np.float64]) -> bool:
        """Set the rates of jobs from now on, and return whether any changed.

        Parameters
        ----------
        rate : (m, n) float64
            Steps/s of each job alone, in the order of ``jobs``.
        """
        entries = self.entries
        alone = np.flatnonzero(entries.member[:, 1] == NOBODY)
        if np.array_equal(entries.rate[alone, :, 0], rate):
            return False
        entries.rate[alone, :, 0] = rate
        entries.can_run[alone] = rate > 0.0
        return True


def first_state(n_types: int, rules: RoundRules) -> RoundState:
    """Return the state before any job."""
    no_numbers = np.zeros(0, np.int64)
    jobs = Jobs(number=no_numbers, gang=no_numbers, task=no_numbers, n_failed=no_numbers)
    entries = _new_entries(rules, jobs, np.zeros((0, 2), np.int64), np.zeros((0, n_types, 2)))
    return RoundState(jobs, entries, total_s=np.zeros(n_types), rng=random.Random(rules.seed + _SEED_OFFSET))


def _new_entries(rules: RoundRules, jobs: Jobs, member: NDArray[np.int64], member_rate: NDArray[np.float64]) -> Entries:
    """Return entries of ``member (e, 2)``, all in ``jobs``, at ``member_rate (e, n, 2)``; none has run yet."""
    n_entries, n_types, _ = member_rate.shape
    is_pair = member[:, 1] != NOBODY
    member_rows = _rows(jobs.number, member)
    # pairs start at 0 in the published program, jobs at half a round, until the next recomputation
    start_time_s = np.where(is_pair, 0.0, rules.round_s / 2)
    return Entries(
        member=member,
        member_row=member_rows,
        gang=jobs.gang[member_rows[:, 0]],
        rate=member_rate,
        can_run=(member_rate[:, :, 0] > 0.0) & ((member_rate[:, :, 1] > 0.0) | ~is_pair[:, None]),
        share=np.zeros((n_entries, n_types)),
        has_share=np.zeros(n_entries, np.bool_),
        time_s=np.repeat(start_time_s[:, None], n_types, axis=1),
        deficit_s=np.zeros((n_entries, n_types)),
        task=np.full(n_entries, -1),
    )


def _extend(rows: Jobs | Entries, new_rows: Jobs | Entries) -> None:
    """Append the rows of ``new_rows``."""
    for column in fields(rows):
        setattr(rows, column.name, np.concatenate([getattr(rows, column.name), getattr(new_rows, column.name)]))


def _keep(rows: Jobs | Entries, stays: NDArray[np.bool_]) -> None:
    """Remove the rows that do not stay."""
    for column in fields(rows):
        setattr(rows, column.name, getattr(rows, column.name)[stays])


def _rows(number: NDArray[np.int64], member: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of job numbers, ``NOBODY`` where there is none, (e, 2)."""
    return np.where(member == NOBODY, NOBODY, np.searchsorted(number, member))
