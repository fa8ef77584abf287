"""What made the difference: the parts add up for every pair, and each is what it is called."""

from __future__ import annotations

import pytest

from bfreplay.experiments.run_comparison.comparison import causes_of, totals_of
from bfreplay.policies import EqualSharePolicy
from bfreplay.workload import JobSet
from tests.experiments.run_comparison.little_runs import HOUR, PAIRS, pair_of_runs, run, two_hours
from tests.replay.tiny import job, log


@pytest.mark.parametrize("pair", PAIRS)
def test_the_parts_add_up_to_the_difference(pair):
    a, b = pair_of_runs(pair)
    for one, other in ((a, b), (b, a), (a, a)):
        parts = causes_of(one, other).to_json()
        gross = one.summary["ledger"]["gross_samples"]
        difference = other.summary["ledger"]["samples"] - one.summary["ledger"]["samples"]
        assert sum(parts.values()) == pytest.approx(difference, abs=1e-8 * gross)
    forth, back = causes_of(a, b).to_json(), causes_of(b, a).to_json()
    assert forth == {name: -size for name, size in back.items()}
    assert any(abs(size) > 1e-6 * a.summary["ledger"]["gross_samples"] for size in forth.values())


def test_a_dearer_rescale_is_put_down_to_rescaling_and_a_dearer_reclaim_to_preemption():
    # the same nodes and rates in all; 10 samples/s x 3 s for growing, 20 samples/s x 2 s for the reclaim
    free, up, down = (run(two_hours(), JobSet([job(up_s=u, down_s=d)])) for u, d in ((0, 0), (3, 0), (0, 2)))
    parts = causes_of(free, up).to_json()
    assert {name: size for name, size in parts.items() if abs(size) > 1e-6} == {"rescaling": pytest.approx(-30.0)}
    parts = causes_of(free, down).to_json()
    assert {name: size for name, size in parts.items() if abs(size) > 1e-6} == {"preemption": pytest.approx(-40.0)}


def test_wider_use_of_the_same_nodes_is_put_down_to_node_hours_and_to_the_rate_half_by_half():
    # A holds one of two nodes for an hour, 10 samples/s; B holds both, 15 samples/s: 36,000 and 54,000 samples.
    # 1 node-hour more at (36,000 + 27,000) / 2 samples each, and 9,000 fewer samples in each of 1.5
    narrow = JobSet([job(rates=(0.0, 10.0))])
    wide = JobSet([job(rates=(0.0, 10.0, 15.0))])
    a, b = (run(log(2, [], HOUR, [0, 1]), jobs) for jobs in (narrow, wide))
    parts = causes_of(a, b)
    assert parts.node_hours == pytest.approx(31_500.0)
    assert parts.samples_per_node_hour == pytest.approx(-13_500.0)
    assert b.summary.ledger.node_hours.used == pytest.approx(2.0)


def test_where_one_run_used_no_node_all_is_due_to_node_hours():
    idle, busy = (run(two_hours(), JobSet([job(submit_s=s)])) for s in (10 * HOUR, 0.0))
    assert causes_of(idle, busy).to_json() == {
        "node_hours": pytest.approx(108_000.0),
        "samples_per_node_hour": 0.0,
        "rescaling": 0.0,
        "preemption": 0.0,
        "repeated": 0.0,
        "trimmed": 0.0,
    }
    assert set(causes_of(idle, idle).to_json().values()) == {0.0}
    assert totals_of(idle)["gross_samples_per_used_node_hour"] == 0.0


def test_totals_are_those_of_the_summary_and_node_hours_add_up_to_the_idle_ones():
    result = run(two_hours(), JobSet([job(up_s=3.0, down_s=2.0), job("wide", min_nodes=2)]), EqualSharePolicy())
    totals = totals_of(result)
    labels = ("useful", "rescaling", "preempted", "repeated", "unallocated", "stalled")
    assert sum(totals[f"{name}_node_hours"] for name in labels) == pytest.approx(3.0)
    assert totals["n_preemptions"] == result.summary["n_preemptions"]
