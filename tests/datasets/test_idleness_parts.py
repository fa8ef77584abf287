"""A long log is described part by part: the figures are those of one part, and little is held at a time."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.datasets.idleness import characterise, quantiles
from bfreplay.datasets.idleness.observe import observe, pool_of
from bfreplay.datasets.idleness.quantiles import Counted
from tests.datasets.small_logs import BUSY, IDLE, log
from tests.datasets.test_idleness_oracle import cases, events_of

MODULE = import_module("bfreplay.datasets.idleness.characterise")  # its name in the package is the function


def in_parts(monkeypatch, part_events):
    monkeypatch.setattr(MODULE, "observe", partial(observe, part_events=part_events))


def in_batches_of_one(events):
    """The same log, read in batches of one time stamp each."""
    whole = events.batches
    events.batches = lambda: whole(1)
    return events


@given(case=cases())
def test_figures_do_not_depend_on_where_the_window_is_parted(case):
    start, zone, states = case
    expected = characterise(events_of(start, states), zone)
    with pytest.MonkeyPatch.context() as patched:
        in_parts(patched, 2)
        assert characterise(in_batches_of_one(events_of(start, states)), zone) == expected


def alternating(n_events):
    """One of two nodes changes at each second."""
    times = np.arange(1, n_events + 1) * 1_000_000
    states = np.where(np.arange(n_events) // 2 % 2, BUSY, IDLE)
    return NodeEvents.from_arrays(
        ["a", "b"], [NodeState.BUSY] * 2, times, np.arange(n_events) % 2, states, 0, (n_events + 1) * 1_000_000
    )


def test_no_part_is_longer_than_its_events_and_a_batch():
    sizes = []
    observe(in_batches_of_one(alternating(40)), lambda part: sizes.append(len(part.stamp_us)), part_events=3)
    assert sizes == [3] * 13 + [1]


def test_a_part_begins_with_the_last_event_of_the_part_before():
    parts = []
    observe(in_batches_of_one(alternating(40)), parts.append, part_events=3)
    for before, after in pairwise(parts):
        assert (before.end_us, before.idle[-1]) == (after.start_us, after.idle[0])
    assert (parts[0].start_us, parts[-1].end_us) == (0, 41_000_000)


def test_the_whole_pool_is_one_part():
    pool = pool_of(in_batches_of_one(alternating(40)))
    assert (len(pool.stamp_us), pool.start_us, pool.end_us) == (40, 0, 41_000_000)


@given(batches=st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=8))
def test_counted_values_are_those_that_were_added(batches):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(quantiles, "MERGED", 10)
        counted = Counted()
        for batch in batches:
            counted.add(np.array(batch, np.int64))
    everything = np.sort(np.array([value for batch in batches for value in batch], np.int64))
    assert counted.total == len(everything)
    assert np.array_equal(np.repeat(counted.values, counted.counts), everything)
    assert counted.quantiles(2) == quantiles.quantiles(everything, unit=2)
    number, sums = counted.up_to(np.array([-1, 7, 100]))
    assert [*zip(number.tolist(), sums.tolist(), strict=True)] == [
        (int((everything <= edge).sum()), int(everything[everything <= edge].sum())) for edge in (-1, 7, 100)
    ]


def test_equal_values_are_held_once_and_new_ones_wait_in_a_bounded_heap(monkeypatch):
    monkeypatch.setattr(quantiles, "MERGED", 1_000)
    counted = Counted()
    for _ in range(100):
        counted.add(np.arange(300) % 7)
        assert counted._n_new < 1_000
    assert len(counted.values) == 7
    assert counted.total == 30_000


def test_a_stretch_over_all_parts_is_one_and_cut_once(monkeypatch):
    in_parts(monkeypatch, 1)
    rows = [(second, "b", state) for second, state in ((10, IDLE), (20, BUSY), (30, IDLE), (40, BUSY))]
    one = characterise(in_batches_of_one(log([IDLE, BUSY, BUSY], rows))).widths[0]
    assert (one.stretches, one.censored, one.mean_s) == (1, 1, 100.0)
