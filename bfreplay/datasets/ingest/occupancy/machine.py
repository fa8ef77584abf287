"""State of a machine on which intervals begin and end, and its operations.

Compiled code reads and writes it, so it consists of arrays: records with named fields, and plain arrays by node.
``advance`` leads it through time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled, compiled_inline, zero_records
from bfreplay.datasets.log.states import NodeState

IDLE, BUSY, DOWN, DRAIN, RESERVED, OFF, UNKNOWN, PLANNED, COMPLETING, MAINTENANCE = map(int, NodeState)

NEVER = int(np.iinfo(np.int64).max)
NONE = -1
"""End of a linked list of slots or holdings."""

RUNS = -2
"""Eligible time of a job that runs, and gets missing nodes."""

LOWEST_ID, MOST_RECENT, LEAST_RECENT, RANDOM = range(4)
"""Codes of ``rules.ASSIGNMENTS``."""

CLIP, DROP, DELAY = range(3)
"""Codes of ``rules.OVERSUBSCRIPTION``."""

IN_USE, EMPTY_AND_IDLE, TAKEN_FOR_DOWN = range(3)
"""Use of the machine: jobs on it, or the assumed state without jobs."""

NODE, POSITION = range(2)
BEFORE, AFTER = range(2)

FIRST_SLOTS = 1_024


class State:
    """Scalar state of the machine.

    ``now`` is the instant, ``n_active`` the jobs that run, ``n_free`` the nodes under no interval and ``lowest_free`` a
    node below which none is free, ``n_ends`` the entries of the heap, ``n_touched`` the nodes that this instant
    changed, ``next_job`` and ``next_outage`` the next to begin, ``next_chance`` the next random number of the
    slice. Delayed jobs are ``queue[queue_first:queue_end]``. ``n_spare_slots`` slots are spare, and
    ``n_spare_holdings`` holdings, a list from ``spare_holding`` on; ``n_taken`` entries of ``taken`` are used. Running
    jobs lack ``n_lacking`` nodes together, in the order ``first_lacking`` to ``last_lacking`` (slots). ``use`` is
    ``IN_USE`` or the assumed state of an empty machine, ``unused_since_us`` the time since which most of it is idle
    then (``NEVER``: it is not), and ``unused_node_us`` the idle node-time of the window since then.
    """

    now: int
    n_active: int
    n_free: int
    lowest_free: int
    n_ends: int
    n_touched: int
    next_job: int
    next_outage: int
    next_chance: int
    queue_first: int
    queue_end: int
    n_spare_slots: int
    n_spare_holdings: int
    spare_holding: int
    n_taken: int
    n_lacking: int
    first_lacking: int
    last_lacking: int
    use: int
    unused_since_us: int
    unused_node_us: float


class Tallies:
    """Effects of the rules in the window, in jobs (``long_empty``: times), microseconds and node-microseconds."""

    overlaps: float
    clipped: float
    clipped_node_us: float
    left_out: float
    left_out_node_us: float
    delayed: float
    delay_us: float
    delay_node_us: float
    long_empty: float
    long_empty_us: float
    empty_us: float
    left_idle_node_us: float


class Slot:
    """Interval that has begun: a job, or an outage.

    ``state`` is the state of its nodes, a list of holdings from ``first_holding`` on; ``job_key``, ``eligible_us`` and
    ``kind`` are those of a job. One that lacks ``n_lacking`` nodes stands between the slots ``before`` and ``after``
    it; ``is_counted`` in ``Tallies.clipped``. Where nodes are units it lacks those of one node, of which ``lacks_at``
    is the first.
    """

    state: int
    is_job: bool
    job_key: int
    eligible_us: int
    kind: int
    end_us: int
    first_holding: int
    n_lacking: int
    before: int
    after: int
    is_counted: bool
    lacks_at: int


class Holding:
    """Node under an interval, and the interval's next holding."""

    node: int
    after: int


class DelayedJob:
    """Job that has waited for enough free nodes since ``start_us``."""

    start_us: int
    end_us: int
    count: int
    job_key: int
    eligible_us: int
    kind: int


class Taken:
    """Node that the job in ``slot`` got at ``start_us`` and holds until ``end_us``."""

    start_us: int
    end_us: int
    job_key: int
    eligible_us: int
    kind: int
    slot: int
    node: int


class Machine(NamedTuple):
    """Machine of N nodes; ``State`` tells how much of the other arrays is in use.

    ``n_covering (7, N)``: intervals of each state on each node. ``n_total (N,)``: intervals on it. ``shown (N,) int8``:
    its state as last written. ``held_until (N,)``: the last end of the jobs that list it. ``touched (N,)``: the nodes
    that this instant changed, and ``is_touched (N,)``. ``free_list (2, N + 1)``: a ring of the free nodes in the order
    in which they became free, ``BEFORE`` and ``AFTER`` each, with N as its head. ``free_set (2, N)``: the same nodes
    without order, and the ``POSITION`` of each in it (-1: not free). ``end_us``, ``end_slot``: a heap of the ends of
    the intervals in ``slots``. ``taken``: the nodes that jobs got, in order of time; empty if nobody wants to know.
    ``last_unit (N,)``: where nodes are units, the last one of the same node; else empty.
    """

    state: State
    tallies: Tallies
    n_covering: NDArray[np.int32]
    n_total: NDArray[np.int32]
    shown: NDArray[np.int8]
    held_until: NDArray[np.int64]
    touched: NDArray[np.int32]
    is_touched: NDArray[np.bool_]
    free_list: NDArray[np.int32]
    free_set: NDArray[np.int32]
    end_us: NDArray[np.int64]
    end_slot: NDArray[np.int32]
    spare_slots: NDArray[np.int32]
    slots: Sequence[Slot]
    holdings: Sequence[Holding]
    queue: Sequence[DelayedJob]
    taken: Sequence[Taken]
    last_unit: NDArray[np.int32]


# ---- heap of ends, the earliest first: ``heapq`` would order equal ends otherwise, and some rules depend on it ----


@compiled
def push_end(time_us: int, number: int, size: int, end_us: NDArray[np.int64], ends: NDArray[np.int32]) -> None:
    """Add an end to a heap of ``size`` entries."""
    position = size
    while position > 0 and end_us[(position - 1) // 2] > time_us:
        parent = (position - 1) // 2
        end_us[position], ends[position] = end_us[parent], ends[parent]
        position = parent
    end_us[position], ends[position] = time_us, number


@compiled
def pop_end(size: int, end_us: NDArray[np.int64], ends: NDArray[np.int32]) -> int:
    """Remove the first of the ``size`` entries of a heap, and return what ends then."""
    first = int(ends[0])
    time_us, number = end_us[size - 1], ends[size - 1]
    position = 0
    while 2 * position + 1 < size - 1:
        child = 2 * position + 1
        if child + 1 < size - 1 and end_us[child + 1] < end_us[child]:
            child += 1
        if time_us <= end_us[child]:
            break
        end_us[position], ends[position] = end_us[child], ends[child]
        position = child
    end_us[position], ends[position] = time_us, number
    return first


def new_machine(n_nodes: int, assignment: int, last_unit: NDArray[np.int32], has_notes: bool = False) -> Machine:
    """Return a machine with all nodes idle and room for ``FIRST_SLOTS`` intervals; ``has_notes``: with ``taken``."""
    state = zero_records(State, 1)[0]
    state.unused_since_us = NEVER
    state.first_lacking = state.last_lacking = state.spare_holding = NONE
    free_list = np.full((2, n_nodes + 1), n_nodes, np.int32)
    machine = Machine(
        state=state,
        tallies=zero_records(Tallies, 1)[0],
        n_covering=np.zeros((len(NodeState), n_nodes), np.int32),
        n_total=np.zeros(n_nodes, np.int32),
        shown=np.full(n_nodes, IDLE, np.int8),
        held_until=np.full(n_nodes, -NEVER, np.int64),
        touched=np.zeros(n_nodes, np.int32),
        is_touched=np.zeros(n_nodes, np.bool_),
        free_list=free_list,
        free_set=np.full((2, n_nodes), NONE, np.int32),
        end_us=np.zeros(0, np.int64),
        end_slot=np.zeros(0, np.int32),
        spare_slots=np.zeros(0, np.int32),
        slots=zero_records(Slot, 0),
        holdings=zero_records(Holding, 0),
        queue=zero_records(DelayedJob, 0),
        taken=zero_records(Taken, int(has_notes)),
        last_unit=last_unit,
    )
    # one rule takes the last freed node first: fill the list so that the lowest node is next by either
    for node_index in reversed(range(n_nodes)) if assignment == MOST_RECENT else range(n_nodes):
        add_free(node_index, machine)
    return with_room(machine, FIRST_SLOTS, max(FIRST_SLOTS, 2 * n_nodes))


def with_room(machine: Machine, n_slots: int, n_holdings: int) -> Machine:
    """Return the machine with room for ``n_slots`` concurrent intervals and ``n_holdings`` nodes under them."""
    state, had_slots, had_holdings = machine.state, len(machine.slots), len(machine.holdings)
    spare_slots = longer(machine.spare_slots, n_slots)
    spare_slots[state.n_spare_slots : state.n_spare_slots + n_slots - had_slots] = np.arange(had_slots, n_slots)
    state.n_spare_slots += n_slots - had_slots
    holdings = longer(machine.holdings, n_holdings)
    holdings["after"][had_holdings:] = np.arange(had_holdings + 1, n_holdings + 1)
    holdings["after"][-1] = state.spare_holding
    state.spare_holding = had_holdings
    state.n_spare_holdings += n_holdings - had_holdings
    return machine._replace(
        end_us=longer(machine.end_us, n_slots),
        end_slot=longer(machine.end_slot, n_slots),
        spare_slots=spare_slots,
        slots=longer(machine.slots, n_slots),
        holdings=holdings,
        taken=longer(machine.taken, n_holdings if len(machine.taken) else 0),
    )


def longer(array: Any, length: int) -> Any:
    """Return a copy of an array of numbers or records, with zeros up to ``length``."""
    copy = np.zeros(length, array.dtype)
    copy[: len(array)] = array
    return copy


@compiled_inline
def add_free(node: int, machine: Machine) -> None:
    """Add a node to the free ones, as the last freed."""
    state, ring, members = machine.state, machine.free_list, machine.free_set
    head = ring.shape[1] - 1
    last = ring[BEFORE, head]
    ring[BEFORE, node], ring[AFTER, node] = last, head
    ring[AFTER, last] = ring[BEFORE, head] = node
    members[NODE, state.n_free] = node
    members[POSITION, node] = state.n_free
    state.n_free += 1
    state.lowest_free = min(state.lowest_free, node)


@compiled_inline
def _remove_free(node: int, machine: Machine) -> None:
    state, ring, members = machine.state, machine.free_list, machine.free_set
    previous, following = ring[BEFORE, node], ring[AFTER, node]
    ring[AFTER, previous], ring[BEFORE, following] = following, previous
    state.n_free -= 1
    last_member = members[NODE, state.n_free]
    members[NODE, members[POSITION, node]] = last_member
    members[POSITION, last_member] = members[POSITION, node]
    members[POSITION, node] = NONE


@compiled_inline
def next_free(assignment: int, chance: float, machine: Machine) -> int:
    """Return the free node that a rule takes next; ``chance`` is uniform on [0, 1), for ``RANDOM`` only."""
    state, ring, members = machine.state, machine.free_list, machine.free_set
    head = ring.shape[1] - 1
    if assignment == LOWEST_ID:
        while members[POSITION, state.lowest_free] < 0:
            state.lowest_free += 1
        return state.lowest_free
    if assignment == MOST_RECENT:
        return int(ring[BEFORE, head])
    if assignment == LEAST_RECENT:
        return int(ring[AFTER, head])
    return int(members[NODE, min(int(chance * state.n_free), state.n_free - 1)])


@compiled_inline
def next_unit(unit: int, machine: Machine) -> int:
    """Return the first unit of the same node, from this one on, that no job holds; ``NONE`` if there is none."""
    last_unit = machine.last_unit[unit]
    while unit <= last_unit and machine.n_covering[BUSY, unit] > 0:
        unit += 1
    return unit if unit <= last_unit else NONE


@compiled_inline
def touch(node: int, machine: Machine) -> None:
    """Mark a node to be checked at the end of this instant."""
    if not machine.is_touched[node]:
        machine.is_touched[node] = True
        machine.touched[machine.state.n_touched] = node
        machine.state.n_touched += 1


@compiled_inline
def begin_outage(state_of_nodes: int, end_us: int, machine: Machine) -> int:
    """Begin an outage without nodes, and return its slot."""
    state = machine.state
    state.n_spare_slots -= 1
    number = int(machine.spare_slots[state.n_spare_slots])
    slot = machine.slots[number]
    slot.state, slot.is_job, slot.end_us = state_of_nodes, False, end_us
    slot.first_holding = NONE
    push_end(end_us, number, state.n_ends, machine.end_us, machine.end_slot)
    state.n_ends += 1
    return number


@compiled_inline
def begin_job(job_key: int, eligible_us: int, kind: int, end_us: int, machine: Machine) -> int:
    """Begin the interval of a job without nodes, and return its slot."""
    number = begin_outage(BUSY, end_us, machine)
    slot = machine.slots[number]
    slot.is_job, slot.job_key, slot.eligible_us, slot.kind = True, job_key, eligible_us, kind
    machine.state.n_active += 1
    return number


@compiled_inline
def put_under(number: int, node: int, machine: Machine) -> None:
    """Put a node under the interval in slot ``number``."""
    state, slot = machine.state, machine.slots[number]
    entry = state.spare_holding
    holding = machine.holdings[entry]
    state.spare_holding = holding.after
    state.n_spare_holdings -= 1
    holding.node, holding.after = node, slot.first_holding
    slot.first_holding = entry
    if machine.n_total[node] == 0:
        _remove_free(node, machine)
    machine.n_total[node] += 1
    machine.n_covering[slot.state, node] += 1
    touch(node, machine)
    if slot.is_job and len(machine.taken) > 0:
        taken = machine.taken[state.n_taken]
        taken.start_us, taken.end_us, taken.job_key = state.now, slot.end_us, slot.job_key
        taken.eligible_us, taken.kind = slot.eligible_us, slot.kind
        taken.slot, taken.node = number, node
        state.n_taken += 1


@compiled_inline
def end_interval(number: int, machine: Machine) -> None:
    """End the interval in slot ``number``: its nodes under no other interval become free."""
    state, slot = machine.state, machine.slots[number]
    if slot.is_job:
        state.n_active -= 1
        if slot.n_lacking > 0:
            lack_no_more(number, machine)
    entry = slot.first_holding
    while entry != NONE:
        holding = machine.holdings[entry]
        node, after = holding.node, holding.after
        machine.n_covering[slot.state, node] -= 1
        machine.n_total[node] -= 1
        if machine.n_total[node] == 0:
            add_free(node, machine)
        touch(node, machine)
        holding.after = state.spare_holding
        state.spare_holding = entry
        state.n_spare_holdings += 1
        entry = after
    machine.spare_slots[state.n_spare_slots] = number
    state.n_spare_slots += 1


@compiled
def lack(number: int, n_nodes: int, machine: Machine) -> None:
    """Note that the job in slot ``number`` lacks ``n_nodes`` nodes, at the end of the order."""
    state, slot = machine.state, machine.slots[number]
    slot.n_lacking, slot.is_counted = n_nodes, False
    slot.before, slot.after = state.last_lacking, NONE
    if slot.before == NONE:
        state.first_lacking = number
    else:
        machine.slots[slot.before].after = number
    state.last_lacking = number
    state.n_lacking += n_nodes


@compiled
def lack_no_more(number: int, machine: Machine) -> None:
    """Remove the job in slot ``number`` from the order: it ends, or has all of its nodes."""
    state, slot = machine.state, machine.slots[number]
    if slot.before == NONE:
        state.first_lacking = slot.after
    else:
        machine.slots[slot.before].after = slot.after
    if slot.after == NONE:
        state.last_lacking = slot.before
    else:
        machine.slots[slot.after].before = slot.before
    state.n_lacking -= slot.n_lacking
    slot.n_lacking = 0


@compiled_inline
def state_of(node: int, machine: Machine) -> int:
    """Return the strongest state on a node; ``UNKNOWN`` is the weakest, and without any it is idle."""
    n_covering, n_total = machine.n_covering, machine.n_total[node]
    if n_total == 0:
        return DOWN if machine.state.use == TAKEN_FOR_DOWN else IDLE
    if n_total == n_covering[BUSY, node]:
        return BUSY
    for state in (DOWN, OFF, BUSY, MAINTENANCE, DRAIN, COMPLETING, RESERVED, PLANNED):
        if n_covering[state, node] > 0:
            return state
    return UNKNOWN
