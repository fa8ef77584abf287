"""Plans against deadlines: cases by hand, and a second way to check a plan."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay._compiled import IS_COMPILED
from bfreplay.policies.deadlines.admission import fewest_nodes
from bfreplay.policies.deadlines.plan import NO_DEADLINE_S, NOT_FORCED, Steps, finish_of, minimum_share
from bfreplay.policies.deadlines.spare_nodes import PlannedJob, _share_spare, free_without, node_time, share_spare
from tests.examples import examples

LINEAR = ([1, 2, 4, 8], [1, 2, 4, 8])
SUBLINEAR = ([1, 2, 4, 8], [1.0, 1.5, 2.0, 2.2])


def steps(*pairs):
    return Steps(*(np.array(each, np.float64) for each in zip(*pairs, strict=True)))


def pairs(function):
    return [(int(time), int(value)) for time, value in zip(*function, strict=True)]


def plan_of(free, deadline_s, work, levels=LINEAR, *, slot_s=10.0, total=8.0, forced=NOT_FORCED):
    counts, rates = (np.array(each, np.float64) for each in levels)
    return minimum_share(free, float(deadline_s), slot_s, float(work), counts, rates, total, forced)


# by hand


def test_a_job_gets_the_fewest_nodes_that_are_enough():
    plan = plan_of(steps((0, 8)), 100, 150)  # 1 node does 100 by then, 2 do 200
    assert pairs(plan.nodes) == [(0, 2)]
    assert (plan.finish_s, plan.end_s) == (75, 80)  # a slot is 10 s
    assert pairs(plan.free) == [(0, 6), (80, 8)]


def test_a_plan_has_more_nodes_late_rather_than_early():
    # 1 node does 100 of 150 by then; 2 are enough from 20 s on, and before that the next lower count is
    plan = plan_of(steps((0, 8), (20, 8)), 100, 150)
    assert pairs(plan.nodes) == [(0, 1), (20, 2)]
    assert plan.finish_s == 85  # 20 by 20 s, then 130 on 2


def test_a_job_that_cannot_be_in_time_has_all_that_it_can_use_and_goes_on_after_its_deadline():
    plan = plan_of(steps((0, 8)), 100, 1000)
    assert plan.finish_s == 125
    assert pairs(plan.nodes) == [(0, 8)]
    waits = plan_of(steps((0, 0), (100, 8)), 100, 80)
    assert pairs(waits.nodes) == [(0, 0), (100, 8)]
    assert waits.finish_s == 110


def test_a_job_without_a_deadline_waits_with_one_node_for_the_end_of_all_others():
    plan = plan_of(steps((0, 4), (50, 8)), NO_DEADLINE_S, 30)
    assert pairs(plan.nodes) == [(0, 0), (50, 1)]
    assert plan.finish_s == 80


def test_a_deadline_within_a_slot_counts_to_the_second():
    assert pairs(plan_of(steps((0, 8)), 95, 95).nodes) == [(0, 1)]
    assert pairs(plan_of(steps((0, 8)), 94, 95).nodes) == [(0, 2)]


def test_a_forced_count_holds_until_the_next_change_and_the_rest_is_planned_anew():
    plan = plan_of(steps((0, 8), (20, 8)), 100, 120, forced=2)
    assert pairs(plan.nodes) == [(0, 4), (20, 1)]  # 80 by 20 s, then 40 on one node
    assert plan.finish_s == 60


def test_a_plan_ends_with_the_nodes_that_are_free_though_its_slot_does_not():
    plan = plan_of(steps((0, 2), (15, 0), (40, 8)), 20, 26)
    assert (plan.finish_s, plan.end_s) == (13, 15)


@pytest.mark.parametrize(("work", "finish_s"), [(20, 10), (21, 21), (139.5, 50), (140, 50), (140.5, math.inf)])
def test_work_is_done_on_nodes_of_allowed_counts_up_to_the_end(work, finish_s):
    counts, rates = (np.array(each, np.float64) for each in LINEAR)
    assert finish_of(steps((0, 2), (10, 3), (20, 4)), 50.0, work, counts, rates) == finish_s


def test_the_node_time_of_a_plan_is_what_it_holds_up_to_the_end_of_its_last_slot():
    assert node_time(steps((0, 2), (60, 4)), 100.0) == 2 * 60 + 4 * 40


def test_what_a_job_gives_back_is_what_it_took():
    free = steps((0, 4), (60, 8))
    plan = plan_of(free, 100, 250)
    assert pairs(free_without(plan.free, plan.nodes, plan.end_s, 8.0)) == pairs(free)


def job_of(deadline_s, work, levels, free):
    counts, rates = (np.array(each, np.float64) for each in levels)
    job = PlannedJob(float(deadline_s), float(work), counts, rates, None)
    job.follow(minimum_share(free, job.deadline_s, 10.0, job.work, counts, rates, 8.0, NOT_FORCED))
    return job


@pytest.mark.parametrize(("growth_first", "counts"), [(False, [4, 2]), (True, [2, 4])])
def test_spare_nodes_go_to_who_needs_less_node_time_with_them_or_to_who_needs_more(growth_first, counts):
    free = steps((0, 6))
    linear = job_of(200, 200, LINEAR, free)
    sublinear = job_of(200, 200, SUBLINEAR, linear.plan.free)
    jobs = [linear, sublinear]
    assert [job.count for job in jobs] == [1, 1]
    share_spare(jobs, sublinear.plan.free, 10.0, 6.0, largest_growth_first=growth_first)
    assert [job.count for job in jobs] == counts


def test_a_job_without_nodes_comes_before_all_others():
    free = steps((0, 2), (100, 8))
    waiting = job_of(NO_DEADLINE_S, 50, LINEAR, free)
    assert waiting.count == 0
    running = job_of(1000, 200, LINEAR, waiting.plan.free)
    share_spare([running, waiting], running.plan.free, 10.0, 8.0)
    assert waiting.count >= 1


def test_nobody_in_time_is_made_late_by_more_nodes():
    slower = ([1, 2], [1.0, 0.2])  # two nodes make less than one
    job = job_of(100, 90, slower, steps((0, 8)))
    share_spare([job], job.plan.free, 10.0, 8.0)
    assert job.count == 1
    share_spare([job], job.plan.free, 10.0, 8.0, largest_growth_first=True)
    assert job.count == 2


@pytest.mark.skipif(not IS_COMPILED, reason="the loops are not compiled here")
def test_a_slot_written_as_a_whole_number_needs_no_other_machine_code():
    loops = (minimum_share, _share_spare)
    seen = []
    for slot_s in (10.0, 10):
        job = job_of(200, 80, LINEAR, steps((0, 8)))
        job.plan = fewest_nodes(slot_s)(job, steps((0, 8)), 8.0)
        share_spare([job], job.plan.free, slot_s, 8.0)
        seen.append([loop.signatures for loop in loops])
    assert seen[0] == seen[1]


# a second way to check a plan


def free_functions():
    changes = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 8)), max_size=4, unique_by=lambda each: each[0])
    return changes.map(lambda found: [(0, 3), *sorted((10 * k, n) for k, n in found), (130, 8)])


def value_at(function, time):
    return next(value for since, value in reversed(function) if since <= time)


def work_by(nodes, levels, until):
    rate = dict(zip(*levels, strict=True)) | {0: 0}
    ends = [time for time, _ in nodes[1:]] + [until]
    return sum(max(min(end, until) - since, 0) * rate[n] for (since, n), end in zip(nodes, ends, strict=True))


@settings(max_examples=examples(300))
@given(
    free=free_functions(),
    deadline_s=st.integers(1, 150),
    work=st.integers(1, 600),
    levels=st.sampled_from([LINEAR, SUBLINEAR]),
)
def test_a_plan_does_its_work_on_nodes_that_are_free_and_no_lower_count_would_do(free, deadline_s, work, levels):
    plan = plan_of(steps(*free), deadline_s, work, levels)
    nodes = pairs(plan.nodes)
    assert work_by(nodes, levels, plan.finish_s) >= work - 1e-9
    if plan.finish_s <= deadline_s:  # work between a missed deadline and the end of its slot is not counted
        assert work_by(nodes, levels, plan.finish_s - 1) < work + 1e-9
    held = [*nodes, (int(plan.end_s), 0)]
    for time in range(0, 400, 5):
        holds = value_at(held, time) if time < plan.end_s else 0
        assert 0 <= holds <= value_at(free, time)
        assert value_at(pairs(plan.free), time) == value_at(free, time) - holds
    # the most that a job can do by its deadline if it never has more than a count
    for count, most in itertools.pairwise([0, *levels[0]]):
        reached = 0.0
        for begin in range(0, deadline_s, 10):
            allowed = [n for n in levels[0] if n <= min(value_at(free, begin), most)]
            rate = dict(zip(*levels, strict=True))[allowed[-1]] if allowed else 0.0
            reached += (min(begin + 10, deadline_s) - begin) * rate
        if reached >= work:
            assert plan.finish_s <= deadline_s
            assert max(n for _, n in nodes) <= most
            break
        assert count < most
    else:
        assert plan.finish_s > deadline_s
    assert math.isclose(plan.end_s % 10, 0)
