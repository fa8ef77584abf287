"""Shockwave's policies in the replay, by one consistent set of rules: on a cluster, and on nodes that come and go."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import POLICIES, policy_of
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.runs.summary_text import render
from bfreplay.scalability import TabulatedCurve
from bfreplay.systems.gavel.made_up_throughputs import sample_throughputs
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.policies import gavel_policy
from bfreplay.systems.shockwave.adaptation_rules import Mode
from bfreplay.systems.shockwave.generated_workload import generated_jobs
from bfreplay.systems.shockwave.policies import shockwave_policy
from bfreplay.systems.shockwave.shockwave_policy import ShockwaveOptions
from bfreplay.systems.shockwave.trace import JobMaker
from bfreplay.systems.trace_lines import AskedJob
from bfreplay.workload import Adaptation, ElasticJob, JobSet
from tests.replay.tiny import log

NAMES = [name for name in POLICIES.names() if name.startswith("shockwave.")]
BASELINES = [name for name in NAMES if name != "shockwave.shockwave"]


def job(name: str, work: float, *, gang: int = 1, submit_s: float = 0.0, changes=((0.0, 1),)) -> ElasticJob:
    """10 steps/s at batch size 1 and 8 at batch size 2, which makes 16 samples/s; epochs of 1,000 samples."""
    curves = {size: TabulatedCurve((0, gang), (0, rate)) for size, rate in ((1, 10.0), (2, 16.0))}
    adaptation = Adaptation("accordion", 1000, curves, changes)
    return ElasticJob(
        name, round(submit_s * 1e6), gang, gang, 0.0, 0.0, work, curves[1], adaptation=adaptation, model=name
    )


def run(jobs, policy, events=None, **settings) -> RunResult:
    return replay_log(
        events or fixed_cluster("v100=1"),
        JobSet(jobs, submit_is_relative=True),
        policy,
        ReplaySettings(max_parallel=100, until_done=True, **settings),
        efficiency=False,
        bound=False,
    )


def finished_s(result: RunResult) -> list[float]:
    return (result.jobs["finished"] - result.jobs["submitted"]).dt.total_seconds().round(3).tolist()


def made(spec: str):
    return policy_of(spec, t_fwd_s=60.0, solver=ExactSolver())


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_runs_a_job_that_becomes_faster_to_its_end(name):
    # 20 s to restore, 1,200 samples at 10/s, then 1,800 at 16/s
    result = run([job("one", 3000, changes=((0.0, 1), (1200.0, 2)))], made(name))
    assert finished_s(result) == [20 + 120 + 1800 / 16]
    assert result.summary["ledger"]["samples"] == pytest.approx(3000)


def test_a_job_that_changes_more_than_once_in_a_round_is_never_held_back_by_its_first_rate():
    """In the second round it does 88 samples at 10/s and the rest at 16/s: more than 120 s at 10/s would."""
    changes = ((0.0, 1), (300.0, 2), (600.0, 1), (1200.0, 2))
    result = run([job("one", 3000, changes=changes)], made("shockwave.mst"))
    assert finished_s(result) == [20 + 30 + 300 / 16 + 60 + 1800 / 16]


def test_equal_shares_take_turns_and_pay_for_each():
    result = run([job("a", 3600), job("b", 3600)], made("shockwave.gandiva_fair(restart_s=20)"))
    # a round each: 20 s of every round go into the restart
    assert result.summary["policy"]["n_rounds"] == 8
    assert result.summary["ledger"]["node_hours"]["rescaling"] == pytest.approx(8 * 20 / 3600, rel=0.01)


def test_a_change_of_the_batch_size_makes_shares_be_computed_anew_unless_published():
    """Least makespan on one node: both have 3,600 steps to do, until a becomes faster after 1,000 of them."""
    jobs = [job("a", 3600, changes=((0.0, 1), (1000.0, 2))), job("b", 3600)]
    counted = run(jobs, made("shockwave.ossp")).summary["policy"]["n_recomputations"]
    assert (
        counted
        == run([job("a", 3600), job("b", 3600)], made("shockwave.ossp")).summary["policy"]["n_recomputations"] + 1
    )


@pytest.mark.often(
    "shockwave.themis",
    "shockwave.ossp",
    "shockwave.gavel",
    "shockwave.mst",
    "shockwave.allox",
    "shockwave.gandiva_fair",
)
@pytest.mark.parametrize("name", NAMES)
def test_nodes_that_come_and_go_are_used_and_the_books_close(name):
    rng = np.random.default_rng(5)
    changes, idle = [], {0, 1, 2, 3}
    for t in np.sort(rng.choice(np.arange(1, 20_000), 120, replace=False)).tolist():
        node = int(rng.integers(6))
        idle ^= {node}
        changes.append((float(t), node, node in idle))
    jobs = generated_jobs(sample_throughputs(), 8, seed=3, max_hours=0.6, gap_s=200)
    result = replay_log(
        log(6, changes, 20_000, (0, 1, 2, 3)),
        jobs,
        made(name),
        ReplaySettings(max_parallel=100),
        efficiency=False,
        bound=True,
    )
    assert result.summary["jobs"]["finished"] > 0
    assert result.summary["ledger"]["samples"] <= result.summary["bound"]["samples"]


def test_the_planner_counts_plans_and_repeats_itself():
    jobs = generated_jobs(sample_throughputs(), 10, seed=1, max_hours=0.5)
    one, other = (
        replay_log(
            fixed_cluster("v100=3"),
            jobs,
            made("shockwave.shockwave(k=0.5)"),
            ReplaySettings(max_parallel=100, until_done=True),
            efficiency=False,
            bound=False,
        )
        for _ in range(2)
    )
    assert one.summary["policy"] == other.summary["policy"]
    assert one.summary["policy"]["plans"] > 10
    assert one.summary["policy"]["stopped_by_time_limit"] == 0
    assert one.jobs.equals(other.jobs)
    assert f"Plans       {one.summary['policy']['plans']}\n" in render(one)


def test_a_solve_that_its_time_limit_ends_reaches_the_summary():
    jobs = generated_jobs(sample_throughputs(), 10, seed=1, max_hours=0.5)
    result = replay_log(
        fixed_cluster("v100=3"),
        jobs,
        made("shockwave.shockwave(time_limit_s=0.000001)"),
        ReplaySettings(max_parallel=100, until_done=True),
        efficiency=False,
        bound=False,
    )
    own = result.summary["policy"]
    assert own["stopped_by_time_limit"] + own["without_answer"] > 0
    assert "another machine may plan otherwise" in render(result)


@pytest.mark.parametrize("published", [False, True])
def test_the_planner_knows_the_profile_that_goes_with_the_rules(published):
    """40 epochs under GNS: the published profile gives the last one its first batch size."""
    maker = JobMaker(sample_throughputs())
    one = maker.job("one", AskedJob("ResNet-18 (batch size 64)", 1, 31_280, 0, mode=Mode.GNS))
    policy = made(f"shockwave.shockwave(published={str(published).lower()})")
    profiles, add = [], policy._planner.add
    policy._planner.add = lambda number, profile, *more: (profiles.append(profile), add(number, profile, *more))
    run([one], policy)
    assert profiles[0].batch_size[-2:].tolist() == ([256, 64] if published else [256, 256])
    assert policy.seconds_alone(one, 1) == pytest.approx(
        profiles[0].exclusive_s if published else one.seconds_alone(1), rel=1e-12
    )


@pytest.mark.parametrize("backend", ["highs", "cbc"])
def test_the_planners_back_end_is_a_flag(backend):
    jobs = [job(name, 2400, submit_s=60 * k) for k, name in enumerate("abc")]
    result = run(jobs, made(f"shockwave.shockwave(backend={backend})"), fixed_cluster("v100=2"))
    assert result.summary["policy"]["plans"] > 0
    assert result.summary["jobs"]["finished"] == 3


def test_fairness_compares_with_time_alone_and_contention():
    """Two jobs of 240 s alone on one node: contention 2, so that one which takes 480 s has a rho of 1."""
    result = run([job("a", 2400), job("b", 2400)], made("shockwave.gandiva_fair(restart_s=0)"))
    fair = result.summary["scheduling"]["contention_fairness"]
    seconds = finished_s(result)
    assert fair["contention"] == 2.0
    assert fair["largest_rho"] == pytest.approx(max(seconds) / 480)
    assert fair["average_rho"] == pytest.approx(sum(seconds) / 2 / 480)
    assert fair["unfair_share"] == sum(s / 480 > 1.05 for s in seconds) / 2
    # both were there until the first was done, then one
    met = [1 + min(seconds) / s for s in seconds]
    assert fair["largest_rho_by_presence"] == pytest.approx(
        max(s / (240 * m) for s, m in zip(seconds, met, strict=True))
    )
    scheduling = result.summary["scheduling"]
    assert scheduling["geometric_mean_jct_s"] == pytest.approx((seconds[0] * seconds[1]) ** 0.5)
    assert scheduling["harmonic_mean_jct_s"] == pytest.approx(2 / (1 / seconds[0] + 1 / seconds[1]))


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_the_published_simulator_takes_jobs_of_a_trace_on_a_cluster_of_one_size():
    policy = shockwave_policy("ossp")(ShockwaveOptions(published=True))
    with pytest.raises(InputError, match="cannot run the job"):
        run([ElasticJob("plain", 0, 1, 2, 0, 0, 100, TabulatedCurve((0, 1, 2), (0, 1, 2)))], policy)
    with pytest.raises(InputError, match="cannot run the job"):
        run(generated_jobs(sample_throughputs(), 1, elastic=True), policy)
    with pytest.raises(InputError, match="no known data set"):
        run([job("unknown", 100)], policy)
    jobs = generated_jobs(sample_throughputs(), 3, seed=3, max_hours=0.6)
    with pytest.raises(InputError, match="constant set of nodes"):
        replay_log(log(3, [(500, 2, True)], 9000, (0, 1)), jobs, made("shockwave.themis(published=true)"))


@pytest.mark.parametrize(
    ("spec", "column"),
    [
        ("shockwave.ossp(deadline_factor=0)", "deadline_factor"),
        ("shockwave.ossp(published=true, least_reset_s=5)", "least_reset_s"),
        ("shockwave.ossp(restart_s=120)", "restart_s"),
        ("shockwave.shockwave(future_rounds=0)", "future_rounds"),
        ("shockwave.shockwave(k=-1)", "k"),
    ],
)
def test_settings_that_make_no_sense_are_refused(spec, column):
    with pytest.raises(InputError) as error:
        made(spec)
    assert error.value.column == column


def test_shares_without_rounds_are_not_for_plans_nor_for_jobs_that_change():
    jobs = JobSet([job("a", 2400)], submit_is_relative=True)
    for spec, message in (("shockwave.themis", "no shares of time"), ("gavel.fifo_perf", "changes its batch size")):
        with pytest.raises(InputError, match=message):
            replay_log(fixed_cluster("v100=1"), jobs, made(spec), ideal=True)


@pytest.mark.parametrize("spec", ["shockwave.shockwave(published=true)", "shockwave.themis(restart_s=7)"])
def test_fairness_is_measured_in_rounds_of_the_same_length(spec):
    jobs = generated_jobs(sample_throughputs(), 4, seed=2, max_hours=0.4)
    settings = ReplaySettings(max_parallel=9, until_done=True)
    result = replay_log(fixed_cluster("v100=4"), jobs, made(spec), settings, fairness=True)
    options = GavelOptions(round_s=120.0, restart_s=7.0 if "7" in spec else 20.0)
    alone = replay_log(fixed_cluster("v100=4"), jobs, gavel_policy("isolated")(options), settings)
    assert result.jobs["isolated_jct_s"].tolist() == pytest.approx(finished_s(alone), abs=1e-3)


def test_jobs_without_end_cannot_be_planned():
    with pytest.raises(InputError, match="some jobs have no end"):
        run([job("endless", float("inf"))], made("shockwave.shockwave"))
