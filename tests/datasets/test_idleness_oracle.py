"""All figures against an enumeration of every quarter of an hour."""

from __future__ import annotations

import statistics
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.datasets import EventsMetadata, NodeEvents
from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.idleness.idle_intervals import LONGER_THAN
from bfreplay.datasets.log.states import STATE_WORDS
from tests.examples import examples

TICK_S = 900
TICK = TICK_S * 1_000_000
ZONES = ("UTC", "Europe/Paris", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns")
DAYS = ("2024-03-29", "2024-10-26", "2024-04-05", "2024-10-04", "2024-11-01", "2024-07-01")  # most before a change


@st.composite
def cases(draw):
    """(start, zone, states): the state of each node in each tick, and in a last one that has no length."""
    n_nodes, n_ticks = draw(st.integers(1, 5)), draw(st.integers(1, 300))
    start = datetime.fromisoformat(draw(st.sampled_from(DAYS))).replace(tzinfo=UTC)
    start += draw(st.integers(0, 96)) * timedelta(seconds=TICK_S)
    states = np.empty((n_nodes, n_ticks + 1), np.int64)
    for node in range(n_nodes):
        changes = sorted(draw(st.sets(st.integers(1, n_ticks), max_size=10)))
        for first, last in pairwise([0, *changes, n_ticks + 1]):
            states[node, first:last] = draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3, 6]))
    return start, draw(st.sampled_from(ZONES)), states


def events_of(start, states):
    start_us = int(start.timestamp()) * 1_000_000
    rows = [
        (start_us + tick * TICK, node, states[node, tick])
        for tick in range(1, states.shape[1])
        for node in range(len(states))
        if states[node, tick] != states[node, tick - 1]
    ]
    times, nodes, after = zip(*rows, strict=True) if rows else ((), (), ())
    end_us = start_us + (states.shape[1] - 1) * TICK
    return NodeEvents.from_arrays(
        [f"n{i}" for i in range(len(states))], states[:, 0], times, nodes, after, start_us, end_us, EventsMetadata()
    )


def runs(flags):
    """(first, last + 1) of each run of true."""
    at, found = 0, []
    for flag, group in groupby(flags):
        length = len(list(group))
        if flag:
            found.append((at, at + length))
        at += length
    return found


@settings(max_examples=examples(120))
@given(case=cases())
def test_every_figure_is_that_of_the_enumeration(case):
    start, zone, states = case
    n_ticks = states.shape[1] - 1
    it = characterise(events_of(start, states), zone)
    idle = states == 0
    n_idle = idle.sum(axis=0)

    lasting = n_idle[:-1]
    assert it.idle_node_us == int(lasting.sum()) * TICK
    in_state = Counter(states[:, :-1].ravel().tolist())
    assert {each.state: each.node_us for each in it.states} == {
        word: in_state[code] * TICK for code, word in enumerate(STATE_WORDS)
    }

    for width in it.widths:
        found = [(a, min(b, n_ticks)) for a, b in runs(n_idle >= width.nodes) if a < n_ticks]
        lengths = sorted((b - a) * TICK_S for a, b in found)
        assert (width.stretches, width.time_us) == (len(found), sum(lengths) * 1_000_000)
        assert width.share_of_time == (lasting >= width.nodes).mean()
        if found:
            assert width.mean_s == pytest.approx(statistics.fmean(lengths))
            assert width.median_s == statistics.median_low(lengths)
        assert width.censored == sum(a == 0 or (b == n_ticks and n_idle[-1] >= width.nodes) for a, b in found)

    idle_intervals = [(a, b) for row in idle for a, b in runs(row)]
    seen = [(min(b, n_ticks) - a, a == 0 or b == n_ticks + 1) for a, b in idle_intervals]
    assert it.idle_intervals == sum(not cut for _, cut in seen)
    for (_, over_s), row in zip(LONGER_THAN, it.longer_idle_intervals, strict=True):
        longer = [(length, cut) for length, cut in seen if length * TICK_S > over_s]
        assert (row.count, row.node_us) == (len(longer), sum(length for length, _ in longer) * TICK)
        assert (row.censored, row.censored_node_us) == (
            sum(cut for _, cut in longer),
            sum(length for length, cut in longer if cut) * TICK,
        )

    best = [
        max(((min(b, n_ticks) - a, -a, b > n_ticks) for a, b in runs(row) if a < n_ticks), default=None) for row in idle
    ]
    edge_to_edge = [k for k, each in enumerate(best) if each == (n_ticks, 0, True)]
    others = sorted((-each[0], -each[1], k) for k, each in enumerate(best) if each and k not in edge_to_edge)[:3]
    cuts = {(True, True): "both", (True, False): "start", (False, True): "end", (False, False): None}
    assert [(each.node, each.length_s, each.censored) for each in it.longest_idle_intervals] == [
        (f"n{k}", best[k][0] * TICK_S, cuts[best[k][1] == 0, best[k][2]])
        for k in [*edge_to_edge, *(k for _, _, k in others)]
    ]

    for of, came, stake in (
        (it.reclaim_bursts, idle[:, :-1] & ~idle[:, 1:], n_idle[:-1]),
        (it.join_bursts, ~idle[:, :-1] & idle[:, 1:], n_idle[1:]),
    ):
        sizes = came.sum(axis=0)
        assert of.count == np.count_nonzero(sizes)
        assert [each.count for each in of.large] == [
            sum(size / n >= share for size, n in zip(sizes, stake, strict=True) if size) for share in (0.1, 0.25, 0.5)
        ]
        assert all(count == np.count_nonzero(sizes >= n) for n, count in of.at_least)

    covered, node_us = np.zeros((7, 24), np.int64), np.zeros((7, 24), np.int64)
    for tick in range(n_ticks):
        local = (start + tick * timedelta(seconds=TICK_S)).astimezone(ZoneInfo(zone))
        covered[local.weekday(), local.hour] += TICK
        node_us[local.weekday(), local.hour] += n_idle[tick] * TICK
    assert np.array_equal(it.week.covered_us, covered)
    assert np.array_equal(it.week.node_us, node_us)

    line = it.timeline
    for k in range(0, len(line.least), 37):
        ticks = slice(
            (line.edges_us[k] - it.window_start_us) // TICK, -((it.window_start_us - line.edges_us[k + 1]) // TICK)
        )
        assert (line.least[k], line.most[k]) == (n_idle[ticks].min(), n_idle[ticks].max())
    assert sum(line.node_us) == it.idle_node_us
