"""Warnings about a run: its log, jobs that could never run, deadlines that no job has; and those of several runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.replay.pool_tables import count_interval, empty_bins
from bfreplay.runs.run_warnings import distinct_warnings, rescale_warnings
from bfreplay.runs.summary_text import render
from bfreplay.workload import JobSet
from tests.campaigns.small_campaigns import campaign, source
from tests.replay.tiny import job, log


def warned_log(events, node_hours):
    """The same log, of whose idle node-hours so many are in warning; the whole log of the import has 10."""
    report = {"facts": {"node_hours": {"idle": 10.0}}, "warnings": {"x": {"count": 2, "node_hours": node_hours}}}
    events.metadata = replace(events.metadata, notes={"ingest": report})
    return events


def wide(name="wide", n_nodes=300):
    return job(name, rates=(*([0.0] * n_nodes), 1.0), min_nodes=n_nodes)


def test_a_log_that_cannot_be_believed_is_the_first_thing_that_a_summary_says():
    run = replay_log(warned_log(log(2, [], 3600, idle_first=[0]), 27.0), JobSet([job()]))
    assert render(run).splitlines()[:4] == [
        "Warning: The idle nodes of this log cannot be believed: warnings of its import concern at most 27 "
        "node-hours, 2.70 times the idle ones of the imported log.",
        "Warning: 2 x x (27 node-hours, 2.70 times the idle ones)",
        "",
        "Policy      bftrainer, decided by exact, T_fwd 120 s",
    ]
    assert run.summary["log_warnings"] == {
        "verdict": "cannot be believed",
        "idle_node_hours": 10.0,
        "node_assignment": None,
        "warnings": [
            {
                "sentence": "x",
                "count": 2,
                "node_hours": 27.0,
                "share": 2.7,
                "is_estimate": False,
                "aside": "",
                "why_no_amount": "",
            }
        ],
    }


@pytest.mark.parametrize("change", [{"semantics": "published"}, {}])
def test_shares_are_of_the_whole_log_whatever_part_of_it_is_replayed_and_by_which_clock(change):
    events = warned_log(log(2, [(60, 0, False)], 3600, idle_first=[0]), 4.0).between(0, 120_000_000)
    run = replay_log(events, JobSet([job()]), None, ReplaySettings(3, **change))
    assert run.summary["ledger"]["node_hours"]["idle"] < 0.02
    assert run.warnings[1] == "2 x x (4 node-hours, 40 % of the idle ones)"


def test_a_job_that_could_never_run_is_named_with_what_it_needs():
    events = log(256, [], 60, idle_first=range(190))
    assert replay_log(events, JobSet([job(), wide()])).warnings == [
        "1 of 2 jobs could never run: wide needs 300 nodes, and at most 190 of 256 were ever idle at once."
    ]
    run = replay_log(events, JobSet([job(), wide("b", 200), wide("c")]))
    assert run.summary["widest_job"].to_json() == {"name": "c", "min_nodes": 300}
    assert render(run).startswith("Warning: 2 of 3 jobs could never run: c, the widest, needs 300 nodes, and")
    assert replay_log(events, JobSet([job(), wide(n_nodes=190)])).warnings == []
    assert replay_log(events, JobSet([job()])).summary["widest_job"] is None


def test_a_log_without_an_idle_node_has_nothing_to_replay():
    assert replay_log(log(2, [], 60), JobSet([job(), wide()])).warnings == [
        "No node is idle in this log: nothing to replay. Is --window right? Is --inventory missing in the import?"
    ]


@pytest.mark.parametrize("objective", ["deadline", "0.5*throughput + 2*deadline(margin=1.5)"])
def test_deadlines_that_no_job_has_are_nothing_to_go_by(objective):
    def warnings(*jobs):
        return replay_log(log(2, [], 60, idle_first=[0]), JobSet(jobs), BFTrainerPolicy(120, None, objective))

    assert warnings(job("a"), job("b")).warnings == [
        f"The objective {objective} uses deadlines, but none of 2 jobs has one."
    ]
    later = replace(job("late", submit_s=90), deadline_us=95_000_000)
    for deadline_us in (5, 90_000_000):
        assert warnings(job("a"), replace(job("b"), deadline_us=deadline_us)).warnings == []
    assert warnings(job("a"), later).warnings == []


def test_an_objective_without_deadlines_needs_none():
    assert replay_log(log(2, [], 60, idle_first=[0]), JobSet([job("a")])).warnings == []


@pytest.mark.parametrize(
    ("parallel", "max_parallel", "nodes", "is_named"),
    [
        (2, 3, log(2, [], 3600, idle_first=[0]), True),
        (2, 3, fixed_cluster("node=4"), True),
        (2, 4, fixed_cluster("node=4"), False),
        (2, 10, log(2, [], 3600, idle_first=[0]), False),
        (2, 2, log(2, [], 3600, idle_first=[0]), False),
        (None, 3, log(2, [], 3600, idle_first=[0]), False),
        (3, 2, log(2, [], 3600, idle_first=[0]), False),
    ],
)
def test_a_limit_of_trials_that_has_no_effect_is_named_unless_it_is_a_default(parallel, max_parallel, nodes, is_named):
    settings = ReplaySettings(max_parallel, until_done=True)
    run = replay_log(nodes, source(campaign(parallel=parallel)), None, settings, efficiency=False, bound=False)
    words = (
        "--max-parallel 3 has no effect: parallel = 2 in [campaign] lets no more trials run at once. Raise it there."
    )
    assert [*run.warnings] == ([words] if is_named else [])


def test_warnings_of_several_runs_are_told_once_with_the_runs_that_have_them():
    by_run = [("A", ["x", "y"]), ("B", ["x"]), ("C", ["x", "z", "y"])]
    assert distinct_warnings(by_run) == ["x", "A, C: y", "C: z"]
    assert distinct_warnings(by_run, most_named=1) == ["x", "2 of 3 runs: y", "C: z"]
    assert distinct_warnings([("A", ["x", "x"]), ("B", [])]) == ["A: x"]
    assert distinct_warnings([]) == []


ROUNDS = [(600.0 * k, node, k % 2 == 1) for k in range(1, 7) for node in (0, 1)]
"""Two nodes that are idle for 10 minutes three times."""


@pytest.mark.parametrize("costs", [{"scale_up_cost_s": "0:5 2:9000"}, {"scale_down_cost_s": "0:9000 2:5"}])
def test_of_costs_by_count_the_highest_is_warned_of(costs):
    bins = empty_bins()
    count_interval(bins, 600_000_000, 0, False)
    (warning,) = rescale_warnings([replace(job("a", up_s=6.0, down_s=7.0), **costs)], bins)
    assert warning.startswith("Job a loses up to 9,000 s of training")


@pytest.mark.parametrize(("up_s", "down_s"), [(10_000.0, 5.0), (5.0, 10_000.0)])
def test_rescale_costs_above_the_median_idle_interval_are_warned_of_with_both_figures(up_s, down_s):
    jobs = JobSet([job("a"), job("b", up_s=up_s, down_s=down_s), job("c", up_s=9_999.0)])
    warnings = replay_log(log(2, ROUNDS, 4_000), jobs).warnings
    assert (
        "Job b loses up to 10,000 s of training when rescaled, more than the median idle interval of this "
        "log lasts (512 to 724 s). Are scale_up_cost_s and scale_down_cost_s in seconds?"
    ) in warnings


@pytest.mark.parametrize(
    ("events", "cost_s"), [(log(2, ROUNDS, 4_000), 700.0), (log(2, [], 4_000, idle_first=[0, 1]), 9_000.0)]
)
def test_costs_below_it_and_a_log_whose_idle_intervals_are_all_cut_raise_no_such_warning(events, cost_s):
    assert replay_log(events, JobSet([job("a", up_s=cost_s)])).summary.costly_rescaling == ()
