"""Figures that describe the idle nodes of a log.

An *idle interval* is one node being idle without a break, a *pool event* a time stamp at which at least one node joins
the idle nodes or is reclaimed from them, a *burst* the nodes that join (or are reclaimed) at one such time stamp.
Everything is counted in integer microseconds; hours and seconds appear only in output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bfreplay.datasets.idleness.bursts import Bursts
from bfreplay.datasets.idleness.idle_intervals import (
    CensoredIdleIntervals,
    IdleIntervalBin,
    IdleIntervalSpectrum,
    LongerIdleIntervals,
    NodeTime,
)
from bfreplay.datasets.idleness.observe import LongestIdleInterval
from bfreplay.datasets.idleness.parts import IdleParts
from bfreplay.datasets.idleness.pool import Timeline, Width
from bfreplay.datasets.idleness.quantiles import Quantiles, by_percentile
from bfreplay.datasets.idleness.reasons import IdleReasons
from bfreplay.datasets.idleness.week import Week
from bfreplay.datasets.log.log_warnings import LogWarnings
from bfreplay.datasets.times import HOUR_US, US, iso_utc
from bfreplay.documents import Json, pick
from bfreplay.registry import built_in

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin and warnings of the log, needed to judge the figures.

    Parameters
    ----------
    cluster, time_origin, node_inventory, unit
        As in ``EventsMetadata``.
    log_warnings
        Warnings about the log, and the rule that chose the nodes if the source gave only counts: lengths of idle
        intervals then follow from the rule.
    idle_hours_by_rule
        Idle node-hours of the window under each rule for oversubscription, in order of the names; empty if no job needs
        more nodes than are free, or the import could not compute them.
    selection
        Options that chose some of its nodes, by ``select_nodes``.
    """

    cluster: str | None
    time_origin: str
    node_inventory: str
    log_warnings: LogWarnings
    idle_hours_by_rule: tuple[tuple[str, float], ...] = ()
    selection: Mapping[str, str] = field(default_factory=dict)
    unit: str = "node"


@dataclass(frozen=True, slots=True)
class StateTime(NodeTime):
    """Node-time in one state, out of ``total_us``."""

    state: str
    node_us: int
    total_us: int

    @property
    def share(self) -> float:
        """Share of all node-time."""
        return self.node_us / self.total_us


@dataclass(frozen=True, slots=True)
class Idleness:
    """Statistics of the idle nodes of one log over its window.

    Parameters
    ----------
    window_start_us, window_end_us
        The window, microseconds since the epoch, UTC.
    n_nodes, nodes_ever_idle
        Nodes in the log, and nodes idle at any instant of the window.
    idle_node_us
        Integral of idle nodes over the window, in node-microseconds: the lengths of all idle intervals together.
    idle_nodes
        Quantiles of the number of idle nodes, each weighted by how long it lasted.
    share_without_idle
        Share of the window with no idle node.
    n_pool_events, joins, reclaims
        Time stamps with a change after the opening snapshot; nodes that became idle; nodes taken back.
    idle_nodes_per_event
        Quantiles over pool events of the idle nodes right after each: the pool of a decision.
    events_per_hour
        Quantiles over the whole hours since the window start (without a last part of an hour).
    gap_s
        Quantiles of the seconds from one pool event to the next.
    idle intervals, idle_interval_length_s, idle_interval_bins
        Complete idle intervals (both ends inside the window): number, quantiles of their length, table by length.
    censored
        Idle intervals cut by an edge of the window.
    join_bursts, reclaim_bursts
        Nodes joining and nodes reclaimed per time stamp.
    origin
        Origin and warnings of the log.
    states
        Node-time in each state, in the order of ``NodeState``.
    longer_idle_intervals, idle_interval_spectrum
        Idle intervals longer than each of a dozen lengths, and all idle intervals in fine bins of their length, cut
        ones included.
    longest_idle_intervals
        One idle interval a node: first all nodes that are idle from edge to edge of the window (``cut`` is
        ``"both"``), then the three with the longest idle intervals.
    widths
        For 1, 2, 4, ... nodes: how often and for how long at least that many are idle.
    week
        Idle nodes by hour and weekday; ``None`` for a log with relative times.
    timeline
        Idle nodes over the window in about as many parts as a picture has columns of pixels.
    parts, reasons
        Idle time by part of the machine or of the time, and why no job ran; ``None`` if not asked for.
    left_out_us
        Node-microseconds of batch jobs on nodes that were left out (``without``), which are left out too.
    """

    window_start_us: int
    window_end_us: int
    n_nodes: int
    nodes_ever_idle: int
    idle_node_us: int
    idle_nodes: Quantiles
    share_without_idle: float
    n_pool_events: int
    joins: int
    reclaims: int
    idle_nodes_per_event: Quantiles
    events_per_hour: Quantiles
    gap_s: Quantiles
    idle_intervals: int
    idle_interval_length_s: Quantiles
    idle_interval_bins: tuple[IdleIntervalBin, ...]
    censored: CensoredIdleIntervals
    join_bursts: Bursts
    reclaim_bursts: Bursts
    origin: Origin
    states: tuple[StateTime, ...]
    longer_idle_intervals: tuple[LongerIdleIntervals, ...]
    longest_idle_intervals: tuple[LongestIdleInterval, ...]
    idle_interval_spectrum: IdleIntervalSpectrum
    widths: tuple[Width, ...]
    week: Week | None
    timeline: Timeline
    parts: IdleParts | None = None
    reasons: IdleReasons | None = None
    left_out_us: int = 0

    def __repr__(self) -> str:
        text: str = built_in("bfreplay.datasets.idleness.idleness_text:render")(self)
        return text.rstrip()

    def _repr_html_(self) -> str:
        text: str = built_in("bfreplay.datasets.idleness.idleness_text:render_html")(self)
        return text

    def to_frame(self) -> pd.DataFrame:
        """Idle nodes over time: one row for each of the equal parts of the window, with fewest, mean and most."""
        import pandas as pd

        parts = self.timeline
        return pd.DataFrame(
            {
                "start": pd.to_datetime(parts.edges_us[:-1], unit="us", utc=True),
                "least": parts.least,
                "mean": parts.mean,
                "most": parts.most,
                "idle_node_us": parts.node_us,
                "idle_node_hours": [node_us / HOUR_US for node_us in parts.node_us],
            }
        )

    @property
    def duration_s(self) -> float:
        """Length of the window."""
        return (self.window_end_us - self.window_start_us) / US

    @property
    def idle_node_hours(self) -> float:
        """Integral of idle nodes over the window."""
        return self.idle_node_us / HOUR_US

    @property
    def mean_idle_nodes(self) -> float:
        """Integral of idle nodes / duration: BFTrainer's equivalent nodes ``n_eq``."""
        return self.idle_node_us / (self.window_end_us - self.window_start_us)

    @property
    def idle_share(self) -> float:
        """Share of all node-time that was idle."""
        return self.mean_idle_nodes / self.n_nodes

    @property
    def transitions(self) -> int:
        """Joins and reclaims together."""
        return self.joins + self.reclaims

    @property
    def mean_events_per_hour(self) -> float:
        """Pool events per hour of the window."""
        return self.n_pool_events * HOUR_US / (self.window_end_us - self.window_start_us)

    def to_dict(self) -> dict[str, Json]:
        """Return the figures JSON-ready: plain numbers and strings, units in the names.

        ``idle_interval_spectrum`` and ``timeline``, which only pictures need, are omitted.
        """
        return {
            "window_start": iso_utc(self.window_start_us),
            "window_end": iso_utc(self.window_end_us),
            **pick(self, "duration_s", "n_nodes", "nodes_ever_idle", "idle_node_us", "idle_node_hours"),
            **pick(self, "mean_idle_nodes", "idle_share"),
            "idle_nodes": by_percentile(self.idle_nodes),
            "share_without_idle": self.share_without_idle,
            "pool_events": self.n_pool_events,
            **pick(self, "joins", "reclaims", "transitions"),
            "idle_nodes_per_event": by_percentile(self.idle_nodes_per_event),
            "mean_events_per_hour": self.mean_events_per_hour,
            "events_per_hour": by_percentile(self.events_per_hour),
            "gap_s": by_percentile(self.gap_s),
            "idle_intervals": {
                "complete": self.idle_intervals,
                "length_s": by_percentile(self.idle_interval_length_s),
                "bins": [interval_bin.to_dict() for interval_bin in self.idle_interval_bins],
            },
            "censored_idle_intervals": self.censored.to_dict(),
            "join_bursts": self.join_bursts.to_dict(),
            "reclaim_bursts": self.reclaim_bursts.to_dict(),
            **pick(self.origin, "cluster", "time_origin", "node_inventory"),
            **({} if self.origin.unit == "node" else {"unit": self.origin.unit}),
            "node_assignment_simulated_by": self.origin.log_warnings.node_assignment,
            "log_warnings": self.origin.log_warnings.to_json(),
            "idle_node_hours_by_oversubscription": dict(self.origin.idle_hours_by_rule),
            "states": [pick(state, "state", "node_us", "node_hours", "share") for state in self.states],
            "longer_idle_intervals": [interval.to_dict() for interval in self.longer_idle_intervals],
            "widths": [width.to_dict() for width in self.widths],
            "week": None if self.week is None else self.week.to_dict(),
            "longest_idle_intervals": [interval.to_dict() for interval in self.longest_idle_intervals],
            **({"selection": {**self.origin.selection}} if self.origin.selection else {}),
            **({"left_out_node_hours_of_batch_jobs": self.left_out_us / HOUR_US} if self.left_out_us else {}),
            **{name: part.to_dict() for name in ("parts", "reasons") if (part := getattr(self, name)) is not None},
        }
