"""Pages about two weeks of Summit, in a real browser: 23,883 decisions, 10 and 70 jobs, and three runs compared."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bfreplay import (
    BFTrainerPolicy,
    EqualSharePolicy,
    ReplaySettings,
    load_events,
    load_jobs,
    replay_log,
    solver_of,
    write_events,
)
from bfreplay.experiments import compare
from bfreplay.report.page.document import write_comparison_report, write_report
from bfreplay.result_folders.comparison import RunComparison
from bfreplay.runs import RunResult
from tests.report.page.conftest import OpenPage
from tests.report.page.read_page import ReadPage

pytestmark = pytest.mark.slow  # a page of two weeks of Summit

_MOST_BYTES = 8_000_000
_POLICIES = {
    "exact": lambda: (BFTrainerPolicy(120), 10),
    "70 at once": lambda: (BFTrainerPolicy(120), 70),
    "equal share": lambda: (EqualSharePolicy(), 10),
    "published limit": lambda: (BFTrainerPolicy(120, solver=solver_of("exact", "published")), 10),
}


_THREE = ("exact", "equal share", "published limit")


@pytest.fixture(scope="module")
def run(shared, tmp_path_factory):
    """Makes, when first asked for it, the folder of a run by its name; work does not end."""
    folder = tmp_path_factory.mktemp("summit")
    data = shared / "data" / "bftrainer"
    # every pass over the published matrix reads all of it
    write_events(load_events(data / "ndstat-10sdn6-evt.tar.gz"), folder / "events.parquet")
    log = load_events(folder / "events.parquet")
    jobs = load_jobs(*(data / f"ImageNet-imgps-{kind}-1001J.pkl" for kind in ("Jbnd", "JNPs")))

    @cache
    def made(name):
        policy, parallel = _POLICIES[name]()
        run = replay_log(log, jobs, policy, ReplaySettings(parallel), unlimited_work=True, out=folder / name)
        assert run.summary["n_decisions"] == 23_883
        return folder / name

    return made


@pytest.fixture(scope="module")
def comparison(run, tmp_path_factory):
    """Makes, when first asked for it, the comparison of three runs."""
    folder = tmp_path_factory.mktemp("compared") / "comparison"

    @cache
    def made():
        compare(*[run(name) for name in _THREE], out=folder)
        return RunComparison.load(folder)

    return made


@pytest.fixture(scope="module")
def page(run, comparison, tmp_path_factory):
    """Makes, when first asked for it, the page about 10 jobs, that about 70, or that about three runs."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def made(name):
        file = folder / f"{name}.html"
        if name == "three":
            runs = {label: RunResult.load(run(each)) for label, each in zip("ABC", _THREE, strict=True)}
            write_comparison_report(runs, file, comparison())
        else:
            write_report(run(name), file)
        return file

    return made


@pytest.fixture(scope="module")
def opened(page, browser):
    """Opens such a page when first asked for it; fails if a page fetched or said anything."""
    kept = {}

    def opens(name):
        if name not in kept:
            kept[name] = OpenPage(browser, page(name))
        kept[name].run("setView(0, timeAxis.duration_s)")
        return kept[name]

    yield opens
    for each in kept.values():
        each.context.close()
        each.did_nothing_beside()


@pytest.mark.parametrize(
    "name", ["exact", *(pytest.param(n, marks=pytest.mark.thorough) for n in ("70 at once", "three"))]
)
def test_the_page_is_small_and_can_be_used(page, opened, name):
    assert page(name).stat().st_size < _MOST_BYTES
    opened = opened(name)
    whole = opened.view()
    plot = opened.page.locator("#plot-timeline .nsewdrag")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    y = box["y"] + box["height"] / 2
    opened.page.mouse.move(box["x"] + box["width"] * 0.4, y)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=3)
    opened.page.mouse.up()
    begin, end = opened.view()
    assert 0.1 < (end - begin) / (whole[1] - whole[0]) < 0.3
    before = opened.run("getComputedStyle(document.body).backgroundColor")
    opened.page.get_by_role("button", name="Dark theme").click()
    assert opened.run("getComputedStyle(document.body).backgroundColor") != before


def test_closest_up_every_event_of_the_log_is_there(run, opened):
    """23,518 changes of the number of idle nodes: the picture of an hour has each of them, at its second."""
    opened = opened("exact")
    pool = load_pool(run("exact"))
    begin, end = 500_000.0, 503_600.0
    opened.run("([a, b]) => setView(a, b)", [begin, end])
    edges, heights = opened.run(
        """() => {
            const figure = pageFigures[0];
            const k = figure.document.traces.findIndex(
                ({steps}) => steps.series === "idle" && steps.statistic === "mean");
            return [figure.frame.data[k].x.map(fromAxis), Array.from(figure.frame.data[k].y)];
        }"""
    )
    inside = (pool[0] > begin) & (pool[0] < end)
    assert inside.sum() > 50
    assert np.allclose(edges[1:-1], pool[0][inside])
    assert heights[1:-1] == pool[1][inside].tolist()


@pytest.mark.thorough
def test_jobs_are_sorted_among_seventy(page, opened):
    opened = opened("70 at once")
    rows = ReadPage(page("70 at once").read_text()).all_rows("job-table-table-1")
    assert len(rows) == 70
    opened.header("job-table-table-1", "held_node_hours").click()
    held = [float(value) for value in opened.column("job-table-table-1", "held_node_hours")]
    assert len(held) == 50
    assert held == sorted((float(row[8][0]) for row in rows), reverse=True)[:50]


@pytest.mark.thorough
def test_numbers_of_the_comparison_are_those_of_its_folder_and_of_the_runs(page, comparison):
    text = page("three").read_text()
    record = comparison().record
    for pair in record["pairs"]:
        assert pair["answer"] in text
    samples = next(row for row in ReadPage(text).tables["key-figures"].rows if row[0][0] == "samples")
    expected = [record["pairs"][0]["samples"]["baseline"], *(pair["samples"]["other"] for pair in record["pairs"])]
    assert [float(value) for value, _ in samples[1:]] == pytest.approx(expected, rel=1e-12)


def load_pool(folder):
    """Seconds since the start of the window at which the number of idle nodes changes, and the number from then on."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "pool.parquet")
    time_us = np.asarray(table["time"].cast("int64"))
    return (time_us - time_us[0]) / 1e6, np.asarray(table["n_idle"], dtype=np.float64)
