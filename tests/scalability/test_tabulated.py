"""Curves given as points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.errors import InputError
from bfreplay.scalability import Curve, TabulatedCurve


def test_a_curve_is_linear_between_its_points():
    curve = TabulatedCurve([0, 1, 4], [0.0, 10.0, 34.0])
    assert curve.table(4).tolist() == [0.0, 10.0, 18.0, 26.0, 34.0]
    assert curve.table(2).tolist() == [0.0, 10.0, 18.0]
    assert isinstance(curve, Curve)


@given(
    st.dictionaries(st.integers(1, 200), st.floats(0, 1e9), min_size=1, max_size=12).map(lambda d: sorted(d.items()))
)
def test_a_curve_is_exact_at_its_points(points):
    nodes, values = [0, *(n for n, _ in points)], [0.0, *(v for _, v in points)]
    table = TabulatedCurve(nodes, values).table(nodes[-1])
    assert [table[n] for n in nodes] == values


@pytest.mark.parametrize(
    ("nodes", "values", "says"),
    [
        ([1, 2], [1.0, 2.0], "does not start at zero"),
        ([0, 1], [5.0, 6.0], "does not start at zero"),
        ([0, 4, 2], [0.0, 1.0, 2.0], "not sorted"),
        ([0, 2, 2], [0.0, 1.0, 2.0], "two points at 2 nodes"),
        ([0, 2, 1, 2], [0.0, 1.0, 2.0, 3.0], "two points at 2 nodes"),
        ([0, 1.5], [0.0, 1.0], "fraction of a node"),
        ([0, 1], [0.0, -1.0], "not a finite number"),
        ([0, 1], [0.0, float("nan")], "not a finite number"),
        ([0, 1], [0.0], "2 node counts but 1 values"),
        ([], [], "no points"),
    ],
)
def test_points_that_make_no_curve_are_refused(nodes, values, says):
    with pytest.raises(InputError, match=says):
        TabulatedCurve(nodes, values, "mine")


def test_a_curve_is_not_extrapolated():
    with pytest.raises(InputError, match="ends at 4 nodes, below max_nodes"):
        TabulatedCurve([0, 4], [0.0, 1.0]).table(5)
