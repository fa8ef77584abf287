"""One pass over a schedule: job intervals and outages in, changes of node states out, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy import free_nodes, machine
from bfreplay.datasets.occupancy.free_nodes import RANDOM, add_free, no_nodes
from bfreplay.datasets.occupancy.inventory import free_again_us
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.occupancy.rules import ASSIGNMENTS, OVER_CAPACITY, OccupancyRules, microseconds
from bfreplay.datasets.occupancy.spool import OPEN_END, JobIntervals

ROWS = 262_144
FIRST_SLOTS = 1_024

Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]
"""Times, nodes and states, ``(E,)`` each."""


@dataclass(frozen=True, slots=True)
class Outages:
    """O outages by start: ``start_us``, ``end_us`` (O,) int64, ``kind (O,) int8``, and nodes as in ``JobIntervals``."""

    start_us: NDArray[np.int64]
    end_us: NDArray[np.int64]
    kind: NDArray[np.int8]
    first_node: NDArray[np.int64]
    nodes: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a sweep depends on besides the job intervals.

    Parameters
    ----------
    position
        Number of each node of the record in the sweep, ``(N,) int32``: the place in the sorted inventory; nodes that
        are left out come after it.
    n_kept
        Nodes in the inventory.
    outages
        All of them, by numbers of the sweep.
    rules
        The rules.
    window_us, log_end_us
        What is wanted, and where the log ends.
    empty_is_down, outages_known
        Whether a machine without jobs is assumed down, and whether the outages are all that there were.
    states_seen
        Whether nodes were sampled: which jobs there were is then not known.
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


class Sweep:
    """The machine while a pass goes on.

    Attributes
    ----------
    initial
        State of each node before the first row, ``(N,) int8``.
    tallies
        What the rules did, ``(N_TALLIES,) float64``; complete after the pass.
    ended_open
        Jobs without an end: those that run to the end of the log, and those that were ended at their time limit before
        the window ends (runaway jobs).
    never_began, never_began_us
        Delayed jobs of the window for which there were not enough nodes in it, and their node-microseconds in it.
    n_cut
        Jobs that an edge of the window cuts.
    n_lasting, lasting_us
        Jobs without an end and without a time limit that would have run longer than any finished job, and their
        node-microseconds in the window.
    held_us, cut_us, open_us
        Node-microseconds of jobs in the window: of all, of those that an edge cuts, of those without an end.
    n_over, over_us
        Jobs that ended far beyond their time limit (twice the limit, and the grace), and their node-microseconds in the
        window after the limit.
    runaway_us
        Node-microseconds in the window after the ends of runaway jobs: busy if they did run on.
    """

    def __init__(self, record: ScheduleRecord, plan: Plan) -> None:
        n = len(plan.position)
        self._record, self._plan = record, plan
        self._slices = record.jobs.slices()
        self._rule = ASSIGNMENTS.index(plan.rules.assignment)
        self._over_capacity = OVER_CAPACITY.index(plan.rules.over_capacity)
        self._rng = np.random.Generator(np.random.PCG64(plan.rules.seed))
        self.tallies = np.zeros(machine.N_TALLIES)
        self.ended_open = [0, 0]
        self.never_began = self.n_cut = self.n_lasting = self.n_over = 0
        self.held_us = self.cut_us = self.open_us = self.lasting_us = 0.0
        self.runaway_us = self.over_us = self.never_began_us = 0.0
        self._scalars = np.zeros(machine.N_SCALARS, np.int64)
        self._scalars[machine.UNUSED_SINCE] = machine.NEVER
        self._scalars[machine.FIRST_LACKING] = self._scalars[machine.LAST_LACKING] = -1
        self._cover = np.zeros((len(NodeState), n), np.int32)
        self._total, self._touched = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self._is_touched = np.zeros(n, np.bool_)
        self._held_until = np.full(n, -OPEN_END, np.int64)
        self._free, self._dense = no_nodes(n)
        # who became free last is taken first by one rule: fill the list so that the lowest node is next by either
        order = range(n - 1, -1, -1) if self._rule == free_nodes.MOST_RECENT else range(n)
        for node in order:
            self._scalars[machine.FREE] = add_free(node, self._scalars[machine.FREE], self._free, self._dense)
        self._queue = np.zeros((3, 0), np.int64)
        n_rows = max(ROWS, 2 * n)
        self._row_time = np.empty(n_rows, np.int64)
        self._row_node = np.empty(n_rows, np.int32)
        self._row_state = np.empty(n_rows, np.int8)
        self._heap_end = np.zeros(0, np.int64)
        self._heap_slot, self._slot_first, self._spare_slots = (np.zeros(0, np.int32) for _ in range(3))
        self._slot_kind = np.zeros(0, np.int8)
        self._holding = np.full((2, 0), -1, np.int32)
        self._lacks = np.zeros((4, 0), np.int64)
        self._scalars[machine.SPARE_HOLDING] = -1
        self._grow(FIRST_SLOTS, max(FIRST_SLOTS, 2 * n))
        self.initial = np.full(n, NodeState.IDLE, np.int8)
        self._begin_empty()
        self._shown = self.initial.copy()

    def rows(self) -> Iterator[Rows]:
        """All changes of states, from the first start to the end, by time and node; once."""
        following = 0
        for jobs, following in self._slices:
            yield from self._advance(self._ended(jobs), following)
        if following != OPEN_END:
            yield from self._advance(_no_jobs(), OPEN_END)

    def see_the_rest(self) -> None:
        """Go through what is left of the job intervals without sweeping it, so that the spool counts all of it."""
        for _ in self._slices:
            pass
        waiting = self._queue[:, self._scalars[machine.QUEUE_FIRST] : self._scalars[machine.QUEUE_END]]
        start_us, stop_us = self._plan.window_us
        inside_us = np.maximum(np.minimum(waiting[1], stop_us) - np.maximum(waiting[0], start_us), 0)
        self.never_began = int(np.count_nonzero(inside_us))
        self.never_began_us = float((inside_us.astype(np.float64) * waiting[2]).sum())

    def _begin_empty(self) -> None:
        """Before its first job the machine is empty: decide what that means, as the sweep does later."""
        start_us, stop_us = self._plan.window_us
        first_us = min(self._record.first_start_us, self._plan.log_end_us)
        if first_us <= start_us:
            return
        empty_us = min(first_us, stop_us) - start_us
        self.tallies[machine.EMPTY_US] += empty_us
        self._scalars[machine.NOW] = start_us
        self._scalars[machine.EMPTY] = machine.EMPTY_AND_IDLE
        if not self._plan.empty_is_down:
            self._scalars[machine.UNUSED_SINCE] = start_us
        elif first_us - start_us > microseconds(self._plan.rules.empty_after_s):
            self.tallies[machine.LONG_EMPTY] += 1
            self.tallies[machine.LONG_EMPTY_US] += empty_us
            self._scalars[machine.EMPTY] = machine.TAKEN_FOR_DOWN
            self.initial[:] = NodeState.DOWN

    def _ended(self, jobs: JobIntervals) -> JobIntervals:
        """Every job with an end: its own and the release delay, or the end of the log, or its time limit."""
        rules, (start_us, stop_us) = self._plan.rules, self._plan.window_us
        is_open = jobs.end_us == OPEN_END
        end_us = free_again_us(jobs, rules, self._plan.log_end_us)
        if is_open.any():
            is_runaway = is_open & (end_us != OPEN_END)
            is_inside = is_open & (jobs.start_us < stop_us) & (end_us > start_us)
            self.ended_open[0] += int(np.count_nonzero(is_inside & ~is_runaway))
            lasting_us = self._plan.log_end_us - jobs.start_us
            longer = is_inside & (jobs.limit_end_us == OPEN_END) & (lasting_us > self._record.longest_us)
            self.n_lasting += int(np.count_nonzero(longer))
            seen_end_us = min(stop_us, self._plan.log_end_us)
            inside_us = np.maximum(seen_end_us - np.maximum(jobs.start_us, start_us), 0).astype(np.float64)
            self.lasting_us += float((inside_us * jobs.count)[longer].sum())
            after_us = np.maximum(seen_end_us - np.maximum(end_us, start_us), 0).astype(np.float64)
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
        """Add up what of the jobs lies in the window, and what of that in jobs that its edges or the log's end cut."""
        start_us, stop_us = self._plan.window_us
        inside_us = np.maximum(np.minimum(end_us, stop_us) - np.maximum(jobs.start_us, start_us), 0).astype(np.float64)
        held_us = inside_us * jobs.count
        is_cut = (inside_us > 0) & ((jobs.start_us < start_us) | (end_us > stop_us))
        self.held_us += float(held_us.sum())
        self.n_cut += int(np.count_nonzero(is_cut))
        self.cut_us += float(held_us[is_cut].sum())
        self.open_us += float(held_us[is_open].sum())

    def _advance(self, jobs: JobIntervals, until_us: int) -> Iterator[Rows]:
        plan, out = self._plan, self._plan.outages
        self._scalars[machine.NEXT_JOB] = self._scalars[machine.NEXT_CHANCE] = 0
        self._make_room_in_queue(len(jobs))
        chances = np.empty(0)
        if self._rule == RANDOM:
            n = len(plan.position)
            waiting = self._queue[2, : self._scalars[machine.QUEUE_END]].sum()
            lacking = np.minimum(self._lacks[machine.AMOUNT], n).sum()
            wanted = np.minimum(jobs.count - np.diff(jobs.first_node), n)
            chances = self._rng.random(int(wanted.sum() + waiting + lacking))
        empty_after_us = microseconds(plan.rules.empty_after_s)
        while True:
            why, n_rows = machine.advance(
                until_us, plan.n_kept, plan.log_end_us, empty_after_us, plan.empty_is_down, *plan.window_us,
                self._rule, self._over_capacity, microseconds(plan.rules.release_delay_s), chances,
                jobs.start_us, jobs.end_us, jobs.count, jobs.first_node, jobs.nodes,
                out.start_us, out.end_us, out.kind, out.first_node, out.nodes,
                self._queue,
                self._scalars, self.tallies, self._cover, self._total, self._shown, self._held_until, self._touched,
                self._is_touched, self._free, self._dense, self._heap_end, self._heap_slot, self._slot_kind,
                self._slot_first, self._spare_slots, self._holding, self._lacks, self._row_time, self._row_node,
                self._row_state,
            )  # fmt: skip
            if n_rows:
                yield self._row_time[:n_rows].copy(), self._row_node[:n_rows].copy(), self._row_state[:n_rows].copy()
            if why == machine.DONE:
                return
            if why == machine.HOLDINGS_FULL:
                self._grow(2 * len(self._heap_end), 2 * self._holding.shape[1])

    def _make_room_in_queue(self, more: int) -> None:
        first, end = self._scalars[machine.QUEUE_FIRST], self._scalars[machine.QUEUE_END]
        waiting = self._queue[:, first:end]
        if self._over_capacity == machine.DELAY:
            self._queue = np.concatenate([waiting, np.zeros((3, more), np.int64)], axis=1)
            self._scalars[machine.QUEUE_FIRST], self._scalars[machine.QUEUE_END] = 0, end - first

    def _grow(self, slots: int, holdings: int) -> None:
        """Make room for ``slots`` intervals at a time, and for ``holdings`` nodes under them."""
        scalars, before, held = self._scalars, len(self._heap_end), self._holding.shape[1]
        more = slots - before
        self._heap_end = np.concatenate([self._heap_end, np.zeros(more, np.int64)])
        self._slot_kind = np.concatenate([self._slot_kind, np.zeros(more, np.int8)])
        self._lacks = np.concatenate([self._lacks, np.zeros((4, more), np.int64)], axis=1)
        self._heap_slot, self._slot_first, self._spare_slots = (
            np.concatenate([each, np.zeros(more, np.int32)])
            for each in (self._heap_slot, self._slot_first, self._spare_slots)
        )
        spare = scalars[machine.SPARE_SLOTS]
        self._spare_slots[spare : spare + more] = np.arange(before, slots)
        scalars[machine.SPARE_SLOTS] += more
        chain = np.arange(held + 1, holdings + 1, dtype=np.int32)
        chain[-1] = scalars[machine.SPARE_HOLDING]
        self._holding = np.concatenate([self._holding, np.stack([np.full_like(chain, -1), chain])], axis=1)
        scalars[machine.SPARE_HOLDING] = held
        scalars[machine.HOLDINGS_LEFT] += holdings - held


def _no_jobs() -> JobIntervals:
    none = np.empty(0, np.int64)
    return JobIntervals(none, none, none, none, none, np.zeros(1, np.int64), np.empty(0, np.int32))
