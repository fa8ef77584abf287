"""Idle nodes and nodes held over time: the numbers behind the picture, and the picture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.policies import EqualSharePolicy
from bfreplay.report.figures.timeline import TIMELINE, nodes_between, timeline
from bfreplay.runs.metrics import idle_until_done_us
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log
from tests.run_records import changed, setting


@pytest.fixture(scope="module")
def plain():
    """Node 0 is idle but from 10 s to 30 s, node 1 from 20 s; a takes what there is until it is done at 25 s."""
    jobs = JobSet([job("a", work=150.0)])
    events = log(2, [(10, 0, False), (20, 1, True), (30, 0, True)], 60, idle_first=[0])
    return replay_log(events, jobs, EqualSharePolicy(), efficiency=False, bound=False)


def seconds(series) -> list[tuple[float, float]]:
    return list(zip((series.edge_us[:-1] / SECOND).tolist(), series.mean.tolist(), strict=True))


def test_idle_and_held_nodes_are_those_of_the_log_and_of_the_allocations(plain):
    found = timeline(plain)
    assert seconds(found.idle) == [(0, 1), (10, 0), (20, 1), (30, 2)]
    assert seconds(found.held) == [(0, 1), (10, 0), (20, 1), (25, 0)]
    assert found.idle.edge_us[-1] == found.held.edge_us[-1] == 60 * SECOND
    assert found.share == 15 / 80


def test_areas_are_those_of_the_ledger(sample_run, all_idle_run, never_idle_run, many_jobs_run):
    for run in (sample_run, all_idle_run, never_idle_run, many_jobs_run):
        found, ledger = timeline(run), run.summary["ledger"]
        assert found.idle.area_us == ledger["idle_node_us"]
        assert found.held.area_us == ledger["allocated_node_us"]
        assert found.idle.most.max() == run.summary["most_idle_nodes"]


def test_rows_of_one_instant_count_as_one_and_rows_that_change_nothing_as_none(plain):
    times = [0, 10, 10, 20, 60]
    pool = pa.table(
        {"time": pa.array([t * SECOND for t in times], pa.timestamp("us", "UTC")), "n_idle": [1, 9, 0, 0, 2]}
    )
    found = timeline(replace(plain, tables=plain.tables | {"pool": pool}))
    assert seconds(found.idle) == [(0, 1), (10, 0)]
    assert found.idle.edge_us[-1] == 60 * SECOND


def test_a_part_of_the_window_is_cut_at_its_ends(plain):
    part = timeline(plain).between(5 * SECOND, 22 * SECOND)
    assert seconds(part.idle) == [(5, 1), (10, 0), (20, 1)]
    assert seconds(part.held) == [(5, 1), (10, 0), (20, 1)]
    assert part.share == 1
    assert (part.span.start_us, part.span.end_us) == (5 * SECOND, 22 * SECOND)
    for start, end in ((5, 5), (9, 3), (-1, 3), (9, 61)):
        with pytest.raises(InputError, match="empty, or reaches outside"):
            timeline(plain).between(start * SECOND, end * SECOND)


def test_idle_nodes_are_the_same_however_many_rows_are_read_at_once(plain, tmp_path, monkeypatch):
    monkeypatch.setattr("bfreplay.result_folders.reading._ROW_GROUPS", 1)
    pq.write_table(plain.table("pool"), tmp_path / "pool.parquet", row_group_size=1)
    others = {name: table for name, table in plain.tables.items() if name != "pool"}
    read = replace(plain, folder=tmp_path, tables=others)
    assert seconds(timeline(read).idle) == [(0, 1), (10, 0), (20, 1), (30, 2)]
    assert seconds(timeline(read).between(5 * SECOND, 22 * SECOND).idle) == [(5, 1), (10, 0), (20, 1)]
    heights, time_us = nodes_between(read, timeline(read).span)[0].time_at()
    assert (heights.tolist(), (time_us // SECOND).tolist()) == ([0, 1, 2], [10, 20, 30])
    assert idle_until_done_us(read) == idle_until_done_us(plain) == 15 * SECOND


def test_a_long_run_is_put_together_in_columns_and_looks_the_same(monkeypatch, sample_run):
    for name, value in (("FINEST", 30), ("_COLUMNS", 7)):
        monkeypatch.setattr(f"bfreplay.report.figures.timeline.{name}", value)
    shrunk = timeline(sample_run)
    monkeypatch.setattr("bfreplay.report.figures.timeline.FINEST", 100_000)
    exact = timeline(sample_run)
    edges = exact.span.columns(7)
    for series, of_shrunk in ((exact.idle, shrunk.idle), (exact.held, shrunk.held)):
        assert (series.is_exact, of_shrunk.is_exact) == (True, False)
        assert len(of_shrunk.mean) <= 30 + 7
        for one, other in (
            (series.coarse(30), of_shrunk.coarse(30)),
            (series.in_columns(edges), of_shrunk.in_columns(edges)),
        ):
            for name in ("edge_us", "least", "mean", "most"):
                assert np.array_equal(getattr(one, name), getattr(other, name))


def test_a_short_part_of_a_long_run_has_every_step(monkeypatch, sample_run):
    start_us = sample_run.record.config.window_start_us
    part = start_us + 3_600 * SECOND, start_us + 7_200 * SECOND
    expected = timeline(sample_run).between(*part)
    monkeypatch.setattr("bfreplay.report.figures.timeline.FINEST", len(expected.held.mean))
    monkeypatch.setattr("bfreplay.report.figures.timeline._COLUMNS", 7)
    whole = timeline(sample_run)
    assert not whole.held.is_exact
    assert seconds(whole.between(*part).held) == seconds(expected.held)


def test_words_tell_the_numbers(plain, never_idle_run, all_idle_run, no_jobs_run):
    assert TIMELINE.words({"": timeline(plain)}) == (
        "1.33 nodes were idle on average, between 0 and 2. Jobs held 0.250 nodes on average, 18.8 % of the idle node "
        "time."
    )
    assert TIMELINE.words({"": timeline(never_idle_run)}) == "No node was idle at any time."
    assert TIMELINE.words({"": timeline(no_jobs_run)}) == (
        "6.52 nodes were idle on average, between 0 and 8. Jobs held none of them."
    )
    assert TIMELINE.words({"": timeline(all_idle_run)}).startswith("8 nodes were idle all the time. Jobs held ")


def test_runs_of_one_log_share_their_idle_nodes(sample_run, other_run):
    found = {"A": timeline(sample_run), "B": timeline(other_run)}
    text = TIMELINE.words(found)
    assert text.count("idle on average") == 1
    assert "A: jobs held" in text
    assert "B: jobs held" in text
    assert list(TIMELINE.page(found).series) == ["idle", "A: held", "B: held"]


def test_runs_of_different_logs_have_idle_nodes_of_their_own(plain, all_idle_run):
    found = {"A": timeline(plain), "B": timeline(all_idle_run)}
    assert list(TIMELINE.page(found).series) == ["A: idle", "B: idle", "A: held", "B: held"]
    assert "A: 1.33 nodes were idle on average" in TIMELINE.words(found)


def test_the_page_has_the_band_before_the_lines_and_the_numbers_as_they_are(sample_run):
    found = timeline(sample_run)
    page = TIMELINE.page({"": found})
    assert [trace["steps"] for trace in page.traces] == [
        {"series": "idle", "statistic": "least"},
        {"series": "idle", "statistic": "most"},
        {"series": "idle", "statistic": "mean"},
        {"series": "held", "statistic": "mean"},
    ]
    assert page.traces[1]["fill"] == "tonexty"
    assert page.series["idle"].mean.tolist() == found.idle.mean.tolist()
    assert page.layout["xaxis"]["time"] is True
    assert page.layout["yaxis"]["fixedrange"] is True  # only time is zoomed
    assert [trace["hovertemplate"].partition(":")[0] for trace in page.traces] == [
        "idle nodes, least",
        "idle nodes, most",
        "idle nodes, mean",
        "nodes held by jobs, mean",
    ]


def test_the_picture_draws_least_mean_and_most_of_its_columns(sample_run):
    found = timeline(sample_run)
    figure = TIMELINE.draw({"": found})
    stairs = {patch.get_label(): patch.get_data() for patch in figure.axes[0].patches}
    band = stairs["idle, least to most"]
    assert band.edges.size == 481
    assert band.values.max() == found.idle.most.max()
    assert (np.asarray(band.baseline) <= stairs["idle, mean"].values).all()
    assert (stairs["held by jobs, mean"].values <= stairs["idle, mean"].values + 1e-9).all()
    day_us = 86_400_000_000
    assert (stairs["idle, mean"].values * np.diff(band.edges)).sum() * day_us == pytest.approx(found.idle.area_us)


def test_a_run_whose_idle_nodes_are_its_own_keeps_its_dashes_where_another_is_left_out(plain, all_idle_run):
    def dashes(found):
        return [trace["line"]["dash"] for trace in TIMELINE.page(found).traces if trace["steps"]["statistic"] == "mean"]

    both = dashes({"B": timeline(plain), "C": timeline(all_idle_run)})
    all_three = dashes({"A": timeline(plain), "B": timeline(plain), "C": timeline(all_idle_run)})
    assert all_three[1:3] == both[:2]
    assert all_three[4:] == both[2:]


def test_one_node_is_told_as_one():
    events, jobs = log(1, [(30, 0, False), (60, 0, True)], 90, idle_first=[0]), JobSet([job("a")])
    whole = replay_log(log(1, [], 60, idle_first=[0]), jobs, EqualSharePolicy())
    two = replay_log(log(2, [(30, 1, True), (30, 0, False)], 60, idle_first=[0]), jobs, EqualSharePolicy())
    assert TIMELINE.words({"": timeline(whole)}).startswith("1 node was idle all the time. Jobs held 1 node on average")
    assert "were" not in TIMELINE.words({"": timeline(two)})
    part = replay_log(events, jobs, EqualSharePolicy())
    assert "0.667 nodes were idle on average" in TIMELINE.words({"": timeline(part)})


def test_few_steps_are_drawn_as_they_are(plain):
    figure = TIMELINE.draw({"": timeline(plain)})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["idle", "held by jobs"]


def test_a_part_of_a_relative_log_is_told_from_its_start(plain):
    found = timeline(changed(plain, setting("inputs.events.metadata.time_origin", "relative")))
    assert TIMELINE.draw({"": found}).axes[0].get_xlabel() == "seconds since the start of the window"
    part = found.between(10 * SECOND, 50 * SECOND).between(20 * SECOND, 40 * SECOND)
    axes = TIMELINE.draw({"": part}).axes[0]
    assert axes.get_xlabel() == "seconds since 20 s after the start of the window"
    assert axes.get_xlim() == (0.0, pytest.approx(20 / 86_400))
