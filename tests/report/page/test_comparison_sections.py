"""What the page says of a comparison of runs: its pictures and tables, against the record and its tables."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pyarrow.compute as pc
import pytest

from bfreplay.experiments import compare
from bfreplay.policies import EqualSharePolicy
from bfreplay.report.figures.marks import Mark, run_number
from bfreplay.report.figures.run_comparison import causes_page, differences_over_time, over_time_page, waterfalls
from bfreplay.report.page.comparison_sections import (
    campaign_table,
    cause_table,
    comparison_answer,
    comparison_sections,
    hour_table,
    job_measure_table,
    option_table,
    total_table,
)
from bfreplay.result_folders.comparison import CampaignDifference, RunComparison
from bfreplay.runs.shown_values import value_text
from tests.experiments.run_comparison.little_runs import busy_days, ending_jobs, endless_jobs, run
from tests.report.figures.drawn import check_page


@pytest.fixture(scope="module")
def comparison(tmp_path_factory) -> RunComparison:
    """Two runs against a third, two days, an hour a bin."""
    place = tmp_path_factory.mktemp("compared")
    runs = [run(busy_days(), endless_jobs(), t_fwd=t_fwd) for t_fwd in (120.0, 20.0)]
    runs.append(run(busy_days(), endless_jobs(), EqualSharePolicy()))
    compare(*runs, out=place / "found", resamples=200)
    return RunComparison.load(place / "found")


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> RunComparison:
    """Jobs that end, in both semantics: samples are equal by construction."""
    place = tmp_path_factory.mktemp("ended")
    runs = [run(busy_days(), ending_jobs(), max_parallel=n) for n in (10, 2)]
    compare(*runs, out=place / "found", resamples=200)
    return RunComparison.load(place / "found")


def section(comparison, name):
    return next(each for each in comparison_sections(comparison) if each.name == name)


def shown(found):
    """Caption and texts of each table of a section."""
    return [(table.caption, [[cell.text for cell in row] for row in table.rows]) for table in found.tables]


def texts(*tables):
    """The same of tables of plain values."""
    return [
        (
            table.caption,
            [
                [value_text(value, column.kind) for value, column in zip(row, table.columns, strict=True)]
                for row in table.rows
            ],
        )
        for table in tables
    ]


def rows_of(table):
    """Cells by the first column and the column's key."""
    keys = [column.key for column in table.columns]
    return {row[0]: dict(zip(keys, row, strict=True)) for row in table.rows}


def test_answers_are_those_of_the_record(comparison):
    assert [text.striptags() for text in comparison_answer(comparison)] == [
        pair["answer"] for pair in comparison.record["pairs"]
    ]


def test_sections_have_names_of_their_own_and_plain_tables(comparison, ended):
    for each in (comparison, ended):
        sections = comparison_sections(each)
        assert [found.name for found in sections] == ["options", "differences-over-time", "causes", "job-by-job"]
        for table in (table for found in sections for table in found.tables):
            assert len({column.key for column in table.columns}) == len(table.columns)
            assert {len(row) for row in table.rows} == {len(table.columns)}


def test_sections_have_the_tables_of_the_record(comparison, ended):
    for each in (comparison, ended):
        record, pairs = each.record, each.record["pairs"]
        assert shown(section(each, "options")) == texts(option_table(record))
        assert shown(section(each, "causes")) == texts(cause_table(record), total_table(record))
        assert shown(section(each, "differences-over-time")) == texts(*(hour_table(record, pair) for pair in pairs))
        assert shown(section(each, "job-by-job"))[0] == texts(job_measure_table(pairs[0]))[0]


def test_series_over_time_are_those_of_the_tables(comparison):
    figure = check_page(over_time_page(differences_over_time(comparison)))
    base = comparison.record["pairs"][0]["samples"]["baseline"]
    hours, cumulative = comparison.table("hours"), comparison.table("cumulative")
    of_a = np.asarray(hours.filter(pc.equal(hours["run"], "A"))["samples"])
    for label in ("B", "C"):
        mine = np.asarray(hours.filter(pc.equal(hours["run"], label))["samples"])
        assert figure.series[f"bin-{label}"].mean == pytest.approx(100 * (mine - of_a) / base)
        sums = cumulative.filter(pc.equal(cumulative["run"], label))
        for name, column in (("sum", "difference"), ("low", "low"), ("high", "high")):
            series = figure.series[f"{name}-{label}"]
            assert series.mean == pytest.approx(100 * np.asarray(sums[column]) / base)
            # at any time the sum of all bins up to and with that one
            assert series.edge_us[1:].tolist() == np.asarray(sums["time"].cast("int64")).tolist()
        assert figure.series[f"bin-{label}"].mean.cumsum() == pytest.approx(figure.series[f"sum-{label}"].mean)


def test_runs_over_time_are_told_apart_without_colour(comparison):
    figure = over_time_page(differences_over_time(comparison))
    sums = [trace for trace in figure.traces if trace["name"].endswith("sum up to then")]
    assert len({trace["line"]["dash"] for trace in sums}) == len({trace["line"]["color"] for trace in sums}) == 2
    # as in all other figures of the same page
    assert [trace["line"]["dash"] for trace in sums] == [Mark("", run_number(run)).page_line["dash"] for run in "BC"]
    bands = [trace["fillpattern"]["shape"] for trace in figure.traces if "fillpattern" in trace]
    assert len(set(bands)) == 2
    assert figure.layout["xaxis"]["time"] is True
    heights = [axis for key, axis in figure.layout.items() if key.startswith("yaxis")]
    assert [axis["fixedrange"] for axis in heights] == [True] * 3  # only time is zoomed
    domains = [axis["domain"] for axis in heights]
    assert all(upper[0] > lower[1] for upper, lower in itertools.pairwise(domains))


def test_there_is_no_band_without_intervals(ended):
    figure = check_page(over_time_page(differences_over_time(ended)))
    assert sorted(figure.series) == ["bin-B", "sum-B"]
    assert figure.series["sum-B"].mean[-1] == pytest.approx(0.0, abs=1e-6)


def test_bars_of_causes_begin_where_the_one_before_ends_and_the_last_is_all(comparison):
    found = waterfalls(comparison)
    traces = check_page(causes_page(found)).traces
    for k, steps in enumerate(found):
        mine = [trace for trace in traces if trace["yaxis"] == ("y", "y2")[k]]
        end = 0.0
        for trace in mine[:-1]:
            assert trace["base"][0] == pytest.approx(end)
            end += trace["x"][0]
        assert end == pytest.approx(steps.total) == mine[-1]["x"][0]
        assert mine[-1]["base"] == [0.0]
        falls = [trace for trace in mine[:-1] if trace["x"][0] < 0]
        assert all("pattern" in trace["marker"] for trace in falls)


def test_words_tell_the_differences_at_the_end(comparison):
    pair = comparison.record["pairs"][1]
    share = 100 * pair["samples"]["difference"] / pair["samples"]["baseline"]
    assert abs(share) > 1
    words = section(comparison, "differences-over-time").words
    assert f"Over the window C - A is {share:+.3g} % of A's samples" in words
    assert f"all {share:+.3g} %" in section(comparison, "causes").words
    assert "48 bins of 1 h" in words


def test_options_that_differ_are_shown(comparison):
    found, table = section(comparison, "options"), option_table(comparison.record)
    rows = rows_of(table)
    assert rows["policy"] == {"option": "policy", "A": "bftrainer", "B": "bftrainer", "C": "equal-share"}
    assert rows["policy.t_fwd_s"] == {"option": "policy.t_fwd_s", "A": "120", "B": "20", "C": None}
    assert "policy.t_fwd_s" in found.words
    assert [row[0] for row in table.rows].count("policy.name") == 0  # said by the row above


def test_sums_by_bin_are_those_of_the_record(comparison):
    for pair in comparison.record["pairs"]:
        rows = rows_of(hour_table(comparison.record, pair))
        assert len(rows) == len(pair["hours"])
        first, total = rows["samples"], pair["hours"][0]["total"]
        assert (first["baseline"], first["other"]) == (pair["hours"][0]["baseline"], pair["hours"][0]["other"])
        assert first["difference"] == pytest.approx(first["other"] - first["baseline"])
        assert first["relative"] == pytest.approx(first["difference"] / first["baseline"])
        assert (first["low"], first["high"], first["n"]) == (total["low"], total["high"], 48)


def test_a_missing_interval_has_its_reason(ended):
    (pair,) = ended.record["pairs"]
    first = rows_of(hour_table(ended.record, pair))["samples"]
    assert first["low"] is None
    assert "all jobs were done in both runs" in first["why_no_interval"]


def test_parts_of_the_difference_add_up_to_it(comparison):
    parts, totals = cause_table(comparison.record), total_table(comparison.record)
    for k, pair in enumerate(comparison.record["pairs"]):
        samples = [row[1 + 2 * k] for row in parts.rows]
        assert sum(samples[:-1]) == pytest.approx(samples[-1])
        assert samples[-1] == pytest.approx(pair["samples"]["difference"])
        assert rows_of(totals)["rescales up"][pair["run"]] == pair["totals"]["other"]["n_scale_ups"]
    rows = rows_of(totals)
    assert rows["rescales up"]["A"] == comparison.record["pairs"][0]["totals"]["baseline"]["n_scale_ups"]
    used = ("node-hours useful", "node-hours of rescaling", "node-hours preempted")
    for run_ in "ABC":
        assert sum(rows[name][run_] for name in used) == pytest.approx(rows["node-hours used"][run_])


def test_jobs_are_compared_in_hours(ended):
    found = section(ended, "job-by-job")
    pair = ended.record["pairs"][0]
    finish = next(row for row in pair["jobs"]["measures"] if row["measure"] == "finish_s")
    row = rows_of(job_measure_table(pair))["finish, h"]
    assert finish["median"]
    assert row["median"] == pytest.approx(finish["median"] / 3_600)
    assert [row[key] for key in ("n_both", "n_better", "n_equal", "n_worse")] == [
        finish[key] for key in ("n_both", "n_better", "n_equal", "n_worse")
    ]
    assert "12 pairs of jobs" in found.words


def test_a_campaign_is_compared_by_its_milestones(comparison):
    both = {"baseline": 7_200.0, "other": 3_600.0, "difference": -3_600.0}
    campaign = {
        "higher_is_better": True,
        "n_finished": {"baseline": 9, "other": 10},
        "finished": [{"which": "half", "k": 5, **both}],
        "over": {"baseline": None, "other": 36_000.0, "difference": None},
        "reached": {"score": 0.75, **both},
        "best_score": {"baseline": 0.75, "other": 0.8, "difference": 0.05},
    }
    pair = msgspec.structs.replace(
        comparison.pairs[0], run="B", baseline="A", campaign=msgspec.convert(campaign, CampaignDifference)
    )
    table = campaign_table(pair)
    assert table.rows == [
        ["trial 5 finished (half), h", 2.0, 1.0, -1.0],
        ["search finished, h", None, 10.0, None],
        ["simulated score 0.75 reached, h", 2.0, 1.0, -1.0],
        ["best simulated score", 0.75, 0.8, 0.05],
    ]
    assert "campaign" not in [each.name for each in comparison_sections(comparison)]
