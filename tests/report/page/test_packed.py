"""What is packed into a page comes out as it was."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bfreplay.report.page.sections import pack_document, pack_numbers, pack_steps
from bfreplay.runs.step_functions import StepSeries
from tests.report.page.read_page import inflated, numbers_of


@given(hnp.arrays(np.float64, st.integers(0, 40), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_any_numbers_come_out_as_they_were(values):
    assert np.array_equal(numbers_of(pack_numbers(values)), values)


@pytest.mark.parametrize(
    ("most", "kind"), [(255, "uint8"), (256, "uint16"), (65_536, "uint32"), (2**32, "float64"), (0.5, "float64")]
)
def test_whole_numbers_take_no_more_room_than_they_need(most, kind):
    assert pack_numbers(np.array([0, most]))["type"] == kind


def test_negative_numbers_are_kept():
    assert pack_numbers(np.array([-1.0, 2.0]))["type"] == "float64"


@pytest.mark.parametrize(
    ("edge_us", "unit_s"),
    [
        ([0, 2_000_000, 5_000_000], 1.0),
        ([0, 2_000, 5_000], 0.001),
        ([0, 2, 5], 0.000001),
        ([7, 1_000_007, 2_000_007], 0.000001),
    ],
)
def test_steps_are_counted_in_the_largest_unit_that_all_are_whole_in(edge_us, unit_s):
    packed = pack_steps(StepSeries.exact(np.array(edge_us), np.array([4, 1])), 0)
    assert packed["unit_s"] == unit_s
    lengths = numbers_of(packed["length"]) * packed["unit_s"]
    assert np.allclose(packed["start_s"] + np.cumsum(lengths), np.array(edge_us[1:]) / 1e6, rtol=0, atol=1e-9)
    assert numbers_of(packed["mean"]).tolist() == [4, 1]
    assert "least" not in packed


def test_merged_steps_keep_least_and_most():
    series = StepSeries(np.array([0, 10, 20]), np.array([1.0, 0.0]), np.array([1.5, 2.0]), np.array([2.0, 4.0]))
    packed = pack_steps(series, 0)
    assert [numbers_of(packed[name]).tolist() for name in ("least", "mean", "most")] == [[1, 0], [1.5, 2], [2, 4]]


def test_a_document_with_nan_is_refused():
    assert json.loads(inflated(pack_document([["a", None, 1.5]]))) == [["a", None, 1.5]]
    with pytest.raises(ValueError, match="JSON"):
        pack_document([float("nan")])
