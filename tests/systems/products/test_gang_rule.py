"""Volcano's and KAI's rule: the minimum at once, then one node after the other; a plain loop is a second reading."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.systems.products.gang import Gang, GangOptions
from tests.examples import examples
from tests.replay.tiny import job, log
from tests.systems.products.rule_pools import ask


def rule(order="volcano", **options):
    return Gang(GangOptions(order=order, **options))


@pytest.mark.parametrize(
    ("n_idle", "held", "bounds", "volcano", "kai"),
    [
        (11, [0, 0, 0], [(1, 9)] * 3, [4, 4, 3], [7, 2, 2]),  # kai: one node above each minimum, then the earliest
        (5, [0, 0], [(6, 9), (2, 4)], [0, 4], [0, 4]),  # all of the minimum or nothing; others pass who does not fit
        (6, [3, 3], [(2, 9), (1, 9)], [3, 3], [3, 3]),  # one node lost: nobody gives another up
        (7, [3, 3], [(2, 9), (2, 9)], [4, 3], [4, 3]),  # one gained: the earlier of equals
        (8, [4, 3], [(2, 9), (2, 9)], [4, 4], [5, 3]),
        (7, [4, 2], [(2, 9), (2, 9)], [4, 3], [4, 3]),  # kai: who is exactly at its minimum
        (8, [8, 0], [(2, 8), (4, 9)], [8, 0], [8, 0]),  # equal priority: nobody is shrunk
        (5, [2, 0], [(4, 9), (3, 9)], [2, 3], [5, 0]),  # below the minimum: who has fewest, or who came first
    ],
)
def test_nodes_go_to_the_minimum_and_then_in_the_order_of_the_product(n_idle, held, bounds, volcano, kai):
    assert ask(rule("volcano"), n_idle, held, bounds).counts == volcano
    assert ask(rule("kai"), n_idle, held, bounds).counts == kai


def test_a_higher_weight_is_served_up_to_its_maximum_first():
    assert ask(rule(), 9, [0, 0], [(2, 4), (1, 8)], weight=[1.0, 2.0]).counts == [0, 8]


def test_ties_are_of_the_number_of_a_job_not_of_its_row():
    assert ask(rule(), 7, [3, 3], [(2, 9), (2, 9)], numbers=[5, 4]).counts == [3, 4]
    assert ask(rule("kai"), 9, [3, 3], [(2, 9), (2, 9)], numbers=[5, 4]).counts == [3, 6]


def test_a_job_with_a_list_of_counts_gets_all_nodes_up_to_the_next_or_none():
    bounds, lists = [(1, 8), (1, 3)], [[1, 2, 4, 8], [1, 2, 3]]
    assert ask(rule(), 5, [0, 0], bounds, lists=lists).counts == [2, 3]
    assert ask(rule(), 6, [0, 0], bounds, lists=lists).counts == [4, 2]
    assert ask(rule(max_nodes=6), 8, [0], bounds[:1], lists=lists[:1]).counts == [4]


_LOWER = {"preempt": "lower-priority"}


@pytest.mark.parametrize(
    ("options", "held", "bounds", "weight", "counts"),
    [
        ({"order": "volcano"}, [6, 0], [(2, 8), (3, 3)], [1, 2], [6, 0]),
        ({"order": "volcano"} | _LOWER, [6, 0], [(2, 8), (3, 3)], [1, 2], [3, 3]),
        ({"order": "volcano"} | _LOWER, [6, 0], [(2, 8), (5, 5)], [1, 2], [6, 0]),  # no whole job
        ({"order": "volcano"} | _LOWER, [6, 2], [(2, 8), (1, 8)], [1, 2], [6, 2]),  # not to grow
        ({"order": "volcano", "preempt": "any"}, [5, 4, 0], [(2, 8), (2, 8), (3, 3)], [1, 1, 1], [3, 3, 3]),
        ({"order": "kai", "preempt": "never"}, [6, 0], [(2, 8), (3, 3)], [1, 2], [6, 0]),
        ({"order": "kai"}, [4, 4, 0], [(2, 8), (2, 8), (3, 3)], [1, 1, 2], [3, 2, 3]),  # the latest gives first
        ({"order": "kai"}, [3, 3, 0], [(2, 8), (3, 8), (1, 1)], [1, 1, 2], [2, 3, 1]),  # but from above a minimum
        ({"order": "kai"}, [6, 0], [(2, 8), (5, 5)], [1, 2], [0, 5]),  # the whole job, and one node is left
        ({"order": "kai"}, [6, 2], [(2, 8), (1, 4)], [1, 2], [4, 4]),  # to grow, too
        ({"order": "kai"}, [6, 0], [(2, 8), (3, 3)], [1, 1], [6, 0]),
        ({"order": "kai", "preempt": "any"}, [6, 0], [(2, 8), (3, 3)], [1, 1], [3, 3]),
        ({"order": "kai", "preempt": "any"}, [6, 0], [(6, 8), (3, 3)], [1, 1], [6, 0]),  # an earlier job never goes
        ({"order": "kai", "preempt": "any"}, [2, 6], [(1, 8), (2, 8)], [1, 1], [2, 6]),  # nobody grows so
    ],
)
def test_nodes_are_taken_away_only_as_preempt_says(options, held, bounds, weight, counts):
    assert ask(rule(**options), sum(held), held, bounds, weight=weight).counts == counts


def test_below_its_minimum_a_job_holds_its_nodes_for_ever_in_volcano():
    policy, bounds = rule(), [(4, 8), (3, 8)]
    answer = ask(policy, 3, [3, 0], bounds)
    assert (answer.counts, answer.until_s) == ([3, 0], None)
    assert answer.why[0] == "it holds 3 nodes, below its minimum of 4, until the others come"
    assert ask(policy, 4, [3, 0], bounds, at_s=2_000).counts == [4, 0]


def test_below_its_minimum_a_job_gives_up_its_nodes_after_a_minute_in_kai():
    policy, bounds = rule("kai"), [(4, 8), (3, 8)]
    first = ask(policy, 3, [3, 0], bounds)
    assert (first.counts, first.until_s) == ([3, 0], 60.0)
    assert ask(policy, 3, [3, 0], bounds, at_s=20).why == [
        "it holds 3 nodes, below its minimum of 4, for 40 s more",
        "it needs 3 nodes to start, with 0 free at its turn",
    ]
    last = ask(policy, 3, [3, 0], bounds, at_s=60)
    assert (last.counts, last.until_s) == ([0, 3], None)
    assert last.why[0] == "it gave up 3 nodes, too few for its minimum of 4"
    assert last.why[1].startswith("nodes above its minimum come one at a time, one for each job, then the earliest")
    assert ask(rule(stale_s=0), 3, [3, 0], bounds).counts == [0, 3]


def test_the_minute_begins_anew_when_a_job_has_been_whole_again():
    policy, bounds = rule("kai"), [(4, 8)]
    ask(policy, 3, [3], bounds)
    assert ask(policy, 4, [3], bounds, at_s=50).counts == [4]
    assert ask(policy, 3, [3], bounds, at_s=55).until_s == 115.0
    policy.close()
    assert ask(policy, 3, [3], bounds, at_s=100).until_s == 160.0


def test_a_replay_wakes_the_rule_when_a_job_gives_up():
    events = log(4, [(100, 3, False)], 400, range(4))
    jobs = [job("wide", min_nodes=4), job("narrow", submit_s=1)]
    run = replay_log(events, jobs, rule("kai"), efficiency=False, bound=False)
    held = [(row["job"], row["from"].timestamp(), row["count"]) for row in run.table("allocations").to_pylist()]
    assert held == [("wide", 0, 4), ("wide", 100, 3), ("narrow", 160, 3)]


@pytest.mark.parametrize("n_nodes", [3, 5])
def test_reasons_name_who_took_nodes(n_nodes):
    answer = ask(rule("kai"), 6, [6, 0], [(2, 8), (n_nodes, n_nodes)], weight=[1, 2])
    assert answer.why[0] == "it gave way to a job of weight 2"
    assert not answer.why[1].startswith("it needs")


@pytest.mark.parametrize("options", [{"order": "drf"}, {"preempt": "always"}, {"stale_s": -1}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        GangOptions(**options)


def one_by_one(n_idle, held, weight, usable, order, preempt):
    """Node after node, and pod after pod, as the specification reads; ``usable`` counts of each job."""
    counts, rows = list(held), range(len(held))
    least = [counts_of_job[0] for counts_of_job in usable]

    def place(row):
        stage = (counts[row] >= least[row]) + (order == "kai" and counts[row] > least[row])
        return -weight[row], stage, 0 if order == "kai" else counts[row], row

    def next_count(row):
        return next((n_nodes for n_nodes in usable[row] if n_nodes > counts[row]), None)

    def allocate():
        waiting = set(rows)
        while waiting:
            row = min(waiting, key=place)
            target = next_count(row)
            if target is None or target - counts[row] > n_idle - sum(counts):
                waiting.remove(row)
            else:
                counts[row] = target

    def may_take(row, victim):
        is_below, is_above = counts[row] < least[row], counts[victim] > least[victim]
        if victim == row or not counts[victim] or weight[victim] > weight[row]:
            return False
        if weight[victim] == weight[row]:
            return preempt == "any" and is_below and (is_above or (order == "kai" and victim > row))
        return order == "kai" or (is_below and is_above)

    def take_for(row, target):
        before = list(counts)
        while target - counts[row] > n_idle - sum(counts):
            victims = [victim for victim in rows if may_take(row, victim)]
            if not victims:
                counts[:] = before
                return False
            victim = max(victims, key=place)
            counts[victim] = max((n_nodes for n_nodes in usable[victim] if n_nodes < counts[victim]), default=0)
        counts[row] = target
        return True

    def take_for_the_first():
        return any(next_count(row) is not None and take_for(row, next_count(row)) for row in sorted(rows, key=place))

    allocate()
    while preempt != "never" and take_for_the_first():
        allocate()
    return counts


@st.composite
def pools(draw):
    usable, held = [], []
    for _ in range(draw(st.integers(1, 6))):
        least = draw(st.integers(1, 5))
        most = draw(st.integers(least, 14))
        listed = draw(st.none() | st.sets(st.integers(least, most)))
        usable.append(sorted({least, most} | (set(range(least, most)) if listed is None else listed)))
        held.append(draw(st.integers(0, most)))
    weight = draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=len(held), max_size=len(held)))
    return max(1, sum(held) + draw(st.integers(0, 40))), held, weight, usable


@pytest.mark.parametrize("order", ["volcano", "kai"])
@pytest.mark.parametrize("preempt", ["never", "lower-priority", "any"])
@settings(max_examples=examples(300))
@given(drawn=pools())
def test_the_rule_in_bulk_is_the_rule_one_by_one(order, preempt, drawn):
    n_idle, held, weight, usable = drawn
    bounds = [(counts[0], counts[-1]) for counts in usable]
    is_listed = any(len(counts) <= counts[-1] - counts[0] for counts in usable)
    policy = rule(order, preempt=preempt, stale_s=1e9)
    answer = ask(policy, n_idle, held, bounds, weight=weight, lists=usable if is_listed else None)
    assert answer.counts == one_by_one(n_idle, held, weight, usable, order, preempt)
