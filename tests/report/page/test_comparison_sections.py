"""What the page says of a comparison of runs: its pictures and tables, against the record and its tables."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow.compute as pc
import pytest

from bfreplay.experiments import compare
from bfreplay.policies import EqualSharePolicy
from bfreplay.report.figures.marks import Mark, run_number
from bfreplay.report.figures.run_comparison import causes_page, differences_over_time, over_time_page, waterfalls
from bfreplay.report.page.document import comparison_answer, comparison_sections
from bfreplay.report.page.sections import page_table
from bfreplay.result_folders.comparison import RunComparison
from bfreplay.runs.comparison_tables import cause_table, hour_table, job_tables, option_table, total_table
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


def test_sections_have_the_tables_of_the_record(comparison, ended):
    for each in (comparison, ended):
        record, pairs = each.record, each.record["pairs"]
        tables = {
            "options": [option_table(record)],
            "causes": [cause_table(record), total_table(record)],
            "differences-over-time": [hour_table(record, pair) for pair in pairs],
            "job-by-job": [*job_tables(pairs)],
        }
        assert {name: section(each, name).tables for name in tables} == {
            name: [*map(page_table, of_section)] for name, of_section in tables.items()
        }
