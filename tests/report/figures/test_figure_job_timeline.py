"""Which job held how many nodes when: rows, their order, and rows that jobs share."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.policies import EqualSharePolicy
from bfreplay.report.figures.figure import NothingToShowError
from bfreplay.report.figures.job_timeline import (
    JOBS,
    _thin,
    job_timeline,
    labels_of_jobs,
    most_of_a_job,
    rows_of,
    shorten,
)
from bfreplay.report.page.sections import pack_steps
from bfreplay.runs.explain.saved_tables import Allocations, allocations_of
from bfreplay.runs.step_functions import StepParts
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log
from tests.report.conftest import MANY


@pytest.fixture(scope="module")
def plain():
    """Two nodes, the second from 20 s on. ``late`` waits until ``early`` has left at 15 s; ``never`` comes too late."""
    jobs = JobSet(
        [
            job("early", work=150.0, rates=(0.0, 10.0)),
            replace(job("late", submit_s=1, work=1e6), model="net"),
            job("never", submit_s=100),
        ]
    )
    return replay_log(
        log(2, [(20, 1, True)], 60, idle_first=[0]), jobs, EqualSharePolicy(), efficiency=False, bound=False
    )


def held(*rows: tuple[str, int, int, int]) -> Allocations:
    names = tuple(dict.fromkeys(name for name, *_ in rows))
    columns = np.array([[names.index(name), count, since, until] for name, count, since, until in rows])
    alone = np.zeros(len(rows), dtype=np.int64)
    return Allocations(names, *(columns[:, k] for k in range(4)), ("any",), alone, alone)


def seconds(series) -> list[tuple[float, float]]:
    return list(zip((series.edge_us[:-1] / SECOND).tolist(), series.mean.tolist(), strict=True))


def test_each_job_that_held_nodes_has_a_row_in_order_of_admission(plain):
    found = job_timeline(plain)
    assert [row.label for row in found.rows] == ["early", "late (net)"]
    assert seconds(found.rows[0].nodes) == [(0, 1), (15, 0)]
    assert seconds(found.rows[1].nodes) == [(0, 0), (15, 1), (20, 2)]
    assert (found.most, found.n_jobs, found.is_shared) == (2, 2, False)
    assert JOBS.words({"": found}) == (
        "2 jobs held nodes, 1 never did and is omitted; the most node-hours went to late (0.0236), and no job held "
        "more than 2 nodes at once."
    )


def test_rows_together_are_all_node_time_held(sample_run, many_jobs_run):
    for run in (sample_run, many_jobs_run):
        found = job_timeline(run)
        total = sum(row.nodes.area_us for row in found.rows)
        assert total == run.summary["ledger"]["allocated_node_us"]
        assert found.n_jobs == np.unique(allocations_of(run).job).size


def test_a_part_of_the_window_has_the_rows_of_its_jobs(plain):
    part = job_timeline(plain).between(16 * SECOND, 30 * SECOND)
    assert [row.label for row in part.rows] == ["late (net)"]
    assert seconds(part.rows[0].nodes) == [(16, 1), (20, 2)]
    with pytest.raises(InputError, match="reaches outside"):
        job_timeline(plain).between(0, 61 * SECOND)


def test_a_part_in_which_no_job_holds_a_node_has_nothing_to_show(many_jobs_run):
    with pytest.raises(NothingToShowError, match="no job held a node"):
        job_timeline(many_jobs_run).between(0, 1_800 * SECOND)


def test_runs_without_jobs_or_without_idle_nodes_say_so(no_jobs_run, never_idle_run):
    with pytest.raises(NothingToShowError, match="there are no jobs"):
        job_timeline(no_jobs_run)
    with pytest.raises(NothingToShowError, match="no job held a node"):
        job_timeline(never_idle_run)


def test_many_jobs_share_as_few_rows_as_there_are_jobs_at_once():
    """a holds nodes from 0 to 10 with a pause, b from 2 to 4, c from 4 to 12, d from 10 to 11."""
    rows = rows_of(
        held(("a", 1, 0, 3), ("b", 2, 2, 4), ("a", 3, 6, 10), ("c", 4, 4, 12), ("d", 5, 10, 11)),
        [(name, None) for name in "abcd"],
        0,
        20,
        most_rows=3,
    )
    assert [row.jobs for row in rows] == [("a", "d"), ("b", "c")]
    assert [row.label for row in rows] == ["row 1", "row 2"]
    assert rows[0].since_us.tolist() == [0, 10]
    assert rows[0].nodes.edge_us.tolist() == [0, 3, 6, 10, 11, 20]
    assert rows[0].nodes.mean.tolist() == [1, 0, 3, 5, 0]
    assert rows[1].nodes.edge_us.tolist() == [0, 2, 4, 12, 20]
    assert rows[1].nodes.mean.tolist() == [0, 2, 4, 0]


def test_no_two_jobs_of_a_row_overlap(many_jobs_run):
    found = job_timeline(many_jobs_run)
    assert found.is_shared
    assert sorted(name for row in found.rows for name in row.jobs) == sorted(allocations_of(many_jobs_run).names)
    held_ = allocations_of(many_jobs_run)
    span = {
        name: (held_.from_us[held_.job == k].min(), held_.to_us[held_.job == k].max())
        for k, name in enumerate(held_.names)
    }
    for row in found.rows:
        ends = [span[name] for name in row.jobs]
        assert all(before[1] <= after[0] for before, after in pairwise(ends))


def test_more_jobs_at_once_than_rows_are_added_up():
    """Five jobs at once in two rows: three lanes in the first, two in the second."""
    jobs = [(f"j{k}", k + 1, k, 20) for k in range(5)]
    rows = rows_of(held(*jobs), [(name, None) for name, *_ in jobs], 0, 20, most_rows=2)
    assert [row.jobs for row in rows] == [("j0", "j1", "j2"), ("j3", "j4")]
    assert [row.at_once for row in rows] == [3, 2]
    assert rows[0].nodes.mean.tolist() == [1, 3, 6]
    assert rows[1].nodes.mean.tolist() == [0, 4, 9]


def test_the_most_nodes_of_a_job_are_those_that_it_held_at_once():
    assert most_of_a_job(held(("a", 2, 0, 10), ("b", 4, 0, 10), ("a", 3, 5, 20), ("b", 1, 10, 20))) == 5
    assert most_of_a_job(held(("a", 2, 0, 10), ("b", 4, 0, 10), ("a", 3, 10, 20))) == 4


def test_up_to_the_limit_each_job_has_its_own_row():
    of_each = held(*((f"j{k}", 1, 10 * k, 10 * k + 5) for k in range(4)))
    models = [(f"j{k}", None) for k in range(4)]
    assert len(rows_of(of_each, models, 0, 100, most_rows=4)) == 4
    assert len(rows_of(of_each, models, 0, 100, most_rows=3)) == 1


def test_two_kinds_of_nodes_held_at_once_are_added_up():
    (row,) = rows_of(held(("a", 2, 0, 10), ("a", 3, 5, 20)), [("a", None)], 0, 20)
    assert row.nodes.edge_us.tolist() == [0, 5, 10, 20]
    assert row.nodes.mean.tolist() == [2, 5, 3]


def test_what_is_held_is_cut_at_the_ends_of_a_part():
    cut = held(("a", 2, 0, 10), ("b", 3, 10, 20), ("c", 4, 0, 30)).between(10, 15)
    assert (cut.job.tolist(), cut.count.tolist()) == ([1, 2], [3, 4])
    assert (cut.from_us.tolist(), cut.to_us.tolist()) == ([10, 10], [15, 15])


def test_labels_are_short_and_all_different():
    long = "experiment-with-a-very-long-name-indeed"
    assert labels_of_jobs([("J1-AlexNet", "alexnet"), ("t1", "net"), ("t2", None), ("t3", "")]) == [
        "J1-AlexNet",
        "t1 (net)",
        "t2",
        "t3",
    ]
    assert shorten(f"{long}-07") == "experiment-wit…-name-indeed-07"
    assert len(shorten(f"{long}-07")) == 30
    middle = [(f"{long}-{k}-{long}", None) for k in range(3)]
    labels = labels_of_jobs(middle)
    assert len(set(labels)) == 3
    assert labels[1].endswith(" #2")


def test_the_page_has_a_series_a_row_and_names_that_plotly_keeps_apart(sample_run, other_run):
    found = {"A": job_timeline(sample_run), "B": job_timeline(other_run)}
    page = JOBS.page(found)
    names = [name for trace in page.traces for name in trace["rows"]]
    assert len(set(names)) == len(names) == len(page.series) == sum(len(mine.rows) for mine in found.values())
    assert [trace["y"] for trace in page.traces] == [trace["rows"] for trace in page.traces]
    assert [trace["yaxis"] for trace in page.traces] == ["y", "y2"]
    assert {trace["zmax"] for trace in page.traces} == {max(mine.most for mine in found.values())}
    above, below = page.layout["yaxis"]["domain"], page.layout["yaxis2"]["domain"]
    assert 0 <= below[0] < below[1] < above[0] < above[1] <= 1


def test_names_of_jobs_and_models_are_shown_as_they_are():
    """Plotly takes texts for HTML."""
    name = '<b>x</b> & <a href="u">y'
    jobs = JobSet([replace(job(name, work=150.0), model="<i>"), job("1 < 2", submit_s=1)])
    run = replay_log(log(2, [], 60, idle_first=[0, 1]), jobs, EqualSharePolicy())
    page = JOBS.page({"": job_timeline(run)})
    (trace,) = page.traces
    assert trace["y"] == ['&lt;b&gt;x&lt;/b&gt; &amp; &lt;a href="u"&gt;y (&lt;i&gt;)', "1 &lt; 2"]
    assert [html.unescape(shown) for shown in trace["y"]] == trace["rows"] == list(page.series)


def test_names_in_rows_that_jobs_share_are_shown_as_they_are(monkeypatch):
    monkeypatch.setattr("bfreplay.report.figures.job_timeline.rows_of", partial(rows_of, most_rows=1))
    jobs = JobSet([job("<b>", work=150.0), job("a&b", submit_s=1)])
    run = replay_log(log(2, [], 60, idle_first=[0, 1]), jobs, EqualSharePolicy())
    (trace,) = JOBS.page({"": job_timeline(run)}).traces
    assert [row["job"] for row in trace["meta"]["row_jobs"]] == [["&lt;b&gt;", "a&amp;b"]]


def test_thousands_of_jobs_stay_small_on_the_page(many_jobs_run):
    page = JOBS.page({"": job_timeline(many_jobs_run)})
    start_us = many_jobs_run.record["config"]["window_start_us"]
    packed = json.dumps({name: pack_steps(series, start_us) for name, series in page.series.items()})
    assert len(packed) + len(json.dumps(page.traces)) < 200_000
    of_rows = page.traces[0]["meta"]["row_jobs"]
    assert sum(len(row["job"]) for row in of_rows) == MANY
    assert "a row shows one job after another" in JOBS.words({"": job_timeline(many_jobs_run)})
    assert of_rows[0]["job"][0] == "trial-0000"
    assert of_rows[0]["since_s"][0] == 3_600


def test_rows_with_too_many_steps_together_are_given_in_columns(monkeypatch, sample_run):
    monkeypatch.setattr("bfreplay.report.figures.job_timeline.MOST_STEPS", 50)
    monkeypatch.setattr("bfreplay.report.figures.job_timeline.FEWEST_COLUMNS", 20)
    found = job_timeline(sample_run)
    page = JOBS.page({"": found})
    assert max(len(series.mean) for series in page.series.values()) == 20
    for row, series in zip(found.rows, page.series.values(), strict=True):
        assert series.area_us == pytest.approx(row.nodes.area_us, rel=1e-6)
        assert series.is_exact == (len(row.nodes.mean) <= 20)


def test_rows_of_a_long_run_are_put_together_in_columns_and_look_the_same(monkeypatch, sample_run):
    exact = job_timeline(sample_run)
    for name, value in (("MOST_STEPS", 50), ("FEWEST_COLUMNS", 20), ("COLUMNS", 7)):
        monkeypatch.setattr(f"bfreplay.report.figures.job_timeline.{name}", value)
    shrunk = job_timeline(sample_run)
    assert all(row.nodes.is_exact for row in exact.rows)
    assert not all(row.nodes.is_exact for row in shrunk.rows)
    assert all(len(row.nodes.mean) <= 20 + 7 for row in shrunk.rows)
    one, other = (JOBS.page({"": found}).series.values() for found in (exact, shrunk))
    for series, of_shrunk in zip(one, other, strict=True):
        assert_alike(series, of_shrunk)
    for row, of_shrunk in zip(exact.rows, shrunk.rows, strict=True):
        edges = exact.span.columns(7)
        assert_alike(row.nodes.in_columns(edges), of_shrunk.nodes.in_columns(edges))


def test_a_row_that_was_put_together_in_columns_is_thinned_to_its_part_beside_short_rows(monkeypatch):
    monkeypatch.setattr("bfreplay.report.figures.job_timeline.FEWEST_COLUMNS", 20)
    edges = np.arange(0, 1_000, 10)
    long, short = (StepParts(0, 990, 7, 25) for _ in range(2))
    long.add(edges, np.arange(99) % 5)
    long.shrink()
    short.add(np.array([0, 990]), np.array([3]))
    thinned, same = _thin([long.series(), short.series()], 50)
    assert len(long.series().mean) + 1 <= 50 < 100  # few columns, but many steps
    assert (len(thinned.mean), len(same.mean)) == (25, 1)


def assert_alike(series, other):
    for name in ("edge_us", "least", "mean", "most"):
        assert np.array_equal(getattr(series, name), getattr(other, name))


def test_the_picture_has_the_mean_of_each_column(plain):
    figure = JOBS.draw({"": job_timeline(plain)})
    heat = figure.axes[0].images[0].get_array()
    assert heat.shape == (2, 480)
    assert heat[0, :120].tolist() == [1.0] * 120
    assert heat[0, 120:].tolist() == [0.0] * 360
    assert heat[1, 160:].tolist() == [2.0] * 320
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["early", "late (net)"]
    assert figure.axes[-1].get_ylabel() == "nodes"
