"""The published numbers: profiles, runs with the published schedules, and the policies' own."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from bfreplay.experiments.parity.recorded.shockwave_schedules import (
    TRACES,
    RecordedSchedule,
    golden,
    replayed,
    trace_jobs,
)
from bfreplay.milp.exact import ExactSolver
from bfreplay.systems.gavel.shares.finish_time_fairness import FinishTimeFairness
from bfreplay.systems.gavel.shares.share_problem import ShareProblem, TimeShares
from bfreplay.systems.shockwave.options import ShockwaveOptions
from bfreplay.systems.shockwave.policies import BASELINES, shockwave_policy
from bfreplay.systems.shockwave.profile import profile_of

NAMES = {
    "ossp": "min_total_duration", "themis": "finish_time_fairness", "gavel": "max_min_fairness", "allox": "allox",
    "mst": "max_sum_throughput_perf", "gandiva_fair": "gandiva_fair",
}  # fmt: skip
SIMULATED = (
    *(f"tacc_32gpus/{name}/simulation" for name in (*NAMES.values(), "shockwave", "old_shockwave")),
    "tacc_32gpus/new_orig_hyperparam_shockwave/simulation",
    *(f"tacc_32gpus_comparison/{name}/simulation" for name in (*NAMES.values(), "shockwave") if name != "gandiva_fair"),
)
"""The 15 published simulations; those of the comparison were made with a deadline factor of 1."""
CI = {"tacc_32gpus/shockwave/simulation", "tacc_32gpus_comparison/min_total_duration/simulation"}


def _thorough(keys, quick):
    return [key if key in quick else pytest.param(key, marks=pytest.mark.thorough) for key in keys]


@pytest.mark.parametrize("which", [which for which in TRACES if "jobs" in which])
def test_profiles_are_the_published_ones(shared, which):
    trace, throughputs, _ = TRACES[which]
    n_jobs = int(which.split("jobs")[0])
    jobs = trace_jobs(shared, trace, throughputs)
    assert len(jobs) == n_jobs
    for job, published in zip(jobs, golden_profiles(shared, n_jobs, throughputs), strict=True):
        profile = profile_of(job, job.max_nodes, published=True)
        sizes = [size for size, n in published["bs_runs"] for _ in range(n)]
        assert profile.batch_size.tolist() == sizes
        assert profile.samples_per_epoch == published["samples_per_epoch"]
        assert profile.epoch_s.tolist() == pytest.approx(
            [published["per_bs"][str(size)]["epoch_s"] for size in sizes], rel=1e-12
        )
        assert profile.exclusive_s == pytest.approx(published["exclusive_s"], rel=1e-12)


def golden_profiles(shared, n_jobs, throughputs):
    with gzip.open(shared / f"data/shockwave/profiles/profile_{n_jobs}jobs_{throughputs}.json.gz", "rt") as file:
        return json.load(file)


@pytest.mark.parametrize("key", _thorough(SIMULATED, CI))
def test_a_published_schedule_gives_the_published_run(shared, key):
    schedule = golden(shared, "published_schedules")[key]
    published = golden(shared, "published_results")[key]
    policy = RecordedSchedule(schedule, 1.0 if "comparison" in key else 1.5)
    jobs = trace_jobs(shared, "120_0.2", "tacc")
    run = replayed(jobs, 32, policy)

    assert [{job: sorted(gpus) for job, gpus in tasks} for tasks in schedule] == [
        {job: sorted(gpus) for job, gpus in tasks.items()} for tasks in policy.placed
    ]
    timeline = golden(shared, "published_throughput_timelines")[key]
    assert {job: [tuple(entry) for entry in entries] for job, entries in timeline.items()} == {
        str(job): entries for job, entries in policy.timeline.items()
    }
    metrics = policy.published_metrics()
    assert metrics.end_s == pytest.approx(published["makespan"], abs=1e-6)
    assert metrics.jct_s == pytest.approx(published["jct_list"], abs=1e-6)
    assert metrics.rho.tolist() == published["ftf_list"]
    assert metrics.themis_rho.tolist() == published["ftf_themis_list"]
    assert metrics.utilisation == pytest.approx(published["utilization_list"], abs=1e-6)
    assert metrics.scheduled == pytest.approx(published["envy_ratio_list"], abs=1e-6)
    totals = run.summary["policy"]["published"]
    assert totals == pytest.approx(
        {
            "makespan_s": published["makespan"], "average_jct_s": published["avg_jct"],
            "geometric_mean_jct_s": published["geometric_mean_jct"],
            "harmonic_mean_jct_s": published["harmonic_mean_jct"], "worst_rho": published["worst_ftf"],
            "unfair_percent": published["unfair_fraction_pct_gt_1p05"],
            "worst_themis_rho": published["worst_ftf_themis"],
            "unfair_themis_percent": published["unfair_fraction_themis_pct_gt_1p05"],
            "utilisation": published["cluster_util"], "least_scheduled": min(published["envy_ratio_list"]),
        },
        abs=0.005,
    )  # fmt: skip
    fair = run.summary["scheduling"]["contention_fairness"]
    assert fair["largest_rho"] == pytest.approx(published["worst_ftf"], abs=1e-4)
    assert fair["contention"] == 120 / 32
    # the replay has whole microseconds, and rounds follow one another
    assert run.summary["scheduling"]["average_jct_s"] == pytest.approx(published["avg_jct"], abs=1e-2)


RERUNS = {
    "120jobs_32gpus_tacc": NAMES.values(),
    "first12_4gpus_tacc": (*NAMES.values(), "shockwave"),
    "first20_8gpus_tacc": (*NAMES.values(), "shockwave"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("which", "name"), [(which, name) for which, names in RERUNS.items() for name in names])
def test_a_schedule_of_the_original_gives_its_run(shared, which, name):
    begins, throughputs, n_gpus = TRACES[which]
    recorded = golden(shared, "original_runs_metrics")[which][name]
    policy = RecordedSchedule(golden(shared, "original_runs_schedules")[which][name], 1.5)
    replayed(trace_jobs(shared, begins, throughputs), n_gpus, policy)
    metrics = policy.published_metrics()
    assert metrics.end_s == pytest.approx(recorded["makespan"], abs=1e-6)
    assert metrics.jct_s == pytest.approx(recorded["jct"], abs=1e-6)


@pytest.mark.parametrize("name", ["gandiva_fair", "allox"])
def test_equal_shares_and_allox_repeat_the_published_run(shared, name):
    published = golden(shared, "published_results")[f"tacc_32gpus/{name}/simulation"]
    policy = shockwave_policy(name)(ShockwaveOptions(published=True))
    run = replayed(trace_jobs(shared, "120_0.2", "tacc"), 32, policy)
    assert policy.published_metrics().jct_s == pytest.approx(published["jct_list"], abs=1e-9)
    assert run.summary["policy"]["lease_extensions"] == published["num_lease_extensions"]


def test_shockwave_comes_as_near_to_the_published_run_as_its_own_repetitions(shared):
    """Plans are not unique, and the published ones hung on a time limit."""
    published = golden(shared, "published_results")["tacc_32gpus/shockwave/simulation"]
    policy = shockwave_policy("shockwave").from_options(t_fwd_s=120.0, solver=ExactSolver(), published=True)
    found = replayed(trace_jobs(shared, "120_0.2", "tacc"), 32, policy).summary["policy"]
    own = found["published"]
    assert own["makespan_s"] == pytest.approx(published["makespan"], rel=0.05)
    assert own["average_jct_s"] == pytest.approx(published["avg_jct"], rel=0.03)
    assert own["worst_rho"] <= 2.2
    assert own["unfair_percent"] <= 8.0
    assert found["stopped_by_time_limit"] == found["without_answer"] == 0
    assert found["largest_gap"] <= 1e-3


def _problems(shared, which: str, name: str):
    """Problems that were posed to a policy in a recorded run, and the shares that it gave."""
    n_gpus = int(which.split("_")[1].removesuffix("gpus"))
    for call in golden(shared, f"baselines/alloc_{which}_{name}"):
        m = len(call["job"])
        ones = np.ones(m)
        problem = ShareProblem(
            np.array(call["job"]), ("v100",), np.array([n_gpus]), np.array(call["sf"]),
            np.array(call["thr"], float)[:, None], ones, np.array(call.get("steps_left", ones), float),
            np.array(call.get("since_start", ones), float), np.full(m, np.inf), np.ones(1),
        )  # fmt: skip
        yield problem, np.array(call["alloc"], float)


RECORDED = ("first12_4gpus_tacc", "first20_8gpus_tacc", "120jobs_32gpus_tacc", "220jobs_64gpus_wisr")


@pytest.mark.parametrize("which", RECORDED)
@pytest.mark.parametrize("name", ["gandiva_fair", "allox"])
def test_rules_give_the_recorded_shares(shared, which, name):
    shares = BASELINES[name]()
    for problem, given in _problems(shared, which, name):
        assert shares.shares(problem).share[:, 0] == pytest.approx(given, abs=1e-12)


def _level(name: str, problem: ShareProblem, share) -> float:
    """What a policy maximises, at a share (m,)."""
    if name == "gavel":
        return float((problem.gang * share).min())
    if name == "mst":
        return float(problem.rate[:, 0] @ share)
    counts = problem.steps_left > 0
    return float(((problem.rate[:, 0] * share)[counts] / problem.steps_left[counts]).min())  # 1 / makespan


@pytest.mark.parametrize("which", RECORDED)
@pytest.mark.parametrize(
    ("name", "below", "above"),
    # ECOS stops within 1e-6; the original bisects for the makespan to 5 %, and its bracket begins at 100 s
    [("gavel", 1e-6, 2e-5), ("mst", 1e-6, 2e-5), ("ossp", 1e-6, 0.06)],
)
def test_programs_reach_the_objective_of_the_recorded_shares(shared, which, name, below, above):
    shares = BASELINES[name]()
    for problem, given in _problems(shared, which, NAMES[name]):
        ours, theirs = _level(name, problem, shares.shares(problem).share[:, 0]), _level(name, problem, given)
        if name == "ossp" and 1 / ours < 110:
            continue  # the original asks for no makespan below 100 s
        assert theirs * (1 - below) <= ours <= theirs * (1 + above)


@pytest.mark.parametrize("which", RECORDED)
def test_themis_reaches_the_objective_of_the_recorded_shares(shared, which):
    """Beside the denominators that the policy remembers from one call to the next."""
    shares = BASELINES["themis"]()
    assert isinstance(shares, FinishTimeFairness)
    all_count = True
    for problem, given in _problems(shared, which, NAMES["themis"]):
        found: TimeShares = shares.shares(problem)
        so_far = np.array([shares.isolated_s()[job] for job in problem.job.tolist()])
        rate = problem.rate[:, 0]
        isolated = rate * np.minimum(1.0, problem.n_nodes[0] / (problem.n_jobs * problem.gang))
        alone = so_far + problem.steps_left / isolated
        counts = problem.steps_left > 0  # one that has nothing to do holds back nobody
        theirs = ((problem.age_s + problem.steps_left / (rate * given)) / alone)[counts].max()
        assert found.objective <= theirs * (1 + 1e-6)
        # fewer than no steps left make the original fall back, and its memory is another one from then on
        all_count = all_count and bool(counts.all())
        if all_count:
            assert found.objective >= theirs * (1 - 1e-4)
