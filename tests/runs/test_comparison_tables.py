"""Tables of a comparison of runs, which its text and its page show: against the record."""

from __future__ import annotations

import msgspec
import pytest

from bfreplay.experiments import compare
from bfreplay.policies import EqualSharePolicy
from bfreplay.result_folders.comparison import CampaignDifference, RunComparison
from bfreplay.runs.comparison_tables import (
    campaign_table,
    cause_table,
    hour_table,
    job_measure_table,
    jobs_words,
    option_table,
    options_words,
    total_table,
)
from tests.experiments.run_comparison.little_runs import busy_days, ending_jobs, endless_jobs, run


@pytest.fixture(scope="module")
def comparison() -> RunComparison:
    """Two runs against a third, two days, an hour a bin."""
    runs = [run(busy_days(), endless_jobs(), t_fwd=t_fwd) for t_fwd in (120.0, 20.0)]
    return compare(*runs, run(busy_days(), endless_jobs(), EqualSharePolicy()), resamples=200)


@pytest.fixture(scope="module")
def ended() -> RunComparison:
    """Jobs that end in both runs: samples are equal by construction."""
    return compare(*(run(busy_days(), ending_jobs(), max_parallel=n) for n in (10, 2)), resamples=200)


def rows_of(table):
    """Cells by the first column and the column's key."""
    keys = [column.key for column in table.columns]
    return {row[0]: dict(zip(keys, row, strict=True)) for row in table.rows}


def test_options_that_differ_are_shown(comparison):
    table = option_table(comparison.record)
    rows = rows_of(table)
    assert rows["policy"] == {"option": "policy", "A": "bftrainer", "B": "bftrainer", "C": "equal-share"}
    assert rows["policy.t_fwd_s"] == {"option": "policy.t_fwd_s", "A": "120", "B": "20", "C": None}
    assert "policy.t_fwd_s" in options_words(comparison.record)
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


def test_counts_over_the_window_are_those_of_the_run(comparison):
    for pair in comparison.record["pairs"]:
        row = rows_of(hour_table(comparison.record, pair))["rescales up"]
        told = [pair["totals"][side]["n_scale_ups"] for side in ("baseline", "other")]
        assert [repr(row[name]) for name in ("baseline", "other")] == [*map(repr, told)], "whole numbers, not floats"


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
    pair = ended.record["pairs"][0]
    finish = next(row for row in pair["jobs"]["measures"] if row["measure"] == "finish_s")
    row = rows_of(job_measure_table(pair))["finish, h"]
    assert finish["median"]
    assert row["median"] == pytest.approx(finish["median"] / 3_600)
    assert [row[key] for key in ("n_both", "n_better", "n_equal", "n_worse")] == [
        finish[key] for key in ("n_both", "n_better", "n_equal", "n_worse")
    ]
    assert "12 pairs of jobs" in jobs_words(ended.pairs)


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
        ["score 0.75 reached, h", 2.0, 1.0, -1.0],
        ["best score", 0.75, 0.8, 0.05],
    ]
