"""Every number on the page is the run folder's, and the page needs nothing but itself."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import msgspec
import numpy as np
import pandas as pd
import pytest

from bfreplay import replay_log
from bfreplay.policies import BFTrainerPolicy
from bfreplay.policies.learning import LearningPolicy
from bfreplay.report.figures.figure import FIGURES, find_figure
from bfreplay.report.page.document import cautions, one_run_page, window_text, write_report
from bfreplay.report.page.headline import _FIRST
from bfreplay.runs import RunResult
from bfreplay.runs.metrics import key_figures
from bfreplay.wording import value_text
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log
from tests.report.page.expected import expected_facts
from tests.report.page.read_page import ReadPage, numbers_of
from tests.run_records import changed, setting
from tests.runs.explain.little_source import LittleHalving

_RUNS = (
    "sample_run",
    "other_run",
    "many_jobs_run",
    "all_idle_run",
    "never_idle_run",
    "no_jobs_run",
    "campaign_run",
    "learned_run",
    "packed_run",
    "typed_run",
    "costly_run",
)
_DIGIT = re.compile(r"\d")
_SAID = {
    "timeline": ("idle.mean_nodes", "idle.most_nodes", "share.held"),
    "node-hours": ("idle.node_hours", "share.useful", "share.rescaling", "share.preempted", "share.unallocated"),
    "rescales": ("rescales.up", "rescales.down", "preemptions"),
    "idle-intervals": ("idle_intervals",),
}
"""Facts that a figure's words tell too, where they are not zero."""
_POOL_EVENTS = {"many_jobs_run": 8 + 83, "no_jobs_run": 8 + 83, "campaign_run": 6, "packed_run": 0}
"""Counted by hand in the log, where no job is there to its end: no decision then tells of them."""


class Trials(LittleHalving):
    """The same with parameters."""

    def _trial(self, k, now_us):
        return replace(super()._trial(k, now_us), params={"rate": 0.1 * (k + 1), "batch": 8})


@pytest.fixture(scope="session")
def campaign_run(tmp_path_factory):
    """Four trials, of which one fails and one is pruned; curves are learned, and all is over before the log ends."""
    folder = tmp_path_factory.mktemp("campaign") / "run"
    replay_log(_five_minutes(), Trials(up_s=2.0, down_s=1.0, work=1_500.0), _learning(), out=folder)
    return RunResult.load(folder)


@pytest.fixture(scope="session")
def learned_run(tmp_path_factory):
    """Jobs with deadlines: one met, one missed, one open; one job is too wide. The log knows no calendar."""
    folder = tmp_path_factory.mktemp("learned") / "run"
    steep = (0.0, 10.0, 18.0, 24.0, 28.0)
    jobs = [
        replace(job("met", work=500.0, rates=steep, up_s=2.0), deadline_us=200 * SECOND),
        replace(job("missed", rates=steep, up_s=2.0), deadline_us=100 * SECOND),
        replace(job("open", submit_s=20, up_s=5.0), deadline_us=400 * SECOND),
        job("wide", rates=(0.0,) * 5 + (1.0,), min_nodes=5),
    ]
    events = _five_minutes()
    events.metadata = replace(events.metadata, time_origin="relative")
    replay_log(events, JobSet(jobs), _learning(), out=folder)
    return RunResult.load(folder)


@pytest.fixture(scope="session")
def costly_run(tmp_path_factory):
    """Starts and rescales pause the jobs, and two of them lose work at times."""
    folder = tmp_path_factory.mktemp("costly") / "run"
    at_risk = {"start_cost_s": 4.0, "restart": "pause", "work_saved_every_s": 30.0}
    jobs = [
        replace(job("a", work=1_500.0, up_s=2.0), **at_risk),
        replace(job("b", up_s=3.0, down_s=2.0), **at_risk),
        job("c"),
    ]
    replay_log(_five_minutes(), JobSet(jobs), BFTrainerPolicy(60.0), out=folder)
    return RunResult.load(folder)


def _five_minutes():
    """Two nodes are idle for five minutes, two more for a while each."""
    changes = [(40, 2, True), (90, 3, True), (130, 2, False), (135, 0, False), (200, 0, True), (260, 3, False)]
    return log(4, changes, 300, idle_first=[0, 1])


def _learning():
    return LearningPolicy(BFTrainerPolicy(60.0), noise=0.1)


@pytest.fixture(scope="session", params=_RUNS)
def run_name(request) -> str:
    """One run after another, odd ones too."""
    return request.param


@pytest.fixture(scope="session")
def run(run_name, request) -> RunResult:
    """The run of this name."""
    return request.getfixturevalue(run_name)


@pytest.fixture(scope="session")
def expected(run_name, run):
    """The numbers that its page has to tell."""
    by_hand = {"pool_events": _POOL_EVENTS[run_name]} if run_name in _POOL_EVENTS else {}
    return expected_facts(run.folder) | by_hand


@pytest.fixture(scope="session")
def page_file(run, tmp_path_factory):
    """The page about it."""
    return write_report(run, tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture(scope="session")
def page(page_file):
    """The same, read again."""
    return ReadPage(page_file.read_text())


def test_every_number_in_a_sentence_is_what_the_tables_say(run, page, expected):
    kinds = {key: fact.kind for key, fact in key_figures(run).items()}
    assert page.numbers
    warned = dict.fromkeys(cautions(run, key_figures(run)))
    for key, found in page.numbers.items():
        for value, text in found:
            _same(value, len(warned) if key == "warnings" else expected[key])
            if key in kinds:
                assert text == value_text(_given(value, kinds[key]), kinds[key])


def test_every_key_figure_is_what_the_tables_say(run, page, expected):
    facts = key_figures(run)
    tables = [page.tables[name].rows for name in ("key-figures", "other-figures") if name in page.tables]
    assert len(tables[0]) <= 12
    rows = {row[0][0]: row[1] for table in tables for row in table}
    told = {key for key, fact in facts.items() if fact.value is not None}
    assert told == {key for key in facts if expected[key] is not None}
    hidden = {key for key in told if key.startswith("jobs.") or key.endswith(".repeated")}
    assert told - set(rows) == {key for key in hidden if expected[key] == 0}
    assert set(rows) <= told
    for key, (value, text) in rows.items():
        _same(value, expected[key])
        assert text == value_text(_given(value, facts[key].kind), facts[key].kind)


def test_no_number_stands_outside_what_is_tested(page):
    assert [text for text in page.loose if _DIGIT.search(text)] == []


def test_the_figures_that_come_first_are_key_figures(run):
    assert set(_FIRST) <= set(key_figures(run))


def test_figures_tell_the_same_numbers_as_the_answer(run, page, expected):
    if run.record.inputs.jobs.of_source and expected["done_s"] is not None:
        assert "during the search" in page.words["timeline"] + page.words["node-hours"]
        return
    kinds = {key: fact.kind for key, fact in key_figures(run).items()}
    for name, keys in _SAID.items():
        for key in keys if name in page.figures() else ():
            if expected[key]:
                assert value_text(expected[key], kinds.get(key, "count")) in page.words[name], key


def test_figures_say_and_draw_what_their_data_are(run, page):
    for name in FIGURES.names():
        figure = find_figure(name)
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
    for row, own in zip(rows, jobs, strict=True):
        cells = {column: cell[0] for column, cell in zip(columns, row, strict=True)}
        assert cells["job"] == own["job"]
        assert cells["status"] == own["status"].replace("_", " ")
        for name in ("done_samples", "n_starts", "n_scale_ups", "n_scale_downs", "n_preemptions"):
            _same(cells[name], own[name])
        labels = ("useful", "rescaling", "preempted", "repeated", "stalled")
        hours = {name: own[f"{name}_node_us"] / 3.6e9 for name in labels}
        for name, value in hours.items():
            if name != "repeated" or run.summary.ledger.repeated_node_us:
                _same(cells[f"{name}_node_hours"], value)
        assert ("repeated_node_hours" in cells) == (run.summary.ledger.repeated_node_us > 0)
        _same(cells["held_node_hours"], sum(hours.values()))
        for name, event in (("queue_s", "first_start"), ("completion_s", "finished")):
            happened = own[event]
            _same(cells[name], None if happened is None else (happened - own["submitted"]).total_seconds())


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


@pytest.mark.often("sample_run", "campaign_run", "all_idle_run", "typed_run")
def test_the_same_run_gives_the_same_page(run, page_file, tmp_path):
    assert write_report(run, tmp_path / "again.html").read_bytes() == page_file.read_bytes()


def test_a_run_gives_the_same_page_whether_it_was_just_made_or_read_again(tmp_path):
    events = _five_minutes()
    events.metadata = replace(events.metadata, skipped={"no node": 2, "no end": 1})
    jobs = JobSet([replace(job("a", work=500.0), params={"rate": 0.1, "batch": 8}), job("b")])
    made = replay_log(events, jobs, BFTrainerPolicy(60.0), out=tmp_path / "run")
    assert one_run_page(made) == one_run_page(RunResult.load(tmp_path / "run"))


def test_a_log_without_a_calendar_has_no_dates(learned_run, tmp_path):
    page = ReadPage(write_report(learned_run, tmp_path / "page.html").read_text())
    rows = [
        dict(zip(page.tables["job-table-table-1"].columns, row, strict=True))
        for row in page.tables["job-table-table-1"].rows
    ]
    assert [row["submitted"] for row in rows] == [("0.0", "0 s")] * 3 + [("20.0", "20 s")]
    assert [row["deadline"][0] for row in rows] == ["200.0", "100.0", "", "400.0"]
    assert not any("1970" in text for table in page.tables.values() for row in table.rows for _, text in row)
    assert window_text(learned_run) == "0 to 5 min after the start of the log"


def test_a_window_has_dates_where_the_log_has_a_calendar(sample_run):
    start, end = (
        f"{pd.Timestamp(sample_run.record['config'][f'window_{edge}_us'], unit='us'):%Y-%m-%d %H:%M:%S}"
        for edge in ("start", "end")
    )
    assert window_text(sample_run) == f"{start} to {end} UTC"


def test_names_that_look_like_markup_stay_text(sample_run, tmp_path):
    nasty = "</script><script>alert(1)</script>&amp;"
    run = changed(sample_run, setting("inputs.events.metadata.cluster", nasty))
    run = changed(run, setting("inputs.events.metadata.skipped", {nasty: 3}))
    run = replace(run, session=msgspec.structs.replace(run.session, command=nasty))
    page = ReadPage(write_report(run, tmp_path / "page.html").read_text())
    assert page.headings[0][1].endswith(nasty)
    assert "alert" not in "".join(page.script(f"data-{name}") for name in ("figures", "window", "palettes"))


def _same_table(page, name, table):
    rows = page.all_rows(name)
    assert [column.key for column in table.columns] == page.tables[name].columns
    assert len(rows) == len(table.rows)
    for seen, row in zip(rows, table.rows, strict=True):
        for (value, text), given, column in zip(seen, row, table.columns, strict=True):
            assert text == value_text(given, column.kind)
            if column.is_number:
                _same(value, given)


def _same(value, expected):
    """A value of the page is the expected number, to rounding of sums."""
    if expected is None or (isinstance(expected, float) and math.isnan(expected)):
        assert value == ""
    elif isinstance(expected, str):
        assert value == expected
    elif isinstance(expected, int):
        assert int(value) == expected
    else:
        assert float(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def _given(value, kind):
    """What the page was given, from its exact text."""
    if kind == "text" or value == "":
        return value or None
    return int(value) if re.fullmatch(r"-?\d+", value) else float(value)
