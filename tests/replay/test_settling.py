"""Changes that come together wait for one decision (``--settle``): worked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.policies import Decision, Policy, Round, Trigger
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs.summary_text import render
from bfreplay.workload import Restart
from tests.replay.tiny import SECOND, job, log

_OF_LOOP = {"efficiency": False, "bound": False}


def _run(events, jobs, settle, policy="equal-share"):
    return replay_log(events, jobs, policy, settle=settle, record_nodes=True, **_OF_LOOP)


def _rows(run, *names):
    """Return the rows of the decision table: the time in seconds, then these columns."""
    columns = [np.asarray(run.table("decisions")["time"].cast("int64")) / SECOND]
    columns += [run.table("decisions")[name].to_pylist() for name in names]
    return [tuple(row) for row in zip(*columns, strict=True)]


def _of_job(run, name="job"):
    return next(row for row in run.table("jobs").to_pylist() if row["job"] == name)


def _seconds(time):
    return time.timestamp()


def test_a_gap_as_long_as_the_settle_time_is_one_burst():
    events = log(3, [(10, 2, False), (10.3, 1, False)], 30, range(3))
    run = _run(events, [job(down_s=5)], 0.3)
    assert _rows(run, "trigger", "n_reclaimed", "n_jobs_preempted", "preemption_cost_samples", "counts") == [
        (0, "pool+arrival", 0, 0, 0, [3]),
        (10.6, "pool", 2, 2, 5 * 30, [1]),
    ]
    # 30 samples/s for 10 s, then the debt: 0.3 s at 20 and 14.4 s at 10; then 5.3 s at 10
    row = _of_job(run)
    assert row["done_samples"] == pytest.approx(300 + 53)
    assert row["preempted_node_us"] == 0.6 * SECOND + 14.4 * SECOND


def test_a_longer_gap_is_two_bursts():
    events = log(3, [(10, 2, False), (10.300001, 1, False)], 30, range(3))
    run = _run(events, [job(down_s=5)], 0.3)
    assert _rows(run, "preemption_cost_samples", "counts") == [
        (0, 0, [3]),
        (10.3, 5 * 30, [2]),
        (10.600001, 5 * 20, [1]),
    ]


def test_a_reclaim_during_a_pause_begins_it_anew_and_nodes_are_lost_at_their_instants():
    events = log(3, [(10, 2, False), (10.2, 1, False)], 20, range(3))
    run = _run(events, [replace(job(down_s=3), restart=Restart.PAUSE)], 0.3)
    assert _rows(run, "counts") == [(0, [3]), (10.5, [1])]
    row = _of_job(run)
    assert row["done_samples"] == pytest.approx(300 + 10 * 6.8)
    assert row["preempted_node_us"] == 2 * 0.2 * SECOND + 3 * SECOND
    spans = run.table("allocations").to_pylist()
    assert [(row["count"], _seconds(row["from"]), _seconds(row["to"])) for row in spans] == [
        (3, 0, 10),
        (2, 10, 10.2),
        (1, 10.2, 20),
    ]


def test_a_pause_that_the_decision_begins_in_place_of_that_of_a_burst_is_of_the_reclaim():
    events = log(3, [(10, 2, False), (10.2, 2, True)], 20, range(3))
    run = _run(events, [replace(job(up_s=4, down_s=3), restart=Restart.PAUSE)], 0.3)
    assert _rows(run, "n_joined", "n_reclaimed", "counts") == [(0, 3, 0, [3]), (10.5, 1, 1, [3])]
    row = _of_job(run)
    assert (row["preempted_node_us"], row["rescaling_node_us"]) == (2 * 0.5 * SECOND + 3 * 4 * SECOND, 0)


def test_nothing_waits_longer_than_ten_settle_times():
    changes = [(10 + 0.9 * k, 1, k % 2 == 0) for k in range(15)]
    run = _run(log(2, changes, 40, [0]), [job()], 1)
    assert _rows(run, "n_joined", "n_reclaimed", "counts") == [
        (0, 1, 0, [1]),
        (20, 6, 6, [1]),
        (23.6, 2, 1, [2]),  # from 20.8 on
    ]


def test_a_job_that_completes_in_a_burst_frees_its_nodes_and_they_wait():
    events = log(4, [(10, 3, False)], 20, range(4))
    jobs = [job("a", work=202), job("b", work=1e9)]
    run = _run(events, jobs, 0.3)
    # each has two nodes; b loses one at 10; a is done at 10.1, and its two wait until 10.4
    assert _rows(run, "trigger", "n_reclaimed", "counts") == [
        (0, "pool+arrival", 0, [2, 2]),
        (10.4, "pool+completion", 1, [3]),
    ]
    assert _seconds(_of_job(run, "a")["finished"]) == 10.1
    assert _of_job(run, "b")["done_samples"] == pytest.approx(200 + 4 + 9.6 * 30)
    assert run.summary["ledger"]["unallocated_node_us"] == 2 * 0.3 * SECOND


def test_a_job_that_was_hit_finishes_by_its_new_rate_before_any_decision():
    events = log(2, [(10, 1, False)], 30, range(2))
    run = _run(events, [job("a", work=210), job("b", submit_s=25)], 5)
    assert _seconds(_of_job(run, "a")["finished"]) == 11
    assert _rows(run, "trigger") == [(0, "pool+arrival"), (16, "pool+completion"), (30, "arrival")]


def test_the_last_completion_is_decided_at_once():
    run = _run(log(2, [(10, 1, False)], 30, range(2)), [job(work=210)], 5)
    assert _rows(run, "trigger") == [(0, "pool+arrival"), (11, "pool+completion")]


def test_an_arrival_waits():
    run = _run(log(2, [], 30, range(2)), [job("a", rates=(0.0, 10.0)), job("b", submit_s=10)], 0.3)
    assert _rows(run, "trigger", "counts") == [(0, "pool+arrival", [1]), (10.3, "arrival", [1, 1])]
    row = _of_job(run, "b")
    assert (_seconds(row["admitted"]), _seconds(row["first_start"])) == (10, 10.3)


class _InRounds(Policy):
    name = "in rounds"
    wakes_on = Trigger.POOL | Trigger.ROUND

    def decide(self, state):
        return Decision(np.array([state.n_idle]), round=Round(state.time_us + 12 * SECOND))


def test_a_round_decides_at_once_with_what_waits():
    events = log(3, [(10, 2, False), (20, 1, False)], 35, range(3))
    run = _run(events, [job()], 5, _InRounds())
    assert _rows(run, "trigger", "n_reclaimed", "counts") == [
        (0, "pool+arrival", 0, [3]),
        (12, "pool+round", 1, [2]),
        (24, "pool+round", 1, [1]),
    ]


def test_what_waits_at_the_end_is_decided_no_more():
    run = _run(log(2, [(29.9, 1, False)], 30, range(2)), [job()], 0.3)
    assert _rows(run, "counts") == [(0, [2])]
    assert _of_job(run)["done_samples"] == pytest.approx(29.9 * 20 + 1)


def test_a_settle_time_that_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="remove --semantics, or --settle"):
        ReplaySettings(semantics=Semantics.PUBLISHED, settle_s=0.3)
    with pytest.raises(InputError, match="settle_s"):
        ReplaySettings(settle_s=-1)


def test_a_run_says_its_settle_time():
    run = _run(log(1, [], 30, [0]), [job()], "0.3s")
    assert run.record.config.settle_s == 0.3
    assert "continuous time, settle time 0.3 s" in render(run)


def test_the_default_leaves_no_trace_in_a_record():
    assert "settle_s" not in _run(log(1, [], 30, [0]), [job()], 0).record.config.to_json()
