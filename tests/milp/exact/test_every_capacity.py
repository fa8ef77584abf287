"""The relaxed optimum at every capacity, and what one node more would be worth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.milp.exact.relaxation import hull_counts, node_prices, optima_of_hulls
from tests.examples import examples

INF = np.inf


def test_two_jobs_by_hand():
    # slopes 12 and 8 of the second job, 10, 8 and 6 of the first, in this order
    value = np.array([[0.0, 10.0, 18.0, 24.0], [0.0, 12.0, 20.0, -INF]])
    optima = optima_of_hulls(value, np.array([1, 1]), 7)
    assert optima.tolist() == [0.0, 12.0, 22.0, 30.0, 38.0, 44.0, 44.0, 44.0]
    assert node_prices(optima).tolist() == [12.0, 10.0, 8.0, 8.0, 6.0, 0.0, 0.0, 0.0]


def test_a_row_stands_for_its_copies():
    value = np.array([[0.0, 10.0, 18.0], [0.0, 12.0, 12.5]])
    twice = optima_of_hulls(value, np.array([3, 2]), 12)
    written_out = optima_of_hulls(value[[0, 0, 0, 1, 1]], np.ones(5, np.int64), 12)
    assert twice == pytest.approx(written_out)


def test_a_minimum_and_a_dent_are_bridged():
    value = np.array([[0.0, -INF, 3.0, 12.0, 13.0]])
    optima = optima_of_hulls(value, np.array([1]), 4)
    assert optima == pytest.approx([0.0, 4.0, 8.0, 12.0, 13.0])
    assert node_prices(optima) == pytest.approx([4.0, 4.0, 4.0, 1.0, 0.0])
    assert hull_counts(value[0]).tolist() == [0, 3, 4]


def test_more_nodes_than_the_best_count_are_worth_nothing():
    value = np.array([[0.0, 5.0, 4.0, 3.0]])
    assert optima_of_hulls(value, np.array([1]), 3).tolist() == [0.0, 5.0, 5.0, 5.0]
    assert hull_counts(value[0]).tolist() == [0, 1]


@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0], [0.0, -INF, -INF], [0.0, -1.0, -3.0]])
def test_where_nothing_is_to_be_gained_nodes_have_no_price(row):
    optima = optima_of_hulls(np.array([row, row]), np.array([1, 2]), 3)
    assert optima.tolist() == [0.0] * 4
    assert node_prices(optima).tolist() == [0.0] * 4


def test_without_a_node_there_is_one_capacity():
    optima = optima_of_hulls(np.array([[0.0, 5.0]]), np.array([1]), 0)
    assert optima.tolist() == [0.0]
    assert node_prices(optima).tolist() == [0.0]


def test_a_price_bridges_dents_of_optima_that_are_not_concave():
    assert node_prices(np.array([0.0, 1.0, 8.0, 9.0, 9.0])).tolist() == [4.0, 4.0, 1.0, 0.0, 0.0]


@st.composite
def _tables(draw):
    """Up to three jobs of any curve with a minimum, on up to four nodes each."""
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        rate = draw(st.lists(st.floats(-5, 50), min_size=4, max_size=4))
        least, most = draw(st.integers(1, 4)), draw(st.integers(1, 4))
        rows.append([0.0, *(r if least <= n <= most else -INF for n, r in enumerate(rate, 1))])
    return np.array(rows)


@settings(max_examples=examples(150))
@given(value=_tables(), capacity=st.integers(0, 13))
def test_they_lie_above_the_optima_and_meet_them_at_the_vertices(value, capacity):
    relaxed = optima_of_hulls(value, np.ones(len(value), np.int64), capacity)
    ways = [
        (sum(way), sum(float(row[n]) for row, n in zip(value, way, strict=True)))
        for way in itertools.product(range(5), repeat=len(value))
    ]
    for nodes in range(capacity + 1):
        best = max(worth for used, worth in ways if used <= nodes)
        assert relaxed[nodes] >= best - 1e-9
    assert (np.diff(relaxed) >= -1e-9).all()
    assert (np.diff(relaxed, 2) <= 1e-9).all()
    steps = np.diff(relaxed)
    for nodes in np.flatnonzero(steps[:-1] > steps[1:] + 1e-6) + 1:
        assert relaxed[nodes] == pytest.approx(max(worth for used, worth in ways if used <= nodes), abs=1e-9)
    prices = node_prices(relaxed)
    assert (prices >= 0).all()
    assert prices[:-1] == pytest.approx(np.diff(relaxed), abs=1e-9)
