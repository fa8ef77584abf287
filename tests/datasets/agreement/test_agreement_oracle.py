"""The comparison of two logs against a plain one that looks at every second."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import NodeEvents, NodeState, compare_logs
from bfreplay.datasets.agreement.rules import RULES
from tests.examples import examples

SECOND = 1_000_000
IDLE, BUSY, UNKNOWN = NodeState.IDLE, NodeState.BUSY, NodeState.UNKNOWN
BY_STATE = {
    UNKNOWN: "not followed",
    NodeState.PLANNED: "planned",
    NodeState.RESERVED: "reservation",
    NodeState.MAINTENANCE: "reservation",
    NodeState.COMPLETING: "completing",
    NodeState.DOWN: "outage missing",
    NodeState.DRAIN: "outage missing",
    NodeState.OFF: "outage missing",
    BUSY: "other",
}


def with_job(state):
    return {BUSY: "busy", UNKNOWN: "unknown"}.get(state, "no job")


def by_class(state):
    return "out" if BY_STATE.get(state) == "outage missing" else with_job(state)


LEVELS = (with_job, by_class, lambda state: state)


def events_of(states, start=0):
    """A log of whole seconds: the state of each node in each second."""
    rows = [
        ((start + second) * SECOND, node, state)
        for second in range(1, states.shape[1])
        for node, state in enumerate(states[:, second])
        if state != states[node, second - 1]
    ]
    times, nodes, after = zip(*rows, strict=True) if rows else ((), (), ())
    names, end = [f"n{node}" for node in range(len(states))], start + states.shape[1]
    return NodeEvents.from_arrays(names, states[:, 0], times, nodes, after, start * SECOND, end * SECOND)


@st.composite
def pairs(draw):
    """States (node, second) in A and in B: of their own, or those of A later, with some seconds of their own."""
    n_nodes, n_seconds = draw(st.integers(1, 3)), draw(st.integers(2, 40))
    some = st.sampled_from([IDLE, IDLE, IDLE, BUSY, BUSY, *NodeState])

    def states():
        drawn = np.zeros((n_nodes, n_seconds), np.int64)
        for node in range(n_nodes):
            changes = sorted(draw(st.sets(st.integers(1, n_seconds), max_size=12)))
            for first, last in zip([0, *changes], [*changes, n_seconds], strict=True):
                drawn[node, first:last] = draw(some)
        return drawn

    a = states()
    if draw(st.booleans()):
        return a, states()
    later = draw(st.integers(0, 6))
    b = np.concatenate((np.repeat(a[:, :1], later, axis=1), a), axis=1)[:, :n_seconds]
    for _ in range(draw(st.integers(0, 2))):
        first = draw(st.integers(0, n_seconds - 1))
        b[draw(st.integers(0, n_nodes - 1)), first : first + draw(st.integers(1, 4))] = draw(some)
    return a, b


def changes_of(states, level):
    """[(second, before, after)] of one node at one level."""
    labels = [level(NodeState(state)) for state in states]
    return [(s, labels[s - 1], labels[s]) for s in range(1, len(labels)) if labels[s] != labels[s - 1]]


def lag_of(a, b, tolerance):
    """The lag of most pairs of the same change of a node: its median and their number."""
    n_a, n_b, lags = 0, 0, []
    for node in range(len(a)):
        of_a, of_b = changes_of(a[node], by_class), changes_of(b[node], by_class)
        n_a, n_b = n_a + len(of_a), n_b + len(of_b)
        lags += [t - s for s, *kind in of_a for t, *other in of_b if kind == other]
    lags.sort()
    groups = [[lag for lag in lags[place:] if lag <= lags[place] + tolerance] for place in range(len(lags))]
    most = max(map(len, groups), default=0)
    if most < 5 or most < min(n_a, n_b) / 2:
        return None
    return min((group[most // 2] for group in groups if len(group) == most), key=abs), most


def segments(a, b, level):
    """[(first second, after the last, label in A, label in B)] of one node."""
    pairs_of = [(level(NodeState(x)), level(NodeState(y))) for x, y in zip(a, b, strict=True)]
    found, at = [], 0
    for pair, group in groupby(pairs_of):
        length = len(list(group))
        found.append((at, at + length, *pair))
        at += length
    return found


def late_seconds(a, b, level, lag, tolerance):
    """Seconds of one node at which a change that both logs make, by the lag later in B, explains the difference."""
    of_a, of_b, end = changes_of(a, level), changes_of(b, level), len(a)

    def has_counterpart(change, others, shift, known):
        second, *kind = change
        expected = second + shift
        if any(other == kind and abs(time - expected) <= tolerance for time, *other in others):
            return True
        is_beyond = expected - tolerance < 0 or expected + tolerance > end
        return is_beyond and set(kind) <= known

    known_a, known_b = {level(NodeState(x)) for x in all_a}, {level(NodeState(x)) for x in all_b}
    bad = {change[0] for change in of_a if not has_counterpart(change, of_b, lag, known_b)}
    bad |= {change[0] for change in of_b if not has_counterpart(change, of_a, -lag, known_a)}
    found = set()
    for first, last, label_a, label_b in segments(a, b, level):
        is_whole = first == 0 and last == end
        is_short = last - first <= abs(lag) + tolerance
        if label_a != label_b and not is_whole and is_short and not {first, last} & bad:
            found.update(range(first, last))
    return found


def flap_seconds(a, b, tolerance):
    found, of_node = set(), segments(a, b, by_class)
    for before, (first, last, x, y), after in zip(of_node, of_node[1:], of_node[2:], strict=False):
        if x != y and before[2] == before[3] == after[2] == after[3] and last - first <= tolerance:
            found.update(range(first, last))
    return found


all_a: list[int] = []
all_b: list[int] = []


def node_seconds_by_rule(a, b, tolerance):
    """({rule: node-seconds}, lag) by looking at every second of every node."""
    all_a[:], all_b[:] = a.ravel().tolist(), b.ravel().tolist()
    lag, counted = lag_of(a, b, tolerance), Counter()
    for node in range(len(a)):
        late = {shift: set().union(*(late_seconds(a[node], b[node], level, shift, tolerance) for level in LEVELS))
                for shift in {0, lag[0] if lag else 0}}  # fmt: skip
        flaps = flap_seconds(a[node], b[node], tolerance)
        for second, (x, y) in enumerate(zip(a[node].tolist(), b[node].tolist(), strict=True)):
            if (x == IDLE) == (y == IDLE):
                continue
            rule = BY_STATE[NodeState(y if x == IDLE else x)]
            if rule != "not followed":
                if lag and abs(lag[0]) > tolerance and second in late[lag[0]]:
                    rule = "clock"
                elif second in late[0]:
                    rule = "polling"
                elif second in flaps:
                    rule = "flap"
            counted[rule] += 1
    return counted, lag


@settings(max_examples=examples(400), deadline=None)
@given(pairs(), st.integers(0, 3))
def test_every_figure_is_that_of_a_look_at_every_second(pair, tolerance):
    a, b = pair
    result = compare_logs(events_of(a), events_of(b), tolerance=tolerance)
    expected, lag = node_seconds_by_rule(a, b, tolerance)
    assert {rule.rule: rule.node_us / SECOND for rule in result.rules if rule.node_us} == expected
    assert (None if lag is None else lag[0]) == result.lag_s
    assert result.differing_us == ((a == IDLE) != (b == IDLE)).sum() * SECOND
    assert result.node_us == a.size * SECOND
    assert result.agreement_on_states == (a == b).sum() / a.size
    for x in NodeState:
        for y in NodeState:
            assert result.state_us[x][y] == ((a == x) & (b == y)).sum() * SECOND
    with_planned = [np.isin(states, [IDLE, NodeState.PLANNED]) for states in (a, b)]
    same = (with_planned[0] == with_planned[1]).sum() / a.size
    assert result.agreement_with((IDLE, NodeState.PLANNED)) == same


@settings(max_examples=examples(200), deadline=None)
@given(pairs(), st.integers(0, 3))
def test_logs_that_are_swapped_give_the_same_rules(pair, tolerance):
    a, b = map(events_of, pair)
    one, other = (compare_logs(*logs, tolerance=tolerance) for logs in ((a, b), (b, a)))
    assert one.differing_us == other.differing_us
    assert one.state_us == tuple(zip(*other.state_us, strict=True))
    if one.lag_s is None or one.lag_s == -other.lag_s:  # of equal lags the first is taken
        assert [(rule.rule, rule.node_us, rule.spans) for rule in one.rules] == [
            (rule.rule, rule.node_us, rule.spans) for rule in other.rules
        ]


@settings(max_examples=examples(100), deadline=None)
@given(pairs())
def test_a_log_agrees_with_itself(pair):
    log = events_of(pair[0])
    result = compare_logs(log, log)
    assert (result.agreement, result.agreement_on_states, result.differing_us, result.worst_nodes) == (1, 1, 0, ())
    assert [rule.rule for rule in result.rules] == list(RULES)
