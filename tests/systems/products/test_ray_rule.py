"""Ray Train's rule in the replay, on pools small enough to follow by hand: ticks every 20 s, looks every 60 s."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay import replay_log
from bfreplay.systems.products.ray import RayOptions, RayTrain
from tests.replay.tiny import SECOND, job, log


class _AsksWhy(RayTrain):
    """Notes what each job is told at each decision, by second."""

    def __init__(self, **options):
        super().__init__(RayOptions(**options))
        self.clauses = {}

    def decide(self, state):
        decision = super().decide(state)
        self.clauses[state.time_us // SECOND] = [self.why(state, row) for row in range(state.n_jobs)]
        return decision


def replayed(n_nodes, changes, jobs, n_idle=None, **options):
    """The nodes of each job as (from second, to second, nodes), the policy, and its run."""
    policy = _AsksWhy(**options)
    events = log(n_nodes, changes, 300, range(n_nodes if n_idle is None else n_idle))
    run = replay_log(events, jobs, policy, efficiency=False, bound=False)
    groups = {each.name: [] for each in jobs}
    for row in run.table("allocations").to_pylist():
        groups[row["job"]].append((row["from"].timestamp(), row["to"].timestamp(), row["count"]))
    return groups, policy, run


@pytest.mark.parametrize(("joined", "grown"), [(10, 60), (50, 60), (61, 120), (119, 120)])
def test_a_group_grows_at_exactly_the_interval_by_nodes_that_a_tick_has_seen(joined, grown):
    groups, policy, run = replayed(3, [(joined, 2, True)], [job()], n_idle=2)
    assert groups["job"] == [(0, grown, 2), (grown, 300, 3)]
    seen = joined + -joined % 20
    assert sorted(policy.clauses) == sorted({0, joined, seen, grown}), "asked when nothing could change"
    look = f"it has 3 nodes reserved; its group looks again in {grown - seen or 60} s"
    assert policy.clauses[seen] == [look]
    assert run.summary["policy"]["reserved_unused_node_hours"] == 0, "a group that runs will use it"


@pytest.mark.parametrize(
    ("changes", "restart"),
    [
        ([(30, 0, False)], (90, 2)),  # three are reserved until 40: that start fails after 60 s
        ([(40, 0, False)], (40, 2)),  # the tick of 40 sees it
        ([(30, 0, False), (55, 0, True)], (55, 3)),  # the start gets its third node
    ],
)
def test_a_group_that_lost_a_node_starts_again_with_what_is_reserved_for_it(changes, restart):
    groups, policy, _ = replayed(3, changes, [job()])
    assert groups["job"] == [(0, changes[0][0], 3), (restart[0], 300, restart[1])]
    if restart[0] > changes[0][0]:
        assert policy.clauses[30][0].startswith("its start waits for 3 reserved nodes, of which 2 are free")
        assert policy.clauses[30][0].endswith("it tries again in 60 s")


def test_a_start_is_given_up_only_when_it_fails_also_if_too_few_nodes_are_reserved_meanwhile():
    changes = [(30, 0, False), (35, 1, False), (95, 0, True), (95, 1, True)]
    groups, *_ = replayed(4, changes, [job(min_nodes=3)])
    assert groups["job"] == [(0, 30, 4), (100, 300, 4)]  # not at 95: a tick has to see them


def test_of_two_groups_that_lost_a_node_the_earlier_goes_on_with_a_free_one_at_once():
    groups, *_ = replayed(8, [(30, 0, False), (30, 4, False)], [job("first"), job("second")])
    assert groups == {"first": [(0, 300, 4)], "second": [(0, 30, 4), (90, 300, 2)]}


def test_the_earlier_run_takes_what_is_reserved_for_it_when_the_later_one_looks():
    groups, _, run = replayed(6, [(30, 0, False)], [job("first"), job("second")])
    assert groups["first"] == [(0, 30, 4), (60, 300, 4)]
    assert groups["second"] == [(0, 60, 2), (60, 300, 1)]
    assert run.summary["policy"]["reserved_unused_node_hours"] == pytest.approx(3 * 30 / 3600)


def test_with_fewer_than_its_minimum_the_later_run_keeps_all_and_the_earlier_one_stands_still():
    jobs = [job("first", rates=(0.0, 1.0, 2.0, 3.0)), job("second", rates=(0.0, 1.0, 2.0), min_nodes=2)]
    groups, policy, run = replayed(5, [(30, 0, False), (200, 0, True)], jobs)
    assert groups["first"] == [(0, 30, 3), (200, 300, 3)]
    assert groups["second"] == [(0, 300, 2)]
    assert list(policy.clauses) == [0, 30, 40, 200], "asked when nothing could change"
    assert policy.clauses[40][1] == (
        "it has 1 node reserved, below its minimum of 2, and keeps what it holds; its group looks again in 20 s"
    )
    assert run.summary["policy"]["reserved_unused_node_hours"] == pytest.approx(2 * 170 / 3600)


def test_the_first_request_comes_first_whatever_the_weight_and_a_cancelled_one_frees_its_nodes_at_once():
    jobs = [
        job("first", work=400),
        replace(job("heavy", submit_s=5), weight=9.0),
        job("third", submit_s=5, min_nodes=2),
    ]
    groups, policy, _ = replayed(5, [], jobs)
    assert groups == {"first": [(0, 10, 4)], "heavy": [(5, 65, 1), (65, 300, 4)], "third": []}
    assert policy.clauses[5][2] == "it has 0 nodes reserved, below its minimum of 2"


def test_a_run_that_waits_asks_again_only_a_second_after_its_last_query():
    groups, policy, _ = replayed(4, [], [job("first", work=400), job("second", submit_s=9.5)])
    assert groups["second"] == [(10.5, 300, 4)]
    assert list(policy.clauses) == [0, 9, 10], "asked for a tick that would see nothing"


@pytest.mark.parametrize(
    ("changes", "jobs"),
    [
        ([(30, 0, False), (30, 1, False), (30, 2, False), (50, 0, True), (50, 1, True)], [job("last")]),
        ([(30, 0, False)], [job("first", work=100), job("last", submit_s=50)]),
    ],
    ids=["pool", "runs"],
)
def test_a_pool_that_was_empty_or_without_runs_is_seen_at_once(changes, jobs):
    groups, *_ = replayed(3, changes, jobs)
    assert groups["last"][-1] == (50, 300, 2)


def test_a_job_with_listed_counts_asks_for_one_of_them():
    groups, policy, _ = replayed(3, [], [replace(job(), counts=(1, 2, 4))])
    assert groups["job"] == [(0, 300, 2)]
    assert policy.clauses[0] == ["it has 2 nodes reserved; its group looks again in 60 s"]


def test_runs_with_clusters_of_their_own_keep_what_they_have_and_take_free_nodes_as_they_look():
    changes = [(30, 0, False), (35, 0, True)]
    groups, policy, run = replayed(6, changes, [job("first"), job("second")], share="one-cluster-each")
    assert groups["first"] == [(0, 30, 4), (30, 300, 3)]
    assert groups["second"] == [(0, 60, 2), (60, 300, 3)]
    assert policy.clauses[35][0] == "it has 4 nodes in sight; its group looks again in 55 s"
    assert run.summary["policy"]["reserved_unused_node_hours"] == 0
