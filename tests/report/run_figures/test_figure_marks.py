"""How runs are told apart: the same run alike in all figures, other runs otherwise."""

from __future__ import annotations

import pytest

from bfreplay.experiments.run_comparison.pairing import labels_of
from bfreplay.report.look import DARK, LIGHT
from bfreplay.report.run_figures.marks import (
    in_lines,
    page_fill,
    page_line,
    paper_fill,
    paper_line,
    run_number,
    run_role,
)


def test_labels_number_the_runs():
    assert [run_number(label) for label in labels_of(60)] == list(range(60))
    assert run_number("") == 0


def test_six_runs_differ_with_and_without_colour():
    looks = [
        (paper_line(run_role(k), k), page_line(run_role(k), k), paper_fill(run_role(k), k), page_fill(run_role(k), k))
        for k in range(6)
    ]
    for part, without_colour in ((0, "linestyle"), (1, "dash"), (2, "hatch"), (3, "pattern")):
        assert len({str(look[part].get("color", look[part].get("facecolor"))) for look in looks}) == 6
        assert len({str(look[part].get(without_colour)) for look in looks}) == 6


def test_every_colour_of_a_run_is_in_both_themes():
    assert {run_role(k) for k in range(20)} <= set(LIGHT) & set(DARK)


@pytest.mark.parametrize(
    ("text", "lines"), [("nodes became idle", "nodes became<br>idle"), ("A", "A"), ("node-hours", "node-hours")]
)
def test_lines_are_broken_between_words(text, lines):
    assert in_lines(text) == lines
