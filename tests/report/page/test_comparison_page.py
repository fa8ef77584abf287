"""The page about several runs: every number is a run folder's or the comparison's."""

from __future__ import annotations

import html
import re

import pytest

from bfreplay.experiments import compare
from bfreplay.report.figures.axes import page_axis
from bfreplay.report.figures.figure import FIGURES, find_figure
from bfreplay.report.page.document import comparison_sections, write_comparison_report
from bfreplay.result_folders.comparison import RunComparison
from bfreplay.runs.metrics import key_figures
from bfreplay.wording import percent, value_text
from tests.report.page.expected import expected_facts
from tests.report.page.read_page import ReadPage


@pytest.fixture(scope="module")
def runs(sample_run, other_run):
    """By label; the first once more as the third, so that one pair is of equals."""
    return {"A": sample_run, "B": other_run, "C": sample_run}


@pytest.fixture(scope="module")
def comparison(runs, tmp_path_factory):
    """The comparison folder of the same."""
    folder = tmp_path_factory.mktemp("compared") / "comparison"
    compare(*list(runs.values()), resamples=200, out=folder)
    return RunComparison.load(folder)


@pytest.fixture(scope="module")
def page_file(runs, comparison, tmp_path_factory):
    """The page."""
    return write_comparison_report(runs, tmp_path_factory.mktemp("page") / "three.html", comparison)


@pytest.fixture(scope="module")
def page(page_file):
    """The page, read again."""
    return ReadPage(page_file.read_text())


def test_key_figures_are_what_the_tables_of_each_run_say(page, runs):
    tables = [page.tables[name] for name in ("key-figures", "other-figures")]
    assert [table.columns for table in tables] == [["what", *runs]] * 2
    assert len(tables[0].rows) == 12
    assert all(len({text for _, text in cells}) > 1 for _, *cells in tables[0].rows), "those that differ come first"
    expected = [expected_facts(run.folder) for run in runs.values()]
    kinds = {key: fact.kind for key, fact in key_figures(runs["A"]).items()}
    rows = [row for table in tables for row in table.rows]
    assert len(rows) > 25
    for (key, _), *cells in rows:
        for (value, text), of_run in zip(cells, expected, strict=True):
            number = None if value == "" else float(value)
            assert number == (None if of_run[key] is None else pytest.approx(of_run[key], rel=1e-9))
            assert text == value_text(
                int(number) if kinds[key] == "count" and number is not None else number, kinds[key]
            )


def test_the_answer_and_the_sections_are_those_of_the_comparison(page, comparison, page_file):
    text = page_file.read_text()
    for pair in comparison.record["pairs"]:
        assert html.escape(pair["answer"], quote=False) in text
    sections = comparison_sections(comparison)
    assert {"options", "differences-over-time", "causes", "job-by-job"} <= {each.name for each in sections}
    for section in sections:
        assert page.words[section.name] == section.words
        for k, table in enumerate(section.tables, start=1):
            rows = page.all_rows(f"{section.name}-table-{k}")
            assert rows == [[(cell.value, cell.text) for cell in row] for row in table.rows]
        if section.figure is not None:
            assert page.figures()[section.name]["traces"] == section.figure.traces


_OF_OTHER_RUNS = ("best-score", "trials", "nodes")


def test_figures_show_all_runs(page, runs):
    assert not set(_OF_OTHER_RUNS) & set(page.figures())
    for name in set(FIGURES.names()) - set(_OF_OTHER_RUNS):
        figure = find_figure(name)
        found = {label: figure.data(run) for label, run in runs.items()}
        assert page.figures()[name]["traces"] == figure.page(found).traces
        assert page.words[name] == figure.words(found)
    for run in runs.values():
        assert percent(expected_facts(run.folder)["share.useful"]) in page.words["node-hours"]


def test_what_holds_for_all_runs_is_said_once(page_file):
    text = page_file.read_text()
    assert text.count("The ledger closes") == 1
    assert "<b>A, B, C:</b>" in text
    assert re.search(r"<b>B:</b> <data[^>]*>\d+</data> decisions are by a rule, without a proof", text)


def test_no_number_stands_outside_what_is_tested_and_no_link_leads_away(page):
    assert [text for text in page.loose if re.search(r"\d", text)] == []
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert len(page.ids) == len(set(page.ids))


@pytest.mark.slow
def test_it_opens_in_a_narrow_browser_and_keeps_the_rules_of_accessibility(page_file, open_page):
    from axe_playwright_python.sync_playwright import Axe

    opened = open_page(page_file, viewport={"width": 390, "height": 800}, has_touch=True)
    assert opened.run("document.documentElement.scrollWidth") == 390
    assert opened.wide_plots() == []
    assert opened.run("pageFigures.length") == len(FIGURES.names()) - len(_OF_OTHER_RUNS) + 2
    opened.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = Axe().run(opened.page).response["violations"]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"]][:3]) for each in found] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "slowest", [-2.2861, *(pytest.param(slowest, marks=pytest.mark.thorough) for slowest in (-2.2821, -2.2945))]
)
def test_tick_labels_keep_their_angle_while_margins_settle(slowest, page_file, open_page):
    """The last of these labels reaches beyond the axis: turned, it has room, whereupon it need not be turned.

    Plotly then gives up with a warning, which ``open_page`` does not let pass.
    """
    opened = open_page(page_file, viewport={"width": 390, "height": 800}, has_touch=True)
    opened.run(
        """async (axis) => {
            const figure = pageFigures.find((each) => each.frame.id === 'plot-decision-times');
            Object.assign(figure.document.layout.xaxis, axis);
            Plotly.purge(figure.frame);
            figure.isDrawn = false;
            await figure.draw();
        }""",
        page_axis(10**-4.15, 10**slowest),
    )
    assert opened.wide_plots() == []


@pytest.mark.thorough
def test_tick_labels_fit_the_width_also_after_the_page_is_resized(page_file, open_page):
    opened = open_page(page_file, bypass_csp=True)  # waiting for a value needs ``eval``
    angle = "document.getElementById('plot-idle-intervals')._fullLayout.xaxis.tickangle"
    assert opened.run(angle) == 0
    opened.page.set_viewport_size({"width": 390, "height": 800})
    opened.page.wait_for_function(f"{angle} === -45")
    assert opened.wide_plots() == []
    opened.page.set_viewport_size({"width": 1280, "height": 900})
    opened.page.wait_for_function(f"{angle} === 0")
