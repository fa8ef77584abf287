"""Answers for jobs and models, worked by hand on a log of a minute."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from bfreplay import replay_log
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs.explain.jobs_of_run import STATUSES, job_answers, model_answers, records
from bfreplay.runs.explain.saved_tables import microseconds
from bfreplay.runs.saved_decisions import recorded_jobs
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log

SPIKE = (0.0, 10.0, 40.0, 45.0)  # 3 nodes are hardly better than 2


def answered(events, jobs, max_parallel=10):
    run = replay_log(events, jobs, EqualSharePolicy(), ReplaySettings(max_parallel), efficiency=False, bound=False)
    return job_answers(run, recorded_jobs(run, jobs=jobs)).set_index("job"), run


def test_a_job_that_waits_and_then_runs_on_changing_counts():
    # 1 node from 10 s, 3 nodes from 20 s: 100 samples by then, the other 450 take 10 s
    events = log(3, [(10, 0, True), (20, 1, True), (20, 2, True)], 60)
    jobs = JobSet([replace(job("a", work=550.0, rates=SPIKE, submit_s=4), model="net")])
    rows, _ = answered(events, jobs)
    a = rows.loc["a"]
    assert (a["status"], a["queue_s"], a["completion_s"], a["held_s"]) == ("finished", 6.0, 26.0, 20.0)
    assert a["mean_nodes"] == 2.0
    assert a["held_node_hours"] == a["useful_node_hours"] == pytest.approx(40 / 3600)
    assert a["efficiency"] == pytest.approx(550 / (40 * 20))  # 2 dedicated nodes make 40 samples/s
    assert a["slowdown"] == pytest.approx(26 / (550 / 45))
    assert a["ended"].timestamp() == 30.0


def test_the_rate_of_dedicated_nodes_lies_between_whole_numbers_of_them():
    # 1 node for 10 s, 2 for 30 s: 1.75 on average, where the line from 10 to 40 samples/s is at 32.5
    events = log(2, [(10, 1, True)], 40, idle_first=[0])
    rows, _ = answered(events, JobSet([job("a", rates=SPIKE[:3])]))
    assert rows.loc["a", "mean_nodes"] == 1.75
    assert rows.loc["a", "efficiency"] == pytest.approx((10 * 10 + 40 * 30) / (32.5 * 40))


def test_what_rescaling_and_preemption_cost():
    # 2 nodes at 20/s; node 1 goes at 10 s, which costs 2 s x 20/s = 40 samples, 4 s of the one node left; at 20 s it is
    # back, and 3 s x 10/s = 30 samples are owed, 1.5 s of both
    events = log(2, [(10, 1, False), (20, 1, True)], 40, idle_first=[0, 1])
    rows, _ = answered(events, JobSet([job("a", up_s=3.0, down_s=2.0)]))
    a = rows.loc["a"]
    assert (a["preemption_cost_samples"], a["rescale_cost_samples"]) == (40.0, 30.0)
    assert a["preempted_node_hours"] == pytest.approx(4 / 3600)
    assert a["rescaling_node_hours"] == pytest.approx(3 / 3600)
    assert (a["n_starts"], a["n_scale_ups"], a["n_scale_downs"], a["n_preemptions"]) == (1, 2, 0, 1)
    assert a["done_samples"] == pytest.approx(10 * 20 + 10 * 10 + 20 * 20 - 70)


def test_the_best_rate_that_a_job_is_slowed_down_from_is_one_within_its_bounds():
    # 40 samples/s on 2 nodes are the most; a job of 3 or 4 nodes makes 30/s at best, on 3
    rates = (0.0, 10.0, 40.0, 30.0, 20.0)
    rows, _ = answered(log(4, [], 60, range(4)), JobSet([job("a", work=400.0, rates=rates, min_nodes=3)]))
    assert (rows.loc["a", "mean_nodes"], rows.loc["a", "completion_s"]) == (4.0, 20.0)  # on all nodes that there are
    assert rows.loc["a", "slowdown"] == pytest.approx(20 / (400 / 30))


def test_a_job_that_never_ran_has_no_times_and_no_efficiency():
    rows, _ = answered(log(1, [], 60), JobSet([job("a")]))
    a = rows.loc["a"]
    assert (a["status"], a["held_s"], a["held_node_hours"]) == ("waiting", 0.0, 0.0)
    for column in ("queue_s", "completion_s", "mean_nodes", "efficiency", "slowdown"):
        assert math.isnan(a[column]), column
    assert records(rows)[0]["efficiency"] is None
    assert records(rows)[0]["submitted"] == "1970-01-01T00:00:00Z"


def test_without_the_jobs_only_what_needs_their_curves_is_left_open():
    events, jobs = log(2, [(10, 1, True)], 60, idle_first=[0]), JobSet([job("a", work=400.0)])
    known, run = answered(events, jobs)
    blind = job_answers(run).set_index("job")
    assert blind[["efficiency", "slowdown"]].isna().all(axis=None)
    open_ones = ["efficiency", "slowdown"]
    pd.testing.assert_frame_equal(known.drop(columns=open_ones), blind.drop(columns=open_ones))


def test_models_sum_up_their_jobs():
    # one at a time, 1 node: a, b and c start at 0, 10 and 20 s; c is not done at 35 s; d is to come
    sizes = {"a": ("x", 100.0), "b": ("y", 100.0), "c": ("x", 1e9), "d": (None, 10.0)}
    jobs = JobSet(
        replace(job(name, work=work, submit_s=99 if name == "d" else 0), model=model)
        for name, (model, work) in sizes.items()
    )
    rows, _ = answered(log(1, [], 35, idle_first=[0]), jobs, max_parallel=1)
    models = model_answers(rows.reset_index()).set_index("model")
    assert models.index.tolist() == ["x", "y", "(no model)"]
    assert models["n_jobs"].tolist() == [2, 1, 1]
    assert models.loc["x", ["finished", "running", "not_submitted"]].tolist() == [1, 1, 0]
    assert models.loc["(no model)", "not_submitted"] == 1
    assert models.loc["x", ["queue_median_s", "queue_p95_s"]].tolist() == [10.0, pytest.approx(19.0)]
    assert models.loc["x", "completion_median_s"] == 10.0
    assert math.isnan(models.loc["(no model)", "queue_median_s"])
    assert models["samples"].tolist() == [250.0, 100.0, 0.0]
    assert models["held_node_hours"].tolist() == pytest.approx([25 / 3600, 10 / 3600, 0.0])


def test_every_status_that_a_replay_knows_has_a_column():
    _, run = answered(log(1, [], 60), JobSet([job("a")]))
    assert sorted(STATUSES) == sorted(run.summary["jobs"])


def test_times_of_far_centuries_are_told_to_the_microsecond():
    import pandas as pd

    far = pd.array([253_402_214_400_000_001], dtype="datetime64[us, UTC]")[0]  # the last day of 9999
    assert microseconds(far) == 253_402_214_400_000_001
    assert microseconds(pd.NaT) is None


def test_rows_are_plain_json_values():
    frame = pd.DataFrame({"work": [math.inf, 1.5], "name": ["a", None], "time": pd.to_datetime([0, None], utc=True)})
    assert records(frame) == [
        {"work": None, "name": "a", "time": "1970-01-01T00:00:00Z"},
        {"work": 1.5, "name": None, "time": None},
    ]
