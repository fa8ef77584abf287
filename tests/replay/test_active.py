"""The active jobs as policies see them, and the nodes that they are given."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.policies import Decision, EqualSharePolicy, PolicyState
from bfreplay.replay.active import ActiveJobs
from bfreplay.replay.pool import NodePool
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log


def _seen(active: ActiveJobs) -> tuple[list[int], list[list[float]]]:
    views = active.policy_arrays()
    return views["job"].tolist(), views["throughput"].tolist()


def test_what_policies_see_follows_jobs_that_come_and_go_and_tables_that_grow():
    active = ActiveJobs(limit=3, n_nodes=4)
    active.admit(0, job(rates=(0.0, 1.0)), -1, 0)
    assert _seen(active) == ([0], [[0.0, 1.0]])
    active.admit(1, job(rates=(0.0, 2.0, 3.0)), -1, 0)
    assert _seen(active) == ([0, 1], [[0.0, 1.0, 0.0], [0.0, 2.0, 3.0]])
    active.remove(0)
    assert _seen(active) == ([1], [[0.0, 2.0, 3.0]])
    active.admit(2, job(rates=(0.0, 5.0)), -1, 0)
    assert _seen(active) == ([1, 2], [[0.0, 2.0, 3.0], [0.0, 5.0, 0.0]])
    active.remove(0)
    active.admit(3, job(rates=(0.0, 6.0)), -1, 0)  # as many as before
    assert _seen(active) == ([2, 3], [[0.0, 5.0, 0.0], [0.0, 6.0, 0.0]])


def test_what_policies_see_follows_arrays_that_are_put_in_place_of_others():
    active = ActiveJobs(limit=1, n_nodes=4)
    active.admit(0, job(), -1, 0)
    active.policy_arrays()
    active.records = active.records.copy()  # as when a saved state is restored
    active.records["progress"][0] = 7.0
    active.throughput = active.throughput * 2
    assert active.policy_arrays()["progress"].tolist() == [7.0]
    assert active.policy_arrays()["throughput"][0].tolist() == [0.0, 20.0, 40.0, 60.0, 80.0]


def test_a_policy_may_keep_the_states_that_it_has_seen():
    class Keeps(EqualSharePolicy):
        def __init__(self) -> None:
            super().__init__()
            self.states: list[PolicyState] = []

        def decide(self, state: PolicyState) -> Decision:
            self.states.append(state)
            return super().decide(state)

    policy = Keeps()
    events = log(2, [(5, 1, False), (8, 1, True)], 20, idle_first=[0, 1])
    replay_log(events, JobSet([job(down_s=1, submit_s=0), job("late", submit_s=3)]), policy)
    assert [(state.time_us // 1_000_000, state.n_idle) for state in policy.states] == [(0, 2), (3, 2), (5, 1), (8, 2)]
    # at 5 s the first loses one of its two nodes: a second of 20 samples/s
    assert [state.owed.tolist() for state in policy.states] == [[0.0], [0.0, 0.0], [20.0, 0.0], [0.0, 0.0]]
    for state in policy.states:
        parts = {each.name: getattr(state, each.name) for each in fields(state)}  # all there, and no other
        assert repr(PolicyState(**parts)) == repr(replace(state)) == repr(state)
        assert state.throughput_by_type is None
        assert not any(part.flags.writeable for part in parts.values() if isinstance(part, np.ndarray))


def test_an_admission_counts_from_after_the_pauses():
    active = ActiveJobs(limit=1, n_nodes=4)
    active.admit(0, job(), -1, 5)
    paused = active.records[0].copy()
    paused["paused_at_us"] = 20
    active.remove(0)
    active.admit(0, job(), -1, 27, paused)
    assert active.policy_arrays()["admitted_us"].tolist() == [5 + 7]


@pytest.mark.parametrize("seed", range(5))
def test_free_nodes_are_taken_lowest_first_on_a_machine_of_many(seed):
    rng = np.random.default_rng(seed)
    n_nodes = 300  # several blocks, the last one in part
    active = ActiveJobs(limit=3, n_nodes=n_nodes)
    for number in range(3):
        active.admit(number, job(rates=tuple(float(n) for n in range(n_nodes + 1))), -1, 0)
    pool = NodePool(n_nodes, active, 0)
    held: list[list[int]] = [[], [], []]
    idle: set[int] = set()
    for now_us in range(1, 60):
        nodes = np.sort(rng.permutation(n_nodes)[: int(rng.integers(1, 90))])
        is_idle = rng.random(nodes.size) < rng.choice([0.1, 0.9])
        pool.change(nodes.astype(np.int32), np.where(is_idle, 0, 1).astype(np.int8), now_us)
        idle = (idle | set(nodes[is_idle].tolist())) - set(nodes[~is_idle].tolist())
        held = [[node for node in of if node in idle] for of in held]
        cuts = np.sort(rng.integers(0, len(idle) + 1, 3))
        counts = np.diff(cuts, prepend=0)
        pool.place(counts, now_us)
        held = [of[:count] for of, count in zip(held, counts.tolist(), strict=True)]
        free = sorted(idle.difference(*held))
        for of, count in zip(held, counts.tolist(), strict=True):
            n_more = count - len(of)
            of += free[:n_more]
            del free[:n_more]
        assert [active.held[j, : counts[j]].tolist() for j in range(3)] == held
