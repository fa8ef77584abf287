"""What a run did hour by hour: worked by hand, and summing up to what the run says of itself."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.run_comparison.confidence import MOST_BINS, bin_edges, run_hours
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import Semantics
from bfreplay.workload import Colocation, JobSet
from tests.experiments.run_comparison.little_runs import (
    HOUR,
    PAIRS,
    busy_days,
    ending_jobs,
    pair_of_runs,
    run,
    two_hours,
)
from tests.replay import placed
from tests.replay.tiny import job, log


def _hours(result, bin_s=HOUR):
    config = result.record["config"]
    return run_hours(result, bin_edges(config["window_start_us"], config["window_end_us"], bin_s)).values


def test_samples_and_node_hours_of_each_hour_are_those_worked_by_hand():
    # 10 samples/s a node, nothing lost: 1.5 node-hours and 54,000 samples in each of the two hours
    values = _hours(run(two_hours(), JobSet([job()])))
    assert values["samples"].tolist() == pytest.approx([54_000.0, 54_000.0])
    assert values["held_node_hours"].tolist() == pytest.approx([1.5, 1.5])
    assert values["free_node_hours"].tolist() == pytest.approx([0.0, 0.0], abs=1e-12)
    assert values["n_scale_ups"].tolist() == [1.0, 1.0]
    assert values["n_preemptions"].tolist() == [1.0, 0.0]


def test_what_is_charged_lies_in_the_bin_where_it_was_charged():
    # reclaimed at 0:30: 20 samples/s x 2 s; grown again at 1:30: 10 samples/s x 3 s
    values = _hours(run(two_hours(), JobSet([job(up_s=3.0, down_s=2.0)])))
    assert values["preemption_cost_samples"].tolist() == [40.0, 0.0]
    assert values["rescale_cost_samples"].tolist() == [0.0, 30.0]


def test_what_happens_when_the_window_ends_lies_in_the_last_bin():
    # both nodes for two hours; one of them is reclaimed as the window ends: 20 samples/s x 2 s
    values = _hours(run(log(2, [(2 * HOUR, 1, False)], 2 * HOUR, [0, 1]), JobSet([job(down_s=2.0)])))
    assert values["n_preemptions"].tolist() == [0.0, 1.0]
    assert values["preemption_cost_samples"].tolist() == [0.0, 40.0]
    assert values["samples"].tolist() == pytest.approx([72_000.0, 72_000.0])
    assert values["held_node_hours"].tolist() == pytest.approx([2.0, 2.0])


def test_nodes_that_two_jobs_share_are_held_once():
    both = placed.Scripted(placed.Step({0: [0], 1: [0]}, pairs=((0, 1),)))
    jobs = [placed.typed_job("a"), placed.typed_job("b")]
    together = Colocation({("a", "b", 1, "v100"): (6.0, 3.0)})
    values = _hours(placed.run(placed.typed_log("v100", 2 * HOUR), jobs, both, colocation=together))
    assert values["held_node_hours"].tolist() == [1.0, 1.0]
    assert values["free_node_hours"].tolist() == [0.0, 0.0]
    assert values["samples"].tolist() == pytest.approx([32_400.0, 32_400.0])


def test_progress_between_two_decisions_is_split_in_proportion_to_time():
    # from 0:30 to 1:30 one node; bins of 40 minutes: 30 x 20 + 10 x 10, 40 x 10, 10 x 10 + 30 x 20
    values = _hours(run(two_hours(), JobSet([job()])), 2_400.0)
    assert values["samples"].tolist() == pytest.approx([42_000.0, 24_000.0, 42_000.0])


def test_time_after_the_last_decision_is_counted_to_the_end_of_the_window():
    # one decision only, at the start
    values = _hours(run(log(1, [], 3 * HOUR, [0]), JobSet([job()])))
    assert values["samples"].tolist() == pytest.approx([36_000.0] * 3)
    assert values["n_scale_ups"].tolist() == [1.0, 0.0, 0.0]


def test_a_last_bin_may_be_shorter():
    values = _hours(run(log(1, [], 1.5 * HOUR, [0]), JobSet([job()])))
    assert values["samples"].tolist() == pytest.approx([36_000.0, 18_000.0])


def test_after_the_last_job_nothing_is_made_and_idle_nodes_are_free():
    values = _hours(run(log(2, [], 3 * HOUR, [0, 1]), JobSet([job(work=36_000.0)])))  # done after half an hour
    assert values["samples"].tolist() == pytest.approx([36_000.0, 0.0, 0.0])
    assert values["held_node_hours"].tolist() == pytest.approx([1.0, 0.0, 0.0])
    assert values["free_node_hours"].tolist() == pytest.approx([1.0, 2.0, 2.0])


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("bin_s", [HOUR, 700.0])
def test_bins_add_up_to_the_run(pair, which, bin_s):
    result = pair_of_runs(pair)[which]
    values, summary = _hours(result, bin_s), result.summary
    ledger = summary["ledger"]
    held = ledger["allocated_node_us"] / 3.6e9
    assert values["samples"].sum() == pytest.approx(ledger["samples"], rel=1e-12)
    assert values["held_node_hours"].sum() == pytest.approx(held, rel=1e-12)
    assert values["free_node_hours"].sum() == pytest.approx(ledger["node_hours"]["unallocated"], rel=1e-9)
    assert values["free_node_hours"].min() > -1e-9
    assert values["n_scale_ups"].sum() == summary["n_scale_ups"] > 0
    assert values["n_scale_downs"].sum() == summary["n_scale_downs"]
    assert values["n_preemptions"].sum() == summary["n_preemptions"] > 0


def test_idle_nodes_known_from_decisions_are_those_of_the_log():
    # the whole of it is in the ledger, which sums up node by node: nothing is left to be spread
    result = run(busy_days(), JobSet([job()]))
    values = _hours(result)
    total = result.summary["ledger"]["idle_node_us"] / 3.6e9
    assert (values["held_node_hours"] + values["free_node_hours"]).sum() == pytest.approx(total, rel=1e-12)


def test_the_published_clock_charges_in_the_bins_too():
    # its seeded first map grows the job from no nodes at the rate of one or two, which is charged in the first hour
    result = run(two_hours(), JobSet([job(up_s=3.0, down_s=2.0)]), semantics=Semantics.PUBLISHED)
    values, rows = _hours(result), result.decisions
    assert values["samples"].sum() == pytest.approx(result.summary["ledger"]["samples"], rel=1e-12)
    charged = rows.set_index(rows["time"].dt.hour)[["rescale_cost_samples", "preemption_cost_samples"]]
    for name in charged:
        assert values[name].tolist() == [charged[name][[hour]].sum() for hour in (0, 1)]
    assert values["rescale_cost_samples"][1] == 30.0


def test_a_run_without_any_job_has_hours_of_free_nodes():
    late = JobSet([job(submit_s=10 * HOUR)])
    values = _hours(run(two_hours(), late, EqualSharePolicy()))
    assert values["samples"].tolist() == [0.0, 0.0]
    assert values["free_node_hours"].sum() == pytest.approx(3.0)


def test_too_many_bins_are_refused():
    assert bin_edges(0, MOST_BINS * 1_000_000, 1.0).size == MOST_BINS + 1
    with pytest.raises(InputError, match="use longer bins"):
        bin_edges(0, MOST_BINS * 1_000_000 + 1, 1.0)


def test_edges_begin_and_end_with_the_window():
    assert bin_edges(5, 25_000_005, 10.0).tolist() == [5, 10_000_005, 20_000_005, 25_000_005]
    assert bin_edges(0, 1_000, 3_600.0).tolist() == [0, 1_000]


def test_jobs_that_leave_early_do_not_hide_when_nodes_were_idle():
    from bfreplay.experiments import compare

    # the nodes are idle in the first and in the last of four hours; one run is done after half an hour
    events = log(1, [(HOUR, 0, False), (3 * HOUR, 0, True)], 4 * HOUR, [0])
    jobs = JobSet([job("a", work=18_000.0), job("b", work=1e6, min_nodes=2)])  # b waits for a second node in vain
    quick, waits = (run(events, jobs, EqualSharePolicy(), max_parallel=n) for n in (1, 2))
    found = compare(quick, waits).hours
    free = found.groupby("run")["free_node_hours"].apply(list)
    assert np.allclose(free["A"], [0.5, 0.0, 0.0, 1.0])
    assert np.allclose(free["B"], [0.5, 0.0, 0.0, 1.0])


def test_the_jobs_of_a_set_end_at_the_same_progress_however_long_the_bins_are():
    result = run(busy_days(), ending_jobs())
    for bin_s in (60.0, HOUR, 30 * 24 * HOUR):
        assert _hours(result, bin_s)["samples"].sum() == pytest.approx(result.summary["ledger"]["samples"], rel=1e-12)
