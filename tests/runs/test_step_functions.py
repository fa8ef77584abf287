"""Step functions in columns: least, mean and most are those of the function, whatever the columns are."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.runs.step_functions import StepParts, StepSeries, even_columns
from tests.report.page.expected import columns_of

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


@st.composite
def functions(draw):
    """(edges, heights, places at which it is parted)."""
    lengths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=60))
    heights = draw(st.lists(st.integers(0, 3), min_size=len(lengths), max_size=len(lengths)))
    cuts = draw(st.sets(st.integers(1, max(1, len(lengths) - 1)), max_size=8))
    edges = START + np.concatenate([[0], np.cumsum(lengths)])
    return edges, np.array(heights), sorted({0, *(cut for cut in cuts if cut < len(lengths)), len(lengths)})


def put_together(function, *columns, shrinks=True):
    edges, heights, cuts = function
    found = StepParts(int(edges[0]), int(edges[-1]), *columns)
    for first, last in reversed([*pairwise(cuts)]):
        found.add(edges[first : last + 1], heights[first:last])
        if shrinks:
            found.shrink()
    return found


def exact(function):
    edges, heights, _ = function
    is_new = np.append(True, heights[1:] != heights[:-1])
    return StepSeries.exact(np.append(edges[:-1][is_new], edges[-1]), heights[is_new])


def assert_equal(found, expected):
    for name in ("edge_us", "least", "mean", "most"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@given(function=functions())
def test_few_steps_are_kept_as_they_are_and_equal_neighbours_are_one(function):
    found = put_together(function, 60)
    assert found.series().is_exact
    assert_equal(found.series(), exact(function))
    assert found.n_steps == len(exact(function).mean)


@given(function=functions(), columns=st.tuples(st.integers(1, 6), st.integers(1, 9)))
def test_many_steps_are_shown_as_if_all_were_kept_in_each_of_the_columns(function, columns):
    found, expected = put_together(function, *columns).series(), exact(function)
    assert found.is_exact == (len(expected.mean) <= max(columns)) or not found.is_exact
    for each in columns:
        edges = even_columns(int(function[0][0]), int(function[0][-1]), each)
        assert_equal(found.in_columns(edges), expected.in_columns(edges))


@given(function=functions(), columns=st.integers(1, 5))
def test_no_more_is_kept_than_columns(function, columns):
    assert len(put_together(function, columns).series().mean) <= columns


@given(function=functions())
def test_unless_it_is_shrunk_every_step_is_kept(function):
    assert_equal(put_together(function, 1, shrinks=False).series(), exact(function))


@given(function=functions(), columns=st.integers(1, 60))
def test_the_time_at_each_height_is_exact_in_any_case(function, columns):
    edges, heights, _ = function
    time_us = np.bincount(heights, np.diff(edges))
    assert [*zip(*(each.tolist() for each in put_together(function, columns).time_at()), strict=True)] == [
        (height, us) for height, us in enumerate(time_us.tolist()) if us
    ]


def test_columns_put_together_from_finer_ones_have_the_very_means_of_the_steps():
    """The rounding of the finer means must not show: pages of long and of short runs have the same numbers."""
    random = np.random.default_rng(7)
    edges = START + np.concatenate([[0], np.cumsum(random.integers(1, 10**9, 2_000))])
    function = edges, random.integers(0, 4_000, 2_000), [0, 700, 2_000]
    found, expected = put_together(function, 48, 977).series(), exact(function)
    assert not found.is_exact
    for each in (48, 977):
        columns = even_columns(int(edges[0]), int(edges[-1]), each)
        assert_equal(found.in_columns(columns), expected.in_columns(columns))
