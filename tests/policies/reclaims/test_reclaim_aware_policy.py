"""The policy in replays: what it learns, and that it learns from the past only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import Policy
from bfreplay.policies.catalogue import policy_of
from bfreplay.policies.reclaims.policy import ReclaimAwarePolicy
from bfreplay.policies.reclaims.pool import Pool
from bfreplay.policies.state import NEVER_US
from bfreplay.replay import ReplaySettings
from bfreplay.workload import JobSet
from tests.policies.reclaims.small_pools import costs_by, pool_of
from tests.replay.tiny import SECOND, job, log

COSTS = {"start_cost_s": 60.0, "restart": "pause", "work_saved_every_s": 600.0}
SIX = tuple(10.0 * n for n in range(7))


def costly(name: str, rates: tuple[float, ...] = SIX, **options: object):
    """A job that restarts for 60 s at each change, and saves its work every ten minutes."""
    return replace(job(name, rates=rates, up_s=60.0, down_s=60.0, **options), **COSTS)


def run(events, jobs, policy: Policy | None = None, max_parallel: int = 10):
    return replay_log(
        events,
        JobSet(jobs),
        policy or ReclaimAwarePolicy(150.0),
        ReplaySettings(max_parallel, record_nodes=True),
        efficiency=False,
        bound=False,
    )


def lowest_comes_and_goes(n_nodes: int, hours: float) -> list[tuple[float, int, bool]]:
    """Return the changes of the lowest node: reclaimed every 5 minutes, and back a minute later."""
    times = range(300, round(hours * 3600), 300)
    return [change for t in times for change in ((t, 0, False), (t + 60, 0, True))]


def holders(result, node: str) -> list[tuple[float, float]]:
    """Return when anybody held a node, seconds."""
    table = result.table("nodes")
    spans = zip(
        table["node"].to_pylist(), *(table[name].cast("int64").to_pylist() for name in ("from", "to")), strict=True
    )
    return sorted((start / 1e6, stop / 1e6) for name, start, stop in spans if name == node)


def one_after_another(n: int, most_nodes: int) -> list:
    """Return jobs of twenty minutes on all the nodes that they may have."""
    rates = tuple(10.0 * n for n in range(most_nodes + 1))
    return [costly(f"job{k}", rates, work=1200.0 * rates[-1], submit_s=float(k)) for k in range(n)]


def test_jobs_avoid_a_node_that_is_reclaimed_every_five_minutes():
    events = log(6, lowest_comes_and_goes(6, 6), 6 * 3600.0, range(6))
    jobs = one_after_another(20, 3)
    aware = run(events, jobs, max_parallel=1)
    assert holders(aware, "n0") == [(0.0, 300.0)]  # nothing is known yet
    assert aware.summary.ledger.preempted_node_us == 3 * 60e6
    plain = run(events, jobs, policy_of("bftrainer", t_fwd_s=150.0, solver=ExactSolver()), max_parallel=1)
    assert len(holders(plain, "n0")) > 5  # it takes the lowest nodes
    assert aware.summary.ledger.samples > 1.1 * plain.summary.ledger.samples


def test_a_node_that_is_seldom_reclaimed_is_used():
    events = log(6, [(900, 0, False), (960, 0, True)], 6 * 3600.0, range(6))
    on_it = holders(run(events, one_after_another(20, 6), max_parallel=1), "n0")
    assert on_it[0] == (0.0, 900.0)
    assert sum(stop - start for start, stop in on_it) > 5 * 3600.0


def test_nothing_of_the_future_is_known():
    """Two logs that are equal until five hours, and two halves of the pool that leave after that."""
    rng = np.random.default_rng(45)
    until_s = 5 * 3600
    common, idle = [], set(range(30))
    for t in sorted(rng.choice(until_s, 80, replace=False).tolist()):
        first = int(rng.integers(0, 28))
        for node in range(first, first + 3):
            idle ^= {node}
            common.append((t, node, node in idle))
    jobs = [costly(f"job{k}", tuple(5.0 * n**0.9 for n in range(13)), submit_s=600.0 * k) for k in range(4)]
    ends = []
    for leaving in (range(15), range(15, 30)):
        later = [(until_s + 60, node, False) for node in leaving if node in idle]
        later += [(until_s + 3600, node, True) for node in leaving if node in idle]
        ends.append(run(log(30, common + later, 8 * 3600.0, range(30)), jobs))
    decisions = [
        [row for row in result.table("decisions").to_pylist() if row["time"].timestamp() < until_s + 60]
        for result in ends
    ]
    assert len(decisions[0]) > 60
    assert [row["counts"] for row in decisions[0]] == [row["counts"] for row in decisions[1]]
    spans = [
        sorted((row["node"], row["job"], row["from"]) for row in result.table("nodes").to_pylist()) for result in ends
    ]
    early = [[span for span in each if span[2].timestamp() < until_s + 60] for each in spans]
    assert early[0] == early[1]
    assert spans[0] != spans[1]


def test_a_policy_that_was_used_before_decides_as_a_new_one():
    events = log(6, lowest_comes_and_goes(6, 3), 3 * 3600.0, range(6))
    policy = ReclaimAwarePolicy(150.0)
    first, again = run(events, [costly("job")], policy), run(events, [costly("job")], policy)
    assert again.table("decisions").equals(first.table("decisions"))
    assert again.table("nodes").equals(first.table("nodes"))


def test_closing_it_forgets():
    policy = ReclaimAwarePolicy()
    policy.memory.note(np.ones(3, np.bool_), 0)
    policy.memory.note(np.arange(3) > 0, 1)
    assert policy.memory.stretches().first.size == 1
    policy.close()
    assert policy.memory.stretches().first.size == 0


def test_an_objective_that_values_each_job_by_itself_will_do():
    events = log(6, lowest_comes_and_goes(6, 1), 3600.0, range(6))
    by_curve = run(events, [costly("job")])
    by_samples = run(events, [costly("job")], ReclaimAwarePolicy(150.0, objective="throughput"))
    assert by_samples.table("decisions")["counts"].equals(by_curve.table("decisions")["counts"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"t_fwd_s": "auto"}, "needs a forward-looking time in seconds"),
        ({"objective": "max-min"}, "values each job by itself"),
    ],
)
def test_what_it_cannot_do_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        ReclaimAwarePolicy(**options)


def test_several_node_types_are_refused():
    with pytest.raises(InputError, match="nodes of one type"):
        ReclaimAwarePolicy().check_types(["a", "b"])


@pytest.mark.parametrize(
    ("held", "n_idle", "every_s", "lost", "expected_s"),
    [
        ([[0, 1], []], 3, 600.0, 0, 250.0),  # the first goes on, to its checkpoint
        ([[0, 1], []], 3, 600.0, 1, 600.0),  # it restarts now
        ([[], [0, 1]], 3, 600.0, 0, 100.0),
        ([[0, 1], []], 2, 600.0, 0, None),  # no node is left
        ([[0, 1], []], 3, 149.0, 0, None),  # more often than every 150 s
        ([[], []], 3, 600.0, 0, None),
    ],
)
def test_it_decides_again_when_a_job_is_at_a_checkpoint(held, n_idle, every_s, lost, expected_s):
    rates = [[0.0, 10.0, 20.0]] * 2
    is_idle = [True] * n_idle
    costs = costs_by(2, save_every_s=[every_s] * 2)
    state = pool_of(rates, held, is_idle, costs, next_save_s=[250.0, 100.0], lost=[lost, lost])
    policy = ReclaimAwarePolicy(150.0)
    counts = np.array([len(nodes) for nodes in held])
    wake_us = policy._next_checkpoint_us(state, Pool(state, policy.memory.stretches()), counts)
    assert wake_us == (NEVER_US if expected_s is None else state.time_us + expected_s * SECOND)
