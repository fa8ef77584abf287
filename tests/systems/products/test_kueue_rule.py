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


@pytest.mark.parametrize(
    ("n_idle", "options", "counts"),
    [
        (10, {}, [6, 4]),
        (9, {}, [6, 3]),
        (8, {}, [2, 4]),  # the growth by 4 does not fit, and one by 1 passes it
        (8, {"strict": True}, [2, 3]),
        (8, {"growth": "partial"}, [5, 3]),
        (4, {}, [2, 0]),
        (3, {"growth": "partial"}, [3, 0]),
        (3, {"growth": "partial", "strict": True}, [2, 0]),  # the start of the other comes before a growth
    ],
)
def test_jobs_start_on_their_minimum_and_their_growth_queues_behind(n_idle, options, counts):
    assert ask(rule(**options), n_idle, [0, 0], [(2, 6), (3, 4)]).counts == counts


def test_the_queue_is_in_order_of_weight_then_of_creation():
    bounds = [(2, 6), (3, 4)]
    assert ask(rule(), 9, [0, 0], bounds, weight=[1.0, 2.0]).counts == [2, 4]
    assert ask(rule(), 6, [0, 0], bounds, weight=[1.0, 2.0]).counts == [2, 4]
    policy = rule(growth="partial")
    assert ask(policy, 1, [0], [(1, 3)]).counts == [1]
    # its growth was created before the other job
    assert ask(policy, 2, [1, 0], [(1, 3), (1, 3)]).counts == [2, 0]
    assert ask(policy, 3, [2, 0], [(1, 3), (1, 3)]).counts == [2, 1]


def test_the_rest_of_a_partial_growth_waits_at_a_new_place():
    policy, bounds = rule(growth="partial"), [(1, 9), (1, 9)]
    assert ask(policy, 4, [0, 0], bounds).counts == [3, 1]
    assert ask(policy, 5, [3, 1], bounds).counts == [3, 2]
    assert ask(policy, 6, [3, 2], bounds).counts == [4, 2]


def test_a_growth_is_up_to_the_largest_count_in_a_list_that_fits():
    lists = [[1, 2, 4, 8]]
    assert ask(rule(growth="partial"), 7, [0], [(1, 8)], lists=lists).counts == [4]
    assert ask(rule(growth="partial"), 3, [0], [(1, 8)], lists=lists).counts == [2]
    assert ask(rule(), 7, [0], [(1, 8)], lists=lists).counts == [1]


def test_a_lost_node_comes_back_at_once_while_there_are_as_many_as_granted():
    policy, bounds = rule(), [(4, 8), (4, 4)]
    assert ask(policy, 10, [0, 0], bounds).counts == [4, 4]
    assert ask(policy, 9, [4, 3], bounds).counts == [4, 4]
    assert ask(policy, 8, [3, 4], bounds).counts == [4, 4]


@pytest.mark.parametrize(
    ("reading", "bounds", "after", "later"),
    [
        ("pod", [(2, 4), (2, 4)], [3, 4], [4, 4]),
        ("evict", [(4, 4), (4, 4)], [4, 0], [4, 4]),  # the latest admitted goes, whosever node it was
        ("evict", [(2, 4), (2, 4)], [4, 2], [4, 4]),  # and starts on its minimum again
        ("evict", [(2, 4), (4, 4)], [2, 4], [4, 4]),  # a growth is an admission, too
    ],
)
def test_who_loses_when_less_is_there_than_was_granted(reading, bounds, after, later):
    policy = rule(reading=reading)
    assert ask(policy, 8, [0, 0], bounds).counts == [4, 4]
    assert ask(policy, 7, [3, 4], bounds).counts == after
    assert ask(policy, 8, after, bounds).counts == later


def test_the_latest_admitted_loses_its_lost_nodes_first():
    policy, bounds = rule(), [(1, 4), (1, 4)]
    ask(policy, 9, [0, 0], bounds)
    # 3 nodes lost, one spare: the earlier gets one back, and the later none
    assert ask(policy, 6, [2, 3], bounds).counts == [3, 3]


def test_the_growth_of_a_job_that_was_whole_is_created_when_it_loses_a_node():
    policy, bounds = rule(growth="partial"), [(1, 4), (1, 3)]
    assert ask(policy, 6, [0, 0], bounds).counts == [4, 2]
    assert ask(policy, 5, [3, 2], bounds).counts == [3, 2]
    assert ask(policy, 6, [3, 2], bounds).counts == [3, 3]


def test_below_its_minimum_a_job_holds_its_nodes_and_is_first_to_get_the_others():
    policy, bounds = rule(), [(4, 8), (1, 2)]
    assert ask(policy, 4, [0, 0], bounds).counts == [4, 0]
    lost = ask(policy, 3, [3, 0], bounds, at_s=10)
    assert (lost.counts, lost.until_s) == ([3, 0], None)
    assert lost.why == [
        "it holds 3 nodes, below its minimum of 4, until the others come",
        "it needs 1 node to start, with 0 free at its turn",
    ]
    assert ask(policy, 4, [3, 0], bounds, at_s=9_000).counts == [4, 0]


_PREEMPTS = {"preempt": "lower-priority"}


@pytest.mark.parametrize(
    ("options", "weight", "bounds_of_third", "counts"),
    [
        ({}, [1.0, 1.0, 2.0], (2, 2), [4, 2, 0]),
        (_PREEMPTS, [1.0, 1.0, 1.0], (2, 2), [4, 2, 0]),
        (_PREEMPTS, [1.0, 1.0, 2.0], (2, 2), [4, 0, 2]),  # the latest admitted
        (_PREEMPTS, [1.0, 2.0, 3.0], (2, 2), [0, 2, 2]),  # the lowest weight
        (_PREEMPTS, [1.0, 1.0, 2.0], (3, 3), [0, 2, 3]),  # the other is needed, and then the latest is not
        (_PREEMPTS, [1.0, 1.0, 2.0], (1, 6), [0, 0, 6]),  # to grow, too
        (_PREEMPTS, [1.0, 1.0, 2.0], (1, 7), [4, 0, 1]),
        (_PREEMPTS | {"growth": "partial"}, [1.0, 1.0, 2.0], (1, 7), [0, 0, 6]),
    ],
)
def test_whole_jobs_of_lower_weight_give_way_if_asked_for(options, weight, bounds_of_third, counts):
    policy, bounds = rule(**options), [(4, 4), (2, 2)]
    assert ask(policy, 6, [0, 0], bounds).counts == [4, 2]
    assert ask(policy, 6, [4, 2, 0], [*bounds, bounds_of_third], weight=weight).counts == counts


def test_reasons_name_what_a_job_waits_for():
    bounds = [(2, 6), (3, 4)]
    assert ask(rule(), 8, [0, 0], bounds).why == [
        "its atomic growth by 4 nodes waits, with 3 free at its turn",
        "it was granted all that it wants, its maximum",
    ]
    assert ask(rule(strict=True), 8, [0, 0], bounds).why[1] == "the queue waits with an earlier job (strict)"
    policy = rule(reading="evict", **_PREEMPTS)
    ask(policy, 8, [0, 0], [(4, 4), (4, 4)])
    needs = "it needs 4 nodes to start, with 3 free at its turn"
    assert (
        ask(policy, 7, [4, 3], [(4, 4), (4, 4)]).why[1] == f"it was evicted, as more was granted than is left; {needs}"
    )
    gave_way = ask(policy, 7, [4, 0, 0], [(4, 4), (4, 4), (7, 7)], weight=[1.0, 1.0, 2.0]).why
    assert gave_way[0] == "it gave way to a job of weight 2; it needs 4 nodes to start, with 0 free at its turn"


def test_a_replay_evicts_and_starts_anew():
    events = log(8, [(100, 0, False), (200, 0, True)], 300, range(8))
    jobs = [job("a", min_nodes=4), job("b", min_nodes=4)]
    run = replay_log(events, jobs, rule(reading="evict"), efficiency=False, bound=False)
    decided = [(row["time"].timestamp(), row["counts"]) for row in run.table("decisions").to_pylist()]
    assert decided == [(0, [4, 4]), (100, [4, 0]), (200, [4, 4])]


@pytest.mark.parametrize("options", [{"growth": "some"}, {"preempt": "any"}, {"reading": "job"}, {"strict": 2}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        KueueOptions(**options)


@settings(max_examples=examples(200))
@given(
    options=st.fixed_dictionaries(
        {
            "growth": st.sampled_from(["atomic", "partial"]),
            "strict": st.booleans(),
            "preempt": st.sampled_from(["never", "lower-priority"]),
            "reading": st.sampled_from(["pod", "evict"]),
        }
    ),
    data=st.data(),
)
def test_whatever_happens_counts_are_usable_and_nobody_shrinks_without_a_reason(options, data):
    policy, n_idle, held = rule(**options), 0, []
    lists, weight = [], []
    for _ in range(data.draw(st.integers(1, 8))):
        if data.draw(st.booleans()) or not held:
            least = data.draw(st.integers(1, 4))
            lists.append(sorted({least, *data.draw(st.sets(st.integers(least, 9)))}))
            weight.append(data.draw(st.sampled_from([1.0, 2.0])))
            held.append(0)
        n_idle += data.draw(st.integers(0, 8))
        lost = [data.draw(st.integers(0, count)) for count in held]
        held = [count - n_lost for count, n_lost in zip(held, lost, strict=True)]
        n_idle = max(n_idle - sum(lost), sum(held), 1)
        bounds = [(counts[0], counts[-1]) for counts in lists]
        counts = ask(policy, n_idle, held, bounds, weight=weight, lists=lists).counts
        assert sum(counts) <= n_idle
        for row, count in enumerate(counts):
            assert count in (0, held[row], *lists[row])
            keeps = options["reading"] == "pod" and (options["preempt"] == "never" or weight[row] == 2.0)
            assert count >= held[row] or not keeps
        held = counts
