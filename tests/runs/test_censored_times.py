"""The Kaplan-Meier estimate, by hand and against scipy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf

from bfreplay.runs.censored_times import censored_quantiles, done_by


def times(*pairs):
    """``(seconds, is done)`` as two arrays."""
    seconds, done = zip(*pairs, strict=True)
    return np.array(seconds, np.float64), np.array(done)


def test_a_censored_start_counts_until_it_is_lost_from_sight():
    # of five, one is done at 1 (4/5 left); one is lost at 2; of three left one is done at 3: 4/5 * 2/3 = 8/15 left;
    # one is lost at 4; the last is done at 5
    at, share = done_by(*times((1, True), (2, False), (3, True), (4, False), (5, True)))
    assert at.tolist() == [1, 3, 5]
    assert share == pytest.approx([1 / 5, 7 / 15, 1])


def test_a_start_that_is_lost_when_another_is_done_was_still_at_risk():
    assert done_by(*times((3, True), (3, False)))[1].tolist() == [0.5]


def test_quantiles_beyond_what_was_observed_are_unknown():
    seconds, done = times((1, True), (2, True), (3, False), (4, False))
    assert censored_quantiles(seconds, done, (0.25, 0.5, 0.75)) == (1, 2, None)
    assert censored_quantiles(*times((3, False), (4, False)), (0.25,)) == (None,)


def test_without_censoring_it_is_the_usual_quantile():
    seconds, done = times(*((n, True) for n in (30, 10, 20, 40)))
    assert censored_quantiles(seconds, done, (0.25, 0.5, 0.75)) == (10, 20, 30)


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=20).filter(lambda x: any(dict(x))))
def test_it_is_the_estimate_of_scipy(pairs):
    seconds, done = times(*pairs)
    at, share = done_by(seconds, done)
    found = ecdf(CensoredData(uncensored=seconds[done], right=seconds[~done])).cdf
    assert share == pytest.approx(found.evaluate(at))
