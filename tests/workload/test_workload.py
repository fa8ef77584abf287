"""Jobs and job sets."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bfreplay.errors import InputError
from bfreplay.scalability import Amdahl, TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet
from tests.replay.tiny import job

JOB = ElasticJob("job", 5, 1, 4, 10.0, 5.0, 100.0, TabulatedCurve([0, 4], [0.0, 4.0]))


@pytest.mark.parametrize(
    ("changes", "column", "says"),
    [
        ({"name": ""}, "name", "no name"),
        ({"min_nodes": 0}, "min_nodes", "below 1"),
        ({"min_nodes": 5}, "min_nodes", "min_nodes 5 is above max_nodes 4"),
        ({"min_nodes": 1.5}, "min_nodes", "not a whole number"),
        ({"submit_us": 0.5}, "submit_us", "not a whole number"),
        ({"max_nodes": 8}, "throughput", "ends at 4 nodes, below max_nodes 8"),
        ({"throughput": Amdahl(9.0, 0.1), "max_nodes": 10**9}, "max_nodes", "fix: +lower max_nodes"),
        ({"scale_up_cost_s": -1.0}, "scale_up_cost_s", "negative"),
        ({"scale_down_cost_s": math.inf}, "scale_down_cost_s", "negative or not a number"),
        ({"work_samples": 0.0}, "work_samples", "not positive"),
        ({"work_samples": math.nan}, "work_samples", "not positive"),
        ({"weight": 0.0}, "weight", "not positive"),
        ({"weight": 1e300}, "objective", "too large to calculate with"),
        ({"throughput": TabulatedCurve([0, 4], [0.0, 1e300])}, "throughput", "too large to calculate with"),
        ({"objective": TabulatedCurve([0, 2], [0.0, 1.0])}, "objective", "ends at 2 nodes"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused_by_name_field_and_value(changes, column, says):
    with pytest.raises(InputError, match=says) as caught:
        replace(JOB, **changes)
    assert caught.value.column == column


def test_the_objective_is_the_throughput_unless_given():
    assert JOB.objective_curve is JOB.throughput
    other = TabulatedCurve([0, 4], [0.0, 1.0])
    assert replace(JOB, objective=other).objective_curve is other


def test_jobs_are_ordered_by_submit_time_and_then_as_given():
    jobs = JobSet([replace(JOB, name="b"), replace(JOB, name="a"), replace(JOB, name="first", submit_us=0)])
    assert [job.name for job in jobs] == ["first", "b", "a"]
    assert len(jobs) == 3
    assert jobs[0].name == "first"


def test_two_jobs_of_one_name_and_no_job_at_all_are_refused():
    with pytest.raises(InputError, match="two jobs have the name 'job'"):
        JobSet([JOB, JOB])
    with pytest.raises(InputError, match="empty"):
        JobSet([])


def test_relative_times_count_from_the_window():
    jobs = JobSet([replace(JOB, deadline_us=9)], submit_is_relative=True).anchored_at(1000)
    assert (jobs[0].submit_us, jobs[0].deadline_us, jobs.submit_is_relative) == (1005, 1009, False)
    absolute = JobSet([JOB])
    assert absolute.anchored_at(1000) is absolute


def test_endless_jobs_are_the_first_ones_all_there_from_the_start():
    jobs = JobSet([replace(JOB, name=str(k), submit_us=k) for k in range(5)]).endless(3, submit_us=7)
    assert [(job.name, job.submit_us, job.work_samples) for job in jobs] == [(str(k), 7, math.inf) for k in range(3)]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"max_nodes": 10**9}, "max_nodes is larger than any machine"),
        ({"submit_us": 2**63}, "submit_us is beyond the year 9999"),
        ({"submit_us": -(10**30)}, "submit_us is beyond the year 9999"),
        ({"deadline_us": 10**19}, "deadline_us is beyond the year 9999"),
    ],
)
def test_numbers_beyond_the_limits_are_refused(changes, named):
    with pytest.raises(InputError, match=named):
        replace(JOB, **changes)


def test_a_part_of_a_job_set_keeps_what_its_times_count_from():
    jobs = JobSet([job("a"), job("b", submit_s=5.0), job("c", submit_s=9.0)], submit_is_relative=True)
    assert [each.name for each in jobs[:2]] == ["a", "b"]
    assert jobs[1:].submit_is_relative
    assert not JobSet(jobs)[1:].submit_is_relative


def test_speed_up_is_relative_to_one_node_and_all_jobs_weigh_alike():
    curve = TabulatedCurve([0, 1, 4], [0.0, 20.0, 60.0])
    one = replace(JOB, throughput=curve, objective=JOB.throughput, weight=3.0).in_speed_up()
    assert one.throughput.table(4)[[1, 4]].tolist() == [1.0, 3.0]
    assert (one.objective, one.weight, one.work_samples) == (None, 1.0, math.inf)
    from_two = replace(
        JOB, min_nodes=2, counts=(2, 4), throughput=TabulatedCurve([0, 2, 4], [0.0, 10.0, 15.0])
    ).in_speed_up()
    assert from_two.throughput.table(4)[[2, 4]].tolist() == [2.0, 3.0]
