"""The first answer in a few plain sentences, and how its numbers are written."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.datasets.idleness.figures import Idleness
from bfreplay.datasets.idleness.holes import LongerHoles
from bfreplay.datasets.idleness.quantiles import MEDIAN
from bfreplay.datasets.idleness.week import WEEKDAYS
from bfreplay.wording import amount, count

HEADLINE_S = 600
"""The first length of a hole that the paragraph speaks of; the second is an hour."""

_HOUR_S, _DAY_S = 3_600, 86_400
_DAY_NAMES = dict(
    zip(WEEKDAYS, ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"), strict=True)
)


def sentences(it: Idleness) -> list[str]:
    """How much is idle, in how long holes, how wide, how bursty, and when."""
    if not it.idle_node_us:
        nodes = (
            "The only node is never idle" if it.n_nodes == 1 else f"None of {it.n_nodes:,} nodes is idle at any time"
        )
        return [f"{nodes} in {days(it.duration_s)}."]
    mean = few(it.mean_idle_nodes)
    said = [
        f"On average {mean} of {count(it.n_nodes, 'node')} {'is' if mean == '1' or it.n_nodes == 1 else 'are'} idle, "
        f"{it.idle_share:.1%} of all node-time: {_idle_node_hours(it)} in {days(it.duration_s)}.",
        *_oversubscribed(it),
        _length(it),
        _breadth(it),
    ]
    if it.reclaims:
        said.append(_reclaims(it))
    when = _when(it)
    return [*said, when] if when else said


def _oversubscribed(it: Idleness) -> list[str]:
    """Give the range of idle nodes, where it depends on how jobs above the machine are treated."""
    hours_by_rule = [value for _, value in it.origin.idle_hours_by_rule]
    if not hours_by_rule:
        return []
    least, most = (few(value * _HOUR_S / it.duration_s) for value in (min(hours_by_rule), max(hours_by_rule)))
    if least == most:
        return []
    return [
        "Depending on how jobs that need more nodes than are free are treated (--over-capacity), "
        f"{least} to {most} nodes are idle."
    ]


def _length(it: Idleness) -> str:
    by_length = {each.over_s: each for each in it.longer_holes}
    short, long = by_length[HEADLINE_S], by_length[_HOUR_S]
    these = "this" if hours(it.idle_node_hours) == "1" else "these"
    text = (
        f"Of {these} {_idle_node_hours(it)}, {short.share:.1%} are in holes longer than "
        f"{short.label}, as if {_nodes(short)} dedicated; {long.share:.1%} are in holes longer than {long.label}, "
        f"as if {_nodes(long)}."
    )
    if f"{short.cut_share:.1%}" != "0.0%":
        text += (
            f" ({short.cut_share:.1%} are in holes cut by an edge of the window, which count with the length seen, "
            "a lower bound.)"
        )
    return text


def _idle_node_hours(it: Idleness) -> str:
    said = hours(it.idle_node_hours)
    return f"{said} idle node-hour{'' if said == '1' else 's'}"


def _nodes(holes: LongerHoles) -> str:
    nodes = few(holes.mean_nodes)
    return f"{nodes} node{' was' if nodes == '1' else 's were'}"


def _breadth(it: Idleness) -> str:
    """Of the most nodes that are idle at least half of the time; of one node where not even that is."""
    wide = [each for each in it.widths if each.share_of_time >= 0.5]
    width = wide[-1] if wide else it.widths[0]
    text = f"At least {count(width.nodes, 'node')} {'is' if width.nodes == 1 else 'are'} idle "
    if width.mean_s is None or width.median_s is None:  # no: some node is idle at some time
        raise AssertionError("idle node-time without a stretch of it")
    text += f"{width.share_of_time:.1%} of the time, for {span(width.mean_s)} at a stretch on average "
    return text + f"(median {span(width.median_s)}, longest {span(width.length_s[-1])})."


def _reclaims(it: Idleness) -> str:
    of = it.reclaim_bursts
    half = of.large[-1].count
    at_once = f"go at once {_often(half, it)}" if half else "never go at once"
    return (
        f"Nodes are taken back {_often(of.count, it)}, {of.nodes[MEDIAN]:,.0f} at once at the median and "
        f"{of.nodes[-1]:,.0f} at the most; at least half of the idle nodes {at_once}."
    )


def _often(times: int, it: Idleness) -> str:
    per_day = times * _DAY_S / it.duration_s
    number, span_of_time = (few(per_day), "a day") if per_day >= 1 else (f"{times:,}", f"in {days(it.duration_s)}")
    words = {"1": "once", "2": "twice"}
    return f"{words.get(number, f'{number} times')} {span_of_time}"


def _when(it: Idleness) -> str:
    """Speak of hours only where all are covered, of weekdays likewise."""
    if it.week is None:
        return "The times of the log are relative, so it has no hour of the day."
    by_hour, by_day = _all(it.week.by_hour), _all(it.week.by_weekday)
    if not by_hour or max(by_hour) == min(by_hour):
        return ""
    most, least = by_hour.index(max(by_hour)), by_hour.index(min(by_hour))
    text = (
        f"Over the day ({it.week.time_zone}), most are idle from {_hour(most)} ({few(by_hour[most])}), fewest "
        f"from {_hour(least)} ({few(by_hour[least])})"
    )
    if by_day and max(by_day) > min(by_day):
        top, bottom = by_day.index(max(by_day)), by_day.index(min(by_day))
        names = [_DAY_NAMES[WEEKDAYS[day]] for day in (top, bottom)]
        text += (
            f"; over the week, most on {names[0]} ({few(by_day[top])}), fewest on {names[1]} ({few(by_day[bottom])})"
        )
    return text + "."


def _hour(hour: int) -> str:
    return f"{hour:02}:00 to {hour + 1:02}:00"


def _all(means: Sequence[float | None]) -> list[float]:
    """The means where none is missing, else nothing."""
    known = [mean for mean in means if mean is not None]
    return known if len(known) == len(means) else []


def few(value: float | None) -> str:
    """``-`` for nothing; whole from 100 on, else as ``amount``."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else amount(value)


def cell(value: float | None) -> str:
    """``-`` for nothing; whole from 100 on, else with one decimal, so that a column can be read down."""
    if value is None or value >= 100:
        return few(value)
    return f"{value:.1f}" if value >= 0.05 or value == 0 else "<0.1"


def hours(node_hours: float) -> str:
    """Node-hours, whole from 100 on."""
    return few(node_hours)


def days(seconds: float) -> str:
    """Days with three decimals, but ``1 day``; less than a day in its natural unit."""
    if seconds == _DAY_S:
        return "1 day"
    return f"{seconds / _DAY_S:,.3f} days" if seconds >= _DAY_S else span(seconds)


def span(seconds: float) -> str:
    """Write a length of time in its natural unit, to about three digits."""
    for unit, length in (("d", _DAY_S), ("h", _HOUR_S), ("min", 60)):
        if seconds >= 2 * length:
            return f"{cell(seconds / length)} {unit}"
    return f"{seconds:,.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.3g} s"
