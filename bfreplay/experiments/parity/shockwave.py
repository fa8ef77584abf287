"""Shockwave: profiles, runs with recorded schedules, runs of the policies, their shares, and every recorded plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.experiments.parity.check import Check, check_runs
from bfreplay.experiments.parity.recorded import shockwave as records
from bfreplay.experiments.parity.recorded.shockwave_plans import RUNS as PLANNED
from bfreplay.experiments.parity.recorded.shockwave_plans import recorded_plans, recorded_rounds
from bfreplay.systems.gavel.shares.finish_time_fairness import FinishTimeFairness
from bfreplay.systems.shockwave.options import PlannedOptions, ShockwaveOptions
from bfreplay.systems.shockwave.planner.options import PlannerOptions, PlannerQuirks
from bfreplay.systems.shockwave.policies import baseline_shares, shockwave_policy
from bfreplay.systems.shockwave.profile import profile_of
from bfreplay.workload import ElasticJob

QUICK_SIMULATED = ("tacc_32gpus/shockwave/simulation", "tacc_32gpus_comparison/min_total_duration/simulation")
QUICK_RERUNS = {"first12_4gpus_tacc": records.RERUNS["first12_4gpus_tacc"]}
RULES = ("gandiva_fair", "allox")
OPTIMISED = ("gavel", "mst", "ossp", "themis")

TIME_LIMIT = (
    "Plans are not unique, and the published ones depend on a time limit of 15 s: with plans made here makespan and "
    "mean JCT stay within 5 and 3 %, about the spread of the published program's own runs."
)
OTHER_OPTIMA = "Optimal shares of OSSP, Themis, Gavel and MST are not unique: objectives are compared, not schedules."
BISECTION = (
    "The published OSSP bisects for the makespan to 5 %, and not below 100 s; bfreplay finds the optimum and is never "
    "longer."
)
FALLS_BACK = (
    "Where rounding leaves a job with negative steps, the published Themis fails and gives equal shares, which changes "
    "later calls of the run, too; bfreplay skips such a job."
)
NOT_ON_DISK = (
    "Not on disk: every second plan of 32 jobs on 10 GPUs, schedules and plans of 220 jobs and more. The six runs on a "
    "real cluster are no simulations."
)
HEAVY_WEIGHTS = (
    "Published weights reach 1e75, beyond the precision of a solver: plans with a weight above 1e6 are compared level "
    "by level, urgent jobs first."
)
DIGITS = "The published lists of fairness are rounded to five decimals, and compared so."


def checks(data: Path, *, quick: bool) -> Iterator[Check]:
    """Yield the checks: profiles, schedules, policies, plans."""
    yield _profiles(data)
    yield from _simulations(data, QUICK_SIMULATED if quick else records.SIMULATED)
    yield _reruns(data, QUICK_RERUNS if quick else records.RERUNS)
    yield _closed_loops(data)
    yield from _shares(data)
    yield from _plans(data)
    if not quick:
        yield _own_plans(data)


def profile_of_job(job: ElasticJob) -> list[Any]:
    """Return batch sizes and seconds of all epochs, samples per epoch, and seconds alone, as published."""
    profile = profile_of(job, job.max_nodes, published=True)
    return [profile.batch_size, profile.epoch_s, profile.samples_per_epoch, profile.exclusive_s]


def profile_of_record(published: dict[str, Any]) -> list[Any]:
    """Return the same of a published profile."""
    sizes = [size for size, n in published["bs_runs"] for _ in range(n)]
    seconds = [published["per_bs"][str(size)]["epoch_s"] for size in sizes]
    return [np.array(sizes), np.array(seconds), published["samples_per_epoch"], published["exclusive_s"]]


def _profiles(data: Path) -> Check:
    check = Check("profiles of jobs: batch size and time of every epoch", tolerance=1e-12, notes=[NOT_ON_DISK])
    for which in (which for which in records.TRACES if "jobs" in which):
        jobs = records.trace_jobs(data, which)
        recorded = [profile_of_record(each) for each in records.recorded_profiles(data, which)]
        check.compare_all(f"{which}, job", [profile_of_job(job) for job in jobs], recorded)
    return check


def _simulations(data: Path, keys: tuple[str, ...]) -> Iterator[Check]:
    """Yield the checks of published simulations with their schedules."""
    rounds = Check("rounds of published simulations with their schedules: GPUs of every job")
    jobs = Check(
        "jobs of these simulations: JCT, two fairness ratios, rate and batch size in every round",
        tolerance=1e-9,
        notes=[DIGITS],
    )
    runs = Check("these simulations: makespan, utilisation of every GPU, ten totals (two digits)", tolerance=0.005)
    for key in keys:
        with rounds.attempt(key):
            policy, run = records.published_run(data, key)
            published = records.golden(data, "published_results")[key]
            schedule = records.golden(data, "published_schedules")[key]
            rounds.compare_all(f"{key}, round", policy.placed, records.placements(schedule))
            lists = (published[name] for name in ("jct_list", "ftf_list", "ftf_themis_list", "envy_ratio_list"))
            recorded = _by_job(*lists, timeline=records.golden(data, "published_throughput_timelines")[key])
            jobs.compare_all(f"{key}, job", _jobs(policy), recorded)
            metrics = policy.published_metrics()
            ours = [metrics.end_s, list(metrics.utilisation), run.summary["policy"]["published"]]
            runs.compare(key, ours, [published["makespan"], published["utilization_list"], records.totals(published)])
    yield from (rounds, jobs, runs)


def _jobs(policy: records.RecordedSchedule) -> list[list[Any]]:
    metrics = policy.published_metrics()
    lists = (metrics.jct_s, metrics.rho, metrics.themis_rho, metrics.scheduled)
    return _by_job(*(np.asarray(each).tolist() for each in lists), timeline=policy.timeline)


def _by_job(*lists: list[float], timeline: dict[str, Any]) -> list[list[Any]]:
    return [[*row, timeline[str(job)]] for job, row in enumerate(zip(*lists, strict=True))]


def _reruns(data: Path, sets: dict[str, tuple[str, ...]]) -> Check:
    def jct_s(run: tuple[str, str]) -> tuple[list[float], list[float]]:
        recorded = records.golden(data, "original_runs_metrics")[run[0]][run[1]]["jct"]
        return np.asarray(records.rerun(data, *run).published_metrics().jct_s).tolist(), recorded

    runs = {f"{which}, {name}": (which, name) for which, names in sets.items() for name in names}
    return check_runs("jobs of further runs of the original with their schedules: JCT", runs, "job", jct_s, 1e-9)


def _closed_loops(data: Path) -> Check:
    def jct_s(name: str) -> tuple[list[float], list[float]]:
        policy = shockwave_policy(name)(ShockwaveOptions(published=True))
        records.replay_set(data, records.PUBLISHED_SET, policy)
        recorded = records.golden(data, "published_results")[f"tacc_32gpus/{name}/simulation"]["jct_list"]
        return np.asarray(policy.published_metrics().jct_s).tolist(), recorded

    what = "jobs under Gandiva-Fair and AlloX with shares computed here: JCT"
    return check_runs(what, {name: name for name in RULES}, "job", jct_s, 1e-9)


def _shares(data: Path) -> Iterator[Check]:
    """Yield the checks of recorded shares: those that are unique, and objectives of the others."""
    unique = Check("calls of Gandiva-Fair and AlloX: every share", tolerance=1e-12)
    objectives = Check(
        "calls of OSSP, Themis, Gavel, MST: objective of the recorded shares", tolerance=1e-4, notes=[OTHER_OPTIMA]
    )
    for which in records.RECORDED:
        for name in RULES:
            policy = baseline_shares(name)
            for k, (problem, given) in enumerate(records.recorded_shares(data, which, name)):
                unique.compare(f"{which}, {name}, call {k}", policy.shares(problem).share[:, 0], given)
        for name in OPTIMISED:
            for k, (ratio, known) in enumerate(_ratios(data, which, name)):
                objectives.compare(f"{which}, {name}, call {k}", ratio, 1.0, known if ratio > 1 else None)
    yield from (unique, objectives)


def _ratios(data: Path, which: str, name: str) -> Iterator[tuple[float, str | None]]:
    """Yield our objective over the recorded one of each call, and a known reason for the difference."""
    policy, known = baseline_shares(name), None
    for problem, given in records.recorded_shares(data, which, records.NAMES[name]):
        found = policy.shares(problem)
        if isinstance(policy, FinishTimeFairness):
            known = known or (FALLS_BACK if (problem.steps_left < 0).any() else None)
            yield records.themis_rho(policy, problem, given) / found.objective, known
        else:
            ours, theirs = (records.level_of(name, problem, each) for each in (found.share[:, 0], given))
            is_bisected = name == "ossp" and (ours <= theirs * 1.06 or 1 / ours < 110)
            yield ours / theirs, BISECTION if is_bisected else None


def _plans(data: Path) -> Iterator[Check]:
    inputs = Check("recorded plans: progress, remaining times, targets and weights of all jobs", tolerance=1e-9)
    plans = Check(
        "the same plans, made here: objective no less than the recorded one", tolerance=1e-3, notes=[HEAVY_WEIGHTS]
    )
    rounds = Check("runs with recorded plans: rounds in which a plan is made")
    for name in PLANNED:
        with inputs.attempt(name):
            found, made = recorded_plans(data, name)
            rounds.compare(name, made, recorded_rounds(data, name))
            for each in found:
                item = f"{name}, round {each.solve['round']}"
                inputs.compare(item, each.inputs(), each.recorded_inputs())
                plans.compare(item, each.shortfall(), 0.0)
    yield from (inputs, plans, rounds)


def _own_plans(data: Path) -> Check:
    """Compare Shockwave in closed loop."""
    check = Check("the published run of Shockwave with plans made here: makespan and mean JCT", tolerance=1e-6)
    published = records.golden(data, "published_results")["tacc_32gpus/shockwave/simulation"]
    planner = PlannerOptions(quirks=PlannerQuirks.published())
    policy = shockwave_policy("shockwave")(PlannedOptions(published=True, planner=planner))
    own = records.replay_set(data, records.PUBLISHED_SET, policy).summary["policy"]["published"]
    for item, ours, recorded, band in (
        ("makespan", own["makespan_s"], published["makespan"], 0.05),
        ("mean JCT", own["average_jct_s"], published["avg_jct"], 0.03),
    ):
        check.compare(item, ours, recorded, TIME_LIMIT if abs(ours / recorded - 1) <= band else None)
    return check
