"""What must hold for any log, any jobs, both clocks and every policy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy, Policy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import RunResult
from bfreplay.workload import JobSet
from tests.examples import examples
from tests.replay.tiny import job_sets, logs

_POLICIES = {
    "exact": lambda: BFTrainerPolicy(60.0),
    "published limit": lambda: BFTrainerPolicy(60.0, ExactSolver(published_limit=True)),
    "short-sighted": lambda: BFTrainerPolicy(1.0),
    "equal share": EqualSharePolicy,
}
_RUNS = given(
    events=logs(),
    jobs=job_sets(),
    policy=st.sampled_from(sorted(_POLICIES)),
    semantics=st.sampled_from(list(Semantics)),
    max_parallel=st.integers(1, 4),
    seed=st.integers(0, 3),
)


def _run(
    events: NodeEvents, jobs: JobSet, policy: str, semantics: Semantics, max_parallel: int, seed: int
) -> RunResult:
    made: Policy = _POLICIES[policy]()
    return replay_log(
        events,
        jobs,
        made,
        ReplaySettings(max_parallel, semantics, seed, record_nodes=True),
        efficiency=False,
        bound=False,
    )


def _idle_spans(events: NodeEvents) -> dict[str, list[tuple[int, int]]]:
    """When each node was idle, by brute force over the log."""
    spans: dict[str, list[tuple[int, int]]] = {name: [] for name in events.nodes}
    since: dict[int, int] = {}
    for batch in events.batches():
        for t, node, state in zip(batch.time_us.tolist(), batch.node.tolist(), batch.state.tolist(), strict=True):
            if state == NodeState.IDLE:
                since.setdefault(node, t)
            elif node in since:
                spans[events.nodes[node]].append((since.pop(node), t))
    for node, t in since.items():
        spans[events.nodes[node]].append((t, events.window_end_us))
    return spans


def _idle_node_us(events: NodeEvents) -> int:
    return sum(stop - start for spans in _idle_spans(events).values() for start, stop in spans)


@settings(deadline=None, max_examples=examples(150))
@_RUNS
def test_the_ledger_closes_on_the_idle_time_of_the_log(events, jobs, policy, semantics, max_parallel, seed):
    ledger = _run(events, jobs, policy, semantics, max_parallel, seed).summary["ledger"]
    labels = ("useful", "rescaling", "preempted", "stalled", "unallocated")
    labelled = [ledger[f"{label}_node_us"] for label in labels]
    assert sum(labelled) == ledger["idle_node_us"] == _idle_node_us(events)
    assert min(labelled) >= 0


@settings(deadline=None, max_examples=examples(150))
@_RUNS
def test_no_job_holds_a_node_that_is_not_idle_and_no_node_has_two_holders(
    events, jobs, policy, semantics, max_parallel, seed
):
    result = _run(events, jobs, policy, semantics, max_parallel, seed)
    idle = _idle_spans(events)
    held: dict[str, list[tuple[int, int]]] = {name: [] for name in events.nodes}
    table = result.table("nodes")
    bounds = [table[name].cast("int64").to_pylist() for name in ("from", "to")]
    for name, start, stop in zip(table["node"].to_pylist(), *bounds, strict=True):
        held[name].append((start, stop))
        assert any(a <= start < stop <= b for a, b in idle[name])
    for spans in held.values():
        ordered = sorted(spans)
        assert all(a[1] <= b[0] for a, b in pairwise(ordered))
    # and what the nodes table says is what the allocations table says
    allocations = result.table("allocations")
    node_us = sum(
        count * (stop - start)
        for count, start, stop in zip(
            allocations["count"].to_pylist(),
            allocations["from"].cast("int64").to_pylist(),
            allocations["to"].cast("int64").to_pylist(),
            strict=True,
        )
    )
    assert node_us == sum(stop - start for spans in held.values() for start, stop in spans)


@settings(deadline=None, max_examples=examples(150))
@_RUNS
def test_counts_stay_within_the_bounds_of_the_user(events, jobs, policy, semantics, max_parallel, seed):
    result = _run(events, jobs, policy, semantics, max_parallel, seed)
    by_name = {job.name: job for job in jobs}
    table = result.table("allocations")
    held_too_few = 0
    for name, count in zip(table["job"].to_pylist(), table["count"].to_pylist(), strict=True):
        assert count <= by_name[name].max_nodes
        held_too_few += count < by_name[name].min_nodes
    if policy not in ("published limit",):  # whose decision may be infeasible: then all stays as it is
        assert held_too_few == 0


@settings(deadline=None, max_examples=examples(150))
@_RUNS
def test_no_decision_moves_a_job_from_one_node_to_another(events, jobs, policy, semantics, max_parallel, seed):
    """At every instant a job either gains nodes or loses nodes by decision; reclaimed ones do not count."""
    result = _run(events, jobs, policy, semantics, max_parallel, seed)
    reclaimed = set()
    for batch in events.batches():
        for t, node, state in zip(batch.time_us.tolist(), batch.node.tolist(), batch.state.tolist(), strict=True):
            if state != NodeState.IDLE:
                reclaimed.add((events.nodes[node], t))
    table = result.table("nodes")
    finished = dict(
        zip(
            result.table("jobs")["job"].to_pylist(),
            result.table("jobs")["finished"].cast("int64").to_pylist(),
            strict=True,
        )
    )
    gained, lost = set(), set()
    bounds = [table[name].cast("int64").to_pylist() for name in ("from", "to")]
    for node, name, start, stop in zip(table["node"].to_pylist(), table["job"].to_pylist(), *bounds, strict=True):
        gained.add((name, start))
        ends_by_decision = (node, stop) not in reclaimed and stop != finished[name] and stop != events.window_end_us
        if ends_by_decision:
            lost.add((name, stop))
    assert not gained & lost


@settings(deadline=None, max_examples=examples(150))
@_RUNS
def test_a_finished_job_has_done_exactly_its_work_and_no_job_more(events, jobs, policy, semantics, max_parallel, seed):
    result = _run(events, jobs, policy, semantics, max_parallel, seed)
    table = result.table("jobs").to_pydict()
    assert table["job"] == [job.name for job in jobs]
    for status, work, done in zip(table["status"], table["work_samples"], table["done_samples"], strict=True):
        if status == "finished":
            assert done == work
        else:
            assert done <= work * (1 + 1e-9)
    assert sum(table["done_samples"]) == pytest.approx(result.summary["ledger"]["samples"], rel=1e-9, abs=1e-6)


@settings(deadline=None, max_examples=examples(100))
@_RUNS
def test_every_exact_decision_is_proven_and_the_counters_add_up(events, jobs, policy, semantics, max_parallel, seed):
    result = _run(events, jobs, policy, semantics, max_parallel, seed)
    summary = result.summary
    assert sum(summary["decisions"].values()) == summary["n_decisions"] == result.table("decisions").num_rows
    if policy in ("exact", "short-sighted"):
        assert set(summary["decisions"]) <= {"proven", "proven_trivially", "unproven_by_design"}
        gaps = [gap for gap in result.table("decisions")["gap"].to_pylist() if gap is not None]
        assert all(gap <= 1e-9 for gap in gaps)


@settings(deadline=None, max_examples=examples(60))
@given(events=logs(), jobs=job_sets(), max_parallel=st.integers(1, 4))
def test_continuous_progress_never_falls(events, jobs, max_parallel):
    result = replay_log(
        events, jobs, BFTrainerPolicy(60.0), ReplaySettings(max_parallel), efficiency=False, bound=False
    )
    assert np.all(np.array(result.table("decisions")["samples_since_last"]) >= -1e-6)
