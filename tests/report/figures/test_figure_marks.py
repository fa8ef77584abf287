"""How runs are told apart: the same run alike in all figures, other runs otherwise."""

from __future__ import annotations

import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.run_comparison.pairing import labels_of
from bfreplay.report.figures.marks import DARK, LIGHT, Mark, all_are_alike, amount_of, by_run, in_lines, run_number


def test_labels_number_the_runs():
    assert [run_number(label) for label in labels_of(60)] == list(range(60))
    assert run_number("") == 0
    assert run_number("C (A $x$ (1))") == 2


@pytest.mark.parametrize("label", ["exact", "a", "A(x)", "A x", " A", "A (x", "Aa", "1", "É"])
def test_other_labels_are_refused(label):
    """They would give a run an arbitrary look, perhaps that of another."""
    with pytest.raises(InputError, match="no label of a run"):
        run_number(label)
    with pytest.raises(InputError, match="no label of a run"):
        by_run({"A": 1, label: 2})


def test_runs_are_numbered_by_their_letters_and_not_by_their_places():
    assert by_run({"B (run)": "x", "AB": "y"}) == [(Mark.of_run(1), "B (run)", "x"), (Mark.of_run(27), "AB", "y")]


def test_two_runs_with_one_letter_are_refused():
    for labels in (("A", "A (run)"), ("", "A")):
        with pytest.raises(InputError, match="two runs have the same letter"):
            by_run(dict.fromkeys(labels, 0))


def test_runs_are_alike_if_all_are_like_the_first():
    assert all_are_alike([4], lambda a, b: False)
    assert all_are_alike([4, 4, 4], lambda a, b: a == b)
    assert not all_are_alike([4, 4, 5], lambda a, b: a == b)


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1 node"), (1.004, "1.00 nodes"), (1.01, "1.01 nodes"), (0.0, "0 nodes")]
)
def test_one_is_told_as_one(value, text):
    assert amount_of(value, "node") == text


def test_six_runs_differ_with_and_without_colour():
    marks = [Mark.of_run(k) for k in range(6)]
    looks = [(mark.paper_line, mark.page_line, mark.paper_fill, mark.page_fill) for mark in marks]
    for part, without_colour in ((0, "linestyle"), (1, "dash"), (2, "hatch"), (3, "pattern")):
        assert len({str(look[part].get("color", look[part].get("facecolor"))) for look in looks}) == 6
        assert len({str(look[part].get(without_colour)) for look in looks}) == 6


def test_every_colour_of_a_run_is_in_both_themes():
    assert {Mark.of_run(k).role for k in range(20)} <= set(LIGHT) & set(DARK)


@pytest.mark.parametrize(
    ("text", "lines"), [("nodes became idle", "nodes became<br>idle"), ("A", "A"), ("node-hours", "node-hours")]
)
def test_lines_are_broken_between_words(text, lines):
    assert in_lines(text) == lines
