"""Headline cards, the Gantt chart and wide tables, as a reader has them on a screen and on a phone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

from bfreplay import replay_log
from bfreplay.cli import main
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings
from bfreplay.report.page.document import answer, write_comparison_report, write_report
from bfreplay.report.page.headline import comparison_cards, first_view_end_s, run_cards
from bfreplay.runs import RunResult
from bfreplay.runs.metrics import key_figures
from bfreplay.wording import amount
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log
from tests.report.page.conftest import OpenPage
from tests.report.page.read_page import ReadPage
from tests.runs.explain.little_source import LittleHalving


class Trials(LittleHalving):
    """The same with parameters."""

    def _trial(self, k, now_us):
        return replace(super()._trial(k, now_us), params={"rate": 0.1 * (k + 1), "batch": 8 * (k % 2)})


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """A search on four nodes that finishes after a tenth of the log; nodes are recorded."""
    folder = tmp_path_factory.mktemp("search") / "run"
    replay_log(log(4, [], 300, range(4)), Trials(), EqualSharePolicy(), ReplaySettings(record_nodes=True), out=folder)
    return RunResult.load(folder)


@pytest.fixture(scope="module")
def opened(browser, search, tmp_path_factory):
    """Its page on a screen."""
    kept = OpenPage(browser, write_report(search, tmp_path_factory.mktemp("page") / "search.html"))
    yield kept
    kept.context.close()
    kept.did_nothing_beside()


@pytest.fixture(scope="module")
def phone(browser, search, tmp_path_factory):
    """The same on a phone."""
    file = write_report(search, tmp_path_factory.mktemp("page") / "search.html")
    kept = OpenPage(browser, file, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    yield kept
    kept.context.close()
    kept.did_nothing_beside()


def cards_of(run):
    return {card.title: (card.value.striptags(), card.words.striptags()) for card in run_cards(run, key_figures(run))}


def test_cards_of_a_search_tell_gain_time_score_and_cost(search):
    cards = cards_of(search)
    assert [*cards] == [
        "Training gained",
        "Search finished after",
        "Highest simulated score",
        "Rescaling and preemption",
    ]
    assert cards["Search finished after"] == ("23.8 s", "23.8 s on 4 dedicated nodes")
    assert cards["Highest simulated score"] == ("8", "t2 after 23.8 s")
    assert cards["Training gained"][1].startswith(
        "100 % of what was idle until all jobs were done; 7.92 % of the 0.333"
    )


def test_cards_suit_the_run(never_idle_run, sample_run, packed_run):
    assert cards_of(never_idle_run)["Training gained"] == ("0 node-hours", "no node was ever idle")
    assert "Efficiency U" in cards_of(sample_run)
    assert [*cards_of(packed_run)] == ["Utilisation", "All jobs done after", "Mean completion time"]


def test_cards_of_several_runs_name_the_best_and_the_others(sample_run, other_run):
    runs = {"A": sample_run, "B": other_run}
    facts = {label: key_figures(run) for label, run in runs.items()}
    cards = {card.title: (card.value.striptags(), card.words.striptags()) for card in comparison_cards(runs, facts)}
    assert len(cards) == 4
    assert cards["Efficiency U"] == ("0.867 A", "B 0.636")
    assert comparison_cards({"A": sample_run, "B": sample_run}, {"A": facts["A"], "B": facts["A"]}) == []


def test_of_several_searches_the_one_that_finishes_first_and_holds_less_is_better(search):
    slow = replay_log(log(2, [], 300, range(2)), Trials(), EqualSharePolicy())
    runs = {"A": search, "B": slow}
    facts = {label: key_figures(run) for label, run in runs.items()}
    cards = {card.title: (card.value.striptags(), card.words.striptags()) for card in comparison_cards(runs, facts)}
    assert cards["Search finished after"][0] == "23.8 s A"
    assert {*cards} <= {
        "Search finished after",
        "Highest simulated score",
        "Node-hours held",
        "Rescaling and preemption",
    }


@pytest.mark.slow
def test_pictures_show_the_search_at_first_and_the_window_when_asked(opened, search):
    shown_s = first_view_end_s([search])
    assert shown_s == pytest.approx(1.05 * 23.75)
    opened.run("setView(0, timeAxis.shown_s)")
    assert opened.view() == pytest.approx((0.0, shown_s))
    opened.page.get_by_role("button", name="Whole window").first.click()
    assert opened.view() == (0.0, 300.0)


def test_a_card_leads_to_the_warnings(opened):
    cards = opened.page.locator(".cards li")
    assert cards.count() == 5
    cards.last.get_by_role("link").click()
    assert opened.page.evaluate("location.hash") == "#cautions-title"
    n = int(cards.last.locator("data").inner_text())
    assert opened.page.locator(".cautions li").count() == n > 0


def test_the_gantt_chart_names_the_job_of_each_node_and_time(opened, search):
    opened.run("setView(0, timeAxis.duration_s)")
    find = 'pageFigures.find((figure) => figure.frame.id === "plot-nodes")'
    edges, rows, names = opened.run(
        f"(() => {{ const {{data: [trace]}} = {find}.frame; return [trace.x.map(fromAxis), trace.y, trace.text]; }})()"
    )
    held = search.frame("nodes")
    start = held["from"].min()
    for name, row in zip(rows, names, strict=True):
        for column in range(0, len(row), 7):
            middle = (edges[column] + edges[column + 1]) / 2
            since, until = ((held[edge] - start).dt.total_seconds() for edge in ("from", "to"))
            there = held[(held["node"].astype(str) == name) & (since <= edges[column]) & (until >= edges[column + 1])]
            assert row[column] in (set(there["job"].astype(str)) or {row[column]}), (name, middle)
    assert {each for row in names for each in row} > {"t0", "t2"}


def test_a_drag_enlarges_nodes_and_time_of_the_gantt_chart(opened):
    opened.run("setView(0, timeAxis.duration_s)")
    plot = opened.page.locator("#plot-nodes .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    opened.page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.1 * box["height"])
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.6 * box["height"], steps=4)
    opened.page.mouse.up()
    assert opened.view() == pytest.approx((30.0, 120.0), abs=5)
    low, high = sorted(opened.run("document.getElementById('plot-nodes').layout.yaxis.range.map(Number)"))
    assert high - low == pytest.approx(2.0, abs=0.3)
    opened.run("setView(0, timeAxis.duration_s)")


@pytest.mark.slow
def test_a_wide_table_scrolls_on_a_phone_and_keeps_its_first_column(phone):
    assert phone.run("document.documentElement.scrollWidth") == 390
    assert phone.wide_plots() == []
    frame = "document.querySelector('#job-table-table-1').parentElement"
    assert phone.run(f"{frame}.scrollWidth > {frame}.clientWidth + 100")
    left = f"{frame}.querySelector('tbody th').getBoundingClientRect().left - {frame}.getBoundingClientRect().left"
    assert phone.run(left) == pytest.approx(0, abs=1)
    phone.run(f"{frame}.scrollLeft = 200")
    assert phone.run(left) == pytest.approx(0, abs=1)
    cards = phone.run("[...document.querySelectorAll('.cards li')].map((each) => each.getBoundingClientRect().right)")
    assert max(cards) <= 390


@pytest.mark.slow
def test_a_log_run_and_a_cluster_run_stand_side_by_side(sample_run, packed_run, tmp_path, open_page):
    file = write_comparison_report({"A": sample_run, "B": packed_run}, tmp_path / "both.html")
    page = ReadPage(file.read_text())
    assert page.headings[0][1] == (
        "2 runs of training on idle nodes of synthetic-256 and on a cluster of v100=2,p100=1, compared"
    )
    assert "pictures of nodes over time are omitted; their jobs differ" in "".join(page.loose)
    assert not {"timeline", "jobs"} & set(page.figures())
    assert {"node-hours", "efficiency"} <= set(page.figures())
    opened = open_page(file)
    assert opened.run("pageFigures.every((figure) => figure.isDrawn)")


def test_runs_of_the_same_jobs_on_a_log_and_a_cluster_are_compared(tmp_path):
    jobs = JobSet([job("a", work=400.0), job("b", work=100.0)])
    made = {
        "log": replay_log(log(2, [], 7_200, idle_first=[0]), jobs, EqualSharePolicy(), out=tmp_path / "log"),
        "cluster": replay_log(
            fixed_cluster("cpu=2"), jobs, EqualSharePolicy(), ReplaySettings(until_done=True), out=tmp_path / "cluster"
        ),
    }
    done = CliRunner().invoke(
        main, ["report", *(str(tmp_path / name) for name in made), "-o", str(tmp_path / "x.html")]
    )
    assert done.exit_code == 0, done.output
    page = ReadPage((tmp_path / "x.html").read_text())
    assert "The runs differ in log" in page.words["options"]
    assert "all other options and the jobs are the same" in page.words["options"]
    assert "job-by-job" in page.ids
    assert not {"timeline", "jobs"} & set(page.figures())


def test_delay_to_batch_jobs_has_a_card_and_a_sentence(sample_run):
    found = sample_run.summary.batch_starts
    value, words = cards_of(sample_run)["Delay to batch jobs"]
    assert value == f"{amount(found.delay_node_hours)} node-hours"
    assert words.startswith(f"{found.n_starts_met:,} of {found.n_starts:,} batch starts met a training, 30 s to clear")
    sentence = next(each.striptags() for each in answer(sample_run, key_figures(sample_run)) if "batch jobs" in each)
    assert f"batch jobs start late by {value.split()[0]} node-hours in all" in sentence
