"""Reasons why no job ran on nodes: the state of each, or batch jobs that waited for idle ones, and their widths."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.idleness.parts import NO_PARTITION, node_groups, partition_sets
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import HOUR_US
from bfreplay.documents import Json

if TYPE_CHECKING:
    from bfreplay.datasets.batch_jobs import WaitingJobs

_IDLE = int(NodeState.IDLE)
_NOBODY, _TOO_WIDE, _FITS = range(3)
NOBODY, TOO_WIDE, FITS = "no job waited", "waiting jobs were too wide", "a waiting job would have fitted"
NOT_KNOWN = "not known whether a job waited"
REASON_OF_STATE = {
    NodeState.PLANNED: "planned for a waiting job",
    NodeState.RESERVED: "reserved",
    NodeState.MAINTENANCE: "in maintenance",
    NodeState.COMPLETING: "completing",
    NodeState.DRAIN: "drained",
    NodeState.OFF: "powered off",
    NodeState.DOWN: "down",
    NodeState.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class IdleReasons:
    """Node-time without a job by reason.

    Parameters
    ----------
    node_us
        Node-microseconds by reason, those of idle nodes first; no reason without any.
    groups
        Of idle nodes only: the same by set of partitions, if the log has partitions.
    n_unknown
        Batch jobs of which the log does not say since when they waited, or for how many nodes: they count as if they
        had not.
    n_elsewhere
        Batch jobs that waited for partitions of which the log has no node; they count as if they had not, too.
    """

    node_us: dict[str, int]
    groups: dict[str, dict[str, int]]
    n_unknown: int
    n_elsewhere: int

    @property
    def total_us(self) -> int:
        """All node-time without a job."""
        return sum(self.node_us.values())

    def to_dict(self) -> dict[str, Json]:
        """Return JSON-ready values."""
        hours = {reason: node_us / HOUR_US for reason, node_us in self.node_us.items()}
        groups = {
            group: {reason: node_us / HOUR_US for reason, node_us in of_group.items()}
            for group, of_group in self.groups.items()
        }
        counts: dict[str, Json] = {"jobs_without_times": self.n_unknown, "jobs_of_other_partitions": self.n_elsewhere}
        return {"node_hours": hours, "idle_node_hours_by_partition": groups, **counts}


def why_idle(
    log: NodeEvents, waiting: WaitingJobs, is_shown: NDArray[np.bool_] | None = None
) -> dict[str, dict[str, int]]:
    """Return the node-microseconds of idle nodes by set of partitions and reason, in one pass over the batches.

    A node is idle because no job waits that may use it; because each job that waits for a partition of the node wants
    more nodes than are idle in that partition; or for another reason, if one of them would fit: a limit, its priority,
    memory, or the time until the scheduler looks again. A job that names no partition, or a log without partitions, can
    use all nodes; one with several (``a,b``) those of any of them.

    Parameters
    ----------
    log
        The log.
    waiting
        Batch jobs that waited, by ``load_waiting_jobs``.
    is_shown
        Nodes whose time is returned, ``(N,)``; jobs may use the others too. ``None``: all.
    """
    sets, of_node = partition_sets(log)
    names = [*node_groups(log, "partition")[0]] if log.metadata.partitions else [NO_PARTITION]
    partitions = ["", *log.metadata.partitions]  # jobs of no partition may use every node
    number_of = {name: number for number, name in enumerate(partitions)}
    rows = [[0, *(number_of[name] for name in of_set)] for of_set in sets]
    of_group = np.array([*zip_longest(*rows, fillvalue=-1)]).T.copy()
    if is_shown is not None:  # the others are groups of their own
        of_node, of_group = np.where(is_shown, of_node, of_node + len(names)), np.concatenate([of_group, of_group])
    sweep = _Sweep(
        idle_of_group=np.zeros(len(of_group), np.int64),
        idle_in=np.zeros(len(partitions), np.int64),
        n_wanting=np.zeros((len(partitions), len(log.nodes) + 2), np.int32),
        narrowest=np.full(len(partitions), len(log.nodes) + 2),
        next_of=np.zeros(2, np.int64),
        node_us=np.zeros((len(of_group), 3), np.int64),
    )
    jobs = _jobs(waiting, partitions, len(log.nodes))
    batches = iter(log.batches())
    states = next(batches).state.copy()
    time = np.array([log.window_start_us]), log.window_end_us
    np.add.at(sweep.idle_of_group, of_node[states == _IDLE], 1)
    idle_of_pair = np.broadcast_to(sweep.idle_of_group[:, None], of_group.shape)
    np.add.at(sweep.idle_in, of_group[of_group >= 0], idle_of_pair[of_group >= 0])
    for batch in batches:
        _advance(batch.columns, of_node, of_group, states, time, jobs, sweep)
    no_rows = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int8)
    _advance(no_rows, of_node, of_group, states, time, jobs, sweep)
    return {
        name: dict(zip((NOBODY, TOO_WIDE, FITS), times_us, strict=True))
        for name, times_us in zip(names, sweep.node_us.tolist(), strict=False)
    }


def reasons_of(
    groups: dict[str, dict[str, int]], state_us: Mapping[str, int], waiting: WaitingJobs, partitions: Collection[str]
) -> IdleReasons:
    """Return all reasons: those of idle nodes, by ``why_idle``, and the node-time of the same nodes in other states.

    ``partitions`` are those of the log.
    """
    is_elsewhere = [
        bool(partitions and text) and not any(name in partitions for name in _names(text, partitions))
        for text in waiting.partitions
    ]
    n_elsewhere = int(np.count_nonzero(np.array(is_elsewhere)[waiting.partition]))
    node_us = {reason: sum(of_group[reason] for of_group in groups.values()) for reason in (NOBODY, TOO_WIDE, FITS)}
    node_us |= {reason: state_us.get(state.name.lower(), 0) for state, reason in REASON_OF_STATE.items()}
    if waiting.n_unknown and not waiting.n_known:
        node_us[NOT_KNOWN] = node_us.pop(NOBODY)
        groups = {}
    shown = {reason: time_us for reason, time_us in node_us.items() if time_us}
    return IdleReasons(shown, {} if [*groups] == [NO_PARTITION] else groups, waiting.n_unknown, n_elsewhere)


def _names(text: str, partitions: Collection[str]) -> list[str]:
    """Return the partitions that a job names: one of these, or several with commas between."""
    return [text] if text in partitions else text.split(",")


class _Jobs(NamedTuple):
    """Waiting jobs, once for each partition that they name: by start and by end of their waiting, ``(W,)`` each."""

    from_us: NDArray[np.int64]
    by_end: NDArray[np.int64]
    until_us: NDArray[np.int64]
    wanted: NDArray[np.int64]
    partition: NDArray[np.int64]


class _Sweep(NamedTuple):
    """State of the sweep.

    Idle nodes by group ``(G,)`` and in each partition ``(P,)``; ``n_wanting (P, N + 2)`` jobs that wait there and want
    so many nodes, the ``narrowest (P,)`` of them (N + 2: none waits), and ``next_of`` the next job to wait and the next
    to stop; ``node_us (G, 3)`` is the result, by reason.
    """

    idle_of_group: NDArray[np.int64]
    idle_in: NDArray[np.int64]
    n_wanting: NDArray[np.int32]
    narrowest: NDArray[np.int64]
    next_of: NDArray[np.int64]
    node_us: NDArray[np.int64]


def _jobs(waiting: WaitingJobs, partitions: list[str], n_nodes: int) -> _Jobs:
    """Return the waiting jobs in order of time, without those that wait for partitions without a node of the log."""
    number_of = {name: number for number, name in enumerate(partitions)}
    rows, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for code, text in enumerate(waiting.partitions):
        of_text = np.flatnonzero(waiting.partition == code)
        for name in _names(text, number_of) if len(partitions) > 1 else [""]:
            if name in number_of:
                rows.append(of_text)
                numbers.append(np.full(len(of_text), number_of[name]))
    row, number = np.concatenate(rows), np.concatenate(numbers)
    order = np.argsort(waiting.eligible_us[row], kind="stable")
    row, number = row[order], number[order]
    until_us = waiting.until_us[row]
    by_end = np.argsort(until_us, kind="stable")
    wanted = np.minimum(waiting.wanted[row], n_nodes + 1)
    return _Jobs(waiting.eligible_us[row], by_end, until_us, wanted, number)


@compiled
def _advance(
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]],
    of_node: NDArray[np.int64],
    of_group: NDArray[np.int64],
    states: NDArray[np.int8],
    time: tuple[NDArray[np.int64], int],
    jobs: _Jobs,
    sweep: _Sweep,
) -> None:
    """Advance over one batch of rows, or without rows to the end of the window; ``time``: the instant, and that end.

    ``of_group (G, K)``: the partitions of each group, then -1.
    """
    time_us, node, states_after = rows
    now, end_us = time[0], time[1]
    row, n_rows, n_jobs = 0, len(node), len(jobs.from_us)
    while True:
        next_us = time_us[row] if row < n_rows else end_us
        if row >= n_rows and n_rows > 0:
            return
        if sweep.next_of[0] < n_jobs:
            next_us = min(next_us, jobs.from_us[sweep.next_of[0]])
        if sweep.next_of[1] < n_jobs:
            next_us = min(next_us, jobs.until_us[jobs.by_end[sweep.next_of[1]]])
        if next_us > now[0]:
            _count(next_us - now[0], of_group, sweep)
            now[0] = next_us
        if next_us >= end_us and row >= n_rows:
            return
        while row < n_rows and time_us[row] == next_us:
            n = node[row]
            group, change = of_node[n], int(states_after[row] == _IDLE) - int(states[n] == _IDLE)
            sweep.idle_of_group[group] += change
            if change != 0:
                for p in of_group[group]:
                    if p >= 0:
                        sweep.idle_in[p] += change
            states[n] = states_after[row]
            row += 1
        while sweep.next_of[0] < n_jobs and jobs.from_us[sweep.next_of[0]] <= next_us:
            j = sweep.next_of[0]
            p, wanted = jobs.partition[j], jobs.wanted[j]
            sweep.n_wanting[p, wanted] += 1
            sweep.narrowest[p] = min(sweep.narrowest[p], wanted)
            sweep.next_of[0] += 1
        while sweep.next_of[1] < n_jobs and jobs.until_us[jobs.by_end[sweep.next_of[1]]] <= next_us:
            j = jobs.by_end[sweep.next_of[1]]
            p, none = jobs.partition[j], sweep.n_wanting.shape[1]
            sweep.n_wanting[p, jobs.wanted[j]] -= 1
            while sweep.narrowest[p] < none and sweep.n_wanting[p, sweep.narrowest[p]] == 0:
                sweep.narrowest[p] += 1
            sweep.next_of[1] += 1


@compiled
def _count(span_us: int, of_group: NDArray[np.int64], sweep: _Sweep) -> None:
    """Add ``span_us`` of the idle nodes of each group to the reason that holds now."""
    none = sweep.n_wanting.shape[1]
    for g in range(len(of_group)):
        if sweep.idle_of_group[g] > 0:
            reason = _NOBODY
            for p in of_group[g]:
                if p >= 0 and sweep.narrowest[p] < none:
                    reason = max(reason, _FITS if sweep.narrowest[p] <= sweep.idle_in[p] else _TOO_WIDE)
            sweep.node_us[g, reason] += sweep.idle_of_group[g] * span_us
