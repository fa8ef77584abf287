"""The state of a cluster that is followed, as ``bfreplay follow`` writes it after every poll."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Self

import msgspec

from bfreplay.errors import InputError
from bfreplay.result_folders.records import Amount, Count, RecordPart

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)


def _check_times(*texts: str) -> None:
    for text in texts:
        if not _TIME.fullmatch(text):
            raise ValueError(f"{text!r} is no time in UTC")
        datetime.fromisoformat(text)


class Span(RecordPart, frozen=True, kw_only=True):
    """Time in which the cluster was not followed as usual.

    ``kind`` is ``gap`` (nobody polled, or no poll was answered) or ``clock`` (the clock was set); ``words`` has the
    consequence.
    """

    kind: str
    start: str
    end: str
    words: str
    is_filled: bool = False

    def __post_init__(self) -> None:
        _check_times(self.start, self.end)


class Followed(RecordPart, frozen=True, kw_only=True):
    """Notes of a follower in the metadata of its log: bytes of the log that are whole, spans, and remarks."""

    bytes: Count
    spans: list[Span] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)


class PartitionNow(RecordPart, frozen=True, kw_only=True):
    """Nodes of a partition by state; a node of several partitions counts in each."""

    name: str
    by_state: dict[str, Count]


class JobNow(RecordPart, frozen=True, kw_only=True):
    """A job and the nodes that it would hold now, as a node list."""

    name: str
    n_nodes: Count
    nodes: str


class DecisionNow(RecordPart, frozen=True, kw_only=True):
    """A decision: its time, the reason for it, and its effect, in numbers of nodes and jobs."""

    time: str
    trigger: str
    n_idle: Count
    n_joined: Count
    n_reclaimed: Count
    n_nodes_used: Count
    n_jobs_running: Count
    n_jobs_scaled_up: Count
    n_jobs_scaled_down: Count
    solver: str
    quality: str


class LiveStatus(RecordPart, frozen=True, kw_only=True):
    """A followed cluster now.

    Parameters
    ----------
    time, until
        Time of the last poll, and time up to which decisions are final: earlier by the hold-back.
    problem
        Reason that the states of now are not known; empty while polls are answered.
    by_state
        Nodes by state, all ten of them.
    idle, startable
        Nodes that no job uses, planned and reserved ones included, and those on which a preemptible worker could start.
    lent
        Nodes that count as idle because only preemptible jobs named by the user are on them.
    reasons
        Nodes that are drained, down or off, by the reason that the administrators gave.
    ledger_node_hours, ledger_since
        Node-hours by label of the ledger since midnight UTC, or since following began.
    ledger_before
        Those from the beginning to ``ledger_since``.
    spans
        The last ten; the metadata of the log have all.
    """

    version: str
    source: str
    cluster: str | None
    time: str
    began: str
    until: str
    poll_s: Amount
    hold_back_s: Amount
    pool: str
    problem: str
    n_nodes: Count
    by_state: dict[str, Count]
    idle: Count
    startable: Count
    lent: Count
    partitions: list[PartitionNow]
    reasons: dict[str, Count]
    jobs: list[JobNow]
    decisions: list[DecisionNow]
    ledger_node_hours: dict[str, float]
    ledger_since: str
    ledger_before: dict[str, float]
    spans: list[Span]
    notes: list[str]
    polls: Count
    unanswered: Count

    def __post_init__(self) -> None:
        _check_times(self.time, self.began, self.until, self.ledger_since)

    def to_text(self) -> str:
        """Return JSON."""
        return json.dumps(self.to_json(), indent=1) + "\n"

    @classmethod
    def from_text(cls, text: bytes) -> Self:
        """Inverse of ``to_text``; ``InputError`` for anything else."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(
                f"this is not the status of a follower: {error}", expected="status.json of a follower"
            ) from error
