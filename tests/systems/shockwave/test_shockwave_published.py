"""The published numbers: profiles, runs with the published schedules, and the policies' own."""

from __future__ import annotations

import pytest

from bfreplay.experiments.parity.check import difference
from bfreplay.experiments.parity.recorded import shockwave as recorded
from bfreplay.experiments.parity.recorded.shockwave import RECORDED, level_of, recorded_shares, themis_rho
from bfreplay.experiments.parity.shockwave import profile_of_job, profile_of_record
from bfreplay.milp.exact import ExactSolver
from bfreplay.systems.gavel.shares.finish_time_fairness import FinishTimeFairness
from bfreplay.systems.gavel.shares.share_problem import TimeShares
from bfreplay.systems.shockwave.options import ShockwaveOptions
from bfreplay.systems.shockwave.policies import baseline_shares, shockwave_policy

CI = {"tacc_32gpus/shockwave/simulation", "tacc_32gpus_comparison/min_total_duration/simulation"}


def _thorough(keys, quick):
    return [key if key in quick else pytest.param(key, marks=pytest.mark.thorough) for key in keys]


@pytest.mark.parametrize("which", [which for which in recorded.TRACES if "jobs" in which])
def test_profiles_are_the_published_ones(shared, which):
    n_jobs = int(which.split("jobs")[0])
    jobs = recorded.trace_jobs(shared, which)
    assert len(jobs) == n_jobs
    for job, published in zip(jobs, recorded.recorded_profiles(shared, which), strict=True):
        assert difference(profile_of_job(job), profile_of_record(published)) <= 1e-12


@pytest.mark.parametrize("key", _thorough(recorded.SIMULATED, CI))
def test_a_published_schedule_gives_the_published_run(shared, key):
    schedule = recorded.golden(shared, "published_schedules")[key]
    published = recorded.golden(shared, "published_results")[key]
    policy, run = recorded.published_run(shared, key)

    assert policy.placed == recorded.placements(schedule)
    assert policy.timeline == recorded.golden(shared, "published_throughput_timelines")[key]
    metrics = policy.published_metrics()
    assert metrics.end_s == pytest.approx(published["makespan"], abs=1e-6)
    assert metrics.jct_s == pytest.approx(published["jct_list"], abs=1e-6)
    assert metrics.rho.tolist() == published["ftf_list"]
    assert metrics.themis_rho.tolist() == published["ftf_themis_list"]
    assert metrics.utilisation == pytest.approx(published["utilization_list"], abs=1e-6)
    assert metrics.scheduled == pytest.approx(published["envy_ratio_list"], abs=1e-6)
    assert run.summary["policy"]["published"] == pytest.approx(recorded.totals(published), abs=0.005)
    fair = run.summary["scheduling"]["contention_fairness"]
    assert fair["largest_rho"] == pytest.approx(published["worst_ftf"], abs=1e-4)
    assert fair["contention"] == 120 / 32
    # the replay has whole microseconds, and rounds follow one another
    assert run.summary["scheduling"]["average_jct_s"] == pytest.approx(published["avg_jct"], abs=1e-2)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("which", "name"), [(which, name) for which, names in recorded.RERUNS.items() for name in names]
)
def test_a_schedule_of_the_original_gives_its_run(shared, which, name):
    rerun = recorded.golden(shared, "original_runs_metrics")[which][name]
    metrics = recorded.rerun(shared, which, name).published_metrics()
    assert metrics.end_s == pytest.approx(rerun["makespan"], abs=1e-6)
    assert metrics.jct_s == pytest.approx(rerun["jct"], abs=1e-6)


@pytest.mark.parametrize("name", ["gandiva_fair", "allox"])
def test_equal_shares_and_allox_repeat_the_published_run(shared, name):
    published = recorded.golden(shared, "published_results")[f"tacc_32gpus/{name}/simulation"]
    policy = shockwave_policy(name)(ShockwaveOptions(published=True))
    run = recorded.replay_set(shared, recorded.PUBLISHED_SET, policy)
    assert policy.published_metrics().jct_s == pytest.approx(published["jct_list"], abs=1e-9)
    assert run.summary["policy"]["lease_extensions"] == published["num_lease_extensions"]


def test_shockwave_comes_as_near_to_the_published_run_as_its_own_repetitions(shared):
    """Plans are not unique, and the published ones hung on a time limit."""
    published = recorded.golden(shared, "published_results")["tacc_32gpus/shockwave/simulation"]
    policy = shockwave_policy("shockwave").from_options(t_fwd_s=120.0, solver=ExactSolver(), published=True)
    found = recorded.replay_set(shared, recorded.PUBLISHED_SET, policy).summary["policy"]
    own = found["published"]
    assert own["makespan_s"] == pytest.approx(published["makespan"], rel=0.05)
    assert own["average_jct_s"] == pytest.approx(published["avg_jct"], rel=0.03)
    assert own["worst_rho"] <= 2.2
    assert own["unfair_percent"] <= 8.0
    assert found["stopped_by_time_limit"] == found["without_answer"] == 0
    assert found["largest_gap"] <= 1e-3


@pytest.mark.parametrize("which", RECORDED)
@pytest.mark.parametrize("name", ["gandiva_fair", "allox"])
def test_rules_give_the_recorded_shares(shared, which, name):
    shares = baseline_shares(name)
    for problem, given in recorded_shares(shared, which, name):
        assert shares.shares(problem).share[:, 0] == pytest.approx(given, abs=1e-12)


@pytest.mark.parametrize("which", RECORDED)
@pytest.mark.parametrize(
    ("name", "below", "above"),
    # ECOS stops within 1e-6; the original bisects for the makespan to 5 %, and its bracket begins at 100 s
    [("gavel", 1e-6, 2e-5), ("mst", 1e-6, 2e-5), ("ossp", 1e-6, 0.06)],
)
def test_programs_reach_the_objective_of_the_recorded_shares(shared, which, name, below, above):
    shares = baseline_shares(name)
    for problem, given in recorded_shares(shared, which, recorded.NAMES[name]):
        ours, theirs = level_of(name, problem, shares.shares(problem).share[:, 0]), level_of(name, problem, given)
        if name == "ossp" and 1 / ours < 110:
            continue  # the original asks for no makespan below 100 s
        assert theirs * (1 - below) <= ours <= theirs * (1 + above)


@pytest.mark.parametrize("which", RECORDED)
def test_themis_reaches_the_objective_of_the_recorded_shares(shared, which):
    """Beside the denominators that the policy remembers from one call to the next."""
    shares = baseline_shares("themis")
    assert isinstance(shares, FinishTimeFairness)
    all_count = True
    for problem, given in recorded_shares(shared, which, recorded.NAMES["themis"]):
        found: TimeShares = shares.shares(problem)
        counts = problem.steps_left > 0
        theirs = themis_rho(shares, problem, given)
        assert found.objective <= theirs * (1 + 1e-6)
        # fewer than no steps left make the original fall back, and its memory is another one from then on
        all_count = all_count and bool(counts.all())
        if all_count:
            assert found.objective >= theirs * (1 - 1e-4)
