"""A machine on which intervals begin and end: the compiled sweep that turns them into changes of node states.

Time goes from instant to instant. At each, intervals end first, then outages begin, then jobs; then every node that was
touched is looked at, and a row is written for those in another state than before. A node may be under several intervals
(shared nodes, an outage on a busy node): it is idle when none is left.

Jobs first get the nodes that the log lists for them. Free nodes then go to the jobs that lack some, in order of their
start (of one start: jobs with listed nodes first, then by job number), and a job that still lacks nodes keeps its place
until it has them all or ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy.free_nodes import LOWEST_ID, RANDOM, add_free, next_free, remove_free

IDLE, BUSY, DOWN, DRAIN, RESERVED, OFF, UNKNOWN = (int(state) for state in NodeState)

NEVER = int(np.iinfo(np.int64).max)

DONE, ROWS_FULL, HOLDINGS_FULL = range(3)
"""Why ``advance`` returned."""

(
    NOW, TOUCHED, ACTIVE, FREE, ENDS, SPARE_SLOTS, SPARE_HOLDING, EMPTY, LOWEST, NEXT_JOB, NEXT_OUTAGE, QUEUE_FIRST,
    QUEUE_END, NEXT_CHANCE, HOLDINGS_LEFT, UNUSED_SINCE, LACKING, FIRST_LACKING, LAST_LACKING, N_SCALARS,
) = range(20)  # fmt: skip
"""Positions in the machine's ``scalars (N_SCALARS,) int64``: counts, but ``NOW`` a time, ``SPARE_HOLDING`` the first of
the spare holdings, ``EMPTY`` whether the machine is without jobs, ``UNUSED_SINCE`` since when most of it is idle then,
``LOWEST`` a node below which none is free, ``LACKING`` the nodes that running jobs lack, ``FIRST_LACKING`` and
``LAST_LACKING`` the slots of the first and the last of these jobs (-1: none)."""

(
    OVERLAPS, CLIPPED, CLIPPED_NODE_US, LEFT_OUT, LEFT_OUT_NODE_US, DELAYED, DELAY_US, DELAY_NODE_US, LONG_EMPTY,
    LONG_EMPTY_US, EMPTY_US, LEFT_IDLE_NODE_US, UNUSED_NODE_US, N_TALLIES,
) = range(14)  # fmt: skip
"""Positions in ``tallies (N_TALLIES,) float64``: what the rules did, in jobs, node-microseconds and microseconds."""

IN_USE, EMPTY_AND_IDLE, TAKEN_FOR_DOWN = range(3)
"""What ``scalars[EMPTY]`` says: there are jobs; there are none, and the machine is idle; or is taken for down."""

AMOUNT, BEFORE, AFTER, IS_COUNTED = range(4)
"""Rows of ``lacks (4, S)``: nodes that the job in a slot lacks, the slots of its neighbours in the order of jobs that
lack nodes (-1: none), and whether the job is in ``CLIPPED``."""

_Ints = NDArray[np.int32]
Covering = tuple[NDArray[np.int64], _Ints, _Ints, _Ints, _Ints, _Ints, _Ints, _Ints, NDArray[np.bool_]]
"""``scalars, cover, total, slot_first, holding, free, dense, touched, is_touched`` of ``advance``."""

JOB_KIND = 0
"""What a slot says of a job; other slots have the ``NodeState`` of their outage."""

CLIP, DROP, DELAY = range(3)
"""Codes of ``rules.OVER_CAPACITY``."""


@compiled
def sift_up(heap_end: NDArray[np.int64], heap_slot: NDArray[np.int32], at: int) -> None:
    """Restore the order of a heap of ends after an entry was put at ``at``."""
    while at > 0:
        parent = (at - 1) // 2
        if heap_end[parent] <= heap_end[at]:
            return
        heap_end[parent], heap_end[at] = heap_end[at], heap_end[parent]
        heap_slot[parent], heap_slot[at] = heap_slot[at], heap_slot[parent]
        at = parent


@compiled
def sift_down(heap_end: NDArray[np.int64], heap_slot: NDArray[np.int32], size: int) -> None:
    """Restore the order of a heap of ends of ``size`` entries after the first was replaced."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and heap_end[child + 1] < heap_end[child]:
            child += 1
        if heap_end[at] <= heap_end[child]:
            return
        heap_end[child], heap_end[at] = heap_end[at], heap_end[child]
        heap_slot[child], heap_slot[at] = heap_slot[at], heap_slot[child]
        at = child


@compiled
def _state(node: int, cover: NDArray[np.int32], total: NDArray[np.int32], assumed: bool) -> int:
    """Strongest of what is on a node: down, off, busy, drain, reserved, unknown; else idle."""
    if total[node] == 0:
        return DOWN if assumed else IDLE
    if total[node] == cover[BUSY, node]:
        return BUSY
    if cover[DOWN, node] > 0:
        return DOWN
    if cover[OFF, node] > 0:
        return OFF
    if cover[BUSY, node] > 0:
        return BUSY
    if cover[DRAIN, node] > 0:
        return DRAIN
    if cover[RESERVED, node] > 0:
        return RESERVED
    return UNKNOWN


@compiled
def _touch(node: int, scalars: NDArray[np.int64], touched: NDArray[np.int32], is_touched: NDArray[np.bool_]) -> None:
    if not is_touched[node]:
        is_touched[node] = True
        touched[scalars[TOUCHED]] = node
        scalars[TOUCHED] += 1


@compiled
def _cover(node: int, kind: int, slot: int, covering: Covering) -> None:
    """Put a node under the interval in ``slot``."""
    scalars, cover, total, slot_first, holding, free, dense, touched, is_touched = covering
    entry = scalars[SPARE_HOLDING]
    scalars[SPARE_HOLDING] = holding[1, entry]
    holding[0, entry] = node
    holding[1, entry] = slot_first[slot]
    slot_first[slot] = entry
    if total[node] == 0:
        scalars[FREE] = remove_free(node, scalars[FREE], free, dense)
    total[node] += 1
    cover[kind, node] += 1
    _touch(node, scalars, touched, is_touched)


@compiled
def _begin(
    kind: int, end_us: int, scalars: NDArray[np.int64], heap_end: NDArray[np.int64], heap_slot: NDArray[np.int32],
    slot_kind: NDArray[np.int8], slot_first: NDArray[np.int32], spare_slots: NDArray[np.int32],
) -> int:  # fmt: skip
    """Take a slot for an interval that ends at ``end_us``."""
    scalars[SPARE_SLOTS] -= 1
    slot = spare_slots[scalars[SPARE_SLOTS]]
    slot_kind[slot] = kind
    slot_first[slot] = -1
    at = scalars[ENDS]
    heap_end[at] = end_us
    heap_slot[at] = slot
    scalars[ENDS] += 1
    sift_up(heap_end, heap_slot, at)
    return int(slot)


@compiled
def _take(n: int, slot: int, rule: int, chances: NDArray[np.float64], covering: Covering) -> None:
    """Put ``n`` free nodes, chosen by rule, under the job in ``slot``."""
    scalars, free, dense = covering[0], covering[5], covering[6]
    for _ in range(n):
        chance = chances[scalars[NEXT_CHANCE]] if rule == RANDOM else 0.0
        node = next_free(rule, scalars[LOWEST], chance, scalars[FREE], free, dense)
        scalars[NEXT_CHANCE] += 1
        scalars[HOLDINGS_LEFT] -= 1
        scalars[LOWEST] = node if rule == LOWEST_ID else 0
        _cover(node, BUSY, slot, covering)


@compiled
def _lack(slot: int, n: int, scalars: NDArray[np.int64], lacks: NDArray[np.int64]) -> None:
    """The job in ``slot`` lacks ``n`` nodes: it goes to the end of the order."""
    last = scalars[LAST_LACKING]
    lacks[AMOUNT, slot], lacks[BEFORE, slot], lacks[AFTER, slot], lacks[IS_COUNTED, slot] = n, last, -1, 0
    if last >= 0:
        lacks[AFTER, last] = slot
    else:
        scalars[FIRST_LACKING] = slot
    scalars[LAST_LACKING] = slot
    scalars[LACKING] += n


@compiled
def _lack_no_more(slot: int, scalars: NDArray[np.int64], lacks: NDArray[np.int64]) -> None:
    """The job in ``slot`` ends, or has all of its nodes: it leaves the order."""
    before, after = lacks[BEFORE, slot], lacks[AFTER, slot]
    if before >= 0:
        lacks[AFTER, before] = after
    else:
        scalars[FIRST_LACKING] = after
    if after >= 0:
        lacks[BEFORE, after] = before
    else:
        scalars[LAST_LACKING] = before
    scalars[LACKING] -= lacks[AMOUNT, slot]
    lacks[AMOUNT, slot] = 0


@compiled
def _count_lacking(
    now: int, window_start_us: int, window_end_us: int, scalars: NDArray[np.int64], tallies: NDArray[np.float64],
    lacks: NDArray[np.int64],
) -> None:  # fmt: skip
    """Add up what jobs lacked from the instant before to ``now`` within the window, and count those jobs once each."""
    passed_us = max(min(now, window_end_us) - max(scalars[NOW], window_start_us), 0)
    if scalars[LACKING] == 0 or passed_us == 0:
        return
    tallies[CLIPPED_NODE_US] += float(passed_us) * scalars[LACKING]
    slot = scalars[LAST_LACKING]
    while slot >= 0 and lacks[IS_COUNTED, slot] == 0:  # jobs join at the end: all before a counted one are counted
        tallies[CLIPPED] += 1
        lacks[IS_COUNTED, slot] = 1
        slot = lacks[BEFORE, slot]


@compiled
def _end_unused(
    now: int, empty_after_us: int, window_start_us: int, window_end_us: int, scalars: NDArray[np.int64],
    tallies: NDArray[np.float64],
) -> None:  # fmt: skip
    """A time ends in which most nodes of an empty machine were idle: count it if it was long."""
    since_us = scalars[UNUSED_SINCE]
    if since_us == NEVER:
        return
    rest_us = max(min(now, window_end_us) - max(scalars[NOW], window_start_us), 0)
    inside_us = max(min(now, window_end_us) - max(since_us, window_start_us), 0)
    if now - since_us > empty_after_us and inside_us > 0:
        tallies[LONG_EMPTY] += 1
        tallies[LONG_EMPTY_US] += inside_us
        tallies[LEFT_IDLE_NODE_US] += tallies[UNUSED_NODE_US] + float(rest_us) * scalars[FREE]
    tallies[UNUSED_NODE_US] = 0.0
    scalars[UNUSED_SINCE] = NEVER


@compiled
def advance(
    until_us: int, n_kept: int, log_end_us: int, empty_after_us: int, empty_is_down: bool, window_start_us: int,
    window_end_us: int, rule: int, over_capacity: int, release_us: int, chances: NDArray[np.float64],
    start_us: NDArray[np.int64], end_us: NDArray[np.int64], count: NDArray[np.int64], first_node: NDArray[np.int64],
    nodes: NDArray[np.int32],
    outage_start_us: NDArray[np.int64], outage_end_us: NDArray[np.int64], outage_kind: NDArray[np.int8],
    outage_first: NDArray[np.int64], outage_nodes: NDArray[np.int32],
    queue: NDArray[np.int64],
    scalars: NDArray[np.int64], tallies: NDArray[np.float64], cover: NDArray[np.int32], total: NDArray[np.int32],
    shown: NDArray[np.int8], held_until: NDArray[np.int64], touched: NDArray[np.int32], is_touched: NDArray[np.bool_],
    free: NDArray[np.int32], dense: NDArray[np.int32], heap_end: NDArray[np.int64], heap_slot: NDArray[np.int32],
    slot_kind: NDArray[np.int8], slot_first: NDArray[np.int32], spare_slots: NDArray[np.int32],
    holding: NDArray[np.int32], lacks: NDArray[np.int64],
    row_time: NDArray[np.int64], row_node: NDArray[np.int32], row_state: NDArray[np.int8],
) -> tuple[int, int]:  # fmt: skip
    """Go on through all instants before ``until_us``; returns why it stopped, and how many rows were written.

    Parameters
    ----------
    until_us
        Where this slice of jobs ends: the first start after it.
    n_kept
        Nodes in the inventory: those after them are left out.
    log_end_us
        When the log ends: an empty machine is looked at up to there.
    empty_after_us, empty_is_down
        An empty machine that stays empty longer than this is counted, and assumed down or left idle.
    window_start_us, window_end_us
        What counts for the tallies.
    rule, over_capacity, release_us, chances
        Codes of the rules, how much later than its job a node is free (in the ends already), and a random number for
        each node that this slice may have to choose.
    start_us, end_us, count, first_node, nodes
        The slice, as in ``JobIntervals``; ``scalars[NEXT_JOB]`` is the next of them.
    outage_start_us, outage_end_us, outage_kind, outage_first, outage_nodes
        All outages by start; ``scalars[NEXT_OUTAGE]`` is the next of them.
    queue
        Delayed jobs, ``(3, Q)``: start, end, count; from ``scalars[QUEUE_FIRST]`` to ``scalars[QUEUE_END]``.
    scalars ... lacks
        The machine (see ``Machine``), changed in place.
    row_time, row_node, row_state
        Where rows go.
    """
    n_nodes = len(shown)
    n_rows = 0
    covering = (scalars, cover, total, slot_first, holding, free, dense, touched, is_touched)
    while True:
        now = NEVER
        if scalars[ENDS] > 0:
            now = heap_end[0]
        if scalars[NEXT_JOB] < len(start_us) and start_us[scalars[NEXT_JOB]] < now:
            now = start_us[scalars[NEXT_JOB]]
        if scalars[NEXT_OUTAGE] < len(outage_start_us) and outage_start_us[scalars[NEXT_OUTAGE]] < now:
            now = outage_start_us[scalars[NEXT_OUTAGE]]
        if now >= until_us:
            if until_us == NEVER:
                _count_lacking(NEVER, window_start_us, window_end_us, scalars, tallies, lacks)
                _end_unused(log_end_us, empty_after_us, window_start_us, window_end_us, scalars, tallies)
            return DONE, n_rows
        if n_rows + n_nodes > len(row_time):
            return ROWS_FULL, n_rows
        # what may begin now must find slots and holdings, so that an instant is never left half done
        holdings, slots = n_nodes, scalars[QUEUE_END] - scalars[QUEUE_FIRST]
        ahead = scalars[NEXT_JOB]
        while ahead < len(start_us) and start_us[ahead] == now:
            holdings += first_node[ahead + 1] - first_node[ahead]
            slots += 1
            ahead += 1
        ahead = scalars[NEXT_OUTAGE]
        while ahead < len(outage_start_us) and outage_start_us[ahead] == now:
            holdings += outage_first[ahead + 1] - outage_first[ahead]
            slots += 1
            ahead += 1
        if slots > scalars[SPARE_SLOTS] or holdings > scalars[HOLDINGS_LEFT]:
            return HOLDINGS_FULL, n_rows
        if scalars[UNUSED_SINCE] != NEVER:
            passed_us = max(min(now, window_end_us) - max(scalars[NOW], window_start_us), 0)
            tallies[UNUSED_NODE_US] += float(passed_us) * scalars[FREE]
        _count_lacking(now, window_start_us, window_end_us, scalars, tallies, lacks)
        scalars[NOW] = now

        while scalars[ENDS] > 0 and heap_end[0] == now:
            slot = heap_slot[0]
            scalars[ENDS] -= 1
            heap_end[0] = heap_end[scalars[ENDS]]
            heap_slot[0] = heap_slot[scalars[ENDS]]
            sift_down(heap_end, heap_slot, scalars[ENDS])
            kind = slot_kind[slot]
            if kind == JOB_KIND:
                scalars[ACTIVE] -= 1
                kind = BUSY
                if lacks[AMOUNT, slot] > 0:
                    _lack_no_more(slot, scalars, lacks)
            entry = slot_first[slot]
            while entry >= 0:
                node = holding[0, entry]
                cover[kind, node] -= 1
                total[node] -= 1
                if total[node] == 0:
                    scalars[FREE] = add_free(node, scalars[FREE], free, dense)
                    if node < scalars[LOWEST]:
                        scalars[LOWEST] = node
                _touch(node, scalars, touched, is_touched)
                after = holding[1, entry]
                holding[1, entry] = scalars[SPARE_HOLDING]
                scalars[SPARE_HOLDING] = entry
                scalars[HOLDINGS_LEFT] += 1
                entry = after
            spare_slots[scalars[SPARE_SLOTS]] = slot
            scalars[SPARE_SLOTS] += 1

        while scalars[NEXT_OUTAGE] < len(outage_start_us) and outage_start_us[scalars[NEXT_OUTAGE]] == now:
            o = scalars[NEXT_OUTAGE]
            scalars[NEXT_OUTAGE] += 1
            kind = outage_kind[o]
            slot = _begin(kind, outage_end_us[o], scalars, heap_end, heap_slot, slot_kind, slot_first, spare_slots)
            for i in range(outage_first[o], outage_first[o + 1]):
                scalars[HOLDINGS_LEFT] -= 1
                _cover(outage_nodes[i], kind, slot, covering)

        # listed nodes before chosen ones: nobody is given a node that a job of this instant names
        ahead = scalars[NEXT_JOB]
        while ahead < len(start_us) and start_us[ahead] == now:
            j = ahead
            ahead += 1
            if first_node[j] == first_node[j + 1]:
                continue
            inside = min(end_us[j], window_end_us) > max(now, window_start_us)
            slot = _begin(JOB_KIND, end_us[j], scalars, heap_end, heap_slot, slot_kind, slot_first, spare_slots)
            scalars[ACTIVE] += 1
            for i in range(first_node[j], first_node[j + 1]):
                node = nodes[i]
                if cover[BUSY, node] > 0 and now < held_until[node] and now >= window_start_us and inside:
                    tallies[OVERLAPS] += 1
                held_until[node] = max(held_until[node], end_us[j] if end_us[j] == NEVER else end_us[j] - release_us)
                scalars[HOLDINGS_LEFT] -= 1
                _cover(node, BUSY, slot, covering)
            if count[j] > first_node[j + 1] - first_node[j]:
                _lack(slot, count[j] - (first_node[j + 1] - first_node[j]), scalars, lacks)

        while scalars[FIRST_LACKING] >= 0 and scalars[FREE] > 0:
            slot = scalars[FIRST_LACKING]
            n_taken = min(lacks[AMOUNT, slot], scalars[FREE])
            _take(n_taken, slot, rule, chances, covering)
            lacks[AMOUNT, slot] -= n_taken
            scalars[LACKING] -= n_taken
            if lacks[AMOUNT, slot] == 0:
                _lack_no_more(slot, scalars, lacks)

        while scalars[QUEUE_FIRST] < scalars[QUEUE_END] and queue[2, scalars[QUEUE_FIRST]] <= scalars[FREE]:
            q = scalars[QUEUE_FIRST]
            scalars[QUEUE_FIRST] += 1
            late = now - queue[0, q]
            end = NEVER if queue[1, q] == NEVER else queue[1, q] + late
            slot = _begin(JOB_KIND, end, scalars, heap_end, heap_slot, slot_kind, slot_first, spare_slots)
            scalars[ACTIVE] += 1
            if queue[0, q] < window_end_us and queue[1, q] > window_start_us:
                tallies[DELAYED] += 1
                tallies[DELAY_US] += late
                waited_us = max(min(now, window_end_us) - max(queue[0, q], window_start_us), 0)
                tallies[DELAY_NODE_US] += float(waited_us) * queue[2, q]
            _take(queue[2, q], slot, rule, chances, covering)

        is_refused = False
        while scalars[NEXT_JOB] < len(start_us) and start_us[scalars[NEXT_JOB]] == now:
            j = scalars[NEXT_JOB]
            scalars[NEXT_JOB] += 1
            if first_node[j] < first_node[j + 1]:
                continue
            chosen = count[j]
            if (
                over_capacity == DELAY
                and (chosen > scalars[FREE] or scalars[QUEUE_FIRST] < scalars[QUEUE_END])
                and chosen <= n_nodes
            ):
                queue[0, scalars[QUEUE_END]] = now
                queue[1, scalars[QUEUE_END]] = end_us[j]
                queue[2, scalars[QUEUE_END]] = chosen
                scalars[QUEUE_END] += 1
                continue
            if over_capacity != CLIP and chosen > scalars[FREE]:
                inside_us = max(min(end_us[j], window_end_us) - max(now, window_start_us), 0)
                if inside_us > 0:
                    tallies[LEFT_OUT] += 1
                    tallies[LEFT_OUT_NODE_US] += float(inside_us) * chosen
                is_refused = True
                continue
            slot = _begin(JOB_KIND, end_us[j], scalars, heap_end, heap_slot, slot_kind, slot_first, spare_slots)
            scalars[ACTIVE] += 1
            n_taken = min(chosen, scalars[FREE])
            _take(n_taken, slot, rule, chances, covering)
            if chosen > n_taken:
                _lack(slot, chosen - n_taken, scalars, lacks)

        is_empty = scalars[ACTIVE] == 0 and scalars[QUEUE_FIRST] == scalars[QUEUE_END]
        if is_refused or not is_empty:  # after a job that was refused, what an empty machine means is decided anew
            if scalars[EMPTY] == TAKEN_FOR_DOWN:
                for node in range(n_nodes):
                    _touch(node, scalars, touched, is_touched)
            scalars[EMPTY] = IN_USE
        if is_empty and scalars[EMPTY] == IN_USE:
            following = start_us[scalars[NEXT_JOB]] if scalars[NEXT_JOB] < len(start_us) else until_us
            following = max(min(following, log_end_us), now)
            empty_us = max(min(following, window_end_us) - max(now, window_start_us), 0)
            tallies[EMPTY_US] += empty_us
            scalars[EMPTY] = EMPTY_AND_IDLE
            if empty_is_down and following - now > empty_after_us:
                tallies[LONG_EMPTY] += 1 if empty_us > 0 else 0
                tallies[LONG_EMPTY_US] += empty_us
                scalars[EMPTY] = TAKEN_FOR_DOWN
                for node in range(n_nodes):
                    _touch(node, scalars, touched, is_touched)
        if scalars[EMPTY] == EMPTY_AND_IDLE and 2 * scalars[FREE] > n_kept:
            if scalars[UNUSED_SINCE] == NEVER:
                scalars[UNUSED_SINCE] = now
        elif scalars[UNUSED_SINCE] != NEVER:
            _end_unused(now, empty_after_us, window_start_us, window_end_us, scalars, tallies)

        assumed = scalars[EMPTY] == TAKEN_FOR_DOWN
        touched[: scalars[TOUCHED]].sort()
        for i in range(scalars[TOUCHED]):
            node = touched[i]
            is_touched[node] = False
            state = _state(node, cover, total, assumed)
            if state != shown[node]:
                shown[node] = state
                row_time[n_rows] = now
                row_node[n_rows] = node
                row_state[n_rows] = state
                n_rows += 1
        scalars[TOUCHED] = 0
