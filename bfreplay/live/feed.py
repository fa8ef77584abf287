"""Feeds of a follower: rows of events for its session, made of polls, or read from a log that grows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import monotonic_ns
from typing import NamedTuple

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.ingest.occupancy.inventory import NEVER_USED
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.changes import StateChanges
from bfreplay.datasets.snapshots.readings import Snapshot
from bfreplay.datasets.times import US, iso_utc
from bfreplay.errors import BfreplayError, InputError
from bfreplay.live.sources import Clock, NoAnswerError, StateSource
from bfreplay.result_folders.live import Span
from bfreplay.wording import count, duration

Row = tuple[int, str, NodeState]
"""An event: its time in microseconds UTC, a node, and the state of the node after it."""

GAP, CLOCK = "gap", "clock"
PRIVATE = "jobs of other users cannot be seen: changes have the times of Slurm's nodes, or of the poll"
_SMALLEST_STEP_US = US // 2
"""A clock that differs from the steady one by less is not said to be set."""
_MOST_STRANGE_WORDS = 10
_SHORTEST_GAP_US = 10 * US
_ACCOUNTED_AFTER_US = 60 * US
"""Time after which a job that has started is surely in accounting."""


class Portion(NamedTuple):
    """Rows of a poll, in any order, and the time of the poll: earlier rows are corrections."""

    rows: list[Row]
    until_us: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """Nodes in order, their states, the time at which a log begins, and the name of the cluster, if it has one."""

    nodes: tuple[str, ...]
    states: tuple[NodeState, ...]
    start_us: int
    cluster: str | None = None


class Feed(ABC):
    """Source of the events of a follower.

    Attributes
    ----------
    name
        Name in messages and in the log.
    last_us
        Time of the last answer, or row.
    spans, notes
        Gaps and steps of the clock so far; remarks about the whole log.
    problem
        Reason that the states of now are not known; empty while they are.
    snapshot
        The last answer, for a feed of polls.
    """

    name: str

    def __init__(self) -> None:
        self.last_us = 0
        self.spans: list[Span] = []
        self.notes: list[str] = []
        self.problem = ""
        self.snapshot: Snapshot | None = None
        self.n_polls = self.n_unanswered = 0

    @property
    @abstractmethod
    def states(self) -> Mapping[str, NodeState]:
        """State of each node after the last answer."""

    @property
    def n_lent(self) -> int:
        """Number of nodes that count as idle though jobs are on them."""
        return 0

    @abstractmethod
    def begin(self) -> Beginning:
        """Return the states with which a log begins; ``InputError`` or ``NoAnswerError`` where there are none."""

    @abstractmethod
    def resume(self, states: Mapping[str, NodeState], until_us: int) -> None:
        """Go on after a log whose nodes had these states at its end."""

    @abstractmethod
    def poll(self) -> Portion | None:
        """Return the events since the last poll, ``None`` if the states of now are not known."""


class PolledStates(Feed):
    """Feed of polls of a source.

    After a time that nobody polled, or in which no poll was answered, the states in between are those of accounting;
    without accounting they are unknown. The clock of the log never runs backwards: after the clock of this machine was
    set back the log waits until it has caught up, and the changes meanwhile have the time of the first poll after.

    Parameters
    ----------
    source
        Source of the polls.
    clock
        Clock of the source.
    poll_s
        Time between two polls.
    lends
        Names of partitions whose jobs do not make a node busy.
    """

    def __init__(self, source: StateSource, clock: Clock, poll_s: float, lends: Sequence[str] = ()) -> None:
        super().__init__()
        self.name = source.name
        self._source, self._clock, self._lends = source, clock, tuple(lends)
        self._gap_us = max(round(3 * poll_s * US), _SHORTEST_GAP_US)
        self._clock_ahead_us = self._ahead_us()

    @property
    def states(self) -> Mapping[str, NodeState]:
        """State of each node after the last answer."""
        return self._changes.states

    @property
    def n_lent(self) -> int:
        """Number of nodes that count as idle though jobs are on them."""
        readings = {} if self.snapshot is None else self.snapshot.nodes
        states = self.states
        return sum(
            reading.state == NodeState.BUSY and states.get(node) == NodeState.IDLE for node, reading in readings.items()
        )

    def _ahead_us(self) -> int:
        """Return by how much the clock is ahead of the steady one, whose zero means nothing."""
        return self._clock() - monotonic_ns() // 1000

    def begin(self) -> Beginning:
        """Return the states of the first poll."""
        snapshot = self._answer()
        nodes = tuple(sorted(snapshot.nodes))
        self._changes = StateChanges.of_first(snapshot, self._lends)
        self.last_us = snapshot.time_us
        known = {partition for reading in snapshot.nodes.values() for partition in reading.partitions}
        self.notes += [f"no node is in the partition {name}, which lends" for name in self._lends if name not in known]
        states = tuple(self._changes.states[node] for node in nodes)
        return Beginning(nodes, states, snapshot.time_us, self._source.cluster())

    def resume(self, states: Mapping[str, NodeState], until_us: int) -> None:
        """Go on after a log; what happened since is a gap, or the clock was set back meanwhile."""
        self._changes = StateChanges(states, until_us, self._lends)
        self.last_us = until_us
        behind_us = until_us - self._clock()
        if behind_us > 0:
            self._note_step(-behind_us)

    def poll(self) -> Portion | None:
        """Ask the source, and fill the gap before its answer."""
        try:
            snapshot = self._answer()
        except NoAnswerError as error:
            self.n_unanswered += 1
            self.problem = str(error)
            return None
        rows = self._fill(snapshot) if snapshot.time_us - self.last_us > self._gap_us else []
        rows += self._changes.update(snapshot)
        self.last_us = snapshot.time_us
        self._note_oddities()
        return Portion(rows, snapshot.time_us)

    def _answer(self) -> Snapshot:
        self._note_clock()
        self.n_polls += 1
        snapshot = self._source.poll()
        if all(reading.state == NodeState.UNKNOWN for reading in snapshot.nodes.values()):
            raise NoAnswerError("no node has a known state: the scheduler may have started just now")
        is_behind = snapshot.time_us < self.last_us
        self.problem = "the clock of this machine was set back, and the log waits for it" if is_behind else ""
        snapshot = Snapshot(max(snapshot.time_us, self.last_us), snapshot.nodes, snapshot.jobs)
        self.snapshot = snapshot
        return snapshot

    def _note_clock(self) -> None:
        """Note that the clock of this machine was set."""
        ahead_us = self._ahead_us()
        step_us = ahead_us - self._clock_ahead_us
        self._clock_ahead_us = ahead_us
        if abs(step_us) < _SMALLEST_STEP_US or not self.last_us:
            return
        self._note_step(step_us)

    def _note_step(self, step_us: int) -> None:
        now_us = self._clock()
        way = "forward" if step_us > 0 else "back"
        words = f"the clock of this machine was set {way} by {duration(abs(step_us) / US)}"
        if step_us < 0:
            words += "; the log waited until it had caught up, and has the changes meanwhile at the first poll after"
        start_us, end_us = sorted((now_us, now_us - step_us))
        self.spans.append(Span(kind=CLOCK, start=iso_utc(start_us), end=iso_utc(end_us), words=words, is_filled=True))

    def _fill(self, snapshot: Snapshot) -> list[Row]:
        """Return the events between the last answer and this one, as far as accounting knows them.

        Nodes that are not listed any more are unknown from the start: accounting would take them for idle.
        """
        states, start_us, end_us = self._changes.states, self.last_us, snapshot.time_us
        gone = [node for node in states if node not in snapshot.nodes]
        rows, reason = [], f"{self.name} has no accounting"
        log = None
        try:
            log = self._source.accounted(start_us, end_us, [node for node in states if node in snapshot.nodes])
        except BfreplayError as error:
            reason = error.problem if isinstance(error, InputError) else str(error)
        if log is not None:
            rows = _rows_of(log, states)
            accounted = {**states, **{node: state for _, node, state in rows}}
            if _hides_jobs(log, states, accounted, self._busy_for_long(snapshot)):
                log, rows, reason = None, [], "accounting shows no jobs on most of the nodes that were busy"
        lost = states if log is None else gone
        rows += [(start_us + 1, node, NodeState.UNKNOWN) for node in lost]
        if log is None:
            words = f"not followed; all {count(len(states), 'node')} are unknown: {reason}"
        else:
            words = "not followed; the states are those of accounting, which knows neither planned nor completing nodes"
            # a node without a job was seen before and after: nobody doubts that it is there
            doubts = (warning for warning in log.metadata.log_warnings.warnings if warning.sentence != NEVER_USED)
            words = "; ".join([words, *map(str, doubts)])
        span = Span(kind=GAP, start=iso_utc(start_us), end=iso_utc(end_us), words=words, is_filled=log is not None)
        self.spans.append(span)
        now_states = {**states, **{node: state for _, node, state in rows}}
        self._changes = StateChanges(now_states, end_us - 1, self._lends)
        return rows

    def _busy_for_long(self, snapshot: Snapshot) -> list[str]:
        """Return the nodes that are busy with jobs that started so long ago that accounting surely has them."""
        latest_us = snapshot.time_us - _ACCOUNTED_AFTER_US
        young = {node for job in snapshot.jobs or () if (job.start_us or latest_us) >= latest_us for node in job.nodes}
        states = StateChanges.of_first(snapshot, self._lends).states
        return [node for node, state in states.items() if state == NodeState.BUSY and node not in young]

    def _note_oddities(self) -> None:
        """Note once that the jobs of others cannot be seen, and which words of states are not known."""
        words = islice(self._source.strange_words.items(), _MOST_STRANGE_WORDS)
        notes = [
            f"the table of states lacks {word!r} ({raw}): such nodes are unknown, unless they are busy or down"
            for word, raw in words
        ]
        if not self._changes.sees_others_jobs:
            notes.append(PRIVATE)
        self.notes += [note for note in notes if note not in self.notes]


def _rows_of(log: NodeEvents, states: Mapping[str, NodeState]) -> list[Row]:
    """Return the events of an accounted log: first where its first states differ from those that were seen last."""
    rows: list[Row] = []
    known = dict(states)
    for batch in log.batches():
        for time_us, node, state in zip(*(column.tolist() for column in batch.columns), strict=True):
            name, node_state = log.nodes[node], NodeState(state)
            if known.get(name) != node_state:
                rows.append((max(time_us, log.window_start_us + 1), name, node_state))
                known[name] = node_state
    return rows


def _hides_jobs(
    log: NodeEvents, seen: Mapping[str, NodeState], accounted: Mapping[str, NodeState], busy_after: Iterable[str]
) -> bool:
    """Return whether most nodes that were busy before or after a gap are free in accounting: it hides others' jobs."""
    first = dict(zip(log.nodes, log.first_states().tolist(), strict=True))
    at_start = [first.get(node) for node, state in seen.items() if state == NodeState.BUSY]
    busy = [*at_start, *(accounted.get(node) for node in busy_after)]
    n_free = busy.count(NodeState.IDLE)
    return n_free > 1 and n_free > len(busy) / 2  # one may have become free in the hold-back
