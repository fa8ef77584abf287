"""Step functions put together from parts, the last first: as if they had been there at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.report.figures.over_time import StepSeries, even_columns
from bfreplay.report.figures.step_parts import StepParts

START = 1_700_000_000_000_000


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
