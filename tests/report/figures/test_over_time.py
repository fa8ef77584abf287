"""Step functions in columns: least, mean and most are those of the function, whatever the columns are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.report.figures.over_time import StepSeries, columns_of, even_columns

START = 1_612_918_128_000_000


def series(*heights_and_ends: tuple[float, int], start: int = 0) -> StepSeries:
    """Heights, each with the time at which it ends."""
    return StepSeries.exact(
        np.array([start, *(end for _, end in heights_and_ends)]), np.array([height for height, _ in heights_and_ends])
    )


@st.composite
def series_and_columns(draw: st.DrawFn) -> tuple[StepSeries, np.ndarray]:
    """Steps between whole microseconds of a real date, and columns between others, or the same."""
    edges = sorted(draw(st.sets(st.integers(0, 40), min_size=2, max_size=12)))
    heights = draw(st.lists(st.integers(0, 9), min_size=len(edges) - 1, max_size=len(edges) - 1))
    columns = sorted(draw(st.sets(st.integers(edges[0], edges[-1]), min_size=2, max_size=12)))
    return StepSeries.exact(np.array(edges) + START, np.array(heights)), np.array(columns) + START


def by_microsecond(steps: StepSeries) -> np.ndarray:
    return np.repeat(steps.mean, np.diff(steps.edge_us))


@given(series_and_columns())
def test_columns_have_the_least_mean_and_most_of_the_microseconds_in_them(case):
    steps, edges = case
    found = steps.in_columns(edges)
    values = by_microsecond(steps)
    parts = [values[a:b] for a, b in zip(edges[:-1] - steps.edge_us[0], edges[1:] - steps.edge_us[0], strict=True)]
    assert found.edge_us.tolist() == edges.tolist()
    assert found.least.tolist() == [part.min() for part in parts]
    assert found.most.tolist() == [part.max() for part in parts]
    assert found.mean.tolist() == [float(Fraction(int(part.sum()), part.size)) for part in parts]


@given(series_and_columns(), st.integers(1, 14))
def test_a_part_is_given_step_by_step_where_there_is_room_and_in_columns_where_not(case, room):
    steps, edges = case
    start, end = int(edges[0]), int(edges[-1])
    found = columns_of(steps, start, end, room)
    values = by_microsecond(steps)[start - steps.edge_us[0] : end - steps.edge_us[0]]
    assert (found.edge_us[0], found.edge_us[-1]) == (start, end)
    assert len(found.mean) <= room
    inside = steps.edge_us[(steps.edge_us > start) & (steps.edge_us < end)].tolist()
    if len(inside) + 1 <= room:
        assert found.is_exact
        assert found.edge_us.tolist() == [start, *inside, end]
        assert by_microsecond(found).tolist() == values.tolist()
    else:
        assert (found.least.min(), found.most.max()) == (values.min(), values.max())
        assert found.area_us == pytest.approx(values.sum())


@given(series_and_columns(), st.integers(1, 5))
def test_a_coarse_series_still_knows_least_and_most_and_its_mean(case, finest):
    steps, edges = case
    coarse = steps.coarse(finest)
    assert len(coarse.mean) <= finest
    assert coarse.is_exact == (len(steps.mean) <= finest)
    assert coarse.mean_height == pytest.approx(steps.mean_height)
    fine, rough = steps.in_columns(edges), coarse.in_columns(edges)
    # a merged step may be anywhere between its least and most, wherever a column cuts it
    assert (rough.least <= fine.least).all()
    assert (rough.most >= fine.most).all()
    assert ((rough.least <= rough.mean) & (rough.mean <= rough.most)).all()


def test_a_step_shared_by_two_columns_shows_in_both():
    """5 from 0 to 10 s, 100 for a tenth of a second, 5 again: columns of 4 s, one of which holds the short step."""
    steps = series((5, 10_000_000), (100, 10_100_000), (5, 20_000_000))
    found = steps.in_columns(np.array([0, 4_000_000, 8_000_000, 12_000_000, 16_000_000]))
    assert found.least.tolist() == [5, 5, 5, 5]
    assert found.most.tolist() == [5, 5, 100, 5]
    assert found.mean.tolist() == [5, 5, 5 + 95 * 0.1 / 4, 5]


def test_columns_that_begin_and_end_with_steps_do_not_see_their_neighbours():
    steps = series((1, 10), (7, 20), (3, 30))
    found = steps.in_columns(np.array([0, 10, 20, 30]))
    assert found.least.tolist() == found.mean.tolist() == found.most.tolist() == [1, 7, 3]
    assert steps.in_columns(np.array([10, 20])).most.tolist() == [7]


def test_a_series_with_few_steps_is_left_as_it_is():
    steps = series((1, 10), (7, 20), (3, 30))
    assert steps.coarse(3) is steps
    assert steps.is_exact
    assert not steps.coarse(2).is_exact
    assert steps.coarse(2).edge_us.tolist() == [0, 15, 30]
    assert steps.coarse(2).mean.tolist() == [3, 65 / 15]


def test_a_part_of_a_coarse_series_keeps_least_and_most():
    part = series((1, 10), (7, 20), (3, 30)).coarse(2).between(10, 20)
    assert part.edge_us.tolist() == [10, 15, 20]
    assert (part.least.tolist(), part.most.tolist()) == ([1, 3], [7, 7])


def test_the_mean_over_the_window_is_weighted_by_time():
    steps = series((0, 10), (8, 40), start=0)
    assert steps.area_us == 240
    assert steps.mean_height == 6


def test_columns_are_as_even_as_microseconds_allow():
    assert even_columns(0, 10, 4).tolist() == [0, 2, 5, 8, 10]
    assert even_columns(START, START + 3, 480).tolist() == [START, START + 1, START + 2, START + 3]


def test_means_of_a_long_window_are_exact():
    """A year of a step every second, up to 10,000 nodes: no column has the rounding errors of the year before it."""
    rng = np.random.default_rng(7)
    edges = START + 31_536_000_000_000 - 1_000_000 * np.arange(200_001)[::-1]
    heights = rng.integers(0, 10_001, 200_000)
    steps = StepSeries.exact(np.append([START], edges), np.append([9_999], heights))
    found = steps.in_columns(edges[-5::2])
    assert found.mean.tolist() == (heights[-4:].reshape(2, 2).sum(axis=1) / 2).tolist()
