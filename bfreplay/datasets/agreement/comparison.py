"""Compare two logs of one machine: agreement as a share of node-time, and what differs, by rule."""

from __future__ import annotations

from os import PathLike

import numpy as np

from bfreplay import checks, defaults
from bfreplay.datasets.agreement.figures import LogComparison, NodeDifference, RuleTime, Span, count_alike
from bfreplay.datasets.agreement.joint_spans import joint_spans
from bfreplay.datasets.agreement.rules import GAP, RULES, noted_periods, rule_of_each
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
    tolerance_s, n_worst = checks.length_of_time("tolerance", tolerance, least=0.0), checks.whole("nodes", nodes, 0)
    first, second = (log if isinstance(log, NodeEvents) else load_events(log) for log in (a, b))
    start_us, end_us = _overlap(first, second) if window is None else window_us(window)
    logs = first.between(start_us, end_us), second.between(start_us, end_us)
    names = _common_nodes(first, second)
    check_node_time(start_us, end_us, len(names))
    spans = joint_spans(*logs, names)
    rule, lag = rule_of_each(spans, logs, round(tolerance_s * US))
    state_us = np.zeros((len(NodeState), len(NodeState)), np.int64)
    node_us = np.zeros((len(names), len(RULES)), np.int64)
    np.add.at(state_us, (spans.a, spans.b), spans.length_us)
    differing = np.flatnonzero(rule >= 0)
    np.add.at(node_us, (spans.node[differing], rule[differing]), spans.length_us[differing])
    rules = []
    for place, name in enumerate(RULES):
        of_rule, example = np.flatnonzero(rule == place), None
        if len(of_rule):
            longest = of_rule[spans.length_us[of_rule].argmax()]
            states = STATE_WORDS[spans.a[longest]], STATE_WORDS[spans.b[longest]]
            times_us = int(spans.start_us[longest]), int(spans.end_us[longest])
            example = Span(names[spans.node[longest]], *times_us, *states)
        rules.append(RuleTime(name, int(node_us[:, place].sum()), len(of_rule), example))
    worst = [
        NodeDifference(names[node], int(node_us[node].sum()), list(RULES)[node_us[node].argmax()])
        for node in np.argsort(-node_us.sum(axis=1), kind="stable")[:n_worst]
        if node_us[node].any()
    ]
    return LogComparison(
        logs=(_place(first), _place(second)),
        window_start_us=start_us,
        window_end_us=end_us,
        n_nodes=len(names),
        only_in=(_without(first.nodes, names), _without(second.nodes, names)),
        tolerance_s=tolerance_s,
        lag=lag,
        gaps=tuple(len(noted_periods(log, GAP)) for log in logs),
        state_us=tuple(map(tuple, state_us.tolist())),
        rules=tuple(rules),
        worst_nodes=tuple(worst),
    )


def _overlap(a: NodeEvents, b: NodeEvents) -> tuple[int, int]:
    start_us, end_us = max(a.window_start_us, b.window_start_us), min(a.window_end_us, b.window_end_us)
    if start_us >= end_us:
        spans = [iso_span(log.window_start_us, log.window_end_us) for log in (a, b)]
        fix = "take logs of the same days; local times that were imported with a wrong --tz are shifted"
        raise InputError("the two logs have no time in common", value=" (A), ".join(spans) + " (B)", fix=fix)
    return start_us, end_us


def _common_nodes(a: NodeEvents, b: NodeEvents) -> list[str]:
    names = sorted(set(a.nodes).intersection(b.nodes))
    if not names:
        fix = "compare two logs of one machine"
        if count_alike(a.nodes, b.nodes):
            fix = "import with --node-names short-lower: some names differ only by domain or case"
        examples = f"{a.nodes[0]} (A), {b.nodes[0]} (B)"
        raise InputError("the two logs have no node in common", value=examples, expected="equal names", fix=fix)
    return names


def _without(nodes: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    return tuple(sorted(set(nodes).difference(names)))


def _place(log: NodeEvents) -> str:
    return "in memory" if log.file is None else str(log.file)
