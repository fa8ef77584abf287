"""The agreement of two logs as plain text: a paragraph, facts, then tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from bfreplay.datasets.agreement.figures import WIDER_POOLS, LogComparison, count_alike
from bfreplay.datasets.agreement.rules import RULES
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.times import HOUR_US, US, iso_span
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

_FACT_WIDTH = 26
_NAMED_NODES = 70
_SECOND_RULE = 0.1
"""Least share of the second largest rule that the paragraph names."""


def render(result: LogComparison) -> str:
    """Lay out ``result`` as text of at most 100 columns, ending in a newline."""
    tables = [rule_table(result), example_table(result), node_table(result), state_table(result)]
    sentences = textwrap.wrap(answer(result), WIDTH, break_on_hyphens=False)
    facts = labelled_lines(_facts(result), _FACT_WIDTH)
    return paragraphs([sentences, facts, *(table.lines() for table in tables if table.rows)]) + "\n"


def answer(result: LogComparison) -> str:
    """Return how far the two logs agree, and what differs mostly."""
    same, total = (amount(us / HOUR_US) for us in (result.node_us - result.differing_us, result.node_us))
    agreement = f"The two logs agree in {percent(result.agreement)} of node-time on which nodes are idle"
    with_planned = result.agreement_with(WIDER_POOLS["planned and reserved"])
    if with_planned != result.agreement:  # one log at least knows on which a worker could not start
        agreement = (
            f"The two logs agree in {percent(with_planned)} of node-time on which nodes are idle, planned and reserved "
            f"ones included, and in {percent(result.agreement)} on where a preemptible worker could start"
        )
    largest = sorted(result.rules, key=lambda rule: -rule.node_us)[:2]
    shares = [(rule.rule, result.share_of_differing(rule.node_us)) for rule in largest]
    named = [f"{rule} ({percent(share)})" for place, (rule, share) in enumerate(shares) if share > place * _SECOND_RULE]
    mostly = f" What differs is mostly {' and '.join(named)}." if named else ""
    return f"{agreement} ({same} of {total} node-hours).{mostly}"


def _facts(result: LogComparison) -> Iterator[tuple[str, str]]:
    in_a, in_b, in_both = (amount(us / HOUR_US) for us in result.node_us_of(NodeState.IDLE))
    start_us, end_us = result.window_start_us, result.window_end_us
    yield from zip("AB", result.logs, strict=True)
    yield "window", f"{iso_span(start_us, end_us)} ({duration((end_us - start_us) / US)})"
    yield "nodes", f"{result.n_nodes:,} in both"
    for log, nodes in zip("AB", result.only_in, strict=True):
        if nodes:
            names = textwrap.shorten(", ".join(nodes), _NAMED_NODES, placeholder=" ...")
            yield f"in {log} only, not compared", f"{count(len(nodes), 'node')}: {names}"
    if alike := count_alike(*result.only_in):
        yield "", f"{alike:,} would match without domain and case (ingest --node-names short-lower)"
    yield "all states", f"{percent(result.agreement_on_states)} of node-time with the same state"
    for name, pool in WIDER_POOLS.items():
        yield f"with {name}", f"{percent(result.agreement_with(pool))} of node-time if {name} nodes count as idle"
    yield "idle node-hours", f"{in_a} in A, {in_b} in B, {in_both} in both"
    yield "tolerance of polling", duration(result.tolerance_s)
    yield "lag", _lag_words(result)
    if any(result.gaps):
        yield "gaps noted", f"{result.gaps[0]:,} in A, {result.gaps[1]:,} in B"


def _lag_words(result: LogComparison) -> str:
    if result.lag is None or result.lag_s is None:
        return "none that is steady"
    order = f"{duration(abs(result.lag_s))} {'later' if result.lag_s > 0 else 'earlier'} than A"
    changes = count(result.lag.changes, "change")
    return f"B changes {order if result.lag_s else 'when A does'} (median of {changes} that both have)"


def rule_table(result: LogComparison) -> ShownTable:
    """Differing node-time by rule, without rules that explain nothing; 'other' always."""
    kinds: dict[str, Kind] = {"rule": "text", "node-hours": "amount", "of node-time": "percent"}
    kinds |= {"of what differs": "percent", "spans": "count", "meaning": "text"}
    spans = sum(rule.spans for rule in result.rules)
    parts = [(rule.rule, rule.node_us, rule.spans, RULES[rule.rule]) for rule in result.rules]
    parts = [*(part for part in parts if part[1] or part[0] == "other"), ("all", result.differing_us, spans, "")]
    rows = [
        [rule, us / HOUR_US, us / result.node_us, result.share_of_differing(us), n_spans, meaning]
        for rule, us, n_spans, meaning in parts
    ]
    return table_of("Idle in one log only, by rule", kinds, rows)


def example_table(result: LogComparison) -> ShownTable:
    """The longest span of each rule."""
    examples = [(rule.rule, rule.example) for rule in result.rules if rule.example is not None]
    kinds: dict[str, Kind] = {"rule": "text", "node": "text", "from": "time", "to": "time"}
    rows = [[rule, span.node, span.start_us, span.end_us, span.state_a, span.state_b] for rule, span in examples]
    return table_of("Longest span of each rule", kinds | {"in A": "text", "in B": "text"}, rows)


def node_table(result: LogComparison) -> ShownTable:
    """The nodes that differ most."""
    window_us = result.window_end_us - result.window_start_us
    kinds: dict[str, Kind] = {"node": "text", "differs": "seconds", "of its time": "percent", "mostly by": "text"}
    rows = [[node.node, node.node_us / US, node.node_us / window_us, node.largest_rule] for node in result.worst_nodes]
    return table_of("Nodes that differ most", kinds, rows)


def state_table(result: LogComparison) -> ShownTable:
    """Node-hours in each state that occurs: in A, in B, in both at once."""
    kinds: dict[str, Kind] = {"state": "text", "in A": "amount", "in B": "amount", "in both": "amount"}
    rows = [[STATE_WORDS[state], *(us / HOUR_US for us in result.node_us_of(state))] for state in NodeState]
    return table_of("Node-hours by state", kinds, [row for row in rows if any(row[1:])])
