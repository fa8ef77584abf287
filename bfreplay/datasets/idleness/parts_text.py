"""Idle time by part, its reasons, and logs side by side, as sentences and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bfreplay.datasets.idleness.figures import Idleness
from bfreplay.datasets.idleness.idle_intervals import HEADLINE_S
from bfreplay.datasets.idleness.parts import IdleParts, Part
from bfreplay.datasets.idleness.quantiles import MEDIAN
from bfreplay.datasets.idleness.reasons import FITS, NOBODY, NOT_KNOWN, TOO_WIDE, IdleReasons
from bfreplay.datasets.log.metadata import UNITS
from bfreplay.datasets.times import HOUR_US
from bfreplay.wording import Kind, ShownTable, amount, count, percent, table_of, value_text

MOST_ROWS = 25
"""Rows of a table of parts in text; JSON has all."""

_HAS = {"partition": "the nodes in {} have", "type": "nodes of type {} have", "node": "node {} has"}
_HAS |= dict.fromkeys(("month", "weekday"), "{} has")
_FEW = 0.005
_DAY_S = 86_400


def answer_sentences(idleness: Idleness) -> list[str]:
    """Say why no job ran, what leaving nodes out means, and where or when nodes were idle, as far as asked for."""
    reasons = [] if idleness.reasons is None else reason_sentences(idleness.reasons)
    if idleness.left_out_us:
        remaining_hours = max(idleness.idle_node_us - idleness.left_out_us, 0) / HOUR_US
        reasons.append(
            f"The batch jobs of the nodes left out, {amount(idleness.left_out_us / HOUR_US)} node-hours, are left out "
            f"too: if they had to run on the other nodes, {amount(remaining_hours)} to "
            f"{amount(idleness.idle_node_hours)} idle node-hours would remain."
        )
    return reasons + ([] if idleness.parts is None else part_sentences(idleness.parts))


def answer_tables(idleness: Idleness, most: int | None = MOST_ROWS) -> list[ShownTable]:
    """Return the tables of reasons and parts, as far as they were asked for."""
    tables = [] if idleness.reasons is None else reason_tables(idleness.reasons)
    return tables + ([] if idleness.parts is None else [part_table(idleness.parts, most)])


def part_sentences(idle: IdleParts) -> list[str]:
    """Describe the parts: the one with most idle time, what changed over the last two months, unused nodes."""
    parts, whole_us = idle.parts, sum(part.idle_node_us for part in idle.parts)
    if not whole_us:
        return []
    most = max(parts, key=lambda part: part.idle_node_us)
    share, whole = percent(most.idle_node_us / whole_us), amount(whole_us / HOUR_US)
    text = [
        f"By {idle.by}, {_HAS[idle.by].format(most.name)} the largest share of the idle time: {share}, "
        f"{amount(most.idle_node_hours)} of {whole} idle node-hours; {percent(most.idle_share)} of that node-time is "
        "idle."
    ]
    if idle.by == "month" and len(parts) > 1:
        text.append(_change(parts[-2].name, parts[-2].mean_idle_nodes, parts[-1].name, parts[-1].mean_idle_nodes))
    unused = [node for part in parts for node in part.unused]
    if unused:
        names = ", ".join(unused[:5]) + (f" and {len(unused) - 5:,} more" if len(unused) > 5 else "")
        text.append(f"No job ran on {count(len(unused), 'node')} at any time: {names}.")
    if idle.is_by_jobs:
        text.append(
            "The nodes of a partition are those on which its jobs ran; --units FILE at import says which it has."
        )
    return text


def part_table(idle: IdleParts, most: int | None = MOST_ROWS) -> ShownTable:
    """Idle time by part, and the whole; ``most`` rows of parts."""
    shown = idle.parts[:most]
    rows = [_part_row(part) for part in shown]
    n_nodes = idle.parts[0].n_nodes if idle.by in ("month", "weekday") else sum(part.n_nodes for part in idle.parts)
    idle_us, node_us = (sum(getattr(part, name) for part in idle.parts) for name in ("idle_node_us", "node_us"))
    n_intervals, unused = sum(part.idle_intervals for part in idle.parts), sum(len(part.unused) for part in idle.parts)
    mean = idle_us / node_us * n_nodes
    rows.append(["all", n_nodes, idle_us / HOUR_US, idle_us / node_us, mean, n_intervals, None, None, unused])
    rest = f", {len(idle.parts) - len(shown)} more with --json" if len(shown) < len(idle.parts) else ""
    zone = f" ({idle.time_zone})" if idle.time_zone else ""
    kinds: dict[str, Kind] = {idle.by: "text", "nodes": "count", "idle node-hours": "amount", "share": "percent"}
    kinds |= {"mean idle": "amount", "intervals": "count", "median": "seconds", "longest": "seconds"}
    return table_of(f"Idle time by {idle.by}{zone}{rest}", kinds | {"unused": "count"}, rows)


def _part_row(part: Part) -> list[object]:
    figures = part.name, part.n_nodes, part.idle_node_hours, part.idle_share, part.mean_idle_nodes
    return [*figures, part.idle_intervals, part.median_s, part.longest_s, len(part.unused)]


def reason_sentences(reasons: IdleReasons) -> list[str]:
    """Say why no job ran, the largest reason first, and what is not known."""
    total_us = reasons.total_us
    if not total_us:
        return []
    shares = sorted(((node_us / total_us, reason) for reason, node_us in reasons.node_us.items()), reverse=True)
    words = [f"{percent(share)} {_as_clause(reason)}" for share, reason in shares if share >= _FEW]
    hours = amount(total_us / HOUR_US)
    text = [f"Of {hours} node-hour{'' if hours == '1' else 's'} without a job, {', '.join(words)}."]
    if reasons.n_unknown:
        jobs = count(reasons.n_unknown, "batch job")
        text.append(f"The log does not say since when {jobs} waited, or for how many nodes: as if they had not waited.")
    if reasons.n_elsewhere:
        jobs = count(reasons.n_elsewhere, "batch job")
        text.append(f"{jobs} waited for partitions of which the log has no node: as if they had not waited.")
    return text


def _as_clause(reason: str) -> str:
    clauses = {
        NOBODY: "were idle while no job waited for them",
        NOT_KNOWN: "were idle, and it is not known whether a job waited for them",
        TOO_WIDE: "were idle while each waiting job was too wide",
        FITS: "were idle though a waiting job would have fitted by its width (a limit, its priority, memory, or the "
        "scheduler's cycle held it)",
    }
    return clauses.get(reason, f"were {reason}")


def reason_tables(reasons: IdleReasons) -> list[ShownTable]:
    """Node-hours without a job by reason, and of idle nodes by partition too."""
    total_us = reasons.total_us
    rows = [
        [reason, node_us / HOUR_US, node_us / total_us]
        for reason, node_us in sorted(reasons.node_us.items(), key=lambda pair: -pair[1])
    ]
    kinds: dict[str, Kind] = {"reason": "text", "node-hours": "amount", "share": "percent"}
    tables = [table_of("Why no job ran", kinds, rows)]
    if len(reasons.groups) > 1:
        by_size = sorted(reasons.groups.items(), key=lambda pair: -sum(pair[1].values()))
        of_groups = [
            [name, sum(of_group.values()) / HOUR_US, *_shares(of_group)]
            for name, of_group in by_size[:MOST_ROWS]
            if sum(of_group.values())
        ]
        heads: dict[str, Kind] = {"partition": "text", "idle node-hours": "amount", NOBODY: "percent"}
        heads |= {TOO_WIDE: "percent", FITS: "percent"}
        tables.append(table_of("Why nodes were idle, by partition", heads, of_groups))
    return tables


def _shares(of_group: Mapping[str, int]) -> list[float]:
    whole_us = sum(of_group.values())
    return [of_group[reason] / whole_us for reason in (NOBODY, TOO_WIDE, FITS)]


# ---- two logs side by side -------------------------------------------------------------------------------------------


def comparison_sentences(labels: Sequence[str], logs: Sequence[Idleness]) -> list[str]:
    """Say what changed from the first log to the last one: idle nodes, and the reason or the part that changed most."""
    first, last = logs[0], logs[-1]
    words = [UNITS[log.origin.unit] for log in logs]
    if others := [word for word in words if word != words[0]]:
        return [f"The logs cannot be compared: one is of {words[0]}s, another of {others[0]}s."]
    text = [_change(labels[0], first.mean_idle_nodes, labels[-1], last.mean_idle_nodes)]
    if first.reasons and last.reasons:  # one of them may have no time for a reason
        reasons = dict.fromkeys({**_reason_nodes(first), **_reason_nodes(last)}, 0.0)
        text += _largest_change("Reason", reasons | _reason_nodes(first), reasons | _reason_nodes(last))
    text += _largest_change("Part", _part_nodes(first), _part_nodes(last))
    if first.n_nodes != last.n_nodes:
        text.append(f"The last log has {count(last.n_nodes, words[-1])}, not {first.n_nodes:,}.")
    return text


def _largest_change(what: str, before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """Name what changed most, among the names that both logs have."""
    changes = {name: abs(after[name] - before[name]) for name in before if name in after}
    if not changes:
        return []
    name = max(changes, key=lambda key: changes[key])
    return [f"{what} that changed most: {name}, from {amount(before[name])} to {amount(after[name])} nodes on average."]


def _change(first_label: str, first: float, last_label: str, last: float) -> str:
    change = f" ({_sign(last - first)}{percent(abs(last / first - 1))})" if first else ""
    return f"From {first_label} to {last_label}, mean idle nodes went from {amount(first)} to {amount(last)}{change}."


def _reason_nodes(idleness: Idleness) -> dict[str, float]:
    """Return the mean nodes without a job by reason."""
    span_us = idleness.window_end_us - idleness.window_start_us
    reasons = {} if idleness.reasons is None else idleness.reasons.node_us
    return {reason: node_us / span_us for reason, node_us in reasons.items()}


def _part_nodes(idleness: Idleness) -> dict[str, float]:
    return {} if idleness.parts is None else {part.name: part.mean_idle_nodes for part in idleness.parts.parts}


def comparison_table(labels: Sequence[str], logs: Sequence[Idleness]) -> ShownTable:
    """Key figures of each log, mean nodes by state, reason and part, and the change from the first to the last one."""
    figures = [_figures(idleness) for idleness in logs]
    rows = []
    for name, (kind, _) in {name: figure for of_log in figures for name, figure in of_log.items()}.items():
        values = [of_log[name][1] if name in of_log else None for of_log in figures]
        first, last = values[0], values[-1]
        change = f"{_sign(last - first)}{percent(abs(last / first - 1))}" if first and last is not None else None
        rows.append([name, *(value_text(value, kind, "-") for value in values), change])
    kinds: dict[str, Kind] = dict.fromkeys(["figure", *labels, "change"], "text")
    return table_of("Side by side (mean nodes, where nothing else is said)", kinds, rows)


def _figures(idleness: Idleness) -> dict[str, tuple[Kind, float | None]]:
    """Return the figures of a log by name, with the format of each."""
    longer = {interval.over_s: interval for interval in idleness.longer_idle_intervals}[HEADLINE_S]
    span_us, lengths_s = idleness.window_end_us - idleness.window_start_us, idleness.idle_interval_length_s
    figures: dict[str, tuple[Kind, float | None]] = {
        "length of the log": ("seconds", idleness.duration_s),
        "nodes": ("count", idleness.n_nodes),
        "idle nodes": ("amount", idleness.mean_idle_nodes),
        "idle share of node-time": ("percent", idleness.idle_share),
        "idle node-hours": ("amount", idleness.idle_node_hours),
        f"idle time in intervals over {longer.label}": ("percent", longer.share),
        "median idle interval": ("seconds", lengths_s[MEDIAN] if lengths_s else None),
        "reclaims a day": ("amount", idleness.reclaim_bursts.count * _DAY_S / idleness.duration_s),
        "no node idle, of the time": ("percent", idleness.share_without_idle),
    }
    figures |= {state.state: ("amount", state.node_us / span_us) for state in idleness.states[1:] if state.node_us}
    figures |= {reason: ("amount", nodes) for reason, nodes in _reason_nodes(idleness).items()}
    by = "" if idleness.parts is None else idleness.parts.by
    return figures | {f"{name} ({by})": ("amount", nodes) for name, nodes in _part_nodes(idleness).items()}


def _sign(change: float) -> str:
    return "-" if change < 0 else "+"
