"""Idleness as plain text: a paragraph, then tables with units and thousands separators."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

from bfreplay.datasets.idleness.bursts import BURST_SHARES, SETTLE_S, Bursts
from bfreplay.datasets.idleness.figures import Idleness
from bfreplay.datasets.idleness.idle_intervals import HEADLINE_S, LongerIdleIntervals
from bfreplay.datasets.idleness.parts_text import answer_sentences, answer_tables
from bfreplay.datasets.idleness.quantiles import MEDIAN, PERCENTS, Quantiles
from bfreplay.datasets.idleness.week import WEEKDAYS, Week
from bfreplay.datasets.log.metadata import UNITS
from bfreplay.datasets.node_selection import selection_words
from bfreplay.datasets.times import iso_utc
from bfreplay.documents import html_table
from bfreplay.wording import (
    WIDTH,
    Kind,
    ShownTable,
    amount,
    count,
    duration,
    labelled_lines,
    paragraphs,
    percent,
    table_of,
)

_BAR_WIDTH = 24
_FACT_WIDTH = 20
_NAMES_WIDTH = 80

_HOUR_S, _DAY_S = 3_600, 86_400
_DAY_NAMES = dict(
    zip(WEEKDAYS, ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"), strict=True)
)


def render(idleness: Idleness) -> str:
    """Lay out ``idleness`` as text of at most 100 columns, ending in a newline.

    Bars in the table of idle intervals show each bin's share of the idle node-hours. A dash means no
    value: a quantile of nothing, an hour outside the window.
    """
    warnings = [f"Warning: {sentence}" for sentence in idleness.origin.log_warnings.sentences(most=None)]
    texts = [*map(wrapped, (warnings, answer_sentences(idleness), sentences(idleness)))]
    texts += [table.lines() for table in answer_tables(idleness)]
    tables = [longer_table(idleness), longest_table(idleness), width_table(idleness)]
    more_tables = [burst_table(idleness), *quantile_tables(idleness), interval_table(idleness)]
    blocks = [*texts, labelled_lines(_facts(idleness), _FACT_WIDTH)]
    blocks += [*(table.lines() for table in tables if table.rows), _hours(idleness)]
    return paragraphs([*blocks, *(table.lines() for table in more_tables)]) + "\n"


def wrapped(texts: Iterable[str]) -> list[str]:
    """Return sentences in lines."""
    return [line for text in texts for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False)]


def render_html(idleness: Idleness) -> str:
    """Return the facts as a table, with warnings and sentences below it, for a notebook."""
    warnings = [f"Warning: {sentence}" for sentence in idleness.origin.log_warnings.sentences(most=None)]
    texts = [*warnings, *answer_sentences(idleness), *sentences(idleness)]
    return html_table("Idle nodes", _facts(idleness), "", texts)


def _facts(idleness: Idleness) -> Iterator[tuple[str, str]]:
    censored, window = idleness.censored, [iso_utc(idleness.window_start_us), iso_utc(idleness.window_end_us)]
    inventory_text = "" if idleness.origin.node_inventory == "metadata" else " with rows in the log"
    changes = f"{count(idleness.joins, 'join')}, {count(idleness.reclaims, 'reclaim')}"
    edges = f"{censored.open_at_start:,} start, {censored.open_at_end:,} end, {censored.open_at_both:,} both"
    if idleness.origin.cluster is not None:
        yield "cluster", idleness.origin.cluster
    yield "window", f"{' to '.join(window)} ({duration(idleness.duration_s)})"
    chosen = selection_words(idleness.origin.selection)
    yield (
        "nodes",
        f"{idleness.n_nodes:,}{inventory_text}{chosen}; {idleness.nodes_ever_idle:,} of them idle at some time",
    )
    yield "idle all the time", _throughout(idleness)
    yield "idle node-hours", f"{amount(idleness.idle_node_hours)} ({percent(idleness.idle_share)} of all node-time)"
    yield "mean idle nodes", f"{amount(idleness.mean_idle_nodes)} (equivalent nodes)"
    yield "no node idle", f"{percent(idleness.share_without_idle)} of the time"
    yield "pool events", f"{idleness.n_pool_events:,} ({amount(idleness.mean_events_per_hour)} an hour)"
    yield "transitions", f"{idleness.transitions:,} ({changes})"
    yield "complete intervals", f"{idleness.idle_intervals:,}"
    hours = f"{amount(censored.node_hours)} node-hours"
    yield "censored intervals", f"{censored.count:,} by the window ({edges}), {hours}"
    states = [f"{state.state} {percent(state.share)}" for state in idleness.states if state.node_us]
    yield "node-time", ", ".join(states)


def _throughout(idleness: Idleness) -> str:
    """List the nodes idle throughout, as many as fit into a line."""
    names = [interval.node for interval in idleness.longest_idle_intervals if interval.censored == "both"]
    if not names:
        return "no node"
    return textwrap.shorten(f"{count(len(names), 'node')}: {', '.join(names)}", _NAMES_WIDTH, placeholder=" ...")


def longest_table(idleness: Idleness) -> ShownTable:
    """The longest idle interval of each node that is not idle all the time."""
    cells = attrgetter("node", "start_us", "end_us", "length_s", "censored")
    intervals = [interval for interval in idleness.longest_idle_intervals if interval.censored != "both"]
    kinds: dict[str, Kind] = {"node": "text", "from": "time", "to": "time", "length": "seconds", "censored at": "text"}
    return table_of("Longest idle intervals, one a node", kinds, [*map(cells, intervals)])


def longer_table(idleness: Idleness) -> ShownTable:
    """Idle intervals that exceed each of several lengths."""
    cells = attrgetter("label", "count", "node_hours", "share", "mean_nodes", "censored_share")
    kinds: dict[str, Kind] = {"longer than": "text", "count": "count", "node-hours": "amount"}
    kinds |= {"share of idle": "percent", "mean nodes": "amount", "share censored": "percent"}
    return table_of("Idle intervals longer than a length", kinds, [*map(cells, idleness.longer_idle_intervals)])


def width_table(idleness: Idleness) -> ShownTable:
    """Stretches of time in which at least 1, 2, 4, ... nodes are idle."""
    cells = attrgetter("nodes", "share_of_time", "stretches", "censored", "mean_s", "median_s")
    rows = [[*cells(width), width.length_s[-1] if width.length_s else None] for width in idleness.widths]
    kinds: dict[str, Kind] = {"at least": "count", "share of time": "percent", "stretches": "count"}
    kinds |= {"censored": "count", "mean": "seconds", "median": "seconds", "longest": "seconds"}
    return table_of("Nodes idle at once", kinds, rows)


def _hours(idleness: Idleness) -> list[str]:
    """Return the table of hours and weekdays, and what of them the window does not have."""
    if idleness.week is None:
        return ["Idle nodes by hour and weekday: unknown, for the times of the log are relative"]
    days_in, hours_in = _covered(idleness.week.by_weekday), _covered(idleness.week.by_hour)
    missing = [WEEKDAYS[weekday] for weekday in range(7) if weekday not in days_in]
    missing += [_hour_words(first, last) for first, last in _gaps(hours_in)]
    note = [f"not in the window: {', '.join(missing)}"] if missing else []
    return [*hour_table(idleness.week, idleness.mean_idle_nodes).lines(), *note]


def hour_table(week: Week, mean_idle_nodes: float) -> ShownTable:
    """Mean idle nodes by hour of the day and weekday, of those that the window has."""
    days_in, hours_in = _covered(week.by_weekday), _covered(week.by_hour)
    rows = [
        [_hour_words(hour, hour + 1), *(week.mean[weekday][hour] for weekday in days_in), week.by_hour[hour]]
        for hour in hours_in
    ]
    rows.append(["all hours", *(week.by_weekday[weekday] for weekday in days_in), mean_idle_nodes])
    zone = week.time_zone if week.unknown_zone is None else f"UTC, for no zone is known as {week.unknown_zone!r}"
    kinds: dict[str, Kind] = {"hour": "text"}
    kinds |= dict.fromkeys([*(WEEKDAYS[weekday] for weekday in days_in), "all days"], "amount")
    return table_of(f"Mean idle nodes by hour of the day and weekday ({zone})", kinds, rows)


def _covered(means: Sequence[float | None]) -> list[int]:
    return [index for index, mean in enumerate(means) if mean is not None]


def _hour_words(first: int, last: int) -> str:
    return f"{first:02}-{last:02} h"


def _gaps(hours_in: Sequence[int]) -> list[tuple[int, int]]:
    """Return each gap between the given hours of the day, as its first hour and the one after its last."""
    return [(hour + 1, next_hour) for hour, next_hour in pairwise([-1, *hours_in, 24]) if next_hour > hour + 1]


def burst_table(idleness: Idleness) -> ShownTable:
    """Bursts a day and their mean size, of all bursts and of those of a share of the idle nodes."""
    rows: list[list[Any]] = []
    for label, bursts in (("reclaims", idleness.reclaim_bursts), ("joins", idleness.join_bursts)):
        per_day = bursts.count * _DAY_S / idleness.duration_s
        rows.append([f"of {label}", per_day, *(large.per_day for large in bursts.large)])
        rows.append([f"  mean nodes of {label}", bursts.mean_nodes, *(large.mean_nodes for large in bursts.large)])
    shares = [f">= {above}/{below} of the idle" for above, below in BURST_SHARES]
    return table_of("Bursts a day", {"bursts": "text", **dict.fromkeys(["all", *shares], "amount")}, rows)


def quantile_tables(idleness: Idleness) -> list[ShownTable]:
    """Quantiles of numbers, and of lengths of time."""
    numbers = {
        "idle nodes, over time": idleness.idle_nodes,
        "idle nodes, over events": idleness.idle_nodes_per_event,
        "events an hour": idleness.events_per_hour,
        f"nodes joining (mean {amount(idleness.join_bursts.mean_nodes)})": idleness.join_bursts.nodes,
        f"nodes reclaimed (mean {amount(idleness.reclaim_bursts.mean_nodes)})": idleness.reclaim_bursts.nodes,
    }
    times = {"gap between events": idleness.gap_s, "length of an idle interval": idleness.idle_interval_length_s}

    def table(caption: str, kind: Kind, values: Mapping[str, Quantiles]) -> ShownTable:
        kinds: dict[str, Kind] = {"quantiles": "text", **{f"{percentage} %": kind for percentage in PERCENTS}}
        no_values = [None] * len(PERCENTS)
        return table_of(caption, kinds, [[name, *(of_name or no_values)] for name, of_name in values.items()])

    return [table("Quantiles of numbers", "amount", numbers), table("Quantiles of times", "seconds", times)]


def interval_table(idleness: Idleness) -> ShownTable:
    """Complete idle intervals by length, with a bar for the share of the node-hours."""
    node_us = sum(interval_bin.node_us for interval_bin in idleness.idle_interval_bins)
    rows = []
    for interval_bin in idleness.idle_interval_bins:
        share = interval_bin.node_us / node_us if node_us else 0.0
        count_share = interval_bin.count / idleness.idle_intervals if idleness.idle_intervals else 0.0
        bar = "#" * round(share * _BAR_WIDTH)
        rows.append([interval_bin.label, interval_bin.count, count_share, interval_bin.node_hours, share, bar])
    kinds: dict[str, Kind] = {"length": "text", "count": "count", "share": "percent", "node-hours": "amount"}
    return table_of("Complete idle intervals by length", kinds | {"share of node-hours": "percent", "": "text"}, rows)


def sentences(idleness: Idleness) -> list[str]:
    """Describe in sentences how much is idle: lengths of idle intervals, widths, bursts, times of day."""
    word = UNITS[idleness.origin.unit]
    about = f"The nodes of this log are {word}s of nodes that jobs share, and node-hours are {word}-hours."
    of_units = [] if word == "node" else [about]
    if not idleness.idle_node_us:
        nodes = (
            "The only node is never idle"
            if idleness.n_nodes == 1
            else f"None of {idleness.n_nodes:,} nodes is idle at any time"
        )
        return [*of_units, f"{nodes} in {duration(idleness.duration_s)}."]
    mean, hours = amount(idleness.mean_idle_nodes), _idle_node_hours(idleness)
    chosen = selection_words(idleness.origin.selection)
    verb = "is" if mean == "1" or idleness.n_nodes == 1 else "are"
    text = [
        *of_units,
        f"On average {mean} of {count(idleness.n_nodes, 'node')}{chosen} {verb} idle, "
        f"{percent(idleness.idle_share)} of all node-time: {hours} in {duration(idleness.duration_s)}.",
        *_oversubscription(idleness),
        _length(idleness),
        _breadth(idleness),
    ]
    if idleness.reclaims:
        text += [_reclaims(idleness), *settle_advice(idleness.reclaim_bursts)]
    when = when_idle(idleness.week)
    return [*text, when] if when else text


def _oversubscription(idleness: Idleness) -> list[str]:
    """Give the range of idle nodes if it depends on the treatment of oversubscription."""
    hours_by_rule = [value for _, value in idleness.origin.idle_hours_by_rule]
    if not hours_by_rule:
        return []
    extremes = (min(hours_by_rule), max(hours_by_rule))
    fewest, largest = (amount(value * _HOUR_S / idleness.duration_s) for value in extremes)
    if fewest == largest:
        return []
    return [
        "Depending on how jobs that need more nodes than are free are treated (--oversubscription), "
        f"{fewest} to {largest} nodes are idle."
    ]


def _length(idleness: Idleness) -> str:
    by_length = {interval.over_s: interval for interval in idleness.longer_idle_intervals}
    short, long = by_length[HEADLINE_S], by_length[_HOUR_S]
    determiner = "this" if amount(idleness.idle_node_hours) == "1" else "these"
    text = (
        f"Of {determiner} {_idle_node_hours(idleness)}, {percent(short.share)} are in idle intervals longer than "
        f"{short.label}, as if {_nodes(short)} dedicated; "
        f"{percent(long.share)} are in idle intervals longer than {long.label}, "
        f"as if {_nodes(long)}."
    )
    if short.censored_share >= 0.0005:
        text += (
            f" ({percent(short.censored_share)} are in idle intervals cut by an edge of the window and count with the "
            "length seen, a lower bound.)"
        )
    return text


def _idle_node_hours(idleness: Idleness) -> str:
    hours = amount(idleness.idle_node_hours)
    return f"{hours} idle node-hour{'' if hours == '1' else 's'}"


def _nodes(idle_intervals: LongerIdleIntervals) -> str:
    nodes = amount(idle_intervals.mean_nodes)
    return f"{nodes} node{' was' if nodes == '1' else 's were'}"


def _breadth(idleness: Idleness) -> str:
    """Describe the largest number of nodes idle at least half of the time; one node if none is."""
    wide = [width for width in idleness.widths if width.share_of_time >= 0.5]
    width = wide[-1] if wide else idleness.widths[0]
    text = f"At least {count(width.nodes, 'node')} {'is' if width.nodes == 1 else 'are'} idle "
    if width.mean_s is None or width.median_s is None:  # no: some node is idle at some time
        raise AssertionError("idle node-time without a stretch of it")
    text += f"{percent(width.share_of_time)} of the time, for {duration(width.mean_s)} at a stretch on average "
    return text + f"(median {duration(width.median_s)}, longest {duration(width.length_s[-1])})."


def _reclaims(idleness: Idleness) -> str:
    bursts = idleness.reclaim_bursts
    half = bursts.large[-1].count
    at_once = f"go at once {_often(half, idleness)}" if half else "never go at once"
    return (
        f"Nodes are reclaimed {_often(bursts.count, idleness)}, {bursts.nodes[MEDIAN]:,.0f} at once at the median and "
        f"{bursts.nodes[-1]:,.0f} at the most; at least half of the idle nodes {at_once}."
    )


def settle_advice(reclaims: Bursts) -> list[str]:
    """Return what to do where reclaims of one batch job would be charged apart; nothing where there are none."""
    if not reclaims.soon:
        return []
    share = percent(reclaims.soon / reclaims.count)
    return [
        f"{share} of the instants with reclaims follow another within {SETTLE_S:g} s, as where one batch job takes its "
        f"nodes: --settle {SETTLE_S:g} replays them as one."
    ]


def _often(times: int, idleness: Idleness) -> str:
    per_day = times * _DAY_S / idleness.duration_s
    number, span_of_time = (
        (amount(per_day), "a day") if per_day >= 1 else (f"{times:,}", f"in {duration(idleness.duration_s)}")
    )
    words = {"1": "once", "2": "twice"}
    return f"{words.get(number, f'{number} times')} {span_of_time}"


def when_idle(week: Week | None) -> str:
    """Describe the hours of the day, and the weekdays, if the window covers all of them."""
    if week is None:
        return "The times of the log are relative, so it has no hour of the day."
    by_hour, by_day = _all(week.by_hour), _all(week.by_weekday)
    if not by_hour or max(by_hour) == min(by_hour):
        return ""
    busiest, quietest = by_hour.index(max(by_hour)), by_hour.index(min(by_hour))
    text = (
        f"Over the day ({week.time_zone}), most are idle from {_hour(busiest)} ({amount(by_hour[busiest])}), "
        f"fewest from {_hour(quietest)} ({amount(by_hour[quietest])})"
    )
    if by_day and max(by_day) > min(by_day):
        best, worst = by_day.index(max(by_day)), by_day.index(min(by_day))
        names = [_DAY_NAMES[WEEKDAYS[weekday]] for weekday in (best, worst)]
        text += f"; over the week, most on {names[0]} ({amount(by_day[best])}), "
        text += f"fewest on {names[1]} ({amount(by_day[worst])})"
    return text + "."


def _hour(hour: int) -> str:
    return f"{hour:02}:00 to {hour + 1:02}:00"


def _all(means: Sequence[float | None]) -> list[float]:
    """Return the means if none is missing, else nothing."""
    values = [mean for mean in means if mean is not None]
    return values if len(values) == len(means) else []
