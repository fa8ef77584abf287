import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.named_inputs import window_us
from bfreplay.errors import InputError
from bfreplay.experiments.tuning.grid import split


@given(start=st.integers(-(10**15), 10**15), length=st.integers(1_000, 10**13), train=st.floats(0.01, 0.99))
def test_two_parts_cover_the_window_and_share_no_moment(start, length, train):
    first, second = split(start, start + length, train)
    assert first.start_us == start < first.end_us == second.start_us < second.end_us == start + length
    assert first.end_us - start <= round(train * length)
    assert abs(first.end_us - start - train * length) <= 1_000_001
    assert window_us(first.window) == (first.start_us, first.end_us)


def test_the_border_is_a_whole_second():
    first, second = split(0, 10_500_000, 0.67)
    assert first.end_us == 7_000_000
    assert second.duration_s == 3.5
    assert split(0, 900_000, 0.5)[0].end_us == 450_000  # none lies inside


@pytest.mark.parametrize("train", [0, 1, -1, 1.5, float("nan"), "half"])
def test_both_parts_need_something(train):
    with pytest.raises(InputError, match="train"):
        split(0, 10_000_000, train)
