"""Ticks of logarithmic axes of seconds are lengths of time that people know."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bfreplay.report.figures.axes import new_figure, page_axis, paper_axis, spans_between


@pytest.mark.parametrize(
    ("low_s", "high_s", "labels"),
    [
        (1.0, 604_800.0, ["1 s", "10 s", "1 min", "15 min", "1 h", "4 h", "1 day", "1 week"]),
        (1e-5, 1e-3, ["10 µs", "20 µs", "50 µs", "100 µs", "200 µs", "500 µs", "1 ms"]),
        (1_800.0, 7_200.0, ["30 min", "1 h", "2 h"]),
        (1e-6, 10.0, ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]),
    ],
)
def test_ticks_are_few_but_not_too_few(low_s, high_s, labels):
    assert [label for label, _ in spans_between(low_s, high_s)] == labels


def test_ticks_ascend_and_lie_inside():
    seconds = [each for _, each in spans_between(50.0, 5_000.0)]
    assert all(low < high for low, high in pairwise(seconds))
    assert 50.0 <= seconds[0] <= seconds[-1] <= 5_000.0


def test_both_kinds_of_axes_have_the_same_ticks():
    page = page_axis(1.0, 3_600.0)
    axes = new_figure(4, 3).subplots()
    paper_axis(axes, 1.0, 3_600.0)
    assert page["tickvals"] == axes.get_xticks().tolist()
    assert page["ticktext"] == [text.get_text() for text in axes.get_xticklabels()]
    assert 10 ** page["range"][1] == pytest.approx(axes.get_xlim()[1])
