"""The agreement of two logs as plain text: a paragraph, facts, then tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from bfreplay.datasets.agreement.figures import WIDER_POOLS, LogComparison
from bfreplay.datasets.agreement.rules import RULES
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.times import HOUR_US, US, iso_span
from bfreplay.wording import WIDTH, ShownTable, amount, count, duration, labelled_lines, paragraphs, percent, table_of

_FACT_WIDTH = 26
_NAMED_NODES = 70
_SECOND_RULE = 0.1
"""Least share of the second largest rule that the paragraph names."""


def render(result: LogComparison) -> str:
    """Lay out ``result`` as text of about 100 columns, ending in a newline."""
    tables = [rule_table(result), example_table(result), node_table(result), state_table(result)]
    sentence = textwrap.wrap(answer(result), WIDTH, break_on_hyphens=False)
    facts = labelled_lines(_facts(result), _FACT_WIDTH)
    return paragraphs([sentence, facts, *(table.lines() for table in tables if table.rows)]) + "\n"


def answer(result: LogComparison) -> str:
    """Return how far the two logs agree, and what differs mostly."""
    same, all_hours = (amount(us / HOUR_US) for us in (result.node_us - result.differing_us, result.node_us))
    agreement = f"The two logs agree in {percent(result.agreement)} of node-time on which nodes are idle"
    text = f"{agreement} ({same} of {all_hours} node-hours)."
    largest = sorted(result.rules, key=lambda rule: -rule.node_us)[:2]
    shares = [(rule.rule, result.share_of_differing(rule.node_us)) for rule in largest]
    named = [f"{rule} ({percent(share)})" for place, (rule, share) in enumerate(shares) if share > place * _SECOND_RULE]
    return f"{text} What differs is mostly {' and '.join(named)}." if named else text


def _facts(result: LogComparison) -> Iterator[tuple[str, str]]:
    in_a, in_b, in_both = (amount(us / HOUR_US) for us in result.node_us_of(NodeState.IDLE))
    window_s = (result.window_end_us - result.window_start_us) / US
    yield from zip("AB", result.logs, strict=True)
    yield "window", f"{iso_span(result.window_start_us, result.window_end_us)} ({duration(window_s)})"
    yield "nodes", f"{result.n_nodes:,} in both"
    for log, nodes in zip("AB", result.only_in, strict=True):
        if nodes:
            names = textwrap.shorten(", ".join(nodes), _NAMED_NODES, placeholder=" ...")
            yield f"in {log} only, not compared", f"{count(len(nodes), 'node')}: {names}"
    if result.alike_without_domain:
        alike = count(result.alike_without_domain, "node")
        yield "", f"{alike} of these would match without domain and case (ingest --node-names short-lower)"
    yield "all states", f"{percent(result.agreement_on_states)} of node-time with the same state"
    for name, pool in WIDER_POOLS.items():
        yield f"with {name}", f"{percent(result.agreement_with(pool))} of node-time if {name} nodes count as idle"
    yield "idle node-hours", f"{in_a} in A, {in_b} in B, {in_both} in both"
    yield "tolerance of polling", duration(result.tolerance_s)
    if result.lag_s is None:
        yield "lag", "none that is steady"
    else:
        lag_text = f"{duration(abs(result.lag_s))} {'later' if result.lag_s > 0 else 'earlier'} than A"
        changes = count(result.lagging_changes, "change")
        yield "lag", f"B changes {lag_text if result.lag_s else 'when A does'} (median of {changes} that both have)"
    if any(result.gaps):
        yield "gaps noted", f"{result.gaps[0]:,} in A, {result.gaps[1]:,} in B"


def rule_table(result: LogComparison) -> ShownTable:
    """Differing node-time by rule, without rules that explain nothing; 'other' always."""
    rows = [
        [
            rule.rule,
            rule.node_us / HOUR_US,
            rule.node_us / result.node_us,
            result.share_of_differing(rule.node_us),
            rule.spans,
            RULES[rule.rule],
        ]
        for rule in result.rules
        if rule.node_us or rule.rule == "other"
    ]
    rows.append(
        ["all", result.differing_us / HOUR_US, 1 - result.agreement, None, sum(r.spans for r in result.rules), ""]
    )
    return table_of(
        "Idle in one log only, by rule",
        {
            "rule": "text",
            "node-hours": "amount",
            "of node-time": "percent",
            "of what differs": "percent",
            "spans": "count",
            "meaning": "text",
        },
        rows,
    )


def example_table(result: LogComparison) -> ShownTable:
    """The longest span of each rule."""
    examples = [(rule.rule, rule.example) for rule in result.rules if rule.example is not None]
    rows = [[rule, span.node, span.start_us, span.end_us, span.state_a, span.state_b] for rule, span in examples]
    return table_of(
        "Longest span of each rule",
        {"rule": "text", "node": "text", "from": "time", "to": "time", "in A": "text", "in B": "text"},
        rows,
    )


def node_table(result: LogComparison) -> ShownTable:
    """The nodes that differ most."""
    window_us = result.window_end_us - result.window_start_us
    rows = [[node.node, node.node_us / US, node.node_us / window_us, node.largest_rule] for node in result.worst_nodes]
    return table_of(
        "Nodes that differ most",
        {"node": "text", "differs": "seconds", "of its time": "percent", "mostly by": "text"},
        rows,
    )


def state_table(result: LogComparison) -> ShownTable:
    """Node-hours in each state that occurs: in A, in B, in both at once."""
    rows = [[STATE_WORDS[state], *(us / HOUR_US for us in result.node_us_of(state))] for state in NodeState]
    return table_of(
        "Node-hours by state",
        {"state": "text", "in A": "amount", "in B": "amount", "in both": "amount"},
        [row for row in rows if any(row[1:])],
    )
