"""Idleness as plain text: a paragraph, then tables with units and thousands separators."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise

from bfreplay.datasets.idleness.bursts import BURST_SHARES, Bursts
from bfreplay.datasets.idleness.figures import Idleness
from bfreplay.datasets.idleness.idle_intervals import LongerIdleIntervals
from bfreplay.datasets.idleness.quantiles import MEDIAN, PERCENTS
from bfreplay.datasets.idleness.week import WEEKDAYS, Week
from bfreplay.datasets.times import iso_utc
from bfreplay.wording import aligned_lines, amount, count, percent

WIDTH = 100
"""Widest line, unless a name in the log is longer."""

_BAR_WIDTH = 24
_NAMES_WIDTH = 74

HEADLINE_S = 600
"""First length of an idle interval in the paragraph; the second is an hour."""

_HOUR_S, _DAY_S = 3_600, 86_400
_DAY_NAMES = dict(
    zip(WEEKDAYS, ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"), strict=True)
)


def render(idleness: Idleness) -> str:
    """Lay out ``idleness`` as text of at most 100 columns, ending in a newline.

    Bars in the table of idle intervals show each bin's share of the idle node-hours. A dash means no
    value: a quantile of nothing, an hour outside the window.
    """
    it = idleness
    warnings = [f"Warning: {sentence}" for sentence in it.origin.log_warnings.sentences(most=None)]
    blocks = [
        [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, WIDTH, break_on_hyphens=False)]
        for paragraphs in (warnings, [" ".join(sentences(it))])
    ]
    blocks += [_facts(it), _longer_table(it), *_longest_table(it), _width_table(it), _hour_table(it), _burst_table(it)]
    blocks += [_quantile_table(it), _idle_interval_table(it)]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _facts(idleness: Idleness) -> list[str]:
    cut = idleness.censored
    inventory_text = "" if idleness.origin.node_inventory == "metadata" else " with rows in the log"
    facts = [
        (
            "window",
            f"{iso_utc(idleness.window_start_us)} to {iso_utc(idleness.window_end_us)} ({days(idleness.duration_s)})",
        ),
        ("nodes", f"{idleness.n_nodes:,}{inventory_text}; {idleness.nodes_ever_idle:,} of them idle at some time"),
        ("idle all the time", _throughout(idleness)),
        ("idle node-hours", f"{few(idleness.idle_node_hours)} ({percent(idleness.idle_share)} of all node-time)"),
        ("mean idle nodes", f"{idleness.mean_idle_nodes:,.1f} (equivalent nodes)"),
        ("no node idle", f"{percent(idleness.share_without_idle)} of the time"),
        ("pool events", f"{idleness.n_pool_events:,} ({idleness.mean_events_per_hour:,.1f} an hour)"),
        (
            "transitions",
            f"{idleness.transitions:,} ({count(idleness.joins, 'join')}, {count(idleness.reclaims, 'reclaim')})",
        ),
        ("complete intervals", f"{idleness.idle_intervals:,}"),
        (
            "censored intervals",
            f"{cut.count:,} by the window ({cut.open_at_start:,} start, "
            f"{cut.open_at_end:,} end, {cut.open_at_both:,} both), {few(cut.node_hours)} node-hours",
        ),
        ("node-time", ", ".join(f"{state.state} {percent(state.share)}" for state in idleness.states if state.node_us)),
    ]
    if idleness.origin.cluster is not None:
        facts.insert(0, ("cluster", idleness.origin.cluster))
    width = max(len(name) for name, _ in facts)
    return [f"{name:<{width}}  {value}" for name, value in facts]


def _throughout(idleness: Idleness) -> str:
    """List the nodes idle throughout, as many as fit into a line."""
    names = [interval.node for interval in idleness.longest_idle_intervals if interval.censored == "both"]
    if not names:
        return "no node"
    node_list, n_names = f"{count(len(names), 'node')}: {names[0]}", 1
    while n_names < len(names) and len(node_list) + len(names[n_names]) <= _NAMES_WIDTH:
        node_list += f", {names[n_names]}"
        n_names += 1
    return node_list if n_names == len(names) else f"{node_list}, ..."


def _longest_table(idleness: Idleness) -> list[list[str]]:
    """Lay out the longest idle intervals of nodes not idle all the time; empty without idle intervals."""
    idle_intervals = [interval for interval in idleness.longest_idle_intervals if interval.censored != "both"]
    rows: list[tuple[str, ...]] = [("longest intervals, one a node", "from", "to", "length", "censored")]
    for idle_interval in idle_intervals:
        edges = [iso_utc(idle_interval.start_us), iso_utc(idle_interval.end_us)]
        rows.append(
            (
                idle_interval.node,
                *edges,
                span(idle_interval.length_s),
                "-" if idle_interval.censored is None else f"at its {idle_interval.censored}",
            )
        )
    return [aligned_lines(rows)] if idle_intervals else []


def _longer_table(idleness: Idleness) -> list[str]:
    head = ("intervals longer than", "count", "node-hours", "share of idle", "mean nodes", "share censored")
    rows: list[tuple[str, ...]] = [head]
    for interval in idleness.longer_idle_intervals:
        cells = [f"{interval.count:,}", f"{interval.node_hours:,.1f}", f"{percent(interval.share)}"]
        rows.append((interval.label, *cells, cell(interval.mean_nodes), percent(interval.censored_share)))
    return aligned_lines(rows)


def _width_table(idleness: Idleness) -> list[str]:
    head = ("idle at once", "share of time", "stretches", "mean", "median", "longest", "censored")
    rows: list[tuple[str, ...]] = [head]
    for width in idleness.widths:
        lengths = ["-", "-", "-"]
        if width.mean_s is not None and width.median_s is not None:
            lengths = [span(width.mean_s), span(width.median_s), span(width.length_s[-1])]
        name = f"at least {width.nodes:,}"
        rows.append((name, percent(width.share_of_time), f"{width.stretches:,}", *lengths, str(width.censored)))
    return aligned_lines(rows)


def _hour_table(idleness: Idleness) -> list[str]:
    if idleness.week is None:
        return ["idle nodes by hour and weekday: unknown, for the times of the log are relative"]
    head = f"mean idle nodes by hour of the day and weekday ({_zone(idleness.week)})"
    in_window = [[mean is not None for mean in means] for means in (idleness.week.by_weekday, idleness.week.by_hour)]
    days_in, hours_in = ([index for index, has_time in enumerate(flags) if has_time] for flags in in_window)
    rows = [("", *(WEEKDAYS[weekday] for weekday in days_in), "all days")]
    for hour in hours_in:
        cells = [*(idleness.week.mean[weekday][hour] for weekday in days_in), idleness.week.by_hour[hour]]
        rows.append((_hours(hour, hour + 1), *map(cell, cells)))
    rows.append(
        ("all hours", *(cell(idleness.week.by_weekday[weekday]) for weekday in days_in), cell(idleness.mean_idle_nodes))
    )
    missing = [WEEKDAYS[weekday] for weekday in range(7) if weekday not in days_in]
    missing += [_hours(first, last) for first, last in _gaps(hours_in)]
    return [head, *aligned_lines(rows), *([f"not in the window: {', '.join(missing)}"] if missing else [])]


def _hours(first: int, last: int) -> str:
    return f"{first:02}-{last:02} h"


def _gaps(hours_in: Sequence[int]) -> list[tuple[int, int]]:
    """Return each gap between the given hours of the day, as its first hour and the one after its last."""
    return [(hour + 1, next_hour) for hour, next_hour in pairwise([-1, *hours_in, 24]) if next_hour > hour + 1]


def _zone(week: Week) -> str:
    if week.unknown_zone is None:
        return week.time_zone
    return f"UTC, for no zone is known as {week.unknown_zone!r}"


def _burst_table(idleness: Idleness) -> list[str]:
    shares = [f"{above}/{below}" for above, below in BURST_SHARES]
    rows = [("bursts a day", "all", *(f">= {share} of the idle" for share in shares))]
    per_day = 86_400 / idleness.duration_s
    for label, burst_figures in (("reclaims", idleness.reclaim_bursts), ("joins", idleness.join_bursts)):
        rows.append(
            (
                f"of {label}",
                cell(burst_figures.count * per_day),
                *(cell(share_figures.per_day) for share_figures in burst_figures.large),
            )
        )
        rows.append(
            (
                f"  mean nodes of {label}",
                cell(burst_figures.mean_nodes),
                *(cell(share_figures.mean_nodes) for share_figures in burst_figures.large),
            )
        )
    return aligned_lines(rows)


def _quantile_table(idleness: Idleness) -> list[str]:
    def bursts(label: str, burst_figures: Bursts) -> tuple[str, list[str]]:
        return f"{label} (mean {cell(burst_figures.mean_nodes)})", [f"{number:,.0f}" for number in burst_figures.nodes]

    rows = [
        ("idle nodes, over time", [f"{number:,.0f}" for number in idleness.idle_nodes]),
        ("idle nodes, over events", [f"{number:,.0f}" for number in idleness.idle_nodes_per_event]),
        ("events an hour", [f"{number:,.0f}" for number in idleness.events_per_hour]),
        ("gap between events", [span(seconds) for seconds in idleness.gap_s]),
        ("length of an idle interval", [span(seconds) for seconds in idleness.idle_interval_length_s]),
        bursts("nodes joining", idleness.join_bursts),
        bursts("nodes reclaimed", idleness.reclaim_bursts),
    ]
    head = ("quantiles", *(f"{percent_} %" for percent_ in PERCENTS))
    return aligned_lines([head, *((name, *(values or ["-"] * 7)) for name, values in rows)])


def _idle_interval_table(idleness: Idleness) -> list[str]:
    node_us = sum(interval_bin.node_us for interval_bin in idleness.idle_interval_bins)
    rows = [("complete intervals", "count", "", "node-hours", "", "share of node-hours")]
    for interval_bin in idleness.idle_interval_bins:
        share = interval_bin.node_us / node_us if node_us else 0.0
        count_share = interval_bin.count / idleness.idle_intervals if idleness.idle_intervals else 0.0
        bar = "#" * round(share * _BAR_WIDTH)
        rows.append(
            (
                interval_bin.label,
                f"{interval_bin.count:,}",
                percent(count_share),
                f"{interval_bin.node_hours:,.1f}",
                percent(share),
                bar,
            )
        )
    return aligned_lines(rows, left=(0, 5))


def sentences(idleness: Idleness) -> list[str]:
    """Describe in sentences how much is idle: lengths of idle intervals, widths, bursts, times of day."""
    if not idleness.idle_node_us:
        nodes = (
            "The only node is never idle"
            if idleness.n_nodes == 1
            else f"None of {idleness.n_nodes:,} nodes is idle at any time"
        )
        return [f"{nodes} in {days(idleness.duration_s)}."]
    mean = few(idleness.mean_idle_nodes)
    verb, duration = "is" if mean == "1" or idleness.n_nodes == 1 else "are", days(idleness.duration_s)
    text = [
        f"On average {mean} of {count(idleness.n_nodes, 'node')} {verb} idle, "
        f"{percent(idleness.idle_share)} of all node-time: {_idle_node_hours(idleness)} in {duration}.",
        *_oversubscription(idleness),
        _length(idleness),
        _breadth(idleness),
    ]
    if idleness.reclaims:
        text.append(_reclaims(idleness))
    when = _when(idleness)
    return [*text, when] if when else text


def _oversubscription(idleness: Idleness) -> list[str]:
    """Give the range of idle nodes if it depends on the treatment of oversubscription."""
    hours_by_rule = [value for _, value in idleness.origin.idle_hours_by_rule]
    if not hours_by_rule:
        return []
    fewest, largest = (few(value * _HOUR_S / idleness.duration_s) for value in (min(hours_by_rule), max(hours_by_rule)))
    if fewest == largest:
        return []
    return [
        "Depending on how jobs that need more nodes than are free are treated (--oversubscription), "
        f"{fewest} to {largest} nodes are idle."
    ]


def _length(idleness: Idleness) -> str:
    by_length = {interval.over_s: interval for interval in idleness.longer_idle_intervals}
    short, long = by_length[HEADLINE_S], by_length[_HOUR_S]
    determiner = "this" if few(idleness.idle_node_hours) == "1" else "these"
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
    hours = few(idleness.idle_node_hours)
    return f"{hours} idle node-hour{'' if hours == '1' else 's'}"


def _nodes(idle_intervals: LongerIdleIntervals) -> str:
    nodes = few(idle_intervals.mean_nodes)
    return f"{nodes} node{' was' if nodes == '1' else 's were'}"


def _breadth(idleness: Idleness) -> str:
    """Describe the largest number of nodes idle at least half of the time; one node if none is."""
    wide = [width for width in idleness.widths if width.share_of_time >= 0.5]
    width = wide[-1] if wide else idleness.widths[0]
    text = f"At least {count(width.nodes, 'node')} {'is' if width.nodes == 1 else 'are'} idle "
    if width.mean_s is None or width.median_s is None:  # no: some node is idle at some time
        raise AssertionError("idle node-time without a stretch of it")
    text += f"{percent(width.share_of_time)} of the time, for {span(width.mean_s)} at a stretch on average "
    return text + f"(median {span(width.median_s)}, longest {span(width.length_s[-1])})."


def _reclaims(idleness: Idleness) -> str:
    bursts = idleness.reclaim_bursts
    half = bursts.large[-1].count
    at_once = f"go at once {_often(half, idleness)}" if half else "never go at once"
    return (
        f"Nodes are reclaimed {_often(bursts.count, idleness)}, {bursts.nodes[MEDIAN]:,.0f} at once at the median and "
        f"{bursts.nodes[-1]:,.0f} at the most; at least half of the idle nodes {at_once}."
    )


def _often(times: int, idleness: Idleness) -> str:
    per_day = times * _DAY_S / idleness.duration_s
    number, span_of_time = (
        (few(per_day), "a day") if per_day >= 1 else (f"{times:,}", f"in {days(idleness.duration_s)}")
    )
    words = {"1": "once", "2": "twice"}
    return f"{words.get(number, f'{number} times')} {span_of_time}"


def _when(idleness: Idleness) -> str:
    """Describe the hours of the day, and the weekdays, if the window covers all of them."""
    if idleness.week is None:
        return "The times of the log are relative, so it has no hour of the day."
    by_hour, by_day = _all(idleness.week.by_hour), _all(idleness.week.by_weekday)
    if not by_hour or max(by_hour) == min(by_hour):
        return ""
    busiest, quietest = by_hour.index(max(by_hour)), by_hour.index(min(by_hour))
    text = (
        f"Over the day ({idleness.week.time_zone}), most are idle from {_hour(busiest)} ({few(by_hour[busiest])}), "
        f"fewest from {_hour(quietest)} ({few(by_hour[quietest])})"
    )
    if by_day and max(by_day) > min(by_day):
        best, worst = by_day.index(max(by_day)), by_day.index(min(by_day))
        names = [_DAY_NAMES[WEEKDAYS[weekday]] for weekday in (best, worst)]
        text += f"; over the week, most on {names[0]} ({few(by_day[best])}), "
        text += f"fewest on {names[1]} ({few(by_day[worst])})"
    return text + "."


def _hour(hour: int) -> str:
    return f"{hour:02}:00 to {hour + 1:02}:00"


def _all(means: Sequence[float | None]) -> list[float]:
    """Return the means if none is missing, else nothing."""
    values = [mean for mean in means if mean is not None]
    return values if len(values) == len(means) else []


def few(value: float | None) -> str:
    """Format a number: ``-`` for ``None``, whole from 100 on, else as ``amount``."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else amount(value)


def cell(value: float | None) -> str:
    """Format a number for a column: ``-`` for ``None``, whole from 100 on, else with one decimal."""
    if value is None or value >= 100:
        return few(value)
    return f"{value:.1f}" if value >= 0.05 or value == 0 else "<0.1"


def days(seconds: float) -> str:
    """Format days with three decimals, but ``1 day``; less than a day in its natural unit."""
    if seconds == _DAY_S:
        return "1 day"
    return f"{seconds / _DAY_S:,.3f} days" if seconds >= _DAY_S else span(seconds)


def span(seconds: float) -> str:
    """Write a length of time in its natural unit, to about three digits."""
    for unit, length in (("d", _DAY_S), ("h", _HOUR_S), ("min", 60)):
        if seconds >= 2 * length:
            return f"{cell(seconds / length)} {unit}"
    return f"{seconds:,.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.3g} s"
