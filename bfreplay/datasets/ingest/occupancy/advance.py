"""Compiled sweep of a machine through time: intervals in, changes of node states out.

Time goes from instant to instant. At each, intervals end first, then outages begin, then jobs; then a row is written
for each touched node whose state has changed. A node may be under several intervals (shared nodes, an outage on a busy
node): it is idle under none.

Jobs first get the nodes that the log lists for them. Where nodes are units of nodes (GPUs, cores), the log says how
many of each: jobs get the lowest that no other job holds, and others as they become free.

Free nodes then go to the jobs that lack some, in order of their start (of one start: jobs with listed nodes first, then
by job number), and a job that still lacks nodes keeps its place until it has them all or ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled, compiled_inline
from bfreplay.datasets.ingest.occupancy.machine import (
    BUSY,
    CLIP,
    DELAY,
    EMPTY_AND_IDLE,
    IN_USE,
    NEVER,
    NONE,
    RANDOM,
    RUNS,
    TAKEN_FOR_DOWN,
    Machine,
    begin_job,
    begin_outage,
    end_interval,
    lack,
    lack_no_more,
    next_free,
    next_unit,
    pop_end,
    put_under,
    state_of,
    touch,
)

DONE, ROWS_FULL, MACHINE_FULL = range(3)
"""Reasons for which ``advance`` returns."""


class Outages(NamedTuple):
    """Outages (O) by start: ``start_us``, ``end_us (O,) int64``, ``state (O,) int8``; nodes as in ``JobIntervals``."""

    start_us: NDArray[np.int64]
    end_us: NDArray[np.int64]
    state: NDArray[np.int8]
    first_node: NDArray[np.int64]
    nodes: NDArray[np.int32]


class Jobs(NamedTuple):
    """Slice of J jobs as in ``JobIntervals``, each with an end, and random numbers on [0, 1) to choose nodes."""

    start_us: NDArray[np.int64]
    end_us: NDArray[np.int64]
    n_nodes: NDArray[np.int64]
    first_node: NDArray[np.int64]
    nodes: NDArray[np.int32]
    job_key: NDArray[np.int64]
    eligible_us: NDArray[np.int64]
    kind: NDArray[np.int64]
    chances: NDArray[np.float64]


class Terms(NamedTuple):
    """Constants of a sweep: window, end of the log, rules (``OccupancyRules``) as codes and in microseconds.

    ``n_kept`` nodes are in the inventory, later ones are skipped. The tallies are of the window. An empty machine is
    checked up to the end of the log. A node is free ``release_us`` later than its job, in the ends already.
    """

    n_kept: int
    window_start_us: int
    window_end_us: int
    log_end_us: int
    empty_after_us: int
    empty_is_down: bool
    assignment: int
    oversubscription: int
    release_us: int


class Rows(NamedTuple):
    """Changes of states: times, nodes and states, ``(E,)`` each."""

    time_us: NDArray[np.int64]
    node: NDArray[np.int32]
    state: NDArray[np.int8]


@compiled
def advance(until_us: int, jobs: Jobs, outages: Outages, terms: Terms, machine: Machine, rows: Rows) -> tuple[int, int]:
    """Advance through all instants before ``until_us``; return the reason to stop, and the number of rows written.

    Parameters
    ----------
    until_us
        End of this slice of jobs: the first start after it.
    jobs
        The slice; ``machine.state.next_job`` is the next one.
    outages
        All outages, in all calls.
    terms
        Window and rules.
    machine
        Changed in place.
    rows
        Buffer for rows, filled from the first on.
    """
    state, n_rows = machine.state, 0
    while True:
        instant_us = _next_instant(jobs, outages, machine)
        if instant_us >= until_us:
            if until_us == NEVER:
                _count_lacking(NEVER, terms, machine)
                _end_unused(terms.log_end_us, terms, machine)
            return DONE, n_rows
        if n_rows + len(machine.shown) > len(rows.node):
            return ROWS_FULL, n_rows
        full = _full(instant_us, jobs, outages, machine)
        if full != DONE:
            return full, n_rows
        if state.unused_since_us != NEVER:
            state.unused_node_us += float(_inside_us(state.now, instant_us, terms)) * state.n_free
        _count_lacking(instant_us, terms, machine)
        state.now = instant_us
        while state.n_ends > 0 and machine.end_us[0] == instant_us:
            number = pop_end(state.n_ends, machine.end_us, machine.end_slot)
            state.n_ends -= 1
            end_interval(number, machine)
        _begin_outages(outages, machine)
        # first, so that no node listed by a job of this instant is chosen for another
        _begin_with_nodes(jobs, terms, machine)
        if len(machine.last_unit) > 0:
            _serve_units(machine)
        else:
            _serve_lacking(jobs, terms, machine)
        _begin_from_queue(jobs, terms, machine)
        has_refusal = _begin_without_nodes(jobs, terms, machine)
        following_us = until_us
        if state.next_job < len(jobs.start_us):
            following_us = jobs.start_us[state.next_job]
        _look_whether_empty(has_refusal, following_us, terms, machine)
        n_rows = _write_rows(n_rows, rows, machine)


@compiled_inline
def _inside_us(from_us: int, to_us: int, terms: Terms) -> int:
    """Return the microseconds of a span inside the window."""
    return max(min(to_us, terms.window_end_us) - max(from_us, terms.window_start_us), 0)


@compiled_inline
def _next_instant(jobs: Jobs, outages: Outages, machine: Machine) -> int:
    state, instant_us = machine.state, NEVER
    if state.n_ends > 0:
        instant_us = machine.end_us[0]
    if state.next_job < len(jobs.start_us):
        instant_us = min(instant_us, jobs.start_us[state.next_job])
    if state.next_outage < len(outages.start_us):
        instant_us = min(instant_us, outages.start_us[state.next_outage])
    return instant_us


@compiled_inline
def _n_starting(first: int, instant_us: int, start_us: NDArray[np.int64]) -> int:
    """Count the intervals from ``first`` on that start now."""
    after_last = first
    while after_last < len(start_us) and start_us[after_last] == instant_us:
        after_last += 1
    return after_last - first


@compiled_inline
def _full(instant_us: int, jobs: Jobs, outages: Outages, machine: Machine) -> int:
    """Return ``DONE`` if there is room for all that may begin now, so that no instant is half done, or what is full."""
    state = machine.state
    n_jobs = _n_starting(state.next_job, instant_us, jobs.start_us)
    n_outages = _n_starting(state.next_outage, instant_us, outages.start_us)
    n_slots = state.queue_end - state.queue_first + n_jobs + n_outages
    n_listed = jobs.first_node[state.next_job + n_jobs] - jobs.first_node[state.next_job]
    n_holdings = len(machine.shown) + n_listed
    if len(machine.last_unit) > 0:
        n_slots += n_listed  # a job that lacks units has a slot more for each node
    n_holdings += outages.first_node[state.next_outage + n_outages] - outages.first_node[state.next_outage]
    if n_slots > state.n_spare_slots or n_holdings > state.n_spare_holdings:
        return MACHINE_FULL
    # with none in use there is room, as ``taken`` is as long as the holdings
    return ROWS_FULL if state.n_taken > 0 and state.n_taken + n_holdings > len(machine.taken) else DONE


@compiled_inline
def _begin_outages(outages: Outages, machine: Machine) -> None:
    state = machine.state
    while state.next_outage < len(outages.start_us) and outages.start_us[state.next_outage] == state.now:
        o = state.next_outage
        state.next_outage += 1
        number = begin_outage(int(outages.state[o]), outages.end_us[o], machine)
        for i in range(outages.first_node[o], outages.first_node[o + 1]):
            put_under(number, int(outages.nodes[i]), machine)


@compiled_inline
def _begin_with_nodes(jobs: Jobs, terms: Terms, machine: Machine) -> None:
    """Begin the jobs of this instant that list nodes, on these; ``next_job`` does not change."""
    instant_us, j = machine.state.now, machine.state.next_job
    while j < len(jobs.start_us) and jobs.start_us[j] == instant_us:
        end_us, n_nodes = jobs.end_us[j], jobs.first_node[j + 1] - jobs.first_node[j]
        if n_nodes > 0:
            is_in_window = instant_us >= terms.window_start_us and _inside_us(instant_us, end_us, terms) > 0
            release_us = end_us if end_us == NEVER else end_us - terms.release_us
            number = begin_job(jobs.job_key[j], jobs.eligible_us[j], jobs.kind[j], end_us, machine)
            if len(machine.last_unit) > 0:
                _put_under_units(number, jobs.nodes[jobs.first_node[j] : jobs.first_node[j + 1]], machine)
                j += 1
                continue
            for i in range(jobs.first_node[j], jobs.first_node[j + 1]):
                node = int(jobs.nodes[i])
                if is_in_window and machine.n_covering[BUSY, node] > 0 and instant_us < machine.held_until[node]:
                    machine.tallies.overlaps += 1
                machine.held_until[node] = max(machine.held_until[node], release_us)
                put_under(number, node, machine)
            if jobs.n_nodes[j] > n_nodes:
                lack(number, jobs.n_nodes[j] - n_nodes, machine)
        j += 1


@compiled_inline
def _put_under_units(number: int, units: NDArray[np.int32], machine: Machine) -> None:
    """Put as many units under the job in slot ``number`` as it lists of each node; those of a node are in a row."""
    i, job = 0, machine.slots[number]
    while i < len(units):
        first, n_lacking = int(units[i]), 0
        last_unit, unit = machine.last_unit[first], first
        while i < len(units) and first <= units[i] <= last_unit:
            if unit != NONE:
                unit = next_unit(unit, machine)
            if unit != NONE:
                put_under(number, unit, machine)
            else:
                n_lacking += 1
            i += 1
        if n_lacking > 0:
            slot = begin_job(job.job_key, RUNS, job.kind, job.end_us, machine)
            lack(slot, n_lacking, machine)
            machine.slots[slot].lacks_at = first


@compiled_inline
def _serve_units(machine: Machine) -> None:
    """Put units that have become free under the jobs that lack units of the same node, in the order of their start."""
    number = machine.state.first_lacking
    while number != NONE:
        slot = machine.slots[number]
        following, unit = slot.after, next_unit(slot.lacks_at, machine)
        while unit != NONE and slot.n_lacking > 0:
            put_under(number, unit, machine)
            slot.n_lacking -= 1
            machine.state.n_lacking -= 1
            unit = next_unit(unit, machine)
        if slot.n_lacking == 0:
            lack_no_more(number, machine)
        number = following


@compiled_inline
def _take(number: int, n_nodes: int, jobs: Jobs, terms: Terms, machine: Machine) -> None:
    """Put ``n_nodes`` free nodes, chosen by rule, under the job in slot ``number``."""
    state = machine.state
    for _ in range(n_nodes):
        chance = jobs.chances[state.next_chance] if terms.assignment == RANDOM else 0.0
        state.next_chance += 1
        put_under(number, next_free(terms.assignment, chance, machine), machine)


@compiled_inline
def _serve_lacking(jobs: Jobs, terms: Terms, machine: Machine) -> None:
    state = machine.state
    while state.first_lacking != NONE and state.n_free > 0:
        number = state.first_lacking
        n_new = min(machine.slots[number].n_lacking, state.n_free)
        machine.slots[number].eligible_us = RUNS
        _take(number, n_new, jobs, terms, machine)
        machine.slots[number].n_lacking -= n_new
        state.n_lacking -= n_new
        if machine.slots[number].n_lacking == 0:
            lack_no_more(number, machine)


@compiled_inline
def _begin_from_queue(jobs: Jobs, terms: Terms, machine: Machine) -> None:
    state, tallies = machine.state, machine.tallies
    while state.queue_first < state.queue_end and machine.queue[state.queue_first].count <= state.n_free:
        job = machine.queue[state.queue_first]
        state.queue_first += 1
        delay_us = state.now - job.start_us
        end_us = job.end_us if job.end_us == NEVER else job.end_us + delay_us
        if job.start_us < terms.window_end_us and job.end_us > terms.window_start_us:
            tallies.delayed += 1
            tallies.delay_us += delay_us
            tallies.delay_node_us += float(_inside_us(job.start_us, state.now, terms)) * job.count
        number = begin_job(job.job_key, job.eligible_us, job.kind, end_us, machine)
        _take(number, job.count, jobs, terms, machine)


@compiled_inline
def _begin_without_nodes(jobs: Jobs, terms: Terms, machine: Machine) -> bool:
    """Begin the jobs of this instant without listed nodes, or delay or refuse them; return whether any was refused."""
    state, has_refusal = machine.state, False
    while state.next_job < len(jobs.start_us) and jobs.start_us[state.next_job] == state.now:
        j = state.next_job
        state.next_job += 1
        count, end_us = jobs.n_nodes[j], jobs.end_us[j]
        if jobs.first_node[j] < jobs.first_node[j + 1]:
            continue
        lacks = count > state.n_free
        is_queue = state.queue_first < state.queue_end
        if terms.oversubscription == DELAY and (lacks or is_queue) and count <= len(machine.shown):
            job = machine.queue[state.queue_end]
            state.queue_end += 1
            job.start_us, job.end_us, job.count, job.job_key = state.now, end_us, count, jobs.job_key[j]
            job.eligible_us, job.kind = jobs.eligible_us[j], jobs.kind[j]
        elif lacks and terms.oversubscription != CLIP:
            has_refusal = True
            inside_us = _inside_us(state.now, end_us, terms)
            if inside_us > 0:
                machine.tallies.left_out += 1
                machine.tallies.left_out_node_us += float(inside_us) * count
        else:
            number = begin_job(jobs.job_key[j], jobs.eligible_us[j], jobs.kind[j], end_us, machine)
            n_new = min(count, state.n_free)
            _take(number, n_new, jobs, terms, machine)
            if lacks:
                lack(number, count - n_new, machine)
    return has_refusal


@compiled_inline
def _look_whether_empty(has_refusal: bool, following_us: int, terms: Terms, machine: Machine) -> None:
    """Decide the state of a machine on which the next job starts at ``following_us``, and since when it is empty."""
    state, tallies = machine.state, machine.tallies
    was_down = state.use == TAKEN_FOR_DOWN
    is_empty = state.n_active == 0 and state.queue_first == state.queue_end
    if has_refusal or not is_empty:  # a refused job leaves the machine empty: decide anew
        state.use = IN_USE
    if is_empty and state.use == IN_USE:
        until_us = max(min(following_us, terms.log_end_us), state.now)
        empty_us = _inside_us(state.now, until_us, terms)
        tallies.empty_us += empty_us
        state.use = EMPTY_AND_IDLE
        if terms.empty_is_down and until_us - state.now > terms.empty_after_us:
            tallies.long_empty += 1 if empty_us > 0 else 0
            tallies.long_empty_us += empty_us
            state.use = TAKEN_FOR_DOWN
    if was_down != (state.use == TAKEN_FOR_DOWN):
        for node in range(len(machine.shown)):
            touch(node, machine)
    if state.use == EMPTY_AND_IDLE and 2 * state.n_free > terms.n_kept:
        state.unused_since_us = min(state.unused_since_us, state.now)
    else:
        _end_unused(state.now, terms, machine)


@compiled
def _end_unused(instant_us: int, terms: Terms, machine: Machine) -> None:
    """Count the time of an empty machine whose nodes were mostly idle up to now, if it was long."""
    state, tallies, since_us = machine.state, machine.tallies, machine.state.unused_since_us
    if since_us == NEVER:
        return
    inside_us = _inside_us(since_us, instant_us, terms)
    if instant_us - since_us > terms.empty_after_us and inside_us > 0:
        rest_us = _inside_us(state.now, instant_us, terms)
        tallies.long_empty += 1
        tallies.long_empty_us += inside_us
        tallies.left_idle_node_us += state.unused_node_us + float(rest_us) * state.n_free
    state.unused_node_us = 0.0
    state.unused_since_us = NEVER


@compiled
def _count_lacking(instant_us: int, terms: Terms, machine: Machine) -> None:
    """Add up the nodes that jobs lacked since the instant before ``instant_us`` in the window; count each job once."""
    state = machine.state
    span_us = _inside_us(state.now, instant_us, terms)
    if state.n_lacking == 0 or span_us == 0:
        return
    machine.tallies.clipped_node_us += float(span_us) * state.n_lacking
    number = state.last_lacking
    while number != NONE and not machine.slots[number].is_counted:  # jobs join at the end: all before one are counted
        machine.tallies.clipped += 1
        machine.slots[number].is_counted = True
        number = machine.slots[number].before


@compiled_inline
def _write_rows(n_rows: int, rows: Rows, machine: Machine) -> int:
    """Write a row for each touched node whose state has changed; return the number of rows."""
    state = machine.state
    machine.touched[: state.n_touched].sort()
    for node in machine.touched[: state.n_touched]:
        machine.is_touched[node] = False
        state_now = state_of(node, machine)
        if state_now != machine.shown[node]:
            machine.shown[node] = state_now
            rows.time_us[n_rows], rows.node[n_rows], rows.state[n_rows] = state.now, node, state_now
            n_rows += 1
    state.n_touched = 0
    return n_rows
