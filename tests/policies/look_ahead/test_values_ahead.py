"""What each count is worth over the next intervals: by hand, and against all count sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.policies.look_ahead import values_ahead
from bfreplay.policies.state import JobTables


def _worth(rates, price, seconds, *, min_nodes=None, max_nodes=None, up_s=0.0, down_s=0.0):
    rate = np.array(rates, np.float64)
    n_jobs, width = rate.shape
    jobs = JobTables(
        rate,
        np.array(min_nodes or [1] * n_jobs),
        np.array(max_nodes or [width - 1] * n_jobs),
        np.full(n_jobs, float(up_s)),
        np.full(n_jobs, float(down_s)),
    )
    return values_ahead(jobs, np.array(price, np.float64), np.array(seconds, np.float64))


def _all_ways(rate, min_nodes, max_nodes, up_s, down_s, price, seconds):
    """Worth of each allowed count now, one future, by going through all counts of all later intervals."""
    allowed = [0, *range(min_nodes, max_nodes + 1)]
    later = {}
    for now in allowed:
        best = -np.inf
        for way in itertools.product(allowed, repeat=len(seconds) - 1):
            worth, held = 0.0, now
            for n, p, s in zip(way, price[1:], seconds[1:], strict=True):
                worth -= (up_s if n > held else down_s if n < held else 0.0) * rate[held]
                worth += s * (rate[n] - p * n)
                held = n
            best = max(best, worth)
        later[now] = best
    return {n: seconds[0] * rate[n] + later[n] - later[0] for n in allowed}


@st.composite
def _questions(draw):
    """One job of any curve, and up to three futures of up to three intervals."""
    max_nodes = draw(st.integers(1, 4))
    numbers = st.floats(0, 50)
    rate = [0.0, *draw(st.lists(numbers, min_size=max_nodes, max_size=max_nodes))]
    length, n_futures = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    row = st.lists(numbers, min_size=length, max_size=length)
    price = draw(st.lists(row, min_size=n_futures, max_size=n_futures))
    seconds = draw(st.lists(row, min_size=n_futures, max_size=n_futures))
    return rate, draw(st.integers(1, max_nodes)), max_nodes, draw(numbers), draw(numbers), price, seconds


@given(_questions())
def test_a_count_is_worth_the_best_of_all_ways_from_it_averaged_over_the_futures(question):
    rate, min_nodes, max_nodes, up_s, down_s, price, seconds = question
    wider = [*rate, 99.0]  # the table of another job is longer
    found = _worth([wider], price, seconds, min_nodes=[min_nodes], max_nodes=[max_nodes], up_s=up_s, down_s=down_s)
    ways = [_all_ways(rate, min_nodes, max_nodes, up_s, down_s, *future) for future in zip(price, seconds, strict=True)]
    for n in (0, *range(min_nodes, max_nodes + 1)):
        assert found[0, n] == pytest.approx(np.mean([way[n] for way in ways]), rel=1e-9, abs=1e-6)
    assert found[0, 0] == 0.0
    assert found[0, max_nodes + 1] == 0.0


def test_with_nothing_in_sight_a_count_is_worth_its_rate_times_the_forward_looking_time():
    assert _worth([[0.0, 10.0, 18.0]], [[7.0]], [[120.0]], up_s=30, down_s=30).tolist() == [[0.0, 1200.0, 2160.0]]


def test_a_node_that_is_scarce_soon_is_worth_little_now():
    # 5 s, then 100 s at 9 a node: one node makes 1 a second then, two make 12 - 18. From two it goes down to one,
    # which costs 2 s of 12: 60 + 100 - 24; from none it starts for nothing and makes 100 too
    found = _worth([[0.0, 10.0, 12.0]], [[0.0, 9.0]], [[5.0, 100.0]], up_s=8, down_s=2)
    assert found.tolist() == [[0.0, 50.0, 60.0 - 24.0]]


def test_a_node_that_pays_later_is_worth_having_before():
    # from one node growing costs 8 s of 10 before it makes 18 a second for 100 s; with two it is there already
    found = _worth([[0.0, 10.0, 18.0]], [[0.0, 0.0]], [[5.0, 100.0]], up_s=8, down_s=2)
    assert found.tolist() == [[0.0, 50.0 - 80.0, 90.0]]


def test_the_price_of_the_interval_that_begins_now_is_not_read():
    rates, seconds = [[0.0, 10.0, 18.0]], [[5.0, 20.0]]
    assert np.array_equal(_worth(rates, [[np.nan, 3.0]], seconds), _worth(rates, [[0.0, 3.0]], seconds))


def test_twins_have_equal_rows_and_those_who_differ_in_anything_their_own():
    rate = np.array([[0.0, 8.0, 12.0, 13.0]] * 5)
    rate[4, 3] = 14.0
    min_nodes, max_nodes = np.array([1, 1, 2, 1, 1]), np.array([3, 3, 3, 2, 3])
    up_s, down_s = np.full(5, 5.0), np.full(5, 3.0)
    price, seconds = np.array([[0.0, 6.0, 0.5]]), np.array([[5.0, 40.0, 40.0]])
    together = values_ahead(JobTables(rate, min_nodes, max_nodes, up_s, down_s), price, seconds)
    for j in range(5):
        one = slice(j, j + 1)
        alone = values_ahead(
            JobTables(rate[one], min_nodes[one], max_nodes[one], up_s[one], down_s[one]), price, seconds
        )
        assert np.array_equal(together[one], alone)
    assert np.array_equal(together[0], together[1])
    for j in range(2, 5):
        assert not np.array_equal(together[0], together[j]), j


def test_twins_rescale_at_the_same_cost():
    ones, twos = np.ones(3, np.int64), np.full(3, 2)
    up_s, down_s = np.array([8.0, 8.0, 6.0]), np.array([2.0, 4.0, 2.0])
    rates, seconds = np.array([[0.0, 10.0, 12.0]] * 3), np.array([[5.0, 100.0]])
    dear = values_ahead(JobTables(rates, ones, twos, up_s, down_s), np.array([[0.0, 9.0]]), seconds)
    assert dear[:, 2].tolist() == [60.0 - 24.0, 60.0 - 48.0, 60.0 - 24.0]
    free = values_ahead(JobTables(rates, ones, twos, up_s, down_s), np.array([[0.0, 0.0]]), seconds)
    assert free[:, 1].tolist() == [50.0 - 80.0, 50.0 - 80.0, 50.0 - 60.0]
