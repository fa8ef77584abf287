"""The page as a reader has it: opened from its file in a real browser, and used."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.datasets.times import EPOCH
from bfreplay.report.page.document import write_report
from bfreplay.runs.step_functions import StepSeries
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log
from tests.report.page.conftest import OpenPage
from tests.report.page.expected import columns_of

pytestmark = pytest.mark.slow  # test_headline.py opens pages in `make test`


@pytest.fixture(scope="session")
def sample_page(sample_run, tmp_path_factory):
    """The page about the bundled log's first day."""
    return write_report(sample_run, tmp_path_factory.mktemp("pages") / "sample.html")


@pytest.fixture(scope="module")
def kept_open(browser, sample_page):
    """That page, opened once for the tests that leave it as they found it, but for the order of a table."""
    kept = OpenPage(browser, sample_page, color_scheme="light")
    yield kept
    kept.context.close()


@pytest.fixture
def opened(kept_open):
    """That page as it is used, with the whole window in view; fails the test if the page fetched or said anything."""
    kept_open.run("setView(0, timeAxis.duration_s)")
    yield kept_open
    kept_open.did_nothing_beside()


@pytest.fixture(scope="module")
def kept_dark(browser, sample_page):
    """The same in a dark system, as wide as A4."""
    kept = OpenPage(browser, sample_page, color_scheme="dark", viewport={"width": 718, "height": 1000})
    yield kept
    kept.context.close()


@pytest.fixture
def dark(kept_dark):
    """That page for a test that leaves it dark; fails the test if the page fetched or said anything."""
    yield kept_dark
    kept_dark.did_nothing_beside()


@pytest.fixture(scope="module")
def many_jobs(browser, many_jobs_run, tmp_path_factory):
    """The page about many jobs, opened; one test uses its table, the other its pictures."""
    opened = OpenPage(browser, write_report(many_jobs_run, tmp_path_factory.mktemp("pages") / "many.html"))
    yield opened
    opened.context.close()
    opened.did_nothing_beside()


def test_dragging_across_a_picture_shows_that_part_in_all_pictures_over_time(opened):
    before = opened.view()
    _drag(opened, 0.25, 0.5)
    begin, end = opened.view()
    length = before[1] - before[0]
    assert begin == pytest.approx(before[0] + 0.25 * length, abs=0.02 * length)
    assert end == pytest.approx(before[0] + 0.5 * length, abs=0.02 * length)
    over_time = "pageFigures.filter((figure) => figure.timeAxes.length)"
    ranges = opened.run(f"{over_time}.map((figure) => figure.frame.layout.xaxis.range.map(fromAxis))")
    assert len(ranges) == 2
    assert np.allclose(ranges, [[begin, end]] * 2, atol=1e-3)
    assert opened.page.locator(".view").first.inner_text() == f"{_clock(opened, begin)} to {_clock(opened, end)}"


def test_a_double_click_and_the_button_show_the_whole_window_again(opened):
    whole = opened.view()
    _drag(opened, 0.25, 0.5)
    opened.page.locator("#plot-timeline .nsewdrag").dblclick()
    opened.page.wait_for_function("view.from === 0 && view.to === timeAxis.duration_s")
    _drag(opened, 0.25, 0.5)
    assert opened.view() != whole
    opened.page.get_by_role("button", name="Whole window").first.click()
    assert opened.view() == whole


def test_a_picture_offers_to_be_saved_and_nothing_else(opened):
    """No button that would send it anywhere."""
    buttons = opened.run("[...document.querySelectorAll('.modebar-btn')].map((button) => button.dataset.title)")
    assert set(buttons) == {"Download plot as a PNG"}
    sends = "pageFigures.map(({frame}) => [frame._context.showSendToCloud, frame._context.plotlyServerURL])"
    assert opened.run(sends) == [[False, ""]] * opened.run("pageFigures.length")


def test_a_double_click_shows_all_of_a_picture_that_is_not_over_time(opened):
    ranges = "document.getElementById('plot-idle-intervals').layout.xaxis.range.map(Number)"
    before = opened.run(ranges)
    _drag(opened, 0.3, 0.6, "idle-intervals")
    opened.page.wait_for_function(f"JSON.stringify({ranges}) !== JSON.stringify({before})")
    opened.page.locator("#plot-idle-intervals .nsewdrag").first.dblclick()
    opened.page.wait_for_function(f"({ranges}).every((value, k) => Math.abs(value - {before}[k]) < 1e-9)")


def test_a_picture_over_time_cannot_be_moved_off_its_nodes_or_its_window(opened):
    whole = opened.view()
    heights = "pageFigures[0].frame.layout.yaxis.range.map(Number)"
    before = opened.run(heights)
    plot = opened.page.locator("#plot-timeline .nsewdrag")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    x = box["x"] + box["width"] / 2
    opened.page.mouse.move(x, box["y"] + 0.2 * box["height"])
    opened.page.mouse.down()
    opened.page.mouse.move(x + 1, box["y"] + 0.8 * box["height"], steps=4)
    opened.page.mouse.up()
    assert opened.run(heights) == before
    opened.run("Plotly.relayout(pageFigures[0].frame, {'xaxis.range': [toAxis(-50000), toAxis(20000)]})")
    opened.page.wait_for_function("pageFigures[0].frame.layout.xaxis.range.map(fromAxis)[0] === view.from")
    assert opened.view()[0] == whole[0]
    opened.page.get_by_role("button", name="Whole window").first.click()
    assert opened.run("pageFigures[0].frame.layout.xaxis.range.map(fromAxis)") == list(whole)


def test_the_keyboard_moves_and_zooms(opened):
    begin, end = opened.view()
    opened.page.locator("#timeline .plot-frame").focus()
    opened.page.keyboard.press("+")
    assert opened.view() == pytest.approx((begin + (end - begin) / 4, end - (end - begin) / 4))
    opened.page.keyboard.press("ArrowLeft")
    assert opened.view() == pytest.approx((begin, begin + (end - begin) / 2))
    opened.page.keyboard.press("ArrowLeft")  # no further than the window
    assert opened.view() == pytest.approx((begin, begin + (end - begin) / 2))
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("-")
    assert opened.view() == pytest.approx((begin, end))
    opened.page.keyboard.press("+")
    opened.page.keyboard.press("Home")
    assert opened.view() == (begin, end)


@pytest.mark.parametrize("part", [(0.0, 1.0), (0.31, 0.62), (0.5, 0.501)], ids=["whole", "third", "closest"])
def test_lines_show_what_the_tables_say_of_the_part_that_is_looked_at(opened, sample_run, part):
    config = sample_run.record["config"]
    start_us, end_us = config["window_start_us"], config["window_end_us"]
    from_us, to_us = (start_us + round(share * (end_us - start_us)) for share in part)
    opened.run("([a, b]) => setView(a, b)", [(from_us - start_us) / 1e6, (to_us - start_us) / 1e6])
    pool = sample_run.table("pool")
    idle = StepSeries.exact(
        np.append(np.asarray(pool["time"].cast("int64")), end_us), np.asarray(pool["n_idle"], dtype=np.int64)
    )
    drawn = opened.run(
        """() => {
            const figure = pageFigures[0];
            const n = figure.columns();
            return {n, lines: figure.document.traces.map((trace, k) => [
                trace.steps, figure.frame.data[k].x.map(fromAxis), Array.from(figure.frame.data[k].y)])};
        }"""
    )
    expected = columns_of(idle, from_us, to_us, drawn["n"])
    seen = [line for line in drawn["lines"] if line[0]["series"] == "idle"]
    assert {line[0]["statistic"] for line in seen} == {"least", "mean", "most"}
    for steps, x, y in seen:
        assert np.allclose(np.array(x) * 1e6 + start_us, expected.edge_us, atol=2_000)  # Plotly keeps milliseconds
        assert np.allclose(y[:-1], getattr(expected, steps["statistic"]), rtol=1e-6, atol=1e-6)


def test_a_header_sorts_a_table_both_ways_and_says_so(opened, sample_run):
    held = sorted(sample_run.table("jobs")["done_samples"].to_pylist(), reverse=True)
    button = opened.header("job-table-table-1", "done_samples")
    header = opened.page.locator('#job-table-table-1 th[data-column="done_samples"]')
    assert header.get_attribute("aria-sort") is None
    button.click()
    assert header.get_attribute("aria-sort") == "descending"
    assert [float(value) for value in opened.column("job-table-table-1", "done_samples")] == held
    button.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    assert [float(value) for value in opened.column("job-table-table-1", "done_samples")] == held[::-1]
    opened.header("job-table-table-1", "job").click()
    assert header.get_attribute("aria-sort") is None
    names = opened.column("job-table-table-1", "job")
    assert names == sorted(names)


def test_what_is_missing_is_sorted_last_both_ways(opened):
    for _ in range(2):
        opened.header("job-table-table-1", "completion_s").click()
        values = opened.column("job-table-table-1", "completion_s")
        missing = values.index("")
        assert all(value == "" for value in values[missing:])
        assert all(value != "" for value in values[:missing])


def test_a_long_table_is_paged_sorted_as_a_whole_and_searched(many_jobs, many_jobs_run):
    opened = many_jobs
    jobs = many_jobs_run.jobs
    table = "job-table-table-1"
    assert opened.column(table, "job") == jobs["job"].tolist()[:50]
    opened.page.get_by_role("button", name="Next rows").click()
    assert opened.column(table, "job") == jobs["job"].tolist()[50:100]
    assert opened.page.locator(".table-controls [role=status]").inner_text() == f"rows 51 to 100 of {len(jobs):,}"
    opened.header(table, "n_preemptions").click()
    most = jobs.sort_values("n_preemptions", ascending=False, kind="stable")["job"].tolist()
    assert opened.column(table, "job") == most[:50]
    opened.page.get_by_role("searchbox", name="Search").fill("TRIAL-123")
    assert sorted(opened.column(table, "job")) == [f"trial-123{k}" for k in range(10)]
    opened.page.get_by_role("searchbox", name="Search").fill("no such job")
    assert opened.column(table, "job") == []
    assert opened.page.locator(".table-controls [role=status]").inner_text() == "no such row"


def test_where_jobs_share_a_row_the_picture_names_the_one_of_the_time(many_jobs, many_jobs_run):
    opened = many_jobs
    begin, end = 40_000.0, 40_300.0
    opened.run("([a, b]) => setView(a, b)", [begin, end])
    edges, names, nodes = opened.run(
        """() => {
            const {frame} = pageFigures.find((figure) => figure.frame.id === "plot-jobs");
            return [frame.data[0].x.map(fromAxis), frame.data[0].text, frame.data[0].z.map((row) => Array.from(row))];
        }"""
    )
    start_us = many_jobs_run.record["config"]["window_start_us"]
    held = many_jobs_run.allocations
    since, until = (held[edge].astype("int64") / 1e6 - start_us / 1e6 for edge in ("from", "to"))
    column = 7
    there = held[(since < edges[column + 1]) & (until > edges[column])]
    shown = [name for name, count in zip(names, nodes, strict=True) if count[column]]
    assert sorted(row[column] for row in shown) == sorted(there["job"].astype(str))


def test_the_theme_is_the_systems_and_the_button_changes_it(opened, dark):
    assert opened.run("theme") == "light"
    before = _colours(dark)
    dark.page.get_by_role("button", name="Light theme").click()
    light = _colours(dark)
    dark.page.emulate_media(color_scheme="light")
    dark.page.emulate_media(color_scheme="dark")  # the reader has chosen: the system has no say
    assert dark.run("theme") == "light"
    assert all(a != b for a, b in zip(before, light, strict=True))
    dark.page.get_by_role("button", name="Dark theme").click()
    assert _colours(dark) == before


def test_paper_is_light_and_nothing_is_cut_at_its_edge(dark):
    dark.page.emulate_media(media="print", color_scheme="dark")
    assert dark.run("document.documentElement.scrollWidth") == 718
    assert dark.wide_plots() == []
    dark.run("dispatchEvent(new Event('beforeprint'))")
    assert dark.run("theme") == "light"
    dark.run("dispatchEvent(new Event('afterprint'))")
    assert dark.run("theme") == "dark"
    assert len(dark.page.pdf()) > 50_000
    dark.page.emulate_media(media="screen")


@pytest.mark.thorough  # on paper and on the page about several runs more often
@pytest.mark.parametrize("width", [360, 768, 1600])
def test_no_width_makes_the_page_wider_than_the_window(sample_page, open_page, width):
    opened = open_page(sample_page, viewport={"width": width, "height": 800}, has_touch=width < 500)
    assert opened.run("document.documentElement.scrollWidth") == width
    assert opened.wide_plots() == []


@pytest.mark.parametrize("page", ["opened", pytest.param("dark", marks=pytest.mark.thorough)])
def test_rules_of_accessibility_hold(page, request):
    from axe_playwright_python.sync_playwright import Axe

    opened = request.getfixturevalue(page)
    folded = "document.querySelectorAll('details:not([open])')"
    opened.run(f"window.unfolded = [...{folded}]; unfolded.forEach((each) => {{ each.open = true; }})")
    found = Axe().run(opened.page, context={"exclude": [".modebar-container"]}).response["violations"]
    opened.run("unfolded.forEach((each) => { each.open = false; })")
    assert [(each["id"], [node["html"][:120] for node in each["nodes"]][:3]) for each in found] == []


@pytest.mark.parametrize(
    "run",
    ["no_jobs_run", *(pytest.param(run, marks=pytest.mark.thorough) for run in ("never_idle_run", "all_idle_run"))],
)
def test_odd_runs_have_a_page_too(run, request, tmp_path, open_page):
    opened = open_page(write_report(request.getfixturevalue(run), tmp_path / "odd.html"))
    text = opened.page.locator("body").inner_text()
    assert [word for word in ("NaN", "nan", "None", "undefined", "Infinity", "Invalid") if word in text.split()] == []
    ranges = opened.run(
        """pageFigures.flatMap(({frame}) => Object.keys(frame.layout).filter((key) => /^[xy]axis/.test(key))
            .map((key) => frame.layout[key].range)).filter((range) => range.some((end) => !Number.isFinite(Number(end))
                && Number.isNaN(Date.parse(end))))"""
    )
    assert ranges == []


def _drag(opened, begin, end, figure="timeline"):
    """Mark a part of a figure with the mouse, in shares of its width."""
    plot = opened.page.locator(f"#plot-{figure} .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    y = box["y"] + box["height"] / 2
    opened.page.mouse.move(box["x"] + begin * box["width"], y)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + end * box["width"], y, steps=4)
    opened.page.mouse.up()


def _clock(opened, seconds):
    start_ms = opened.run("timeAxis.start_ms")
    return f"{EPOCH + timedelta(milliseconds=start_ms, seconds=seconds):%Y-%m-%d %H:%M:%S}"


def _colours(opened):
    """Of the ground, and of a picture's text."""
    return opened.run(
        """[getComputedStyle(document.body).backgroundColor,
            getComputedStyle(document.querySelector('#plot-timeline .xtick text')).fill]"""
    )


def test_names_of_jobs_are_neither_colours_nor_markup(open_page, tmp_path):
    names = ["@useful", "@foo", "<b>bold</b><br>x", "<a href='x'>c</a>"]
    run = replay_log(log(4, [], 3_600, idle_first=range(4)), JobSet([job(name, rates=(0.0, 10.0)) for name in names]))
    opened = open_page(write_report(run, tmp_path / "names.html"))
    ticks = opened.run("[...document.querySelectorAll('#plot-jobs .ytick text')].map((tick) => tick.textContent)")
    assert sorted(ticks) == sorted(names)
    assert sorted(opened.column("job-table-table-1", "job")) == sorted(names)
