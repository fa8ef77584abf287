"""The same jobs in two runs: worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay.experiments.run_comparison.job_differences import (
    MEASURES,
    job_differences,
    jobs_table,
    pair_jobs,
    run_jobs,
)
from bfreplay.experiments.study_options import Bootstrap
from bfreplay.policies import EqualSharePolicy
from bfreplay.workload import JobSet
from tests.experiments.run_comparison.little_runs import HOUR, run
from tests.replay.tiny import job, log

FEW = Bootstrap(resamples=200)


def _pair(a, b):
    return pair_jobs(run_jobs(a), run_jobs(b))


def _of(found, measure):
    return next(row for row in found["measures"] if row["measure"] == measure)


@pytest.fixture
def pair():
    """One node for two hours; three jobs of an hour each: one after the other, or side by side and then only one."""
    events = log(2, [(HOUR, 1, False)], 2 * HOUR, [0, 1])
    jobs = JobSet([job(f"j{k}", work=36_000.0, rates=(0.0, 10.0), submit_s=60.0 * k) for k in range(3)])
    one, two = (run(events, jobs, EqualSharePolicy(), max_parallel=n) for n in (1, 2))
    return _pair(one, two)


def test_times_are_counted_from_the_start_of_the_window_and_waiting_from_the_submit(pair):
    assert pair.jobs["job"].tolist() == ["j0", "j1", "j2"]
    assert pair.jobs["finish_s_baseline"].tolist()[:2] == pytest.approx([3_600.0, 7_200.0])
    assert pair.jobs["start_s_baseline"].tolist()[:2] == pytest.approx([0.0, 3_600.0])
    assert pair.jobs["waiting_s_baseline"].tolist()[:2] == pytest.approx([0.0, 3_540.0])
    assert pair.jobs["start_s"].tolist()[:2] == pytest.approx([0.0, 60.0])


def test_shares_and_medians_are_those_of_the_pairs(pair):
    found = job_differences(pair, FEW)
    start = _of(found, "start_s")
    assert (start["n_both"], start["only_in_other"]) == (2, 1)  # j2 starts only where two run at once
    assert (start["n_better"], start["n_equal"], start["n_worse"]) == (2, 1, 0)
    assert start["median"] == pytest.approx(-3_540.0 / 2)
    done = _of(found, "done_samples")
    assert done["n_more"] >= 1
    assert done["n_better"] == done["n_more"]
    assert _of(found, "useful_node_hours")["n_better"] is None
    assert "3 of at least 8 jobs" in done["why_no_interval"]


def test_changes_of_status_are_counted(pair):
    changes = {(row["baseline"], row["other"]): row["n_jobs"] for row in job_differences(pair, FEW)["status_changes"]}
    both = zip(pair.jobs["status_baseline"], pair.jobs["status"], strict=True)
    assert changes == {(a, b): 1 for a, b in both if a != b}
    assert ("queued", "running") in changes or ("waiting", "running") in changes


def test_a_job_that_finishes_in_one_run_only_is_better_there():
    events = log(1, [], 2 * HOUR, [0])
    jobs = JobSet([job("a", work=36_000.0), job("b", work=72_000.0, submit_s=1.0)])
    first, second = run(events, jobs, max_parallel=1), run(events, JobSet(jobs.jobs[1:]), max_parallel=1)
    pairs = _pair(first, second)
    assert (pairs.only_in_baseline, pairs.only_in_other) == (1, 0)
    finish = _of(job_differences(pairs, FEW), "finish_s")
    assert (finish["n_both"], finish["n_better"], finish["only_in_other"]) == (0, 0, 0)
    more = run(log(2, [], 2 * HOUR, [0, 1]), jobs, max_parallel=2)
    finish = _of(job_differences(_pair(first, more), FEW), "finish_s")
    assert (finish["n_both"], finish["only_in_other"], finish["n_better"], finish["n_worse"]) == (1, 1, 2, 0)
    assert finish["median"] < 0


def test_the_same_run_twice_differs_in_nothing(pair):
    baseline = {name: pair.jobs[f"{name}_baseline"] for name in ("status", *MEASURES)}
    same = job_differences(replace(pair, jobs=pair.jobs.assign(**baseline)), FEW)
    assert same["status_changes"] == []
    for row in same["measures"]:
        assert row["n_less"] == row["n_more"] == 0
        assert row["median"] in (0.0, None)


def test_models_are_told_apart_where_there_are_several():
    events = log(2, [], HOUR, [0, 1])
    jobs = [replace(job(f"j{k}", work=9_000.0), model="ab"[k % 2]) for k in range(4)]
    a, b = (run(events, JobSet(jobs), max_parallel=n) for n in (1, 4))
    found = job_differences(_pair(a, b), FEW)
    assert {(row["model"], row["measure"], row["n_both"]) for row in found["models"]} >= {
        ("a", "finish_s", 2),
        ("b", "finish_s", 2),
    }
    one_model = [replace(each, model="a") for each in jobs]
    assert job_differences(_pair(*[run(events, JobSet(one_model))] * 2), FEW)["models"] == []


def test_jobs_of_the_same_name_and_other_parameters_are_not_paired():
    events = log(1, [], HOUR, [0])
    a, b = (
        run(events, JobSet([replace(job("t0"), params={"lr": rate}), replace(job("t1"), params={"lr": 1.0})]))
        for rate in (0.1, 0.2)
    )
    pairs = _pair(a, b)
    assert pairs.jobs["job"].tolist() == ["t1"]
    assert pairs.n_other_params == 1


def test_the_table_holds_both_values_and_their_difference(pair):
    table = jobs_table([pair, pair], ["B", "C"]).to_pylist()
    assert [row["run"] for row in table] == ["B"] * 3 + ["C"] * 3
    second = table[1]
    assert second["start_s"] - second["start_s_baseline"] == second["start_s_difference"] == pytest.approx(-3_540.0)
    assert table[2]["start_s_difference"] is None
    assert jobs_table([], []).num_rows == 0
