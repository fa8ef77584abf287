"""Measured rates: what is refused, means and scatter, and where they fall."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.scalability import Measurements


def test_measurements_are_sorted_and_summed_up_by_count():
    measured = Measurements([4, 1, 4], [40.0, 10.0, 90.0])
    assert measured.nodes == (1, 4, 4)
    assert measured.counts.tolist() == [1, 4]
    assert measured.repeats.tolist() == [1, 2]
    assert measured.means == pytest.approx([10.0, 60.0])  # geometric
    squares, freedom = measured.pure_error
    assert (squares, freedom) == (pytest.approx(2 * np.log(1.5) ** 2), 1)


@pytest.mark.parametrize(
    ("nodes", "rates", "row", "column", "value"),
    [
        ([1, 2], [10.0, -1.0], 2, "samples_per_s", -1.0),
        ([1, 2], [0.0, 1.0], 1, "samples_per_s", 0.0),
        ([1, 2], [1.0, float("inf")], 2, "samples_per_s", float("inf")),
        ([1, 2.5], [1.0, 2.0], 2, "nodes", 2.5),
        ([0, 2], [1.0, 2.0], 1, "nodes", 0.0),
        ([1, -2], [1.0, 2.0], 2, "nodes", -2.0),
        ([3, 3], [1.0, 2.0], None, "nodes", [3]),
    ],
)
def test_a_measurement_that_cannot_be_one_is_refused_by_row_and_column(nodes, rates, row, column, value):
    with pytest.raises(InputError) as caught:
        Measurements(nodes, rates)
    assert (caught.value.row, caught.value.column, caught.value.value) == (row, column, value)


def test_no_number_is_no_rate():
    with pytest.raises(InputError, match="no rate"):
        Measurements([1, 2], [1.0, float("nan")])


def test_seconds_per_step_are_suspected_where_rates_fall_over_the_whole_range():
    with pytest.raises(InputError, match=r"fall over the whole range, from 1 to 8 nodes[\s\S]*seconds per step"):
        Measurements([1, 2, 4, 8], [8.0, 4.1, 2.2, 1.3]).falls_from()


def test_a_fall_is_told_from_scatter():
    assert Measurements([1, 2, 4], [10.0, 19.0, 18.0]).falls_from() is None  # 5 %, nothing repeated
    assert Measurements([1, 2, 4], [10.0, 19.0, 15.0]).falls_from() == 2
    close = [10.0, 10.1, 19.0, 19.1, 18.0, 18.1]
    assert Measurements([1, 1, 2, 2, 4, 4], close).falls_from() == 2
    apart = [10.0, 11.0, 19.0, 17.0, 18.0, 16.0]
    assert Measurements([1, 1, 2, 2, 4, 4], apart).falls_from() is None


def test_flat_rates_seldom_fall_by_chance():
    falls = 0
    for seed in range(200):
        rates = 100 * np.exp(0.04 * np.random.default_rng(seed).standard_normal(12))
        try:
            falls += Measurements([1, 2, 4, 8] * 3, rates).falls_from() is not None
        except InputError:
            falls += 1
    assert falls <= 8
