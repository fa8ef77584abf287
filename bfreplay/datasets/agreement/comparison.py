"""Compare two logs of one machine: agreement as a share of node-time, and what differs, by rule."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks, defaults
from bfreplay.datasets.agreement.figures import LogComparison, NodeDifference, RuleTime, Span
from bfreplay.datasets.agreement.joint_spans import JointSpans, joint_spans
from bfreplay.datasets.agreement.rules import GAPS, RULES, noted_periods, rule_of_each, steady_lag
from bfreplay.datasets.idleness.observe import check_node_time
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.load import load_events
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.named_inputs import Window, window_us
from bfreplay.datasets.times import US, iso_span
from bfreplay.errors import InputError

Log = NodeEvents | str | PathLike[str]


def compare_logs(
    a: Log,
    b: Log,
    *,
    tolerance: str | float = defaults.LOG_TOLERANCE,
    window: Window | None = None,
    nodes: int = defaults.WORST_NODES,
) -> LogComparison:
    """Compare two logs of one machine, node by node, over the time and the nodes that both have.

    Parameters
    ----------
    a, b
        The logs, their files, or ``"sample"``.
    tolerance
        Longest difference between the times of one change in both logs that counts as polling: ``"2s"``, or seconds.
    window
        Part of the time that both logs cover: two ISO-8601 times (UTC) or epoch seconds.
    nodes
        Number of nodes to list that differ most.

    Returns
    -------
    LogComparison
        Its repr is the text of ``bfreplay compare logs``; ``to_dict()`` is what that prints with ``--json``.

    Raises
    ------
    InputError
        A log cannot be used, or the two have no time or no node in common.
    """
    tolerance_s = checks.length_of_time("tolerance", tolerance, least=0.0)
    n_worst = checks.whole("nodes", nodes, 0)
    first, second = (log if isinstance(log, NodeEvents) else load_events(log) for log in (a, b))
    start_us, end_us = _overlap(first, second) if window is None else window_us(window)
    logs = first.between(start_us, end_us), second.between(start_us, end_us)
    names = sorted(set(first.nodes).intersection(second.nodes))
    alike = _alike_without_domain(first, second)
    if not names:
        raise InputError(
            "the two logs have no node in common",
            value=f"{first.nodes[0]} ... in A, {second.nodes[0]} ... in B",
            expected="two logs of one machine",
            fix="names that differ by domain or case are made alike by --node-names short-lower of 'bfreplay ingest'"
            if alike
            else "compare two logs of the same nodes",
        )
    check_node_time(start_us, end_us, len(names))
    spans, tolerance_us = joint_spans(*logs, names), round(tolerance_s * US)
    lag = steady_lag(spans, (start_us, end_us), tolerance_us)
    rule = rule_of_each(spans, logs, tolerance_us, lag.lag_us if lag else 0)
    state_us = np.zeros((len(NodeState), len(NodeState)), np.int64)
    np.add.at(state_us, (spans.a, spans.b), spans.length_us)
    differing = np.flatnonzero(rule >= 0)
    node_us = np.zeros((len(names), len(RULES)), np.int64)
    np.add.at(node_us, (spans.node[differing], rule[differing]), spans.length_us[differing])
    worst = np.argsort(-node_us.sum(axis=1), kind="stable")[:n_worst]
    return LogComparison(
        logs=(_name(first), _name(second)),
        window_start_us=start_us,
        window_end_us=end_us,
        n_nodes=len(names),
        only_in=(
            tuple(node for node in first.nodes if node not in set(names)),
            tuple(node for node in second.nodes if node not in set(names)),
        ),
        alike_without_domain=alike,
        tolerance_s=tolerance_s,
        lag_s=lag.lag_us / US if lag else None,
        lagging_changes=lag.changes if lag else 0,
        gaps=tuple(len(noted_periods(log, GAPS)) for log in logs),
        state_us=tuple(map(tuple, state_us.tolist())),
        rules=tuple(
            RuleTime(
                name,
                int(node_us[:, place].sum()),
                int(np.count_nonzero(rule == place)),
                _longest(spans, np.flatnonzero(rule == place), names),
            )
            for place, name in enumerate(RULES)
        ),
        worst_nodes=tuple(
            NodeDifference(names[node], int(node_us[node].sum()), list(RULES)[node_us[node].argmax()])
            for node in worst
            if node_us[node].any()
        ),
    )


def _overlap(a: NodeEvents, b: NodeEvents) -> tuple[int, int]:
    start_us, end_us = max(a.window_start_us, b.window_start_us), min(a.window_end_us, b.window_end_us)
    if start_us >= end_us:
        raise InputError(
            "the two logs have no time in common",
            value=f"{iso_span(a.window_start_us, a.window_end_us)} (A), "
            f"{iso_span(b.window_start_us, b.window_end_us)} (B)",
            expected="logs of the same days",
            fix="take logs of the same days; local times that were imported with a wrong --tz are shifted",
        )
    return start_us, end_us


def _alike_without_domain(a: NodeEvents, b: NodeEvents) -> int:
    """Return the nodes of A alone whose name is that of a node of B alone but for domain and case."""
    only_a, only_b = (
        {node.partition(".")[0].lower() for node in set(log.nodes).difference(other.nodes)}
        for log, other in ((a, b), (b, a))
    )
    return len(only_a & only_b)


def _name(log: NodeEvents) -> str:
    return "in memory" if log.file is None else str(log.file)


def _longest(spans: JointSpans, places: NDArray[np.int64], names: list[str]) -> Span | None:
    """Return the longest of some spans, the first of equals."""
    if not len(places):
        return None
    place = places[spans.length_us[places].argmax()]
    start_us, end_us = int(spans.start_us[place]), int(spans.end_us[place])
    return Span(names[spans.node[place]], start_us, end_us, STATE_WORDS[spans.a[place]], STATE_WORDS[spans.b[place]])
