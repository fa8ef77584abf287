"""The universal scalability law through a few points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.errors import InputError
from bfreplay.scalability.fitting import quick_usl

COUNTS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def usl(n, rate_1, serial, kappa):
    return rate_1 * n / (1 + serial * (n - 1) + kappa * n * (n - 1))


@given(st.floats(1e-3, 1e6), st.floats(0, 1), st.floats(0, 1))
def test_a_law_through_all_points_is_found(rate_1, serial, kappa):
    found = quick_usl(COUNTS, usl(COUNTS, rate_1, serial, kappa))
    assert found == pytest.approx((rate_1, serial, kappa), rel=1e-6, abs=1e-7)


def test_two_counts_give_amdahls_law_and_one_gives_proportion():
    assert quick_usl([1, 4, 4], usl(np.array([1.0, 4.0, 4.0]), 10.0, 0.1, 0.0)) == pytest.approx((10.0, 0.1, 0.0))
    assert quick_usl([8, 8], [40.0, 40.0]) == pytest.approx((5.0, 0.0, 0.0))
    assert quick_usl([1], [7.0]) == pytest.approx((7.0, 0.0, 0.0))


def test_points_without_weight_do_not_count():
    rates = usl(COUNTS, 10.0, 0.05, 0.001)
    spoilt = np.where(COUNTS == 8, 1.0, rates)
    assert quick_usl(COUNTS, spoilt, [1, 1, 1, 0, 1]) == pytest.approx((10.0, 0.05, 0.001))
    # what is left are two counts: no kappa
    assert quick_usl(COUNTS, rates, [1, 0, 0, 0, 1])[2] == 0


def test_a_heavier_point_is_met_more_closely():
    rates = usl(COUNTS, 10.0, 0.05, 0.001) * [1.0, 1.2, 0.8, 1.2, 0.8]
    misses = [
        abs(usl(8.0, *quick_usl(COUNTS, rates, [1, 1, 1, weight, 1])) / rates[3] - 1) for weight in (1.0, 10.0, 1e4)
    ]
    assert misses[0] > misses[1] > misses[2]
    assert misses[2] < 1e-3


def test_rates_above_proportion_and_collapsing_ones_stay_within_the_bounds():
    assert quick_usl(COUNTS, COUNTS**1.3)[1:] == (0.0, 0.0)
    rate_1, serial, kappa = quick_usl([2, 4, 8], [100.0, 1.0, 0.01])
    assert rate_1 > 0
    assert 0 <= serial <= 1
    assert kappa == pytest.approx(1.0)
    assert quick_usl([1, 4], [10.0, 5.0])[1:] == pytest.approx((1.0, 0.0))


def test_the_noise_of_a_few_per_cent_moves_the_curve_by_no_more():
    rng = np.random.default_rng(5)
    rates = usl(COUNTS, 10.0, 0.05, 0.001)
    fitted = usl(COUNTS, *quick_usl(COUNTS, rates * np.exp(0.03 * rng.standard_normal(5))))
    assert np.abs(fitted / rates - 1).max() < 0.06


@pytest.mark.parametrize(
    ("nodes", "rates", "weights", "column"),
    [
        ([0, 2], [1.0, 2.0], None, "nodes"),
        ([1, 2], [1.0, -2.0], None, "rates"),
        ([1, 2], [1.0, float("nan")], None, "rates"),
        ([1, 2], [1.0, 2.0], [1.0, -1.0], "weights"),
        ([1, 2], [1.0, 2.0], [0.0, 0.0], "weights"),
        ([1, 2], [1.0], None, None),
    ],
)
def test_points_that_cannot_be_fitted_are_refused(nodes, rates, weights, column):
    with pytest.raises(InputError) as caught:
        quick_usl(nodes, rates, weights)
    assert caught.value.column == column


def test_no_point_at_all_is_refused():
    with pytest.raises(InputError, match="no point to fit"):
        quick_usl([], [])
