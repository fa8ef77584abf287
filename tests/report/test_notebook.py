"""Runs in a notebook: pictures by name, and a table of key numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pyarrow.parquet as pq
import pytest

from bfreplay import describe, finish, replay_log
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.errors import InputError
from bfreplay.experiments.sweep import run_sweep
from bfreplay.policies import EqualSharePolicy
from bfreplay.report.figures.figure import FIGURES, NothingToShowError
from bfreplay.runs import RunResult
from bfreplay.workload import JobSet
from tests.experiments.sweep.small_sweeps import Inline
from tests.replay.tiny import job, log
from tests.run_records import changed, setting


@pytest.fixture(scope="module")
def run():
    """In memory: one job holds the only idle node from 0 to 15 s of 60 s, another never comes."""
    jobs = JobSet([job("a", work=150.0), job("b", submit_s=100)])
    return replay_log(log(2, [], 60, idle_first=[0]), jobs, EqualSharePolicy())


class _Cells(HTMLParser):
    """Rows of a table as ``words: text``."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, str] = {}
        self.open: list[str] = []
        self.words = ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "th":
            self.words = data
        elif self.open and self.open[-1] == "td":
            self.rows[self.words] = data


def rows(html: str) -> dict[str, str]:
    parser = _Cells()
    parser.feed(html)
    assert parser.open == []
    return parser.rows


def test_every_figure_has_a_method(run):
    assert dir(run.plot) == sorted(name.replace("-", "_") for name in FIGURES.built_in)
    assert "timeline" in repr(run.plot)


def test_a_picture_by_method_or_by_name_of_a_run_in_memory(run):
    by_method, by_name = run.plot.timeline(), run.plot("timeline")
    assert run.folder is None
    assert by_method is not by_name
    for figure in (by_method, by_name, run.plot.node_hours(), run.plot("node-hours")):
        png = figure._repr_png_()
        assert png.startswith(b"\x89PNG")
        assert len(png) > 5_000


def test_names_that_are_no_figure_are_refused(run):
    with pytest.raises(AttributeError, match="no figure 'timelime'"):
        run.plot.timelime()
    with pytest.raises(InputError, match="unknown figure 'timelime'"):
        run.plot("timelime")
    assert not hasattr(run.plot, "_repr_html_")


def test_a_figure_with_nothing_to_show_says_so():
    empty = replay_log(log(1, [], 60), JobSet([job("a")]), EqualSharePolicy())
    with pytest.raises(NothingToShowError, match="no job held a node"):
        empty.plot.jobs()


def test_a_damaged_run_is_refused(run, tmp_path):
    saved = replay_log(
        log(2, [], 60, idle_first=[0]), JobSet([job("a", work=150.0)]), EqualSharePolicy(), out=tmp_path / "run"
    )
    assert saved.plot.jobs().axes
    table = pq.read_table(tmp_path / "run" / "jobs.parquet")
    pq.write_table(table.drop_columns(["model"]), tmp_path / "run" / "jobs.parquet")
    with pytest.raises(InputError):
        RunResult.load(tmp_path / "run").plot.jobs()


def test_the_table_has_the_numbers_of_the_run(run):
    found = rows(run._repr_html_())
    ledger = run.summary["ledger"]["node_hours"]
    assert found["idle node-hours"] == "0.0167"
    assert ledger["idle"] == pytest.approx(1 / 60)
    assert found["share of the idle node-hours useful"] == "25 %"
    assert found["share of the idle node-hours unallocated"] == "75 %"
    assert found["length of the window"] == "60 s"
    assert found["decisions"] == str(run.summary["n_decisions"])
    assert found["jobs finished"] == "1"
    assert found["jobs not submitted"] == "1"
    assert "jobs waiting" not in found
    assert re.search("U: samples", " ".join(found))


def test_lost_work_has_a_row_where_there_is_some(run):
    words = "share of the idle node-hours repeated: the work was lost"
    assert words not in rows(run._repr_html_())
    jobs = JobSet([replace(job("a"), work_saved_every_s=100.0)])
    lossy = replay_log(log(2, [(30, 0, False)], 60, idle_first=[0, 1]), jobs, EqualSharePolicy())
    assert rows(lossy._repr_html_())[words] == "66.7 %"  # two nodes for 30 s, of 90 node-seconds


def test_the_table_is_whole_in_itself_and_shows_text_as_it_is(run, tmp_path):
    odd = changed(run, setting("inputs.events.metadata.cluster", "<script>alert(1)</script>"))
    odd = replace(odd, folder=tmp_path / "a&b")
    html = odd._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "a&amp;b" in html
    assert "in memory" in run._repr_html_()
    assert not re.search(r"https?://|src=|href=", html)


def test_descriptions_logs_jobs_and_finish_results_have_tables_of_escaped_text(tmp_path, monkeypatch):
    events = log(2, [(5, 1, True)], 60, idle_first=[0])
    events.metadata = EventsMetadata(cluster="<b>x</b>")
    jobs = JobSet([job(f"<i>{k}</i>", work=150.0) for k in range(12)], submit_is_relative=True)
    assert rows(describe(events)._repr_html_())["idle node-hours"].startswith("0.0319 (")
    assert rows(events._repr_html_())["cluster"] == "<b>x</b>"  # the text, not a tag
    assert "types" not in rows(events._repr_html_())
    assert "in memory" in events._repr_html_()
    assert rows(finish_of(tmp_path, monkeypatch)._repr_html_())["median on the idle nodes"] == "0.50 h"
    assert "&lt;i&gt;11&lt;/i&gt;" in jobs._repr_html_()
    assert "<i>" not in jobs._repr_html_()
    assert "<p>12 rows × 5 columns</p>" in jobs._repr_html_()
    assert "<td>0 s</td>" in jobs._repr_html_()
    calendar = JobSet([job("a", submit_s=146_988_000)], submit_is_relative=False)
    assert "<td>1974-08-29 06:00:00</td>" in calendar._repr_html_()


def finish_of(tmp_path, monkeypatch):
    """A search that takes half an hour on the idle nodes, whenever it starts."""
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    events = log(2, [], 36_000, idle_first=[0, 1])
    return finish(events, JobSet([job("a", work=18_000.0, rates=(0.0, 10.0))], submit_is_relative=True), starts=2)


def test_odd_runs_have_a_table(run):
    never = replay_log(log(1, [], 60), JobSet([job("a")]), EqualSharePolicy(), efficiency=False, bound=False)
    found = rows(never._repr_html_())
    assert found["idle node-hours"] == "0"
    assert "share of the idle node-hours useful" not in found
    assert not {"nan", "None"} & set(found.values())


def test_the_table_is_the_same_of_a_run_in_memory_and_of_its_folder(tmp_path):
    jobs = JobSet([job("a"), job("b", submit_s=5), job("late", submit_s=100)])
    made = replay_log(log(2, [], 60, idle_first=[0]), jobs, EqualSharePolicy(), out=tmp_path / "run")
    assert made._repr_html_() == RunResult.load(tmp_path / "run")._repr_html_()


def test_warnings_of_the_run_stand_below_the_table_as_text(run):
    wide = job("<i>wide</i>", rates=(0.0, 0.0, 0.0, 1.0), min_nodes=3)
    html = replay_log(log(2, [], 60, idle_first=[0]), JobSet([job("a"), wide]), EqualSharePolicy())._repr_html_()
    assert html.rstrip().endswith(
        "<p>Warning: 1 of 2 jobs could never run: &lt;i&gt;wide&lt;/i&gt; needs 3 nodes, and at most 1 of 2 were ever "
        "idle at once.</p>"
    )
    assert "Warning" not in run._repr_html_()
