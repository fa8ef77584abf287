"""Numbers as people read them."""

import pytest

from bfreplay.wording import amount, count, duration


def test_one_is_singular():
    assert [count(n, "node") for n in (0, 1, 2, 4734)] == ["0 nodes", "1 node", "2 nodes", "4,734 nodes"]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0.0"), (0.1667, "0.167"), (9.876, "9.88"), (10, "10.0"), (140182.29, "140,182.3")]
)
def test_small_amounts_keep_three_digits(value, text):
    assert amount(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1.5, "1.5 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (172_799, "48.0 h"),
        (1_287_041, "14.9 days"),
    ],
)
def test_durations_are_given_in_a_unit_that_fits(seconds, text):
    assert duration(seconds) == text
