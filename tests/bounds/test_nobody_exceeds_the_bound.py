"""Upper bounds hold for whatever a policy does."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.bounds import Effort, Kind, reason_without_bound, upper_bound
from bfreplay.policies import BFTrainerPolicy, Decision, EqualSharePolicy, Placement, Policy, PolicyState
from bfreplay.policies.look_ahead import ForesightPolicy, LookAheadPolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs.run_checks import jobs_in_window
from bfreplay.workload import JobSet
from tests.examples import examples
from tests.replay.tiny import job, job_sets, log, logs


class Whim(Policy):
    """Any counts that are allowed, at random."""

    name = "whim"

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def decide(self, state: PolicyState) -> Decision:
        counts, left = np.zeros(state.n_jobs, np.int64), state.n_idle
        for j in self._rng.permutation(state.n_jobs):
            allowed = [0, *range(state.min_nodes[j], min(int(state.max_nodes[j]), left) + 1)]
            if state.current[j] <= left:
                allowed += [int(state.current[j])] * 3
            counts[j] = self._rng.choice(allowed)
            left -= counts[j]
        return Decision(counts)


_POLICIES = {
    "far-sighted": lambda: BFTrainerPolicy(300.0),
    "short-sighted": lambda: BFTrainerPolicy(3.0),
    "equal share": EqualSharePolicy,
    "sees all": lambda: ForesightPolicy(100, 30.0),
    "remembers": lambda: LookAheadPolicy(2, 2, 10, 30.0),
    "whim": Whim,
    "another whim": lambda: Whim(1),
}


@settings(deadline=None, max_examples=examples(150))
@given(
    events=logs(),
    jobs=job_sets(),
    policy=st.sampled_from(sorted(_POLICIES)),
    max_parallel=st.integers(1, 4),
    semantics=st.sampled_from(list(Semantics)),
    unlimited_work=st.booleans(),
    effort=st.sampled_from(list(Effort)),
)
def test_no_policy_makes_more_samples(events, jobs, policy, max_parallel, semantics, unlimited_work, effort):
    assume(reason_without_bound(events, jobs) is None)  # rates so small that there is no bound: test_refusals
    replay_settings = ReplaySettings(max_parallel, semantics)
    run = replay_log(
        events, jobs, _POLICIES[policy](), replay_settings, unlimited_work=unlimited_work, efficiency=False
    )
    anchored = jobs_in_window(jobs, events, replay_settings, unlimited_work=unlimited_work)
    found = upper_bound(events, anchored, max_parallel, effort=effort, evaluations=12)
    made = run.summary["ledger"]["samples"]
    assert made <= found.samples
    if found.free_rescaling_samples is not None:
        assert found.samples <= found.free_rescaling_samples
    told = run.summary["bound"]
    assert told["share"] is None or told["share"] <= 1
    if effort is Effort.QUICK:
        assert told["samples"] == found.samples


@settings(deadline=None, max_examples=examples(100))
@given(events=logs(), jobs=job_sets(), policy=st.sampled_from(sorted(_POLICIES)), max_parallel=st.integers(1, 4))
def test_nobody_is_done_before_the_earliest_end(events, jobs, policy, max_parallel):
    assume(reason_without_bound(events, jobs) is None)
    shrunk = JobSet(
        job(
            each.name,
            work=max(each.work_samples / 100, 0.5),
            rates=tuple(each.throughput.table(each.max_nodes)),
            submit_s=each.submit_us / 2e6,
            min_nodes=each.min_nodes,
            up_s=each.scale_up_cost_s,
            down_s=each.scale_down_cost_s,
        )
        for each in jobs
    )
    run = replay_log(events, shrunk, _POLICIES[policy](), ReplaySettings(max_parallel), efficiency=False)
    earliest_us = run.summary["bound"]["earliest_finish_us"]
    done_us = run.summary["last_finish_us"]
    if done_us is None:
        assert earliest_us is None  # not asked for
    else:
        assert earliest_us is not None
        assert events.window_start_us <= earliest_us <= done_us


_COSTS = st.fixed_dictionaries(
    {
        "start_cost_s": st.sampled_from([0.0, 7.0]),
        "restart": st.sampled_from(["charge", "pause"]),
        "scale_up_cost_s": st.sampled_from([0.0, 9.0, "0:4 2:11"]),
        "work_saved_every_s": st.sampled_from([0.0, 20.0]),
    }
)


@settings(deadline=None, max_examples=examples(100))
@given(
    events=logs(),
    jobs=job_sets(),
    costs=st.lists(_COSTS, min_size=6, max_size=6),
    policy=st.sampled_from(sorted(_POLICIES)),
    unlimited_work=st.booleans(),
    notice=st.booleans(),
)
def test_no_policy_makes_more_samples_whatever_changes_cost(events, jobs, costs, policy, unlimited_work, notice):
    assume(reason_without_bound(events, jobs) is None)
    costly = JobSet(replace(each, **of_job) for each, of_job in zip(jobs, costs, strict=False))
    run = replay_log(
        events,
        costly,
        _POLICIES[policy](),
        ReplaySettings(2, notice=notice, clear_s=5.0),
        unlimited_work=unlimited_work,
        efficiency=False,
    )
    share = run.summary["bound"]["share"]
    assert share is None or share <= 1


KEEP = None
"""What is told a policy that is to leave everything as it is."""


class Told(Policy):
    """The nodes that it was told for each job, one decision after the other."""

    name = "told"

    def __init__(self, nodes: tuple[tuple[tuple[int, ...], ...] | None, ...]) -> None:
        self._nodes = list(nodes)

    def decide(self, state: PolicyState) -> Decision:
        assert _idle_at(state.time_us) == _POOLS[-len(self._nodes)]
        told = self._nodes.pop(0)
        if told is KEEP:
            return Decision(state.current.copy())
        return Decision(
            np.array([len(nodes) for nodes in told], np.int64),
            placement=Placement(tuple(np.array(nodes, np.int64) for nodes in told)),
        )


_IDLE = {0: [(0, True), (40, False), (120, True)], 1: [(0, True), (60, False), (65, True)]}
_SCARCE = log(2, [(s, node, idle) for node, rows in _IDLE.items() for s, idle in rows[1:]], 200, idle_first=(0, 1))


_POOLS = ({0, 1}, {1}, {1}, {0, 1})  # at each decision; of the five pools one is empty, and nobody is asked


def _idle_at(time_us: int) -> set[int]:
    return {node for node, changes in _IDLE.items() if [idle for s, idle in changes if s * 1_000_000 <= time_us][-1]}


def _best_of_all(jobs: JobSet, choices: list[tuple[tuple[int, ...], ...] | None], semantics: Semantics) -> float:
    nobody = Decision(np.zeros(len(jobs), np.int64))
    asked = _POOLS if semantics is Semantics.CONTINUOUS else _POOLS[1:]  # the published clock begins with its seed map
    possible = [
        [way for way in choices if way is KEEP or {node for nodes in way for node in nodes} <= pool] for pool in asked
    ]
    return max(
        replay_log(
            _SCARCE,
            jobs,
            Told(way),
            ReplaySettings(2, semantics, seed_map=lambda state, free, rng: nobody),
            unlimited_work=True,
            efficiency=False,
            bound=False,
            with_tables=False,
        ).summary["ledger"]["samples"]
        for way in itertools.product(*possible)
    )


@pytest.mark.parametrize(("up_s", "down_s"), [(0, 0), (20, 5), (5, 20), (60, 1)])
def test_the_bound_of_one_job_is_the_best_of_all_ways(up_s, down_s):
    jobs = JobSet([job(rates=(0.0, 10.0, 18.0), up_s=up_s, down_s=down_s)])
    best = _best_of_all(jobs, [((),), ((0,),), ((1,),), ((0, 1),)], Semantics.CONTINUOUS)
    found = upper_bound(_SCARCE, jobs.endless(2, 0), 2)
    assert found.samples == pytest.approx(best, rel=1e-8)
    assert found.samples <= found.free_rescaling_samples


def test_the_bound_holds_under_the_published_clock():
    jobs = JobSet([job(rates=(0.0, 10.0, 18.0), up_s=20, down_s=5)])
    best = _best_of_all(jobs, [((),), ((0,),), ((1,),), ((0, 1),)], Semantics.PUBLISHED)
    assert best <= upper_bound(_SCARCE, jobs.endless(2, 0), 2).samples


@pytest.mark.slow
def test_the_bound_of_two_jobs_is_above_the_best_of_all_ways():
    jobs = JobSet(
        [job("a", rates=(0.0, 10.0, 18.0), up_s=15, down_s=8), job("b", rates=(0.0, 4.0, 9.0), up_s=3, down_s=9)]
    )
    choices = [KEEP, ((0,), (1,)), ((1,), (0,)), ((0, 1), ()), ((0,), ()), ((1,), ())]
    best = _best_of_all(jobs, choices, Semantics.CONTINUOUS)
    found = upper_bound(_SCARCE, jobs.endless(2, 0), 2, effort=Effort.THOROUGH)
    assert found.kind is Kind.PRICED
    assert best <= found.samples <= 1.1 * best


def test_a_pool_that_never_changes_is_used_up_to_the_bound():
    idle = log(3, [], 100, idle_first=(0, 1, 2))
    run = replay_log(idle, JobSet([job()]), BFTrainerPolicy(60.0), unlimited_work=True)
    assert run.summary["bound"]["share"] == pytest.approx(1.0, abs=1e-8)


def test_without_idle_nodes_there_is_no_share():
    bound = replay_log(log(2, [], 100), JobSet([job()]), BFTrainerPolicy(60.0)).summary["bound"]
    assert bound["samples"] == 0.0
    assert bound["share"] is None


def test_a_job_wider_than_the_pool_counts_for_nothing():
    idle = log(4, [], 100, idle_first=(0, 1))
    wide = job("wide", min_nodes=3)
    assert upper_bound(idle, JobSet([wide]).endless(1, 0), 1).samples == 0.0
    both = upper_bound(idle, JobSet([wide, job("fits")]).endless(2, 0), 2)
    assert both.samples == pytest.approx(2 * 10 * 100)


def test_work_that_is_all_done_bounds_the_samples():
    idle = log(4, [], 1000, idle_first=(0, 1))
    jobs = JobSet([job("a", work=100.0), job("b", work=60.0)])
    bound = replay_log(idle, jobs, BFTrainerPolicy(60.0)).summary["bound"]
    assert bound["kind"] == "work"
    assert bound["samples"] == pytest.approx(160.0)
    assert bound["share"] == pytest.approx(1.0)
    # 160 samples at 20 samples/s, found to a thousandth of the window
    assert 7 <= bound["earliest_finish_us"] / 1e6 <= 8


def test_a_queue_of_slow_jobs_bounds_what_comes_after_it():
    """The fast job cannot be admitted before a slow one is done, whatever anyone wants."""
    idle = log(1, [], 100, idle_first=(0,))
    slow = [job(f"slow{k}", work=500.0, rates=(0.0, 1.0)) for k in range(3)]
    jobs = JobSet([*slow, job("fast", work=1e6, rates=(0.0, 50.0))])
    assert upper_bound(idle, jobs, 1).samples == pytest.approx(100.0)
    assert upper_bound(idle, jobs, 4).samples == pytest.approx(5000.0)


class InTwoSteps(Whim):
    """To nothing when the pool grows, and on all nodes when the other job comes: both for free."""

    def decide(self, state: PolicyState) -> Decision:
        counts = np.zeros(state.n_jobs, np.int64)
        counts[0] = 0 if state.time_us == 100_000_000 else state.n_idle
        return Decision(counts)


def test_the_arrival_of_a_job_that_can_never_run_is_a_decision_too():
    events = log(2, [(100, 1, True)], 200, idle_first=(0,))
    jobs = JobSet([job("a", work=np.inf, rates=(0.0, 1.0, 2.0), up_s=60), job("b", min_nodes=3, submit_s=100.000001)])
    run = replay_log(events, jobs, InTwoSteps(), efficiency=False)
    assert run.summary["ledger"]["samples"] == pytest.approx(300.0, abs=1e-3)
    assert run.summary["bound"]["share"] <= 1
    assert run.summary["bound"]["kind"] != "priced"


def test_without_prices_from_the_program_the_bound_is_finite(monkeypatch):
    idle = log(4, [(50, 3, False)], 100, idle_first=(0, 1, 2, 3))
    endless = JobSet(job(str(k), work=np.inf) for k in range(3))
    ending = JobSet(job(str(k), work=50.0) for k in range(3))
    monkeypatch.setattr("bfreplay.bounds.fluid.dual_values", lambda *args, **options: None)
    assert upper_bound(idle, endless, 2).samples == pytest.approx(2 * 40 * 100)  # two are admitted, and none ends
    assert upper_bound(idle, ending, 2).samples == pytest.approx(150)
