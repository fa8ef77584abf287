"""U, worked out by hand."""

from __future__ import annotations

import pytest

from bfreplay import replay_log
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunSettings, run_replay
from bfreplay.runs.summary_text import render
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log


def test_u_is_samples_over_samples_on_as_many_dedicated_nodes():
    # 4 nodes for 5 of 20 s: 20 node-s, as much as 1 node for 20 s. The job makes 40 x 5 = 200; dedicated: 10 x 20 = 200
    half = log(4, [(5, k, False) for k in range(4)], 20, idle_first=range(4))
    assert replay_log(half, JobSet([job()])).u == pytest.approx(1.0)
    # a curve that saturates: 4 nodes make 16 samples/s, one makes 10: 80 samples against 200
    saturating = JobSet([job(rates=(0.0, 10.0, 14.0, 15.0, 16.0))])
    assert replay_log(half, saturating).u == pytest.approx(80 / 200)


@pytest.mark.parametrize("seconds", [5.0, 14.8, 15.0, 15.2, 16.0, 20.0])
def test_between_two_whole_numbers_of_dedicated_nodes_u_is_interpolated(seconds):
    # a linear job makes the same on idle and on dedicated nodes, however many node-seconds there are
    events = log(2, [(seconds, 0, False), (seconds, 1, False)], 20, idle_first=[0, 1])
    result = replay_log(events, JobSet([job()]))
    assert result.summary["equivalent_nodes"] == pytest.approx(2 * seconds / 20)
    assert result.u == pytest.approx(1.0)


def test_u_is_undefined_where_less_than_one_node_is_compared_and_one_does_all_the_work():
    events = log(2, [(5, 0, False)], 20, idle_first=[0])  # a quarter of a node makes 10 samples/s for 5 of 20 s
    assert replay_log(events, JobSet([job(work=10.0 * 20)])).u is None
    assert replay_log(events, JobSet([job(work=10.0 * 20 + 1)])).u == pytest.approx(1.0)
    run = replay_log(events, JobSet([job(work=60.0)]))
    assert run.summary.efficiency is not None
    assert run.summary.efficiency.dedicated_samples == pytest.approx(60 / 4)
    assert "U           undefined: one dedicated node, more than 0.250, does all the work" in render(run).splitlines()


def test_u_counts_what_preemption_and_rescaling_cost():
    # 2 nodes, one away from 10 to 11 s: 39 node-s, 1.95 dedicated nodes, 390 samples. Here the same node-s make
    # 10 s x 20 + 1 s x 10 + 9 s x 20 = 390, less 20 x 2 for the preemption and 10 x 3 for growing again
    events = log(2, [(10, 1, False), (11, 1, True)], 20, idle_first=[0, 1])
    result = replay_log(events, JobSet([job(up_s=3, down_s=2)]), BFTrainerPolicy(1000))
    assert result.summary["ledger"]["samples"] == pytest.approx(390 - 40 - 30)
    assert result.u == pytest.approx(320 / 390)


def test_u_is_undefined_when_no_job_could_run_on_the_dedicated_nodes():
    events = log(4, [(5, k, False) for k in range(4)], 20, idle_first=range(4))
    result = replay_log(events, JobSet([job(min_nodes=4)]))
    assert result.summary["ledger"]["samples"] > 0
    assert result.u is None
    assert " 0 on 1 dedicated nodes" in render(result)


def test_the_dedicated_nodes_rescale_with_the_policys_own_forward_looking_time():
    jobs = JobSet([job("a"), job("b", submit_s=1, up_s=50)])
    events = log(4, [], 20, idle_first=range(4))
    for policy, t_fwd_s in ((BFTrainerPolicy(33.0), 33.0), (EqualSharePolicy(), 44.0)):
        result = run_replay(events, jobs, policy, ReplaySettings(2), RunSettings(dedicated_t_fwd_s=44.0))
        assert result.summary["efficiency"]["t_fwd_s"] == t_fwd_s


@pytest.mark.parametrize(("t_fwd_s", "samples"), [(5.0, 800), (20.0, 980)])
def test_a_longer_look_ahead_pays_for_moving_a_node_on_the_dedicated_nodes_too(t_fwd_s, samples):
    # a holds all 4 nodes (40 samples/s) when b comes at 1 s. Giving b one gains 30 - 10 samples/s, costs 40 x 5 = 200:
    # not worth it for 5 s. For 20 s it is: 40 x 1 + 60 x 19 - 200
    jobs = JobSet([job("a", down_s=5), job("b", rates=(0.0, 30.0), submit_s=1)])
    result = replay_log(log(4, [], 20, idle_first=range(4)), jobs, BFTrainerPolicy(t_fwd_s))
    assert result.summary["efficiency"]["dedicated_samples"] == pytest.approx(samples)
    assert result.summary["ledger"]["samples"] == pytest.approx(samples)


def test_both_finish_times_are_told_when_all_jobs_finish_in_both():
    # 100 samples: 2.5 s on 4 nodes; 20 node-s of 20 s are 1 dedicated node: 10 s
    events = log(4, [(5, k, False) for k in range(4)], 20, idle_first=range(4))
    result = replay_log(events, JobSet([job(work=100)]))
    assert result.u == pytest.approx(1.0)
    efficiency = result.summary["efficiency"]
    assert (efficiency["last_finish_us"], efficiency["dedicated_last_finish_us"]) == (2_500_000, 10_000_000)
    assert "Done        after 2.50 s, after 10 s on " in render(result)


@pytest.mark.parametrize(("semantics", "samples"), [("continuous", 320), ("published", 0)])
def test_the_dedicated_nodes_run_in_continuous_time_whatever_clock_the_run_follows(semantics, samples):
    # two nodes are idle for 20 s, and nothing happens that the published clock could see a job at that comes at 4 s
    settings = ReplaySettings(semantics=semantics)
    result = replay_log(log(2, [], 20, idle_first=[0, 1]), JobSet([job(submit_s=4)]), settings=settings)
    assert result.summary["ledger"]["samples"] == samples
    assert result.summary["efficiency"]["dedicated_samples"] == pytest.approx(320)


def test_without_efficiency_there_is_no_u():
    result = replay_log(log(1, [], 10, idle_first=[0]), JobSet([job()]), efficiency=False, bound=False)
    assert result.u is None
    assert result.summary["efficiency"] is None
