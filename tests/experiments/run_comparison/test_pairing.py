"""Runs that may be compared, those that may not, and what they differ in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay import replay_log
from bfreplay.datasets import write_events
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.experiments.run_comparison.comparison import compare
from bfreplay.experiments.run_comparison.pairing import check_pairing, differing_options, labels_of
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.workload import JobSet
from tests.experiments.run_comparison.little_runs import HOUR, endless_jobs, run, two_hours
from tests.replay.tiny import job, log
from tests.runs.explain.little_source import LittleHalving


def _check(*runs):
    check_pairing(runs, labels_of(len(runs)))


def test_labels_go_on_after_the_alphabet():
    labels = labels_of(60)
    assert labels[:3] == ["A", "B", "C"]
    assert labels[25:28] == ["Z", "AA", "AB"]
    assert len(set(labels)) == 60


def test_options_may_differ_and_are_listed():
    a = run(two_hours(), endless_jobs())
    b = run(two_hours(), endless_jobs(), t_fwd=300.0, max_parallel=2, semantics=Semantics.PUBLISHED, seed=3)
    _check(a, b, a)
    assert [row.to_json() for row in differing_options([a, b, a])] == [
        {"option": "max_parallel", "values": [10, 2, 10]},
        {"option": "policy.t_fwd_s", "values": [120.0, 300.0, 120.0]},
        {"option": "seed", "values": [0, 3, 0]},
        {"option": "semantics", "values": ["continuous", "published", "continuous"]},
    ]
    assert differing_options([a, a]) == []


def test_an_option_that_a_run_does_not_have_is_none():
    rows = differing_options([run(two_hours(), endless_jobs()), run(two_hours(), endless_jobs(), EqualSharePolicy())])
    assert {row["option"]: row["values"] for row in rows}["policy.t_fwd_s"] == [120.0, None]


def test_another_window_is_refused():
    whole = two_hours()
    with pytest.raises(InputError, match=r"run B cannot be compared with run A: its window(.|\n)*--window"):
        _check(run(whole, endless_jobs()), run(whole.between(0, 1_800_000_000), endless_jobs()))


def test_another_log_is_refused():
    other = log(2, [(1_700, 1, False), (5_400, 1, True)], 2 * HOUR, idle_first=[0, 1])
    with pytest.raises(InputError, match=r"its log differs(.|\n)*replay both on the same log"):
        _check(run(two_hours(), endless_jobs()), run(other, endless_jobs()))


def test_logs_of_files_are_told_apart_by_content_not_by_name(tmp_path):
    names = [tmp_path / f"{name}.csv" for name in ("one", "two", "other")]
    for name, events in zip(names, (two_hours(), two_hours(), log(2, [], 2 * HOUR, [0])), strict=True):
        write_events(events, name)
    runs = [run(name, endless_jobs()) for name in names]
    _check(*runs[:2])
    with pytest.raises(InputError, match=r"content of its log differs(.|\n)*other\.csv(.|\n)*one\.csv"):
        _check(runs[0], runs[2])
    with pytest.raises(InputError, match="made in memory"):
        _check(runs[0], run(two_hours(), endless_jobs()))


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (endless_jobs(2), "2 jobs"),
        (JobSet([*endless_jobs(2), job("else")]), "job of job 3"),
        (JobSet([replace(each, work_samples=5.0) for each in endless_jobs()]), "work_samples of job 1"),
    ],
)
def test_other_jobs_are_refused(other, told):
    with pytest.raises(InputError, match=told):
        _check(run(two_hours(), endless_jobs()), run(two_hours(), other))


def test_unlimited_work_goes_with_unlimited_work_only_whatever_the_number_of_jobs():
    runs = [run(two_hours(), endless_jobs(), unlimited_work=True, max_parallel=n) for n in (1, 3)]
    _check(*runs)
    with pytest.raises(InputError, match=r"unlimited_work differs(.|\n)*--unlimited-work"):
        _check(runs[0], run(two_hours(), endless_jobs()))


def test_sources_of_jobs_are_compared_by_what_they_say_of_themselves():
    def campaign(n):
        return replay_log(
            two_hours(), LittleHalving(n), EqualSharePolicy(), ReplaySettings(), efficiency=False, bound=False
        )

    _check(campaign(4), campaign(4))
    with pytest.raises(InputError, match="the description of its job source differs"):
        _check(campaign(4), campaign(6))
    with pytest.raises(InputError, match="its kind of jobs differs"):
        _check(campaign(4), run(two_hours(), endless_jobs()))


def test_one_run_alone_is_refused():
    with pytest.raises(InputError, match="two runs or more"):
        _check(run(two_hours(), endless_jobs()))


def test_a_run_on_a_cluster_is_compared_with_one_on_a_log_from_the_start_of_each():
    jobs = JobSet([job("a", work=20_000.0), job("b", work=9_000.0, submit_s=600.0)], submit_is_relative=True)
    on_log = run(two_hours().between(1_800_000_000, 7_200_000_000), jobs)
    on_cluster = run(fixed_cluster("v100=2", 7_200_000_000), jobs)
    for runs in ([on_log, on_cluster], [on_cluster, on_log]):
        (pair,) = compare(*runs, resamples=100).pairs
        by_measure = {row.measure: row for row in pair.jobs.measures}
        # the log has one node for its first hour, the cluster two
        expected = [run.jobs.finished.astype("int64").to_numpy() / 1e6 for run in runs]
        starts = [run.record.config.window_start_us / 1e6 for run in runs]
        difference = (expected[1] - starts[1]) - (expected[0] - starts[0])
        assert by_measure["finish_s"].median == pytest.approx(float(sum(difference) / 2))
        assert by_measure["finish_s"].n_both == 2
        made = next(row for row in pair.hours if row.measure == "samples")
        assert made.baseline == made.other == pytest.approx(29_000.0)
    assert next(row.to_json() for row in differing_options([on_log, on_cluster])) == {
        "option": "log",
        "values": ["a log in memory", "cluster v100=2"],
    }


def test_jobs_of_a_cluster_are_those_of_the_log_at_the_same_times_after_the_start():
    on_log = run(two_hours(), JobSet([job("a", submit_s=600.0)]))
    with pytest.raises(InputError, match="submitted of job 1 differs"):
        _check(on_log, run(fixed_cluster("v100=2", 7_200_000_000), JobSet([job("a", submit_s=60.0)])))
