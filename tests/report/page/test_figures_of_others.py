"""Figures that other packages announce are on the page, and those that fail do not keep the rest from the reader."""

from __future__ import annotations

import pytest

from bfreplay.report.figures.figure import FIGURES, RunFigure, find_figure
from bfreplay.report.page.document import write_report
from tests.report.page.read_page import ReadPage


def _fails(_run):
    raise ZeroDivisionError("no such thing")


_NODE_HOURS = find_figure("node-hours")
FAILING = RunFigure("failing", "A figure that fails", _fails, _NODE_HOURS.draw, _NODE_HOURS.page, _NODE_HOURS.words)


@pytest.fixture
def page(sample_run, tmp_path, monkeypatch):
    """With one figure that works under a name of the page's own, one that fails, and one that is not there."""
    theirs = {
        "answer": "bfreplay.report.figures.node_hours:NODE_HOURS",
        "failing": "tests.report.page.test_figures_of_others:FAILING",
        "gone": "nowhere:NOTHING",
    }
    monkeypatch.setattr(
        "bfreplay.registry._entry_points_by_name", lambda group, path: theirs if group == FIGURES.group else {}
    )
    return ReadPage(write_report(sample_run, tmp_path / "page.html").read_text())


def test_one_that_works_is_drawn_apart_from_what_the_page_names_itself(page):
    assert page.figures()["figure-answer"]["traces"] == page.figures()["node-hours"]["traces"]
    assert len(page.ids) == len(set(page.ids))


def test_one_that_fails_says_so_and_the_others_are_there(page):
    assert set(FIGURES.built_in) - {"best-score", "trials", "nodes"} <= set(page.figures())
    assert "cannot be shown: ZeroDivisionError: no such thing" in page.words["figure-failing"]
    assert "cannot be shown: the figure 'gone' cannot be imported" in page.words["figure-gone"]
