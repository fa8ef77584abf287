"""Nodes of a job lie on runs of neighbours (``--placement runs``): the rule by hand, and what depends on it."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.datasets import NodeState
from bfreplay.errors import InputError
from bfreplay.policies import Decision, Policy, PolicyState, Trigger
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.replay.active import ActiveJobs
from bfreplay.replay.placement import PlacementRule
from bfreplay.replay.pool import NodePool
from bfreplay.runs.rerun import Rerun
from bfreplay.runs.summary_text import render
from bfreplay.workload import JobSet
from tests.replay.placed import typed_job, typed_log
from tests.replay.random_replays import RandomCounts
from tests.replay.tiny import SECOND, job, log

_N_NODES = 200
_OF_LOOP = {"efficiency": False, "bound": False}
_WIDE = tuple(10.0 * n for n in range(21))


class Places:
    """A pool placed on runs, with wide jobs that hold certain nodes."""

    def __init__(self, *held: list[int]) -> None:
        self.active = ActiveJobs(limit=len(held), n_nodes=_N_NODES)
        self.pool = NodePool(_N_NODES, self.active, 0, placement=PlacementRule.RUNS)
        for number in range(len(held)):
            self.active.admit(number, job(rates=_WIDE), -1, 0)
        self.now_us = 0
        self.change(idle=[node for nodes in held for node in nodes])
        self.pool.assign([np.array(nodes, np.int64) for nodes in held], None, 0)

    def change(self, idle=(), reclaimed=()) -> None:
        """Let nodes become idle, and others be reclaimed, at one instant."""
        self.now_us += 1
        states = dict.fromkeys(idle, NodeState.IDLE) | dict.fromkeys(reclaimed, NodeState.BUSY)
        nodes = np.array(sorted(states), np.int32)
        self.pool.change(nodes, np.array([states[node] for node in nodes.tolist()], np.int8), self.now_us)

    def place(self, *counts: int) -> list[list[int]]:
        """Place counts, and return the nodes of each job, last gained last."""
        self.pool.place(np.array(counts), self.now_us)
        held = [self.active.held[row, : counts[row]].tolist() for row in range(len(counts))]
        for row, nodes in enumerate(held):
            assert (self.pool.holder[nodes] == row).all()
        assert (self.pool.holder >= 0).sum() == sum(counts)
        return held


def test_a_hit_job_moves_to_one_of_its_runs():
    places = Places([10, 50, 90])
    places.change(idle=[51, 52, 53], reclaimed=[90])
    # both runs, 10 and 50 to 53, are beside it: the larger comes first, and 10 is free again
    assert places.place(3) == [[50, 51, 52]]
    assert places.pool.holder[10] == -1


def test_a_hit_job_takes_from_its_own_runs_before_larger_ones():
    places = Places([10, 50, 51])
    places.change(idle=range(100, 106), reclaimed=[51])
    assert places.place(3) == [[10, 50, 100]]


def test_a_job_that_has_lost_all_its_nodes_takes_the_largest_run():
    places = Places([10, 11])
    places.change(idle=[12, *range(100, 103)], reclaimed=[10, 11])
    assert places.place(2) == [[100, 101]]


def test_a_job_that_stays_keeps_its_nodes_and_another_that_was_hit_leaves_its_own():
    places = Places([10, 90], [11, 12])
    places.change(idle=[13, 14, 15, 16, 17, 92, 93], reclaimed=[12])
    # the second is hit and needs most, 4 of the run 11 to 17; the first keeps 10 and 90: of both
    # runs beside it, two nodes are left in each
    assert places.place(3, 4) == [[10, 90, 16], [11, 13, 14, 15]]
    places.change(idle=[12])
    assert places.place(4, 4) == [[10, 90, 16, 12], [11, 13, 14, 15]]


def test_nodes_of_a_hit_job_may_go_to_another():
    places = Places([50], [10, 11, 90])
    places.change(idle=[91, 92], reclaimed=[10])
    assert places.place(4, 1) == [[50, 90, 91, 92], [11]]


def test_a_job_that_shrinks_gives_back_what_it_gained_last():
    places = Places([90, 10, 50])
    assert places.place(2) == [[90, 10]]


def test_a_hit_job_may_shrink_onto_one_run():
    places = Places([90, 10, 11, 50])
    places.change(reclaimed=[50])
    assert places.place(2) == [[10, 11]]


def test_who_needs_most_takes_first():
    places = Places([], [], [])
    places.change(idle=[*range(10, 13), *range(50, 55)])
    # the second needs 5: the run of 5; then the third 2, then the first 1
    assert places.place(1, 5, 2) == [[12], [50, 51, 52, 53, 54], [10, 11]]


def test_of_two_that_need_as_many_the_first_admitted_takes_first():
    places = Places([], [])
    places.change(idle=[10, 11, 50, 51, 52])
    assert places.place(2, 2) == [[50, 51], [10, 11]]


def test_of_two_runs_as_large_the_lower_is_taken():
    places = Places([])
    places.change(idle=[50, 51, 10, 11])
    assert places.place(3) == [[10, 11, 50]]


@pytest.mark.parametrize(("gap", "nodes"), [(18, [20, 20 + 18]), (19, [100, 101])])
def test_a_gap_of_18_keeps_a_run_and_one_of_19_splits_it(gap, nodes):
    """Three nodes are one run, larger than that of two nodes; or the third is a run of its own."""
    places = Places([])
    places.change(idle=[20, 20 + gap, 20 + 2 * gap, 100, 101])
    assert places.place(2) == [nodes]


@pytest.mark.parametrize(("node", "taken"), [(68, 68), (69, 100), (32, 32), (31, 100)])
def test_a_run_is_beside_a_job_up_to_a_gap_of_18(node, taken):
    places = Places([50])
    places.change(idle=[node, 100, 101])
    assert places.place(2) == [[50, taken]]


def test_a_run_on_both_sides_of_a_kept_node_is_beside_it():
    places = Places([50])
    places.change(idle=[42, 58, 100, 101, 102])  # 16 apart: one run around 50
    assert places.place(3) == [[50, 42, 58]]
    places = Places([50])
    places.change(idle=[40, 60, 61, 100, 101, 102])  # 20 apart: two runs, both beside 50
    assert places.place(4) == [[50, 60, 61, 40]]
    places = Places([50])
    places.change(idle=[39, 40, 60, 100, 101, 102])
    assert places.place(4) == [[50, 39, 40, 60]]


def test_nodes_given_back_at_this_decision_are_free_for_others():
    places = Places([10, 11], [12, 90])
    places.change(idle=[13, 14])
    assert places.place(4, 1) == [[10, 11, 13, 14], [12]]
    assert places.place(2, 3) == [[10, 11], [12, 13, 14]]


def test_a_job_is_hit_until_the_next_decision_only():
    places = Places([10, 50, 51])
    places.change(reclaimed=[51])
    places.change(idle=[60])  # nothing is decided in between
    assert places.active.records["lost_nodes"][0] == 1
    assert places.place(2) == [[50, 60]]
    assert places.active.records["lost_nodes"][0] == 0
    places.change(idle=range(100, 104))
    assert places.place(3) == [[50, 60, 100]]


def test_node_time_of_a_job_that_moves_is_counted_on_the_nodes_it_was_on():
    """The job is on n0, n40 and n41; at 10 s it loses n41, n42 and n43 are idle, and it leaves n0 for them."""
    events = log(44, [(10, 41, False), (10, 42, True), (10, 43, True)], 30, idle_first=[0, 40, 41])
    jobs = [job(rates=(0.0, 10.0, 20.0, 30.0))]
    run = replay_log(events, jobs, "equal-share", placement="runs", record_nodes=True, **_OF_LOOP)
    rows = {(row["node"], row["from"].timestamp(), row["to"].timestamp()) for row in run.table("nodes").to_pylist()}
    assert rows == {("n0", 0, 10), ("n41", 0, 10), ("n40", 0, 30), ("n42", 10, 30), ("n43", 10, 30)}
    assert run.summary.ledger.unallocated_node_us == 20 * SECOND  # of n0
    assert run.summary.ledger.samples == 30 * 30  # moving is free
    assert run.record.config.placement == "runs"
    assert "on runs of neighbouring nodes" in render(run)


class Sees(Policy):
    """Keeps all counts, and notes what was lost; it is asked when jobs arrive or leave."""

    name = "sees"
    wakes_on = Trigger.ARRIVAL

    def __init__(self) -> None:
        self.lost: list[list[int]] = []

    def decide(self, state: PolicyState) -> Decision:
        assert state.lost_nodes is not None
        assert not state.lost_nodes.flags.writeable
        self.lost.append(state.lost_nodes.tolist())
        counts = np.array(state.current)
        counts[0] = max(1, 2 - sum(map(sum, self.lost)))
        return Decision(counts)


def test_a_policy_sees_what_jobs_lost_since_it_last_decided():
    policy = Sees()
    events = log(4, [(10, 0, False), (20, 0, True), (30, 1, False)], 100, idle_first=[0, 1, 2, 3])
    jobs = [job("a"), job("b", submit_s=15), job("c", submit_s=40), job("d", submit_s=50)]
    replay_log(events, jobs, policy, placement="runs", **_OF_LOOP)
    assert policy.lost == [[0], [1, 0], [1, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("seed", range(8))
def test_a_rerun_moves_nodes_only_where_the_policy_was_asked(seed):
    """A policy that does not wake on reclaims: at those the nodes of a hit job stay, also in a rerun."""
    rng = np.random.default_rng(seed)
    idle, changes = set(range(0, 90, 3)), []
    for step in range(1, 60):
        for node in rng.choice(90, 4, replace=False).tolist():
            idle ^= {node}
            changes.append((10.0 * step, node, node in idle))
    jobs = JobSet([job(str(k), rates=_WIDE, submit_s=35.0 * k, work=4e4) for k in range(12)])
    events = log(90, changes, 700, idle_first=range(0, 90, 3))
    run = replay_log(events, jobs, RandomCounts(seed, Trigger.ARRIVAL), placement="runs", max_parallel=6, **_OF_LOOP)
    assert run.summary.n_preemptions > 20
    moments = []
    Rerun(run, events=events, jobs=jobs).run(moments.append)
    assert len(moments) == run.n_rows("decisions")


def test_the_published_clock_has_its_own_rule():
    with pytest.raises(InputError, match="gives out idle nodes by number"):
        ReplaySettings(semantics=Semantics.PUBLISHED, placement="runs")
    with pytest.raises(InputError, match="placement"):
        ReplaySettings(placement="neighbours")


def test_where_a_policy_chooses_the_nodes_the_option_is_refused():
    events, jobs = log(2, [], 10, idle_first=[0, 1]), [job()]
    with pytest.raises(InputError, match=r"gavel\S+ chooses the nodes of each job itself"):
        replay_log(events, jobs, "gavel.fifo_perf", placement="runs")
    with pytest.raises(InputError, match="chooses the nodes of each job on nodes of several types"):
        replay_log(typed_log("v100 p100", 10), [typed_job()], placement="runs")
    with pytest.raises(InputError, match="placement cannot be combined with --cluster"):
        replay_log(jobs=jobs, cluster="a=4", placement="runs")
    replay_log(events, jobs, placement="runs", fairness=True)  # its isolated policy places, and is not asked
