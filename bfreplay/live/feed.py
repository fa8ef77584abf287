"""Feeds of a follower: rows of events for its session, made of polls, or read from a log that grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic_ns
from typing import NamedTuple, Protocol

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
_SHORTEST_GAP_US = 10 * US
_ACCOUNTED_AFTER_US = 60 * US
"""Time after which a job that has started is surely in accounting."""


class Portion(NamedTuple):
    """Rows of a poll, in any order, and the time of the poll: earlier rows are corrections."""

    rows: list[Row]
    until_us: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """Nodes in order, their states, and the time at which a log begins."""

    nodes: tuple[str, ...]
    states: tuple[NodeState, ...]
    start_us: int


class Feed(Protocol):
    """Supply of events.

    Attributes
    ----------
    spans
        Gaps and steps of the clock so far.
    problem
        Reason that the states of now are not known; empty while they are.
    snapshot
        The last answer, for a feed of polls.
    last_us
        Time of the last answer, or row.
    """

    name: str
    last_us: int
    spans: list[Span]
    notes: list[str]
    problem: str
    snapshot: Snapshot | None
    n_polls: int
    n_unanswered: int

    @property
    def states(self) -> Mapping[str, NodeState]:
        """State of each node after the last answer."""

    @property
    def n_lent(self) -> int:
        """Number of nodes that count as idle though jobs are on them."""

    def begin(self) -> Beginning:
        """Return the states with which a log begins; ``InputError`` or ``NoAnswerError`` where there are none."""

    def resume(self, states: Mapping[str, NodeState], until_us: int) -> None:
        """Go on after a log whose nodes had these states at its end."""

    def poll(self) -> Portion | None:
        """Return the news, ``None`` if the states of now are not known."""


class PolledStates:
    """Feed of polls of a source.

    After a time that nobody polled, or in which no poll was answered, the states in between are those of accounting;
    without accounting they are unknown. The clock of the log never runs backwards: while the clock of this machine, set
    back, has not come to where it was, what is seen counts at that time.

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
        self.name = source.name
        self._source, self._clock, self._lends = source, clock, tuple(lends)
        self._gap_us = max(round(3 * poll_s * US), _SHORTEST_GAP_US)
        self.spans: list[Span] = []
        self.notes: list[str] = []
        self.problem = ""
        self.snapshot: Snapshot | None = None
        self.n_polls = self.n_unanswered = 0
        self.last_us = 0
        self._clock_ahead_us = self._ahead_us()
        self._n_strange = 0

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
        if not nodes:
            raise NoAnswerError("the answer names no node")
        self._changes = StateChanges.of_first(snapshot, self._lends)
        self.last_us = snapshot.time_us
        known = {partition for reading in snapshot.nodes.values() for partition in reading.partitions}
        self.notes += [f"no node is in the partition {name}, which lends" for name in self._lends if name not in known]
        return Beginning(nodes, tuple(self._changes.states[node] for node in nodes), snapshot.time_us)

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
        self._note_what_is_strange()
        return Portion(rows, snapshot.time_us)

    def _answer(self) -> Snapshot:
        self._note_clock()
        self.n_polls += 1
        snapshot = self._source.poll()
        self.problem = ""
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
            words += "; until it was where it had been, what was seen counts at that time"
        start_us, end_us = sorted((now_us, now_us - step_us))
        self.spans.append(Span(kind=CLOCK, start=iso_utc(start_us), end=iso_utc(end_us), words=words, is_filled=True))

    def _fill(self, snapshot: Snapshot) -> list[Row]:
        """Return the events between the last answer and this one, as far as accounting knows them."""
        states, start_us, end_us = self._changes.states, self.last_us, snapshot.time_us
        rows, reason = [], f"{self.name} has no accounting"
        log = None
        try:
            log = self._source.accounted(start_us, end_us, list(states))
        except BfreplayError as error:
            reason = error.problem if isinstance(error, InputError) else " ".join(str(error).split())
        if log is not None:
            rows = _rows_of(log, states)
            if _hides_jobs(log, states, {**states, **{node: state for _, node, state in rows}}, snapshot, self._lends):
                log, reason = None, "accounting shows no jobs on most of the nodes that were busy"
        if log is None:
            rows = [(start_us + 1, node, NodeState.UNKNOWN) for node in states]
            words = f"nobody polled; all {count(len(rows), 'node')} are unknown: {reason}"
        else:
            words = (
                "nobody polled; the states are those of accounting, which knows neither planned nor completing nodes"
            )
            # a node without a job was seen before and after: nobody doubts that it is there
            doubts = (warning for warning in log.metadata.log_warnings.warnings if warning.sentence != NEVER_USED)
            words = "; ".join([words, *map(str, doubts)])
        span = Span(kind=GAP, start=iso_utc(start_us), end=iso_utc(end_us), words=words, is_filled=log is not None)
        self.spans.append(span)
        now_states = {**states, **{node: state for _, node, state in rows}}
        self._changes = StateChanges(now_states, end_us - 1, self._lends)
        return rows

    def _note_what_is_strange(self) -> None:
        """Say once that the jobs of others cannot be seen, or that a word is not in the table of states."""
        if len(self._source.strange_words) > self._n_strange:
            self._n_strange = len(self._source.strange_words)
            self.notes += [
                note
                for word, raw in self._source.strange_words.items()
                if (note := f"{word}, in {raw}, is not in the table of states: such nodes are unknown, unless busy")
                not in self.notes
            ]
        if not self._changes.sees_others_jobs and PRIVATE not in self.notes:
            self.notes.append(PRIVATE)


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
    log: NodeEvents,
    seen: Mapping[str, NodeState],
    accounted: Mapping[str, NodeState],
    snapshot: Snapshot,
    lends: Sequence[str],
) -> bool:
    """Return whether most nodes that were busy before or after a gap are free in accounting: it hides others' jobs."""
    first = dict(zip(log.nodes, log.first_states().tolist(), strict=True))
    young_us = snapshot.time_us - _ACCOUNTED_AFTER_US
    ignored = [job for job in snapshot.jobs or () if (job.start_us or young_us) >= young_us or job.partition in lends]
    young = {node for job in ignored for node in job.nodes}
    at_start = [first.get(node) for node, state in seen.items() if state == NodeState.BUSY]
    at_end = [
        accounted.get(node)
        for node, reading in snapshot.nodes.items()
        if reading.state == NodeState.BUSY and node not in young
    ]
    busy = [*at_start, *at_end]
    n_free = busy.count(NodeState.IDLE)
    return n_free > 1 and n_free > len(busy) / 2  # one may have become free in the hold-back
