"""Pages of a finish and of a sweep in a real browser, on a phone and on a wide screen; and the table of hours."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

from bfreplay import describe
from bfreplay.commands.report import report
from bfreplay.datasets import load_events, write_events
from bfreplay.datasets.bundled import sample_events_path
from bfreplay.datasets.idleness.idleness_text import hour_table, when_idle
from bfreplay.datasets.idleness.side_by_side import SideBySide
from bfreplay.experiments.finish_text import answer_of
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep import run_sweep, sweep
from bfreplay.report.page.document import write_report
from bfreplay.report.page.finish_page import title_of, write_finish_report
from bfreplay.report.page.idleness_page import write_idleness_report
from bfreplay.report.page.sections import hour_sections, page_table
from bfreplay.report.page.sweep_page import axes_of, write_sweep_report
from bfreplay.result_folders.comparison import Estimate
from bfreplay.result_folders.finish import Against
from bfreplay.result_folders.records import FINISH
from bfreplay.result_folders.tuning import InputFile
from bfreplay.result_folders.writing import record_json
from bfreplay.runs.headline_metrics import COLUMNS
from tests.experiments.sweep.small_sweeps import Inline
from tests.report.figures.test_finish_figure import started

SCREENS = [(390, "dark"), (1280, "light")]
TEXTS = """[...document.querySelectorAll('.plot text')].map((text) => text.getBoundingClientRect())
    .filter((box) => box.width && (box.left < -1 || box.right > innerWidth + 1)).length"""
OVERLAPS = """(axis) => [...document.querySelectorAll(axis)].map((tick) => tick.getBoundingClientRect())
    .filter((box, k, all) => all.some((other, j) => j < k && box.left < other.right - 1 && other.left < box.right - 1
        && box.top < other.bottom - 1 && other.top < box.bottom - 1)).length"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a search of 48 starts, of which eight are unfinished when the log ends, against another one."""
    found = started(*((3.4 * k, 31 + k % 17, k % 6 > 0) for k in range(48)))
    files = {"events": [InputFile(name="summit.parquet", sha256="a" * 64)]}
    files["jobs"] = [InputFile(name="search.toml", sha256="b" * 64)]
    found = msgspec.structs.replace(found, inputs=msgspec.structs.replace(found.inputs, **files))
    later, quantiles = (
        Estimate.interval(3600.0, 1800.0, 5400.0, 48),
        msgspec.structs.replace(found.quantiles, median_s=9e4),
    )
    other = [InputFile(name="narrow.toml", sha256="c" * 64)]
    against = Against(jobs=other, starts=found.starts, quantiles=quantiles, later_s=later)
    found = msgspec.structs.replace(found, against=against)
    found = msgspec.structs.replace(found, answer=answer_of(found))
    folder = tmp_path_factory.mktemp("finished")
    (folder / FINISH.record_file).write_text(record_json(found, "the finish"))
    return folder


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Four runs of an hour of the sample, of which one has a page."""
    window = ("2024-07-01T06:00", "2024-07-01T07:00")
    runs = [
        RunOptions(events="sample", jobs="sample", window=window, policy=policy, t_fwd=t_fwd)
        for policy in ("bftrainer", "equal-share")
        for t_fwd in (60, 300)
    ]
    folder = tmp_path_factory.mktemp("swept") / "sweep"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_sweep, "ProcessExecutor", Inline)
        result = sweep(runs, folder)
    (folder / "runs" / f"{result.ids[0]}.html").write_text("its page")
    return result


def test_the_page_of_a_finish_has_the_median_of_the_other_jobs(finished, tmp_path):
    page = write_finish_report(finished, tmp_path / "finish.html").read_text()
    text = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert "Against 25 h narrow.toml" in text
    assert "narrow.toml is done after 25 h in the median, 60 min later than search.toml" in text
    assert f"narrow.toml {'c' * 64}" in text


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_page_of_a_finish_can_be_read_on_a_phone_and_in_the_dark(finished, open_page, tmp_path, width, scheme):
    page = write_finish_report(finished, tmp_path / "finish.html")
    opened = open_page(page, viewport={"width": width, "height": 800}, color_scheme=scheme)
    title = "When the search in search.toml is over on the idle nodes of summit.parquet"
    assert opened.page.get_by_role("heading", level=1).inner_text() == title
    assert opened.run("document.documentElement.scrollWidth") == width
    assert (opened.wide_plots(), opened.run(TEXTS)) == ([], 0)
    assert opened.page.locator("#finish-table-1").is_visible() is False
    opened.page.get_by_text("The numbers").click()
    assert len(opened.column("finish-table-1", "run")) == 48
    assert opened.column("finish-table-1", "duration")[:2] == ["31.0", "32.0"]
    assert opened.column("finish-table-1", "other_duration")[:2] == ["31.0", "32.0"]
    _check_accessibility(opened)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_page_of_a_sweep_has_its_answer_its_picture_and_links(swept, open_page, width, scheme):
    page = write_sweep_report(swept, swept.folder.parent / f"{width}.html")
    opened = open_page(page, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert opened.run("document.documentElement.scrollWidth") == width
    assert (opened.wide_plots(), opened.run(TEXTS)) == ([], 0)
    samples = swept.table["samples"]
    answer = opened.page.locator("#answer .sentence").inner_text()
    assert answer.startswith("4 runs over policy (2 values), t_fwd (2 values); none failed.")
    assert f"with policy {swept.table['policy'][samples.idxmax()]} and t_fwd" in answer
    assert [float(value) for value in opened.column("runs-table-1", "samples")] == samples.tolist()
    links = opened.run("[...document.querySelectorAll('#runs-table-1 a')].map((link) => link.href)")
    runs = [(swept.folder / "runs" / run_id).as_uri() for run_id in swept.ids]
    assert links == [f"{runs[0]}.html", *runs[1:]]
    heights = opened.run("pageFigures[0].frame.data.map((trace) => Array.from(trace.y))")
    assert np.allclose(np.concatenate(heights[:2]), samples)
    _check_accessibility(opened)


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    """Two halves of the bundled log, in partitions with names of a stranger."""
    folder, log = tmp_path_factory.mktemp("months"), load_events(sample_events_path())
    names = ["<b>batch</b>", "gpu", "a partition with a name that is far longer than any that fits"]
    partitions = {name: log.nodes[k * 60 : k * 60 + 90] for k, name in enumerate(names)}
    middle_us = (log.window_start_us + log.window_end_us) // 2
    files = []
    halves = (log.window_start_us, middle_us), (middle_us, log.window_end_us)
    for name, half in zip(("june.parquet", "july.parquet"), halves, strict=True):
        part = log.between(*half)
        part.metadata = replace(log.metadata, partitions=partitions)
        write_events(part, folder / name)
        files.append(folder / name)
    return files


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
@pytest.mark.parametrize("n_logs", [1, 2])
def test_the_page_of_logs_can_be_read_on_a_phone_and_in_the_dark(months, open_page, tmp_path, width, scheme, n_logs):
    described = SideBySide.describe(months[:n_logs], by="partition")
    page = write_idleness_report(described, {"by": "partition"}, tmp_path / "idle.html")
    opened = open_page(page, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert opened.run("document.documentElement.scrollWidth") == width
    assert (opened.wide_plots(), opened.run(TEXTS)) == ([], 0)
    rows = opened.column("parts-table-1", "partition")
    assert rows[-1] == "all"
    assert "<b>batch</b>" in rows
    answer = opened.page.locator("#answer .sentence").inner_text()
    assert answer.startswith(
        "By partition, the nodes in" if n_logs == 1 else "From june.parquet to july.parquet, mean idle nodes"
    )
    _check_accessibility(opened)


@pytest.mark.slow
def test_labels_of_rescales_do_not_overlap_on_a_phone(sample_run, open_page, tmp_path):
    opened = open_page(write_report(sample_run, tmp_path / "run.html"), viewport={"width": 390, "height": 800})
    for axis in ("ytick", "y2tick", "xtick", "x2tick"):
        assert opened.run(OVERLAPS, f"#plot-rescales .{axis} text") == 0


def test_the_table_of_hours_is_that_of_describe(sample_run):
    config = sample_run.record.config
    events = load_events(sample_events_path()).between(config.window_start_us, config.window_end_us)
    (section,) = hour_sections(sample_run)
    found = describe(events)
    assert section.tables == [page_table(hour_table(found.week, found.mean_idle_nodes))]
    assert section.words == when_idle(found.week)


@pytest.mark.parametrize("run", ["never_idle_run", pytest.param("packed_run", marks=pytest.mark.slow)])
def test_a_run_without_idle_nodes_of_a_calendar_has_no_table_of_hours(run, request):
    assert list(hour_sections(request.getfixturevalue(run))) == []


def test_a_page_has_the_picture_of_the_spec_or_the_reason_for_none(swept, tmp_path):
    for picture, words in (
        ({"x": "t-fwd", "y": "useful_node_hours"}, "Against t_fwd: node-hours useful. "),
        ({"x": "nothing", "y": ["samples"]}, "No picture: the sweep has no column &#39;nothing&#39;."),
        ({"x": 3, "y": "samples"}, "No picture: x is no text."),
    ):
        drawn = replace(swept, record=msgspec.structs.replace(swept.record, spec={"picture": picture}))
        assert words in write_sweep_report(drawn, tmp_path / "page.html", overwrite=True).read_text()


def test_without_a_picture_of_the_spec_the_axis_is_the_option_with_most_values_and_lines_are_few():
    rows = [(rate, policy) for rate in range(9) for policy in ("slow", "fast")]
    table = pd.DataFrame([(*row, "id") for row in rows], columns=["rate", "policy", "id"])
    metrics = ["a", "b", "c", "d"]
    assert axes_of(table, metrics) == ("rate", metrics[:3], ["policy"])
    assert axes_of(table.assign(policy=table["rate"].map("p{}".format)), metrics) == ("rate", metrics[:3], [])
    assert axes_of(table[:1], metrics) == ("id", metrics[:3], [])


def test_failed_runs_are_counted_and_their_errors_are_warnings(swept, tmp_path, monkeypatch):
    rows = swept.results.to_pylist()
    rows[0] |= dict.fromkeys(COLUMNS) | {"status": "failed", "error": "no <node>", "warnings": None}
    results = pa.Table.from_pylist(rows, swept.results.schema)
    monkeypatch.setattr(type(swept), "results", results)
    page = write_sweep_report(replace(swept), tmp_path / "page.html").read_text()
    assert "t_fwd (2 values); 1 failed." in page
    assert "<li>Error of 1 row: no &lt;node&gt;</li>" in page


def test_the_title_of_a_finish_has_the_names_that_there_are():
    inputs = started((0, 30, True)).inputs
    assert title_of(inputs) == "When the search is over on the idle nodes"
    files = {"events": [InputFile(name="summit.parquet", sha256="a")], "jobs": [InputFile(name="jobs.csv", sha256="b")]}
    named = msgspec.structs.replace(inputs, is_search=False, **files)
    assert title_of(named) == "When all jobs in jobs.csv are done on the idle nodes of summit.parquet"


def test_the_command_makes_the_page_of_a_sweep(swept, tmp_path):
    CliRunner().invoke(
        report, [str(swept.folder), "-o", str(tmp_path / "page.html"), "--quiet"], catch_exceptions=False
    )
    assert "4 runs of the sweep sweep" in (tmp_path / "page.html").read_text()


def _check_accessibility(opened):
    from axe_playwright_python.sync_playwright import Axe

    opened.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = Axe().run(opened.page, context={"exclude": [".modebar-container"]}).response["violations"]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"]][:3]) for each in found] == []
