"""Numbers as people read them."""

import math

import pytest

from bfreplay.wording import WIDTH, amount, count, duration, parts_of_whole, percent, table_of


def test_one_is_singular():
    assert [count(n, "node") for n in (0, 1, 2, 4734)] == ["0 nodes", "1 node", "2 nodes", "4,734 nodes"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.1667, "0.167"),
        (9.876, "9.88"),
        (10.0, "10"),
        (10.04, "10.0"),
        (999.6, "1,000"),
        (140182.29, "140,000"),
        (7.983e9, "7.98e+09"),
        (1.2e-5, "1.20e-05"),
        (-12.345, "-12.3"),
        (math.inf, "inf"),
        (4_734, "4,734"),
    ],
)
def test_amounts_have_three_significant_digits_and_counts_all(value, text):
    assert amount(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.00894, "0.894 %"), (0.674, "67.4 %"), (0.99999, "99.9 %"), (1.0, "100 %"), (-0.0148, "-1.48 %")],
)
def test_shares_are_percent_and_less_than_all_is_never_told_as_all(share, text):
    assert percent(share) == text


def test_printed_parts_add_up_to_the_printed_whole():
    assert parts_of_whole([1664.56, 22.07, 36.45, 747.22]) == ["1,664.6", "22.1", "36.4", "747.2"]  # 2,470.3
    assert parts_of_whole([1 / 3] * 3) == ["0.334", "0.333", "0.333"]
    assert parts_of_whole([0.0, 0.0]) == ["0", "0"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1.5, "1.50 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (172_799, "48.0 h"),
        (1_287_041, "14.9 days"),
    ],
)
def test_durations_are_given_in_a_unit_that_fits(seconds, text):
    assert duration(seconds) == text


def test_a_table_is_printed_with_its_caption_numbers_to_the_right_and_a_dash_for_none():
    table = table_of(
        "Jobs", {"job": "text", "time": "seconds", "share": "percent"}, [["a", 7_200.0, None], ["bc", 5, 1]]
    )
    assert table.lines() == [
        "Jobs",
        "job  time  share",
        "a     2 h      -",
        "bc    5 s  100 %",
    ]
    assert table.without("time").lines()[1:] == ["job  share", "a        -", "bc   100 %"]


def test_headings_of_a_table_that_is_too_wide_are_wrapped_as_little_as_will_do():
    headings = [f"a heading of number {number}" for number in range(6)]
    table = table_of("Wide", dict.fromkeys(headings, "count"), [range(6)])
    lines = table.lines()
    assert max(map(len, lines)) <= WIDTH
    assert [line.split() for line in lines[1:]] == [
        ["a", "heading", "of"] * 6,
        [word for number in range(6) for word in ("number", str(number))],
        [str(number) for number in range(6)],
    ]
    two = table.without(*headings[2:])
    assert two.lines()[1] == "  ".join(headings[:2])
