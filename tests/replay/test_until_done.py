"""Replays that end when the jobs are done, or those of them that are measured."""

from __future__ import annotations

import math

import pytest

from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.policies import EqualSharePolicy, Trigger
from bfreplay.replay import ReplaySettings
from bfreplay.replay.job_outcomes import JobOutcomes
from bfreplay.replay.run_tables import RunTables
from bfreplay.workload import Ending
from tests.replay.placed import Scripted, Step, node_seconds, of_job, run, typed_job, typed_log
from tests.replay.tiny import SECOND, job, log


def test_a_replay_ends_with_its_last_job():
    events = typed_log("v100 p100", 1000)
    policy = Scripted(Step({0: [0], 1: [1]}))
    result = run(events, [typed_job("a", work=100), typed_job("b", work=100)], policy, until_done=True)
    assert of_job(result, "a")["finished"] == 10.0
    assert of_job(result, "b")["finished"] == 25.0
    assert result.summary["duration_s"] == 25
    assert node_seconds(result, "idle") == 50
    assert node_seconds(result, "unallocated") == 15
    assert result.record["config"]["until_done"] is True
    assert result.record["config"]["window_end_us"] == 25 * SECOND


def test_without_it_the_books_go_on_to_the_end_of_the_log():
    result = run(typed_log("v100", 1000), [typed_job(work=100)], Scripted(Step({0: [0]})))
    assert node_seconds(result, "idle") == 1000
    assert result.record["config"]["until_done"] is False


def test_a_replay_waits_for_jobs_that_are_still_to_come():
    jobs = [typed_job("a", work=100), typed_job("b", work=100, submit_s=50)]
    result = run(typed_log("v100", 1000), jobs, Scripted(Step({0: [0], 1: [0]})), until_done=True)
    assert result.summary["duration_s"] == 60


def test_a_log_that_is_over_before_its_jobs_ends_the_replay():
    result = run(typed_log("v100", 5), [typed_job(work=100)], Scripted(Step({0: [0]})), until_done=True)
    assert result.summary["duration_s"] == 5
    assert of_job(result)["status"] == "running"


def test_jobs_that_can_never_run_end_the_replay_when_nothing_can_happen_any_more():
    jobs = [job("fits", work=100), job("too wide", work=1, min_nodes=3)]
    result = run(fixed_cluster("v100=2"), jobs, EqualSharePolicy(), until_done=True)
    assert result.summary["duration_s"] == 5
    assert result.summary["jobs"]["waiting"] == 1
    assert of_job(result, "too wide")["status"] == "waiting"


@pytest.mark.parametrize("work", [1e15, 1e300, math.inf])
def test_work_without_end_is_refused_on_a_cluster(work):
    jobs = [job("fits", work=100), job("endless", work=work)]
    with pytest.raises(InputError, match="the job 'endless' cannot end on a cluster"):
        run(fixed_cluster("v100=8"), jobs, EqualSharePolicy(), until_done=True)
    result = run(fixed_cluster("v100=8"), jobs, EqualSharePolicy(), until_done=True, measured=(0, 1))
    assert result.summary["duration_s"] == 2.5


def test_a_job_that_works_for_longer_than_the_window_is_seen_to_its_end():
    slow = job(rates=(0.0, 1e-20, 1e9))
    result = run(fixed_cluster("v100=1", end_us=9 * SECOND), [slow], EqualSharePolicy(), until_done=True)
    assert result.summary["duration_s"] == 9
    assert node_seconds(result, "useful") == 9
    assert of_job(result)["status"] == "running"


def test_jobs_that_never_start_do_not_keep_the_log_going_after_the_last_event():
    result = run(fixed_cluster("v100=2"), [job("too wide", work=1, min_nodes=3)], EqualSharePolicy(), until_done=True)
    assert result.summary["ledger"]["idle_node_us"] == 2  # a window has a microsecond at least


def test_a_policy_that_names_no_time_lets_such_a_replay_end():
    policy = Scripted(Step({0: [0]}, samples={0: 10}, until_s=10), Step(), wakes_on=Trigger.ROUND)
    result = run(fixed_cluster("v100=1"), [typed_job(work=100)], policy, until_done=True)
    assert result.summary["duration_s"] == 10
    assert of_job(result)["status"] == "waiting"


def test_jobs_that_are_given_up_end_the_replay_too():
    policy = Scripted(Step({0: [0]}, until_s=10), Step(failed=(0,)), wakes_on=Trigger.ROUND)
    result = run(fixed_cluster("v100=1"), [typed_job(work=1e6)], policy, until_done=True)
    assert result.summary["duration_s"] == 10
    assert result.summary["jobs"]["failed"] == 1


def test_a_replay_of_measured_jobs_ends_when_these_are_done():
    # one at a time, 10 s each; jobs 1 and 2 are measured: the run ends at 30 s, the fourth job is under way
    jobs = [typed_job(name, work=100) for name in "abcd"]

    class OldestFirst(Scripted):
        def decide(self, state):
            self.steps = (Step({int(state.job[0]): [0]}),)
            return super().decide(state)

    result = run(typed_log("v100", 1000), jobs, OldestFirst(Step()), measured=(1, 3))
    assert result.summary["duration_s"] == 30
    assert result.summary["jobs"]["finished"] == 3
    assert of_job(result, "d")["status"] == "running"
    assert result.record["config"]["measured"] == (1, 3)


def test_a_measured_job_that_is_given_up_counts_as_done():
    given_up = Step({1: [1]}, failed=(0,), until_s=99)
    policy = Scripted(Step({0: [0], 1: [1]}, until_s=10), given_up, wakes_on=Trigger.ROUND)
    result = run(typed_log("v100 v100", 1000), [typed_job("a"), typed_job("b")], policy, measured=(0, 1))
    assert result.summary["duration_s"] == 10


def test_until_done_keeps_an_untyped_log_as_short():
    result = run(log(2, [(100, 1, False)], 1000, [0, 1]), [job(work=100)], EqualSharePolicy(), until_done=True)
    assert result.summary["duration_s"] == 5
    assert result.summary["n_pool_events"] == 0


def test_jobs_that_wait_for_nodes_of_a_log_wait_until_its_end():
    # one node is idle for 5 s, and nothing happens after that until the end of the log
    events = log(2, [(5, 0, False)], 1000, [0])
    result = run(events, [job(work=100)], EqualSharePolicy(), until_done=True)
    assert result.summary["duration_s"] == 1000
    assert of_job(result)["status"] == "waiting"
    assert node_seconds(result, "idle") == 5


def test_a_measured_job_that_its_source_takes_back_counts_as_done():
    outcomes = JobOutcomes([typed_job("a"), typed_job("b")], RunTables.nowhere().jobs, measured=(0, 2))
    outcomes.note_not_admitted(1, 5 * SECOND, Ending.STOPPED)
    assert outcomes.n_measured_left == 1
    outcomes.note_not_admitted(0, 5 * SECOND)  # still waits when the window ends
    assert outcomes.n_measured_left == 1


@pytest.mark.parametrize("measured", [(3, 3), (4, 2), (-1, 2)])
def test_a_range_of_measured_jobs_that_is_none_is_refused(measured):
    with pytest.raises(InputError, match="the range of measured jobs is empty"):
        ReplaySettings(measured=measured)


@pytest.mark.parametrize("measured", [(1, 3), (2, 4)])
def test_measured_jobs_that_there_are_not_are_refused(measured):
    jobs = [typed_job("a", work=100), typed_job("b", work=100)]
    with pytest.raises(InputError, match="measured"):
        run(typed_log("v100 v100", 1000), jobs, Scripted(Step({0: [0], 1: [1]})), measured=measured)
