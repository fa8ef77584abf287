"""Idleness as plain text for people: a paragraph, then tables with units and thousands separators."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise

from bfreplay.datasets.idleness.bursts import BURST_SHARES, Bursts
from bfreplay.datasets.idleness.figures import Idleness
from bfreplay.datasets.idleness.quantiles import PERCENTS
from bfreplay.datasets.idleness.sentences import cell, days, hours, sentences, span
from bfreplay.datasets.idleness.week import WEEKDAYS, Week
from bfreplay.datasets.times import iso_utc
from bfreplay.wording import count

WIDTH = 100
"""Columns that no line exceeds, unless a name of the log's own is longer."""

_BAR_WIDTH = 24
_NAMES_WIDTH = 74


def render(idleness: Idleness) -> str:
    """Lay out ``idleness`` as text of at most 100 columns, ending in a newline.

    Bars in the table of holes show each bin's share of the idle node-hours. A dash stands for what there is nothing
    of: a quantile of no values, an hour that the window does not cover.
    """
    it = idleness
    warnings = [f"Warning: {each}" for each in it.origin.log_warnings.sentences(most=None)]
    blocks = [
        [line for each in paragraphs for line in textwrap.wrap(each, WIDTH, break_on_hyphens=False)]
        for paragraphs in (warnings, [" ".join(sentences(it))])
    ]
    blocks += [_facts(it), _longer_table(it), *_longest_table(it), _width_table(it), _hour_table(it), _burst_table(it)]
    blocks += [_quantile_table(it), _hole_table(it)]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _facts(it: Idleness) -> list[str]:
    censored = it.censored
    seen = "" if it.origin.node_inventory == "metadata" else " with rows in the log"
    facts = [
        ("window", f"{iso_utc(it.window_start_us)} to {iso_utc(it.window_end_us)} ({days(it.duration_s)})"),
        ("nodes", f"{it.n_nodes:,}{seen}; {it.nodes_ever_idle:,} of them idle at some time"),
        ("idle all the time", _throughout(it)),
        ("idle node-hours", f"{hours(it.idle_node_hours)} ({it.idle_share:.1%} of all node-time)"),
        ("mean idle nodes", f"{it.mean_idle_nodes:,.1f} (equivalent nodes)"),
        ("no node idle", f"{it.share_without_idle:.1%} of the time"),
        ("pool events", f"{it.n_pool_events:,} ({it.mean_events_per_hour:,.1f} an hour)"),
        ("transitions", f"{it.transitions:,} ({count(it.joins, 'join')}, {count(it.reclaims, 'reclaim')})"),
        ("complete holes", f"{it.holes:,}"),
        (
            "cut holes",
            f"{censored.count:,} by the window ({censored.open_at_start:,} start, "
            f"{censored.open_at_end:,} end, {censored.open_at_both:,} both), {hours(censored.node_hours)} node-hours",
        ),
        ("node-time", ", ".join(f"{each.state} {each.share:.1%}" for each in it.states if each.node_us)),
    ]
    if it.origin.cluster is not None:
        facts.insert(0, ("cluster", it.origin.cluster))
    width = max(len(name) for name, _ in facts)
    return [f"{name:<{width}}  {value}" for name, value in facts]


def _throughout(it: Idleness) -> str:
    """As many names as a line has room for."""
    names = [each.node for each in it.longest_holes if each.cut == "both"]
    if not names:
        return "no node"
    said, shown = f"{count(len(names), 'node')}: {names[0]}", 1
    while shown < len(names) and len(said) + len(names[shown]) <= _NAMES_WIDTH:
        said += f", {names[shown]}"
        shown += 1
    return said if shown == len(names) else f"{said}, ..."


def _longest_table(it: Idleness) -> list[list[str]]:
    """Of nodes that are not idle all the time; no table where there is no hole."""
    holes = [each for each in it.longest_holes if each.cut != "both"]
    rows = [("longest holes, one a node", ["from", "to", "length", "cut by the window"])]
    for each in holes:
        edges = [iso_utc(each.start_us), iso_utc(each.end_us)]
        rows.append((each.node, [*edges, span(each.length_s), "-" if each.cut is None else f"at its {each.cut}"]))
    return [_aligned(rows)] if holes else []


def _longer_table(it: Idleness) -> list[str]:
    rows = [("holes longer than", ["count", "node-hours", "share of idle", "mean nodes", "share in cut holes"])]
    for each in it.longer_holes:
        cells = [f"{each.count:,}", f"{each.node_hours:,.1f}", f"{each.share:.1%}"]
        rows.append((each.label, [*cells, cell(each.mean_nodes), f"{each.cut_share:.1%}"]))
    return _aligned(rows)


def _width_table(it: Idleness) -> list[str]:
    rows = [("idle at once", ["share of time", "stretches", "mean", "median", "longest", "cut by the window"])]
    for each in it.widths:
        lengths = ["-", "-", "-"]
        if each.mean_s is not None and each.median_s is not None:
            lengths = [span(each.mean_s), span(each.median_s), span(each.length_s[-1])]
        name = f"at least {each.nodes:,}"
        rows.append((name, [f"{each.share_of_time:.1%}", f"{each.stretches:,}", *lengths, str(each.cut)]))
    return _aligned(rows)


def _hour_table(it: Idleness) -> list[str]:
    if it.week is None:
        return ["idle nodes by hour and weekday: unknown, for the times of the log are relative"]
    head = f"mean idle nodes by hour of the day and weekday ({_zone(it.week)})"
    in_window = [[mean is not None for mean in means] for means in (it.week.by_weekday, it.week.by_hour)]
    days_in, hours_in = ([k for k, covered in enumerate(each) if covered] for each in in_window)
    rows = [("", [*(WEEKDAYS[day] for day in days_in), "all days"])]
    for hour in hours_in:
        cells = [*(it.week.mean[day][hour] for day in days_in), it.week.by_hour[hour]]
        rows.append((_hours(hour, hour + 1), [cell(n) for n in cells]))
    rows.append(("all hours", [cell(n) for n in (*(it.week.by_weekday[day] for day in days_in), it.mean_idle_nodes)]))
    missing = [WEEKDAYS[day] for day in range(7) if day not in days_in]
    missing += [_hours(first, last) for first, last in _gaps(hours_in)]
    return [head, *_aligned(rows), *([f"not in the window: {', '.join(missing)}"] if missing else [])]


def _hours(first: int, last: int) -> str:
    return f"{first:02}-{last:02} h"


def _gaps(hours_in: Sequence[int]) -> list[tuple[int, int]]:
    """Each run of hours of the day between those given, as its first hour and the one after its last."""
    return [(before + 1, after) for before, after in pairwise([-1, *hours_in, 24]) if after > before + 1]


def _zone(week: Week) -> str:
    if week.unknown_zone is None:
        return week.time_zone
    return f"UTC, for no zone is known as {week.unknown_zone!r}"


def _burst_table(it: Idleness) -> list[str]:
    shares = [f"{above}/{below}" for above, below in BURST_SHARES]
    rows = [("changes a day", ["all", *(f">= {share} of the idle" for share in shares)])]
    per_day = 86_400 / it.duration_s
    for what, of in (("reclaims", it.reclaim_bursts), ("joins", it.join_bursts)):
        rows.append((what, [cell(of.count * per_day), *(cell(each.per_day) for each in of.large)]))
        rows.append((f"  mean nodes of {what}", [cell(of.mean_nodes), *(cell(each.mean_nodes) for each in of.large)]))
    return _aligned(rows)


def _quantile_table(it: Idleness) -> list[str]:
    def bursts(what: str, of: Bursts) -> tuple[str, list[str]]:
        return f"{what} (mean {cell(of.mean_nodes)})", [f"{n:,.0f}" for n in of.nodes]

    rows = [
        ("idle nodes, over time", [f"{n:,.0f}" for n in it.idle_nodes]),
        ("idle nodes, over events", [f"{n:,.0f}" for n in it.idle_nodes_per_event]),
        ("events an hour", [f"{n:,.0f}" for n in it.events_per_hour]),
        ("gap between events", [span(s) for s in it.gap_s]),
        ("length of a hole", [span(s) for s in it.hole_length_s]),
        bursts("nodes joining", it.join_bursts),
        bursts("nodes reclaimed", it.reclaim_bursts),
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
