"""ElasticFlow's policies in the replay: one rule for all; published schedules are in tests/parity."""

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of
from bfreplay.replay import ReplaySettings
from bfreplay.systems.elasticflow.fixed_policies import finish_time_shares
from bfreplay.systems.elasticflow.generated_workload import generated_jobs
from bfreplay.systems.elasticflow.policies import POLICIES
from bfreplay.systems.elasticflow.throughputs import made_up_throughputs, read_throughputs
from bfreplay.systems.elasticflow.trace import read_trace
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log

ALL = ReplaySettings(max_parallel=5000, until_done=True)


def policy(name, **parameters):
    spec = ", ".join(f"{key}={str(value).lower()}" for key, value in parameters.items())
    return policy_of(f"elasticflow.{name}" + (f"({spec})" if spec else ""), t_fwd_s=60.0, solver=ExactSolver())


def generated(n=12, **parameters):
    return generated_jobs(made_up_throughputs(), n, gap_s=300, most_gpus=4, **parameters)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_runs_all_jobs_or_says_why_not(name):
    run = replay_log(fixed_cluster("gpu=8"), generated(), policy(name), ALL)
    left = run.jobs[run.jobs["status"] != "finished"]
    assert sorted(left["job"]) == sorted(run.summary["declined"])
    assert not left.size or name in ("elasticflow", "edf_admission")


@pytest.mark.parametrize("name", ["elasticflow", "edf_admission"])
def test_who_is_admitted_is_in_time_where_rescaling_is_free(name):
    free = JobSet([replace(each, scale_up_cost_s=0.0, scale_down_cost_s=0.0) for each in generated(30)], True)
    run = replay_log(fixed_cluster("gpu=8"), free, policy(name, slot_s=10), ALL)
    assert run.summary["deadlines"]["missed"] == 0
    assert run.summary["deadlines"]["met"] > 0
    assert run.summary["deadlines"]["declined"] > 0


def test_elasticflow_meets_more_deadlines_than_edf_and_those_than_policies_that_know_none(shared):
    folder = shared / "data/elasticflow"
    jobs = read_trace(folder / "traces/195job_first25.csv", read_throughputs(folder / "throughputs_A100"))
    met = {
        name: replay_log(fixed_cluster("a100=32"), jobs, policy(name, slot_s=240), ALL).summary["deadlines"]["met"]
        for name in ("elasticflow", "elastic", "edf", "tiresias")
    }
    assert met["elasticflow"] > met["elastic"] > met["tiresias"]
    assert met["elasticflow"] > met["edf"]


def test_the_published_simulator_is_refused_where_nodes_are_reclaimed_or_are_no_whole_servers():
    events = log(8, [(50, 0, False), (60, 0, True)], 10_000, idle_first=range(8))
    jobs = generated(3)
    with pytest.raises(InputError, match="cannot reclaim nodes"):
        replay_log(events, jobs, policy("edf", published=True), ALL)
    with pytest.raises(InputError, match="not a whole number of servers"):
        replay_log(fixed_cluster("gpu=12"), jobs, policy("edf", published=True), ALL)


def test_the_published_simulator_is_refused_for_jobs_of_no_trace():
    with pytest.raises(InputError, match="is not of a trace of ElasticFlow"):
        replay_log(fixed_cluster("gpu=8"), JobSet([job(work=5)], True), policy("edf", published=True), ALL)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"slot_s": 0}, "slot_s"),
        ({"reserve": -1}, "reserve"),
        ({"order": "'random'"}, "order"),
        ({"published": True, "slot_s": 0.5}, "slot_s"),
        ({"published": True, "slot_s": 60.5}, "whole seconds"),
        ({"gpus_each": 0}, "gpus_each"),
    ],
)
def test_options_that_make_no_sense_are_refused(parameters, says):
    with pytest.raises(InputError, match=says):
        policy("elasticflow", **parameters)


# the others, by hand


def starts(run):
    return run.jobs.set_index("job")["first_start"].astype("int64").to_dict()


def fixed(name, nodes, work, submit_s=0.0, deadline_s=None):
    due_us = None if deadline_s is None else round(deadline_s * SECOND)
    made = job(name, work=work, rates=(0.0, 1.0, 2.0, 3.0, 4.0), submit_s=submit_s)
    return replace(made, requested_nodes=nodes, deadline_us=due_us)


def allocations(run, name):
    table = run.table("allocations").to_pandas()
    rows = table[(table["job"] == name) & (table["count"] > 0)]
    return [(row.start.timestamp(), row.end.timestamp(), row.count) for row in rows.itertuples(index=False)]


def test_tiresias_stops_a_job_that_has_been_served_for_one_that_has_not():
    jobs = JobSet([fixed("old", 4, 40_000), fixed("new", 4, 400, submit_s=100)], True)
    run = replay_log(log(4, [], 20_000, idle_first=range(4)), jobs, policy("tiresias"), ALL)
    # 3,250 node seconds of the first take 812.5 s on 4 nodes; then the new one is first until it is done
    assert run.table("allocations").num_rows >= 3
    assert run.jobs.set_index("job")["first_start"]["new"].timestamp() == pytest.approx(812.5, abs=1e-3)
    assert run.jobs.set_index("job")["finished"]["new"].timestamp() == pytest.approx(912.5, abs=1e-3)


def test_gandiva_lets_jobs_take_turns_of_a_slot():
    jobs = JobSet([fixed("a", 4, 400), fixed("b", 4, 400)], True)
    run = replay_log(log(4, [], 20_000, idle_first=range(4)), jobs, policy("gandiva", slot_s=50), ALL)
    finished = run.jobs.set_index("job")["finished"]
    assert finished["a"].timestamp() == 150.0
    assert finished["b"].timestamp() == 200.0


def test_themis_runs_those_that_lag_most_behind_their_share():
    jobs = JobSet([fixed("long", 4, 4000), fixed("short", 4, 40, submit_s=1)], True)
    run = replay_log(log(4, [], 20_000, idle_first=range(4)), jobs, policy("themis", slot_s=10), ALL)
    finished = run.jobs.set_index("job")["finished"]
    assert finished["short"].timestamp() < 60
    assert finished["long"].timestamp() == 1010.0


def test_shares_keep_the_worst_ratio_of_finish_times_least():
    elapsed, left, alone = (
        np.array([0.0, 100.0, 50.0]),
        np.array([100.0, 100.0, 400.0]),
        np.array([200.0, 200.0, 800.0]),
    )
    width = np.array([2, 2, 4])
    shares = finish_time_shares(elapsed, left, alone, width, 4)
    assert (shares * width).sum() <= 4 + 1e-9
    worst = ((elapsed + left / shares) / alone).max()
    rng = np.random.Generator(np.random.PCG64(0))
    for _ in range(2000):
        other = rng.uniform(0.01, 1.0, 3)
        other *= min(1.0, 4 / (other * width).sum())
        assert ((elapsed + left / other) / alone).max() >= worst * (1 - 1e-6)


def test_chronus_holds_leases_for_whom_it_can_keep_them_and_runs_the_others_on_what_is_left():
    # each needs two leases of 240 s, and there are three: a, which comes first, is done after 400 s, and b after 800 s
    jobs = JobSet([fixed("a", 4, 1600, deadline_s=700), fixed("b", 4, 1600, deadline_s=750)], True)
    run = replay_log(log(4, [], 20_000, idle_first=range(4)), jobs, policy("chronus", backend="greedy"), ALL)
    rows = run.jobs.set_index("job")
    assert bool(rows["deadline_met"]["a"])
    assert not bool(rows["deadline_met"]["b"])
    assert rows["status"]["b"] == "finished"


@pytest.mark.slow
def test_chronus_counts_its_solves_and_an_unknown_back_end_is_refused():
    run = replay_log(fixed_cluster("gpu=8"), generated(), policy("chronus"), ALL)
    assert run.summary["policy"]["n_solves"] > 0
    assert run.summary["policy"]["n_fallbacks"] == 0
    with pytest.raises(InputError, match="nosuch"):
        policy("chronus", backend="nosuch")
