"""StateChanges: from one snapshot to the next, the changes of node states with their exact times where known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.readings import JobReading, NodeReading, Snapshot
from bfreplay.datasets.times import US
from bfreplay.errors import InputError

StateRow = tuple[int, str, NodeState]
"""Time, node, and its state from then on."""

_FREE = frozenset(
    (
        NodeState.IDLE,
        NodeState.PLANNED,
        NodeState.RESERVED,
        NodeState.MAINTENANCE,
        NodeState.DRAIN,
        NodeState.COMPLETING,
    )
)
"""States of a node that works and has no job."""
_RESOLUTION_US = US
"""Schedulers tell times in whole seconds: a change just after a poll may have a time just before it."""


class StateChanges:
    """Follower of node states from snapshot to snapshot.

    A change is seen at the poll after it, and its time is that of the poll, except where the scheduler tells the exact
    one: a node becomes busy when its job started, and is free since its job ended, or since it was last busy. Jobs that
    came and went between two polls, and gaps between two jobs, are put in too. No row is later than its poll, or not
    later than the row before it of the same node.

    A node that is missing from a snapshot is unknown from then on; its last state says nothing of it.

    Parameters
    ----------
    states
        States at the beginning; nodes that appear later need none.
    time_us
        Time of the beginning.
    lends
        Partitions whose jobs can be preempted at any time: a node with such jobs alone counts as if it had none.

    Attributes
    ----------
    states
        States now.
    sees_others_jobs
        False if a node was busy at the last two polls without a job in their lists: others' jobs are hidden.
    """

    def __init__(self, states: Mapping[str, NodeState], time_us: int, lends: Collection[str] = ()) -> None:
        self.states = dict(states)
        self.sees_others_jobs = True
        self._row_us = dict.fromkeys(states, time_us)
        self._poll_us = time_us
        self._lends = frozenset(lends)
        self._without_job: frozenset[str] = frozenset()
        self._made_ready: frozenset[str] = frozenset()

    @classmethod
    def of_first(cls, snapshot: Snapshot, lends: Collection[str] = ()) -> StateChanges:
        """Begin with the states of a snapshot."""
        changes = cls({}, snapshot.time_us, lends)
        jobs = _jobs_by_node(snapshot.jobs or ())
        changes._made_ready = _nodes_made_ready(snapshot.jobs or ())
        for node, reading in sorted(snapshot.nodes.items()):
            changes.states[node] = changes._state(node, reading, jobs.get(node, ()), snapshot.time_us)
            changes._row_us[node] = snapshot.time_us
        return changes

    def update(self, snapshot: Snapshot) -> list[StateRow]:
        """Return the rows since the last snapshot, sorted by time and node.

        A snapshot that is not later than the last one (the clock was set back) has no rows; what it shows is seen by
        the next one.
        """
        now_us = snapshot.time_us
        if now_us <= self._poll_us:
            return []
        jobs = _jobs_by_node(snapshot.jobs or ())
        self._made_ready = _nodes_made_ready(snapshot.jobs or ())
        rows: list[StateRow] = []
        for node, reading in snapshot.nodes.items():
            changes = self._changes(node, reading, jobs.get(node, ()), now_us)
            if changes:
                rows += self._rows(node, changes, now_us)
        rows += self._unknown(now_us, self.states.keys() - snapshot.nodes.keys())
        self._poll_us = now_us
        self._see_jobs(snapshot)
        return sorted(rows)

    def lose_sight(self, time_us: int) -> list[StateRow]:
        """Return the rows that make all nodes unknown, because the scheduler does not answer since ``time_us``."""
        if time_us <= self._poll_us:
            return []
        self._poll_us = time_us
        return sorted(self._unknown(time_us, self.states))

    def _unknown(self, time_us: int, nodes: Iterable[str]) -> list[StateRow]:
        lost = [node for node in nodes if self.states[node] != NodeState.UNKNOWN]
        for node in lost:
            self.states[node], self._row_us[node] = NodeState.UNKNOWN, time_us
        return [(time_us, node, NodeState.UNKNOWN) for node in lost]

    def _state(self, node: str, reading: NodeReading, jobs: Sequence[JobReading], now_us: int) -> NodeState:
        """Return the state of a node; one that is busy with lending jobs alone is as if it had no jobs.

        One that is made ready for a job, which has not started, is planned.
        """
        if reading.state != NodeState.BUSY:
            return reading.state
        running = [job for job in jobs if job.end_us is None or job.end_us > now_us]
        if node in self._made_ready and not running:
            return NodeState.PLANNED
        if not self._lends:
            return reading.state
        lends = bool(running) and all(job.partition in self._lends for job in running)
        return reading.without_jobs if lends else reading.state

    def _changes(
        self, node: str, reading: NodeReading, jobs: Sequence[JobReading], now_us: int
    ) -> list[tuple[int, NodeState]]:
        """Return the times and states since the last row of a node; consecutive ones may be equal."""
        old, state = self.states.get(node), self._state(node, reading, jobs, now_us)
        if old is None:
            return [(now_us, state)]
        first_us = self._poll_us - _RESOLUTION_US
        after_us = max(first_us - 1, self._row_us[node])
        own_jobs = [job for job in jobs if job.partition not in self._lends]
        edges = _edges(own_jobs, after_us, now_us)
        is_free = state in _FREE
        if edges and ((is_free and edges[-1][1]) or (state == NodeState.BUSY and not edges[-1][1])):
            edges.pop()  # the list of jobs is a little older or younger than that of nodes: the next poll shows it
        gap = old if old in _FREE and old != NodeState.COMPLETING else reading.without_jobs
        changes = [(time_us, NodeState.BUSY if is_start else gap) for time_us, is_start in edges]
        if edges and not edges[-1][1]:  # the last job has left
            changes[-1] = (edges[-1][0], NodeState.COMPLETING if is_free else state)
        if (changes[-1][1] if changes else old) == state:
            return changes
        known_us = reading.since_us or 0
        if state == NodeState.BUSY:
            known_us = max(known_us, *(job.start_us or 0 for job in own_jobs if job.end_us is None), 0)
        elif edges and not edges[-1][1]:
            known_us = max(known_us, edges[-1][0])
        changes.append((known_us if first_us <= known_us <= now_us else now_us, state))
        return changes

    def _rows(self, node: str, changes: Iterable[tuple[int, NodeState]], now_us: int) -> list[StateRow]:
        """Return the rows of a node, each later than the one before it; the last of those at one time counts."""
        last_us, before = self._row_us.get(node), self.states.get(node)
        by_time: dict[int, NodeState] = {}
        for time_us, state in changes:
            least_us = time_us if last_us is None else max(time_us, last_us + 1)
            by_time[min(least_us, now_us)] = state
        rows: list[StateRow] = []
        for time_us, state in sorted(by_time.items()):
            if state != before:
                rows.append((time_us, node, state))
                before = state
        if rows:
            self._row_us[node], self.states[node] = rows[-1][0], rows[-1][2]
        return rows

    def _see_jobs(self, snapshot: Snapshot) -> None:
        if snapshot.jobs is None:
            return
        busy = {node for node, reading in snapshot.nodes.items() if reading.state == NodeState.BUSY}
        without_job = frozenset(busy.difference(*(job.nodes for job in snapshot.jobs)))
        self.sees_others_jobs = without_job.isdisjoint(self._without_job)
        self._without_job = without_job


def lent_partitions(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the partitions of ``partition=NAME`` texts.

    Raises
    ------
    InputError
        Another text.
    """
    partitions = []
    for text in texts:
        kind, sign, name = text.partition("=")
        if kind != "partition" or not sign or not name:
            expected, fix = "partition=NAME", "name the partition of the jobs that can be preempted at any time"
            raise InputError("this names no partition", value=text, expected=expected, fix=fix)
        partitions.append(name)
    return tuple(partitions)


def _jobs_by_node(jobs: Iterable[JobReading]) -> dict[str, list[JobReading]]:
    by_node: dict[str, list[JobReading]] = {}
    for job in jobs:
        if job.start_us is not None:
            for node in job.nodes:
                by_node.setdefault(node, []).append(job)
    return by_node


def _nodes_made_ready(jobs: Iterable[JobReading]) -> frozenset[str]:
    """Return the nodes of jobs that have nodes, and have not started."""
    return frozenset(node for job in jobs if job.start_us is None for node in job.nodes)


def _edges(jobs: Iterable[JobReading], after_us: int, until_us: int) -> list[tuple[int, bool]]:
    """Return when a node gets busy (true) and free (false) by its jobs, later than ``after_us``, up to ``until_us``."""
    spans: list[list[int]] = []
    for start_us, end_us in sorted((job.start_us or 0, job.end_us or until_us + 1) for job in jobs):
        if start_us >= end_us:
            continue
        if spans and start_us <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end_us)
        else:
            spans.append([start_us, end_us])
    edges = [edge for start_us, end_us in spans for edge in ((start_us, True), (end_us, False))]
    return [(time_us, is_start) for time_us, is_start in edges if after_us < time_us <= until_us]
