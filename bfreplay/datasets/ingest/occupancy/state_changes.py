"""One pass over a schedule: job intervals and outages in, changes of node states out, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy import machine
from bfreplay.datasets.ingest.occupancy.advance import DONE, MACHINE_FULL, Jobs, Outages, Rows, Terms, advance
from bfreplay.datasets.ingest.occupancy.inventory import free_again_us
from bfreplay.datasets.ingest.occupancy.rules import ASSIGNMENTS, OVERSUBSCRIPTION, OccupancyRules, microseconds
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, JobIntervals, no_jobs
from bfreplay.datasets.log.states import NodeState

ROWS = 262_144


@dataclass(frozen=True, slots=True)
class Plan:
    """Input of a sweep besides the job intervals.

    Parameters
    ----------
    position
        Number of each node of the record in the sweep, ``(N,) int32``: the place in the sorted inventory; absent nodes
        come after it.
    n_kept
        Nodes in the inventory.
    outages
        All outages, by numbers of the sweep.
    rules
        Rules for node states.
    window_us, log_end_us
        Window to compute, and end of the log.
    empty_is_down, outages_known
        True if a machine without jobs is assumed down; true if the outages are complete.
    states_seen
        True if node states were sampled: the jobs are then not known.
    last_unit
        Last unit of the same node, by numbers of the sweep, ``(N,) int32``; empty if nodes are not units.
    """

    position: NDArray[np.int32]
    n_kept: int
    outages: Outages
    rules: OccupancyRules
    window_us: tuple[int, int]
    log_end_us: int
    empty_is_down: bool
    outages_known: bool
    states_seen: bool
    last_unit: NDArray[np.int32]


class Sweep:
    """Machine during a pass.

    Attributes
    ----------
    initial
        State of each node before the first row, ``(N,) int8``.
    tallies
        Effects of the rules, ``(N_TALLIES,) float64``; complete after the pass.
    ended_open
        Jobs without an end: running to the end of the log, and ended at their time limit before the end of the window
        (runaway jobs).
    never_began, never_began_us
        Delayed jobs that never found enough nodes in the window, and their node-microseconds in it.
    n_cut
        Jobs cut by an edge of the window.
    n_lasting, lasting_us
        Jobs without an end and without a time limit that would have run longer than any finished job, and their
        node-microseconds in the window.
    held_us, cut_us, open_us
        Node-microseconds of jobs in the window: of all, of jobs cut by an edge, of jobs without an end.
    n_over, over_us
        Jobs that ended far beyond their time limit (twice the limit, and the grace), and their node-microseconds in the
        window after the limit.
    runaway_us
        Node-microseconds in the window after the assumed ends of runaway jobs: busy if they ran on.
    """

    def __init__(self, record: ScheduleRecord, plan: Plan, is_noted: bool = False) -> None:
        self._record, self._plan = record, plan
        self._slices = record.jobs.slices()
        self._terms = terms_of(plan)
        self._rng = np.random.Generator(np.random.PCG64(plan.rules.seed))
        self._machine = machine.new_machine(len(plan.position), self._terms.assignment, plan.last_unit, is_noted)
        self.tallies = self._machine.tallies
        self.ended_open = [0, 0]
        self.never_began = self.n_cut = self.n_lasting = self.n_over = 0
        self.held_us = self.cut_us = self.open_us = self.lasting_us = 0.0
        self.runaway_us = self.over_us = self.never_began_us = 0.0
        n_rows = max(ROWS, 2 * len(plan.position))
        self._rows = Rows(np.empty(n_rows, np.int64), np.empty(n_rows, np.int32), np.empty(n_rows, np.int8))
        self._begin_empty()
        self.initial = self._machine.shown.copy()

    def rows(self) -> Iterator[Rows]:
        """Yield all changes of states, from the first start to the end, by time and node; only once."""
        following = 0
        for jobs, following in self._slices:
            yield from self._advance(self._with_ends(jobs), following)
        if following != OPEN_END:
            yield from self._advance(no_jobs(), OPEN_END)

    def taken(self) -> Iterator[NDArray[Any]]:
        """Yield the nodes that jobs got, in order of time, as records of ``Taken``; no instant is split. Only once."""
        for _ in self.rows():
            state = self._machine.state
            yield np.asarray(self._machine.taken)[: state.n_taken].copy()
            state.n_taken = 0

    def see_the_rest(self) -> None:
        """Read the remaining job intervals without sweeping, so that the spool counts all of them."""
        for _ in self._slices:
            pass
        waiting_jobs, (start_us, stop_us) = self._jobs_in_queue(), self._plan.window_us
        first_us, last_us = np.maximum(waiting_jobs["start_us"], start_us), np.minimum(waiting_jobs["end_us"], stop_us)
        inside_us = np.maximum(last_us - first_us, 0)
        self.never_began = int(np.count_nonzero(inside_us))
        self.never_began_us = float((inside_us.astype(np.float64) * waiting_jobs["count"]).sum())

    def _jobs_in_queue(self) -> NDArray[Any]:
        state, queue = self._machine.state, np.asarray(self._machine.queue)
        return queue[state.queue_first : state.queue_end]

    def _begin_empty(self) -> None:
        """Decide the state of the machine before its first job, as the sweep does later."""
        state, start_us, stop_us = self._machine.state, *self._plan.window_us
        first_us = min(self._record.first_start_us, self._plan.log_end_us)
        if first_us <= start_us:
            return
        empty_us = min(first_us, stop_us) - start_us
        self.tallies.empty_us += empty_us
        state.now = start_us
        state.use = machine.EMPTY_AND_IDLE
        if not self._plan.empty_is_down:
            state.unused_since_us = start_us
        elif first_us - start_us > self._terms.empty_after_us:
            self.tallies.long_empty += 1
            self.tallies.long_empty_us += empty_us
            state.use = machine.TAKEN_FOR_DOWN
            self._machine.shown[:] = NodeState.DOWN

    def _with_ends(self, jobs: JobIntervals) -> JobIntervals:
        """Return the jobs with ends: their own and the release delay, or the end of the log, or their time limit."""
        rules, (start_us, stop_us) = self._plan.rules, self._plan.window_us
        is_open = jobs.end_us == OPEN_END
        end_us = free_again_us(jobs, rules, self._plan.log_end_us)
        if is_open.any():
            is_runaway = is_open & (end_us != OPEN_END)
            is_inside = is_open & (jobs.start_us < stop_us) & (end_us > start_us)
            self.ended_open[0] += int(np.count_nonzero(is_inside & ~is_runaway))
            lasting_us = self._plan.log_end_us - jobs.start_us
            is_lasting = is_inside & (jobs.limit_end_us == OPEN_END) & (lasting_us > self._record.longest_us)
            self.n_lasting += int(np.count_nonzero(is_lasting))
            last_end_us = min(stop_us, self._plan.log_end_us)
            inside_us = np.maximum(last_end_us - np.maximum(jobs.start_us, start_us), 0).astype(np.float64)
            self.lasting_us += float((inside_us * jobs.count)[is_lasting].sum())
            after_us = np.maximum(last_end_us - np.maximum(end_us, start_us), 0).astype(np.float64)
            is_early = is_runaway & (after_us > 0)
            self.ended_open[1] += int(np.count_nonzero(is_early))
            self.runaway_us += float((after_us * jobs.count)[is_early].sum())
        grace_us = np.maximum(jobs.limit_end_us - jobs.start_us, microseconds(rules.limit_grace_s))
        is_over = ~is_open & (jobs.limit_end_us != OPEN_END) & (jobs.end_us - grace_us > jobs.limit_end_us)
        if is_over.any():
            over_us = np.minimum(jobs.end_us, stop_us) - np.maximum(jobs.limit_end_us, start_us)
            is_over &= over_us > 0
            self.n_over += int(np.count_nonzero(is_over))
            self.over_us += float((over_us.astype(np.float64) * jobs.count)[is_over].sum())
        self._count_cut(jobs, end_us, is_open)
        return replace(jobs, end_us=end_us, nodes=self._plan.position[jobs.nodes])

    def _count_cut(self, jobs: JobIntervals, end_us: NDArray[np.int64], is_open: NDArray[np.bool_]) -> None:
        """Add up the node-time of jobs in the window, and of jobs cut by its edges or open at the end of the log."""
        start_us, stop_us = self._plan.window_us
        inside_us = np.maximum(np.minimum(end_us, stop_us) - np.maximum(jobs.start_us, start_us), 0).astype(np.float64)
        node_time_us = inside_us * jobs.count
        is_cut = (inside_us > 0) & ((jobs.start_us < start_us) | (end_us > stop_us))
        self.held_us += float(node_time_us.sum())
        self.n_cut += int(np.count_nonzero(is_cut))
        self.cut_us += float(node_time_us[is_cut].sum())
        self.open_us += float(node_time_us[is_open].sum())

    def _advance(self, jobs: JobIntervals, until_us: int) -> Iterator[Rows]:
        state = self._machine.state
        state.next_job = state.next_chance = 0
        if self._terms.oversubscription == machine.DELAY:
            waiting_jobs = self._jobs_in_queue()
            self._machine = self._machine._replace(queue=machine.longer(waiting_jobs, len(waiting_jobs) + len(jobs)))
            self._machine.state.queue_first, self._machine.state.queue_end = 0, len(waiting_jobs)
        chances = self._chances(jobs)
        held = jobs.start_us, jobs.end_us, jobs.count, jobs.first_node, jobs.nodes
        slice_ = Jobs(*held, jobs.job_key, jobs.eligible_us, jobs.kind, chances)
        while True:
            stop_reason, n_rows = advance(until_us, slice_, self._plan.outages, self._terms, self._machine, self._rows)
            if n_rows or self._machine.state.n_taken:
                time_us, node, new_state = self._rows
                yield Rows(time_us[:n_rows].copy(), node[:n_rows].copy(), new_state[:n_rows].copy())
            if stop_reason == DONE:
                return
            if stop_reason == MACHINE_FULL:
                n_slots, n_holdings = 2 * len(self._machine.slots), 2 * len(self._machine.holdings)
                self._machine = machine.with_room(self._machine, n_slots, n_holdings)

    def _chances(self, jobs: JobIntervals) -> NDArray[np.float64]:
        """Return a random number for each node that may have to be chosen in a slice."""
        if self._terms.assignment != machine.RANDOM:
            return np.empty(0)
        n_nodes = len(self._plan.position)
        n_draws = np.minimum(jobs.count - np.diff(jobs.first_node), n_nodes).sum()
        waiting = self._jobs_in_queue()["count"].sum()
        lacking = np.minimum(np.asarray(self._machine.slots)["n_lacking"], n_nodes).sum()
        return self._rng.random(int(n_draws + waiting + lacking))


def terms_of(plan: Plan) -> Terms:
    """Return the constants of a sweep."""
    rules = plan.rules
    return Terms(
        n_kept=plan.n_kept,
        window_start_us=plan.window_us[0],
        window_end_us=plan.window_us[1],
        log_end_us=plan.log_end_us,
        empty_after_us=microseconds(rules.empty_after_s),
        empty_is_down=plan.empty_is_down,
        assignment=ASSIGNMENTS.index(rules.assignment),
        oversubscription=OVERSUBSCRIPTION.index(rules.oversubscription),
        release_us=microseconds(rules.release_delay_s),
    )
