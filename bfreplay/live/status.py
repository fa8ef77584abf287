"""The status of a followed cluster now, and its numbers as metrics."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfreplay import __version__
from bfreplay.datasets.ingest.hostlists import fold_nodes
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.times import HOUR_US, US, iso_utc, parse_time_us
from bfreplay.errors import InputError
from bfreplay.live.feed import GAP, Feed
from bfreplay.result_folders.live import DecisionNow, JobNow, LiveStatus, PartitionNow, Span
from bfreplay.runs import ReplaySession

if TYPE_CHECKING:
    import pyarrow as pa

    from bfreplay.datasets.snapshots.readings import NodeReading

LAST_DECISIONS = LAST_SPANS = 10
MOST_REASONS = 50
_UNUSABLE = (NodeState.DRAIN, NodeState.DOWN, NodeState.OFF)
_NOT_IN_USE = (NodeState.IDLE, NodeState.PLANNED, NodeState.RESERVED)
_DAY_US = 24 * HOUR_US
_SECONDS_AN_HOUR = 3600.0


class StatusKeeper:
    """Makes the status of now after each poll.

    Parameters
    ----------
    session, feed
        Of the follower.
    facts
        What does not change: ``cluster``, ``poll_s`` and ``hold_back_s`` of ``LiveStatus``.
    file
        Last status, from which a restarted follower continues the ledger of the day.
    """

    def __init__(self, session: ReplaySession, feed: Feed, facts: Mapping[str, Any], file: Path) -> None:
        self._session, self._feed, self._facts = session, feed, dict(facts)
        self._decisions: deque[DecisionNow] = deque(maxlen=LAST_DECISIONS)
        self._since_us, self._before = session.events.window_start_us, dict.fromkeys(session.ledger_now(), 0.0)
        last = _last_status(file)
        if last is not None and parse_time_us(last.ledger_since) <= session.until_us:
            self._since_us, self._before = parse_time_us(last.ledger_since), last.ledger_before

    def update(self, decisions: pa.Table | None) -> LiveStatus:
        """Return the status of now, after a poll and its decisions."""
        session, feed = self._session, self._feed
        if decisions is not None:
            self._decisions.extend(
                _decision(row) for row in decisions.slice(max(decisions.num_rows - LAST_DECISIONS, 0)).to_pylist()
            )
        ledger = {label: seconds / _SECONDS_AN_HOUR for label, seconds in session.ledger_now().items()}
        if session.until_us // _DAY_US > self._since_us // _DAY_US:
            self._since_us, self._before = session.until_us, ledger
        nodes = dict.fromkeys(feed.states, NodeState.UNKNOWN) if feed.problem else feed.states
        counts = Counter(nodes.values())
        by_state = {word: counts[NodeState(code)] for code, word in enumerate(STATE_WORDS)}
        snapshot = feed.snapshot
        holders = session.holders()
        return LiveStatus(
            version=__version__,
            source=feed.name,
            time=iso_utc(feed.last_us),
            began=iso_utc(session.events.window_start_us),
            until=iso_utc(session.until_us),
            **self._facts,
            pool="idle" if NodeState.PLANNED in session.events.idle_states else "startable",
            problem=feed.problem,
            n_nodes=len(nodes),
            by_state=by_state,
            idle=sum(counts[state] for state in _NOT_IN_USE),
            startable=counts[NodeState.IDLE],
            lent=feed.n_lent,
            partitions=[] if snapshot is None else _partitions(nodes, snapshot.nodes),
            reasons={} if snapshot is None else unusable_by_reason(nodes, snapshot.nodes),
            jobs=[JobNow(name=job, n_nodes=len(held), nodes=fold_nodes(held)) for job, held in holders.items()],
            decisions=list(self._decisions),
            ledger_node_hours={label: hours - self._before.get(label, 0.0) for label, hours in ledger.items()},
            ledger_since=iso_utc(self._since_us),
            ledger_before=self._before,
            spans=feed.spans[-LAST_SPANS:],
            notes=list(feed.notes),
            polls=feed.n_polls,
            unanswered=feed.n_unanswered,
        )


def span_notes(spans: Sequence[Span], notes: Sequence[str], n_nodes: int) -> dict[str, Any]:
    """Return notes for the metadata of the log: spans, and warnings about gaps, which every run of the log repeats."""
    warnings: dict[str, Any] = {}
    for span in spans:
        if span.kind == GAP:
            hours = n_nodes * (parse_time_us(span.end) - parse_time_us(span.start)) / HOUR_US
            sentence = (
                "gaps in which the cluster was not followed, filled from accounting" if span.is_filled else UNFILLED
            )
            tally = warnings.setdefault(sentence, {"count": 0, "node_hours": 0.0})
            tally["count"] += 1
            tally["node_hours"] += hours
    ingest = {"ingest": {"warnings": warnings}} if warnings else {}
    return {**ingest, "followed": {"spans": [span.to_json() for span in spans], "notes": list(notes)}}


UNFILLED = "gaps in which the cluster was not followed: all nodes are unknown there"


def _decision(row: Mapping[str, Any]) -> DecisionNow:
    names = [name for name in DecisionNow.__struct_fields__ if name != "time"]
    return DecisionNow(time=row["time"].isoformat(), **{name: row[name] for name in names})


def _partitions(nodes: Mapping[str, NodeState], readings: Mapping[str, NodeReading]) -> list[PartitionNow]:
    counts: dict[str, Counter[str]] = {}
    for node, reading in readings.items():
        for partition in reading.partitions:
            counts.setdefault(partition, Counter())[STATE_WORDS[nodes.get(node, NodeState.UNKNOWN)]] += 1
    return [PartitionNow(name=name, by_state=dict(counts[name])) for name in sorted(counts)]


def unusable_by_reason(nodes: Mapping[str, NodeState], readings: Mapping[str, NodeReading]) -> dict[str, int]:
    """Return the number of unusable nodes by reason, the most frequent first, rare ones together."""
    reasons = (
        reading.reason or "no reason given" for node, reading in readings.items() if nodes.get(node) in _UNUSABLE
    )
    counts = Counter(reasons).most_common()
    others = sum(n for _, n in counts[MOST_REASONS:])
    return dict(counts[:MOST_REASONS]) | ({"other reasons": others} if others else {})


def _last_status(file: Path) -> LiveStatus | None:
    """Return the status that a follower left, ``None`` if it cannot be read: the ledger then begins anew."""
    try:
        return LiveStatus.from_text(file.read_bytes())
    except (FileNotFoundError, InputError):
        return None


def metrics_text(status: LiveStatus) -> str:
    """Return the numbers of a status as OpenMetrics text."""
    from prometheus_client import CollectorRegistry, Gauge
    from prometheus_client.openmetrics.exposition import generate_latest

    registry = CollectorRegistry()

    def gauge(name: str, text: str, values: Mapping[tuple[str, ...], float], *labels: str) -> None:
        metric = Gauge(f"bfreplay_{name}", text, labels, registry=registry)
        for label_values, value in values.items():
            (metric.labels(*label_values) if labels else metric).set(value)

    last_poll_s = parse_time_us(status.time) / US
    gauge("nodes", "Nodes by state.", {(word,): n for word, n in status.by_state.items()}, "state")
    gauge(
        "partition_nodes",
        "Nodes of a partition by state.",
        {(part.name, word): n for part in status.partitions for word, n in part.by_state.items()},
        *("partition", "state"),
    )
    gauge("idle_nodes", "Nodes that no job uses, planned and reserved ones included.", {(): status.idle})
    gauge("startable_nodes", "Nodes on which a preemptible worker could start.", {(): status.startable})
    gauge("lent_nodes", "Nodes that only preemptible jobs use, which count as idle.", {(): status.lent})
    gauge("job_nodes", "Nodes that a job would hold.", {(job.name,): job.n_nodes for job in status.jobs}, "job")
    gauge(
        "ledger_node_hours",
        "Idle node-hours since midnight UTC by label of the ledger.",
        {(label,): hours for label, hours in status.ledger_node_hours.items()},
        "label",
    )
    gauge("answered", "1 if the last poll was answered.", {(): float(not status.problem)})
    gauge("last_poll_timestamp_seconds", "Time of the last answer.", {(): last_poll_s})
    gauge("polls", "Polls since the follower was started.", {(): status.polls})
    gauge("unanswered_polls", "Polls without an answer since then.", {(): status.unanswered})
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # it has no types
    return text.decode()
