"""Idleness as plain text for people: aligned, with units and thousands separators."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.datasets.idleness.figures import PERCENTS, Bursts, Idleness
from bfreplay.datasets.times import iso_utc
from bfreplay.wording import amount

_BAR_WIDTH = 24


def render(idleness: Idleness) -> str:
    """Lay out ``idleness`` as text of at most 100 columns, ending in a newline.

    Bars in the table of holes show each bin's share of the idle node-hours. A dash stands for a quantile of nothing.
    """
    it = idleness
    censored = it.censored
    facts = [
        ("window", f"{iso_utc(it.window_start_us)} to {iso_utc(it.window_end_us)} ({_days(it.duration_s)})"),
        ("nodes", f"{it.n_nodes:,}; {it.nodes_ever_idle:,} of them idle at some time"),
        ("idle node-hours", f"{_hours(it.idle_node_hours)} ({it.idle_share:.1%} of all node-time)"),
        ("mean idle nodes", f"{it.mean_idle_nodes:,.1f} (equivalent nodes)"),
        ("no node idle", f"{it.share_without_idle:.1%} of the time"),
        ("pool events", f"{it.n_pool_events:,} ({it.mean_events_per_hour:,.1f} an hour)"),
        ("transitions", f"{it.transitions:,} ({it.joins:,} joins, {it.reclaims:,} reclaims)"),
        ("complete holes", f"{it.holes:,}"),
        (
            "cut holes",
            f"{censored.count:,} at an edge of the window ({censored.open_at_start:,} start, "
            f"{censored.open_at_end:,} end, {censored.open_at_both:,} both), {_hours(censored.node_hours)} node-hours",
        ),
    ]
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {value}" for name, value in facts]
    return "\n".join([*lines, "", *_quantile_table(it), "", *_hole_table(it)]) + "\n"


def _hours(node_hours: float) -> str:
    return f"{node_hours:,.0f}" if node_hours >= 100 else amount(node_hours)


def _quantile_table(it: Idleness) -> list[str]:
    def bursts(what: str, of: Bursts) -> tuple[str, list[str]]:
        return f"{what} (mean {of.mean_nodes:,.1f})", [f"{n:,.0f}" for n in of.nodes]

    rows = [
        ("idle nodes, over time", [f"{n:,.0f}" for n in it.idle_nodes]),
        ("idle nodes, over events", [f"{n:,.0f}" for n in it.idle_nodes_per_event]),
        ("events an hour", [f"{n:,.0f}" for n in it.events_per_hour]),
        ("gap between events", [_span(s) for s in it.gap_s]),
        ("length of a hole", [_span(s) for s in it.hole_length_s]),
        bursts("nodes joining at once", it.join_bursts),
        bursts("nodes reclaimed at once", it.reclaim_bursts),
    ]
    return _aligned([("quantiles", [f"{p} %" for p in PERCENTS]), *((name, v or ["-"] * 7) for name, v in rows)])


def _hole_table(it: Idleness) -> list[str]:
    node_us = sum(b.node_us for b in it.hole_bins)
    rows: list[tuple[str, list[str]]] = [("complete holes", ["count", "", "node-hours", ""])]
    bars = ["share of node-hours"]
    for b in it.hole_bins:
        share = b.node_us / node_us if node_us else 0.0
        count_share = b.count / it.holes if it.holes else 0.0
        rows.append((b.label, [f"{b.count:,}", f"{count_share:.1%}", f"{b.node_hours:,.1f}", f"{share:.1%}"]))
        bars.append("#" * round(share * _BAR_WIDTH))
    return [f"{line}  {bar}".rstrip() for line, bar in zip(_aligned(rows), bars, strict=True)]


def _aligned(rows: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    name_width = max(len(name) for name, _ in rows)
    widths = [max(len(cell) for cell in column) for column in zip(*(cells for _, cells in rows), strict=True)]
    return [
        f"{name:<{name_width}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        for name, cells in rows
    ]


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:,.3f} days" if seconds >= 86_400 else _span(seconds)


def _span(seconds: float) -> str:
    """Write a length of time in its natural unit, to about three digits."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.3g} s"
