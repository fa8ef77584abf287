"""Kueue's rule on pools followed by hand: who is admitted, who grows, and who loses nodes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.systems.products.kueue import Kueue, KueueOptions
from tests.examples import examples
from tests.replay.tiny import job, log
from tests.systems.products.rule_pools import ask


def rule(**options):
    return Kueue(KueueOptions(**options))


PARTIAL, STRICT, PREEMPTS = {"growth": "partial"}, {"strict": True}, {"preempt": "lower-priority"}


@pytest.mark.parametrize(
    ("n_idle", "options", "weight", "counts"),
    [
        (9, {}, [1, 1], [6, 3]),
        (9, {}, [1, 2], [2, 4]),  # weight before creation
        (8, {}, [1, 1], [2, 4]),  # the growth by 4 does not fit, and one by 1 passes it
        (8, STRICT, [1, 1], [2, 3]),
        (8, PARTIAL, [1, 1], [5, 3]),
        (3, PARTIAL, [1, 1], [3, 0]),
        (3, PARTIAL | STRICT, [1, 1], [2, 0]),  # the start of the other comes before a growth
    ],
)
def test_jobs_start_on_their_minimum_and_their_growth_queues_behind(n_idle, options, weight, counts):
    assert ask(rule(**options), n_idle, [0, 0], [(2, 6), (3, 4)], weight=weight).counts == counts


def test_a_growth_comes_before_jobs_that_are_created_later():
    policy = rule(**PARTIAL)
    assert ask(policy, 1, [0], [(1, 3)]).counts == [1]
    assert ask(policy, 2, [1, 0], [(1, 3), (1, 3)]).counts == [2, 0]
    # and its rest after them
    assert ask(policy, 3, [2, 0], [(1, 3), (1, 3)]).counts == [2, 1]


def test_who_waits_to_grow_keeps_its_place_when_it_loses_a_node():
    policy, bounds = rule(**PARTIAL), [(1, 9), (1, 9)]
    assert ask(policy, 4, [0, 0], bounds).counts == [3, 1]
    assert ask(policy, 5, [3, 1], bounds).counts == [3, 2]
    assert ask(policy, 4, [2, 2], bounds).counts == [2, 2]
    assert ask(policy, 5, [2, 2], bounds).counts == [3, 2]


def test_who_was_whole_waits_to_grow_from_when_it_loses_a_node():
    policy, bounds = rule(**PARTIAL), [(1, 4), (1, 3)]
    assert ask(policy, 6, [0, 0], bounds).counts == [4, 2]
    assert ask(policy, 5, [3, 2], bounds).counts == [3, 2]
    assert ask(policy, 6, [3, 2], bounds).counts == [3, 3]


def test_a_growth_is_up_to_the_largest_count_in_a_list_that_fits():
    bounds, lists = [(1, 8)], [[1, 2, 4, 8]]
    assert ask(rule(**PARTIAL), 7, [0], bounds, lists=lists).counts == [4]
    assert ask(rule(), 7, [0], bounds, lists=lists).counts == [1]


def test_a_lost_node_comes_back_at_once_while_there_are_as_many_as_granted():
    policy, bounds = rule(), [(4, 8), (4, 4)]
    assert ask(policy, 10, [0, 0], bounds).counts == [4, 4]
    assert ask(policy, 9, [4, 3], bounds).counts == [4, 4]
    # of three lost nodes one comes back, and the earlier of two jobs has it
    policy, bounds = rule(), [(1, 4), (1, 4)]
    assert ask(policy, 9, [0, 0], bounds).counts == [4, 4]
    assert ask(policy, 6, [2, 3], bounds).counts == [3, 3]


@pytest.mark.parametrize(
    ("reading", "bounds", "after"),
    [
        ("pod", [(2, 4), (2, 4)], [3, 4]),
        ("evict", [(4, 4), (4, 4)], [4, 0]),  # the latest admitted goes, whosever node it was
        ("evict", [(2, 4), (2, 4)], [4, 2]),  # and starts on its minimum again
        ("evict", [(2, 4), (4, 4)], [2, 4]),  # a growth is an admission, too
    ],
)
def test_who_loses_when_less_is_there_than_was_granted(reading, bounds, after):
    policy = rule(reading=reading)
    assert ask(policy, 8, [0, 0], bounds).counts == [4, 4]
    assert ask(policy, 7, [3, 4], bounds).counts == after
    assert ask(policy, 8, after, bounds).counts == [4, 4]


def test_below_its_minimum_a_job_holds_its_nodes_and_is_first_to_get_the_others():
    policy, bounds = rule(), [(4, 8), (1, 2)]
    assert ask(policy, 4, [0, 0], bounds).counts == [4, 0]
    lost = ask(policy, 3, [3, 0], bounds, at_s=10)
    assert (lost.counts, lost.until_s) == ([3, 0], None)
    assert lost.why == [
        "it holds 3 nodes, below its minimum of 4, with 0 free at its turn",
        "it needs 1 node to start, with 0 free at its turn",
    ]
    # as many nodes as it was granted, but too few to run on
    assert ask(policy, 3, [2, 0], bounds, at_s=20).counts == [2, 1]
    assert ask(policy, 5, [2, 1], bounds, at_s=9_000).counts == [4, 1]


@pytest.mark.parametrize(
    ("options", "weight", "bounds_of_third", "counts"),
    [
        ({}, [1, 1, 2], (2, 2), [4, 2, 0]),
        (PREEMPTS, [1, 1, 1], (2, 2), [4, 2, 0]),
        (PREEMPTS, [1, 1, 2], (2, 2), [4, 0, 2]),  # the latest admitted
        (PREEMPTS, [1, 2, 3], (2, 2), [0, 2, 2]),  # the lowest weight
        (PREEMPTS, [1, 1, 2], (1, 6), [0, 0, 6]),  # to grow, too
        (PREEMPTS, [1, 1, 2], (1, 7), [4, 0, 1]),
        (PREEMPTS | PARTIAL, [1, 1, 2], (1, 7), [0, 0, 6]),
    ],
)
def test_whole_jobs_of_lower_weight_give_way_if_asked_for(options, weight, bounds_of_third, counts):
    policy, bounds = rule(**options), [(4, 4), (2, 2)]
    assert ask(policy, 6, [0, 0], bounds).counts == [4, 2]
    assert ask(policy, 6, [4, 2, 0], [*bounds, bounds_of_third], weight=weight).counts == counts


def test_who_need_not_go_after_all_stays_though_an_earlier_job_waits():
    policy, bounds = rule(**PREEMPTS), [(4, 4), (3, 3), (2, 2)]
    assert ask(policy, 6, [0, 0, 0], bounds).counts == [4, 0, 2]
    assert ask(policy, 6, [4, 0, 2, 0], [*bounds, (3, 3)], weight=[1, 1, 1, 2]).counts == [0, 0, 2, 3]


def test_who_gave_way_waits_at_its_first_place():
    policy, bounds = rule(**PREEMPTS), [(4, 4), (2, 5), (4, 4)]
    assert ask(policy, 9, [0, 0, 0], bounds).counts == [4, 5, 0]
    # the second gives way to the last, and then comes before the third
    assert ask(policy, 9, [4, 5, 0, 0], [*bounds, (1, 1)], weight=[1, 1, 1, 2]).counts == [4, 2, 0, 1]


def test_what_was_granted_to_a_job_that_left_is_forgotten():
    policy = rule()
    assert ask(policy, 6, [0, 0], [(3, 3), (3, 3)]).counts == [3, 3]
    assert ask(policy, 5, [2, 0], [(3, 3), (1, 3)], numbers=[1, 2]).counts == [3, 1]
    policy.close()
    assert ask(policy, 5, [0, 2], [(3, 3), (1, 3)], numbers=[1, 2]).counts == [3, 2]


def test_reasons_name_what_a_job_waits_for():
    bounds = [(2, 6), (3, 4)]
    waits = "it waits to grow by 4, with 3 free at its turn"
    assert ask(rule(), 8, [0, 0], bounds).why == [waits, "it was granted all that it wants, its maximum"]
    assert ask(rule(strict=True), 8, [0, 0], bounds).why == [waits, "the queue waits with an earlier job (strict)"]


def test_a_replay_evicts_and_starts_anew():
    events = log(8, [(100, 0, False), (200, 0, True)], 300, range(8))
    jobs = [job("a", min_nodes=4), job("b", min_nodes=4)]
    run = replay_log(events, jobs, rule(reading="evict"), efficiency=False, bound=False)
    assert run.table("decisions")["counts"].to_pylist() == [[4, 4], [4, 0], [4, 4]]


@pytest.mark.parametrize("options", [{"growth": "some"}, {"preempt": "any"}, {"reading": "job"}, {"strict": 2}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        KueueOptions(**options)


@settings(max_examples=examples(200))
@given(
    growth=st.sampled_from(["atomic", "partial"]),
    strict=st.booleans(),
    preempt=st.sampled_from(["never", "lower-priority"]),
    reading=st.sampled_from(["pod", "evict"]),
    data=st.data(),
)
def test_counts_are_usable_and_nobody_is_shrunk_without_a_reason(growth, strict, preempt, reading, data):
    policy = rule(growth=growth, strict=strict, preempt=preempt, reading=reading)
    n_idle, held, lists, weight = 0, [], [], []
    for _ in range(data.draw(st.integers(1, 8))):
        least = data.draw(st.integers(1, 4))
        lists.append(sorted({least, *data.draw(st.sets(st.integers(least, 9)))}))
        weight.append(data.draw(st.sampled_from([1, 2])))
        before = [*(data.draw(st.integers(max(0, count - 2), count)) for count in held), 0]
        n_idle = max(1, n_idle + data.draw(st.integers(0, 8)) + sum(before) - sum(held))
        held = ask(policy, n_idle, before, [(each[0], each[-1]) for each in lists], weight=weight, lists=lists).counts
        assert sum(held) <= n_idle
        for row, count in enumerate(held):
            assert count in (0, before[row], *lists[row])
            keeps = reading == "pod" and (preempt == "never" or weight[row] == 2)
            assert count >= before[row] or not keeps
