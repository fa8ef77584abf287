"""Every number on the page is the run folder's, and the page needs nothing but itself."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest

from bfreplay.replay import RunResult
from bfreplay.report.page.document import write_report
from bfreplay.report.page.facts import facts_of
from bfreplay.report.run_figures.catalogue import FIGURES, figure_named
from bfreplay.report.tables import written
from tests.report.page.expected import expected_facts
from tests.report.page.read_page import ReadPage, numbers_of

_RUNS = ("sample_run", "other_run", "many_jobs_run", "all_idle_run", "never_idle_run", "no_jobs_run")
_DIGIT = re.compile(r"\d")


@pytest.fixture(scope="session", params=_RUNS)
def run(request) -> RunResult:
    """One run after another, odd ones too."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def page_file(run, tmp_path_factory):
    """The page about it."""
    return write_report(run, tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture(scope="session")
def page(page_file):
    """The same, read again."""
    return ReadPage(page_file.read_text())


def test_every_number_in_a_sentence_is_what_the_tables_say(run, page):
    expected = expected_facts(run.folder)
    kinds = {key: fact.kind for key, fact in facts_of(run).items()}
    assert page.numbers
    for key, found in page.numbers.items():
        for value, text in found:
            if key in expected:
                _same(value, expected[key])
                if key in kinds:
                    assert text == written(_number(value), kinds[key])
            else:
                assert key.split(".")[0] in ("books", "jobs", "dropped", "dedicated", "bound"), key


def test_every_key_figure_is_what_the_tables_say(run, page):
    expected = expected_facts(run.folder)
    facts = facts_of(run)
    rows = {row[0][0]: row[1] for row in page.tables["key-figures"].rows}
    told = {key for key, fact in facts.items() if fact.value is not None}
    assert told - set(rows) == {key for key in told if key.startswith("jobs.") and expected[key] == 0}
    assert set(rows) <= told
    for key, (value, text) in rows.items():
        _same(value, expected[key])
        assert text == written(_number(value), facts[key].kind)


def test_no_number_stands_outside_what_is_tested(page):
    assert [text for text in page.loose if _DIGIT.search(text)] == []


def test_figures_say_and_draw_what_their_data_are(run, page):
    for name in FIGURES.names():
        figure = figure_named(name)
        if name not in page.figures():
            continue
        data = {"": figure.data(run)}
        drawn = figure.page(data)
        there = page.figures()[name]
        assert page.words[name].startswith(figure.words(data))
        assert there["traces"] == drawn.traces
        assert there["layout"] == drawn.layout
        assert there["series"].keys() == drawn.series.keys()
        for series, packed in there["series"].items():
            assert np.array_equal(numbers_of(packed["mean"]), drawn.series[series].mean)
            lengths_us = numbers_of(packed["length"]) * packed["unit_s"] * 1e6
            assert np.allclose(lengths_us, np.diff(drawn.series[series].edge_us), atol=0.01)
        if figure.table is not None:
            _same_table(page, f"{name}-table-1", figure.table(data))


def test_the_table_of_jobs_has_every_job_as_its_file_has_it(run, page):
    jobs = run.table("jobs").to_pylist()
    if not jobs:
        assert "job-table-table-1" not in page.tables
        return
    columns = page.tables["job-table-table-1"].columns
    rows = page.all_rows("job-table-table-1")
    assert len(rows) == len(jobs)
    for row, job in zip(rows, jobs, strict=True):
        cells = {column: cell[0] for column, cell in zip(columns, row, strict=True)}
        assert cells["job"] == job["job"]
        assert cells["status"] == job["status"].replace("_", " ")
        for name in ("done_samples", "n_starts", "n_grown", "n_shrunk", "n_preempted"):
            _same(cells[name], job[name])
        hours = {
            name: job[f"{name}_node_us"] / 3.6e9 for name in ("useful", "rescaling", "lost_to_preemption", "stalled")
        }
        for name, value in hours.items():
            _same(cells[f"{name}_node_hours"], value)
        _same(cells["held_node_hours"], sum(hours.values()))
        for name, event in (("queue_s", "first_start"), ("completion_s", "finished")):
            happened = job[event]
            _same(cells[name], None if happened is None else (happened - job["submitted"]).total_seconds())


def test_the_table_of_models_adds_up_its_jobs(run, page):
    jobs = run.jobs
    if not len(jobs):
        return
    table = page.tables["models-table-1"]
    for row in table.rows:
        cells = {column: cell[0] for column, cell in zip(table.columns, row, strict=True)}
        own = jobs[jobs["model"].fillna("(no model)") == cells["model"]]
        _same(cells["n_jobs"], len(own))
        _same(cells["samples"], own["done_samples"].sum())
        _same(cells["useful_node_hours"], own["useful_node_us"].sum() / 3.6e9)
        waited = (own["first_start"] - own["submitted"]).dt.total_seconds()
        _same(cells["queue_median_s"], None if waited.isna().all() else waited.median())


def test_nothing_on_the_page_leads_off_it(page):
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_headings_go_down_one_level_at_a_time(page):
    levels = [int(tag[1]) for tag, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_same_run_gives_the_same_page(run, page_file, tmp_path):
    assert write_report(run, tmp_path / "again.html").read_bytes() == page_file.read_bytes()


def test_names_that_look_like_markup_stay_text(sample_run, tmp_path):
    nasty = "</script><script>alert(1)</script>&amp;"
    record = {**sample_run.record, "inputs": {**sample_run.record["inputs"]}}
    metadata = {**record["inputs"]["events"]["metadata"], "cluster": nasty, "dropped": {nasty: 3}}
    record["inputs"]["events"] = {**record["inputs"]["events"], "metadata": metadata}
    session = {**sample_run.session, "command": nasty}
    run = RunResult(record, session, sample_run.folder)
    page = ReadPage(write_report(run, tmp_path / "page.html").read_text())
    assert page.headings[0][1].endswith(nasty)
    assert "alert" not in "".join(page.script(name) for name in ("figures", "window", "palettes"))


def _same_table(page, name, table):
    rows = page.all_rows(name)
    assert [column.key for column in table.columns] == page.tables[name].columns
    assert len(rows) == len(table.rows)
    for seen, row in zip(rows, table.rows, strict=True):
        for (value, text), given, column in zip(seen, row, table.columns, strict=True):
            assert text == written(given, column.kind)
            if column.is_number:
                _same(value, given)


def _same(value, expected):
    """A value of the page is the expected number, to rounding of sums."""
    if expected is None or (isinstance(expected, float) and math.isnan(expected)):
        assert value == ""
    elif isinstance(expected, int):
        assert int(value) == expected
    else:
        assert float(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def _number(value):
    return None if value == "" else int(value) if re.fullmatch(r"-?\d+", value) else float(value)
