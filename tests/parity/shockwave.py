"""Shockwave: profiles, runs with recorded schedules, runs of the policies, their shares, and every recorded plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.systems.gavel.shares.finish_time_fairness import FinishTimeFairness
from bfreplay.systems.shockwave.policies import baseline_shares, shockwave_policy
from bfreplay.systems.shockwave.profile import profile_of
from bfreplay.systems.shockwave.shockwave_policy import PlannedOptions, ShockwaveOptions
from bfreplay.workload import ElasticJob
from tests.parity.comparison import EXACT, ROUNDING, Comparison, Reason, Table, Tolerance, printed
from tests.parity.shockwave_plan_records import RUNS as PLANNED
from tests.parity.shockwave_plan_records import recorded_plans, recorded_rounds
from tests.parity.shockwave_records import (
    NAMES,
    PUBLISHED_SET,
    RECORDED,
    RERUNS,
    SIMULATED,
    TRACES,
    golden,
    level_of,
    placements,
    published_run,
    recorded_profiles,
    recorded_shares,
    replay_set,
    rerun,
    themis_rho,
    totals,
    trace_jobs,
)

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

RULES = ("gandiva_fair", "allox")
OPTIMISED = ("gavel", "mst", "ossp", "themis")

ECOS = "the recorded shares are those of ECOS, an interior-point solver"

PROFILES = Comparison(
    "profiles of jobs: batch size and time of every epoch",
    {"batch size": EXACT, "epoch (s)": ROUNDING, "samples per epoch": EXACT, "alone (s)": ROUNDING},
    notes=[NOT_ON_DISK],
)
ROUNDS = Comparison("rounds of published simulations with their schedules: GPUs of every job", EXACT)
JOBS = Comparison(
    "jobs of these simulations: JCT, two fairness ratios, rate and batch size in every round",
    {"JCT": ROUNDING, "rho": EXACT, "Themis rho": EXACT, "scheduled": ROUNDING, "rate, batch size": ROUNDING},
    notes=[DIGITS],
)
RUNS = Comparison(
    "these simulations: makespan, utilisation of every GPU, ten totals, and these in the replay's own summary",
    {
        "makespan_s": ROUNDING,
        "utilisation of GPUs": printed(5),
        "average_jct_s": ROUNDING,
        "geometric_mean_jct_s": ROUNDING,
        "harmonic_mean_jct_s": ROUNDING,
        "worst_rho": printed(5),
        "unfair_percent": printed(2),
        "worst_themis_rho": printed(5),
        "unfair_themis_percent": printed(2),
        "utilisation": ROUNDING,
        "least_scheduled": ROUNDING,
        "largest_rho in the summary": printed(5),
        "contention in the summary": EXACT,
        "average_jct_s in the summary": Tolerance(1e-6, reason="the replay's clock is in whole microseconds"),
    },
)
RERUN_JOBS = Comparison("jobs of further runs of the original with their schedules: JCT", ROUNDING)
RERUN_ENDS = Comparison("these runs: makespan", ROUNDING)
CLOSED_LOOPS = Comparison("jobs under Gandiva-Fair and AlloX with shares computed here: JCT", ROUNDING)
LEASES = Comparison("these runs: leases extended", EXACT)
SHARES = Comparison("calls of Gandiva-Fair and AlloX: every share", ROUNDING)
OBJECTIVES = Comparison(
    "calls of OSSP, Gavel, MST: objective of the recorded shares",
    {"objective": Tolerance(1e-6, reason=ECOS), "is no worse": EXACT},
    notes=[OTHER_OPTIMA],
)
THEMIS_OBJECTIVES = Comparison(
    "calls of Themis: objective of the recorded shares",
    {"objective": Tolerance(1e-4, reason=ECOS), "is no worse": EXACT},
)
PLAN_INPUTS = Comparison(
    "recorded plans: progress, remaining times, targets and weights of all jobs",
    {
        "epochs done, epochs, GPUs": EXACT,
        "latest target": ROUNDING,
        "epoch time": ROUNDING,
        "remaining time": ROUNDING,
        "finish target": ROUNDING,
        "weight": ROUNDING,
    },
)
GAP = Tolerance(1e-3, reason="the gap allowed to the published solver")
PLANS = Comparison(
    "the same plans, made here: objective no less than the recorded one, over all and level by level",
    {"shortfall": GAP, "shortfall of levels": GAP},
    notes=[HEAVY_WEIGHTS],
)
PLANNED_ROUNDS = Comparison("runs with recorded plans: rounds in which a plan is made", EXACT)
OWN_PLANS = Comparison(
    "the published run of Shockwave with plans made here: makespan and mean JCT",
    {"makespan_s": ROUNDING, "average_jct_s": ROUNDING, "is as fair": EXACT, "plans without a proof": EXACT},
)


def profile_of_job(job: ElasticJob) -> dict[str, Any]:
    """Return batch sizes and seconds of all epochs, samples per epoch, and seconds alone, as published."""
    profile = profile_of(job, job.max_nodes, published=True)
    return {
        "batch size": profile.batch_size,
        "epoch (s)": profile.epoch_s,
        "samples per epoch": profile.samples_per_epoch,
        "alone (s)": profile.exclusive_s,
    }


def profile_of_record(published: dict[str, Any]) -> dict[str, Any]:
    """Return the same of a published profile."""
    sizes = [size for size, n in published["bs_runs"] for _ in range(n)]
    return {
        "batch size": np.array(sizes),
        "epoch (s)": np.array([published["per_bs"][str(size)]["epoch_s"] for size in sizes]),
        "samples per epoch": published["samples_per_epoch"],
        "alone (s)": published["exclusive_s"],
    }


def compare_profiles(which: str, table: Table, shared: Path) -> None:
    """Compare the profiles of all jobs of a set of ``TRACES``."""
    recorded = [profile_of_record(each) for each in recorded_profiles(shared, which)]
    table.compare_all(PROFILES, f"{which}, job", [profile_of_job(job) for job in trace_jobs(shared, which)], recorded)


def compare_simulation(key: str, table: Table, shared: Path) -> None:
    """Compare a published simulation, repeated with its schedule."""
    with table.attempt(ROUNDS, key):
        policy, run = published_run(shared, key)
        published = golden(shared, "published_results")[key]
        schedule = golden(shared, "published_schedules")[key]
        table.compare_all(ROUNDS, f"{key}, round", policy.placed, placements(schedule))
        metrics = policy.published_metrics()
        lists = (metrics.jct_s, metrics.rho, metrics.themis_rho, metrics.scheduled)
        ours = _by_job(*(np.asarray(each).tolist() for each in lists), timeline=policy.timeline)
        lists = (published[name] for name in ("jct_list", "ftf_list", "ftf_themis_list", "envy_ratio_list"))
        recorded = _by_job(*lists, timeline=golden(shared, "published_throughput_timelines")[key])
        table.compare_all(JOBS, f"{key}, job", ours, recorded)
        scheduling = run.summary["scheduling"]
        table.compare(
            RUNS,
            key,
            {
                **run.summary["policy"]["published"],
                "makespan_s": metrics.end_s,
                "utilisation of GPUs": list(metrics.utilisation),
                "largest_rho in the summary": scheduling["contention_fairness"]["largest_rho"],
                "contention in the summary": scheduling["contention_fairness"]["contention"],
                "average_jct_s in the summary": scheduling["average_jct_s"],
            },
            {
                **totals(published),
                "utilisation of GPUs": published["utilization_list"],
                "largest_rho in the summary": published["worst_ftf"],
                "contention in the summary": 120 / 32,
                "average_jct_s in the summary": published["avg_jct"],
            },
        )


def _by_job(*lists: list[float], timeline: dict[str, Any]) -> list[dict[str, Any]]:
    names = [name for name in JOBS.figures if name != "rate, batch size"]
    rows = zip(*lists, strict=True)
    return [
        {**dict(zip(names, row, strict=True)), "rate, batch size": timeline[str(job)]} for job, row in enumerate(rows)
    ]


def compare_rerun(which: str, name: str, table: Table, shared: Path) -> None:
    """Compare a further run of the original, repeated with its schedule."""
    item = f"{which}, {name}"
    with table.attempt(RERUN_JOBS, item):
        recorded = golden(shared, "original_runs_metrics")[which][name]
        metrics = rerun(shared, which, name).published_metrics()
        table.compare_all(RERUN_JOBS, f"{item}, job", np.asarray(metrics.jct_s).tolist(), recorded["jct"])
        table.compare(RERUN_ENDS, item, metrics.end_s, recorded["makespan"])


def compare_closed_loop(name: str, table: Table, shared: Path) -> None:
    """Compare the published run of a policy that follows a rule, with shares computed here."""
    published = golden(shared, "published_results")[f"tacc_32gpus/{name}/simulation"]
    policy = shockwave_policy(name)(ShockwaveOptions(published=True))
    run = replay_set(shared, PUBLISHED_SET, policy)
    ours = np.asarray(policy.published_metrics().jct_s).tolist()
    table.compare_all(CLOSED_LOOPS, f"{name}, job", ours, published["jct_list"])
    table.compare(LEASES, name, run.summary["policy"]["lease_extensions"], published["num_lease_extensions"])


def compare_shares(which: str, table: Table, shared: Path) -> None:
    """Compare recorded shares: those that are unique, and objectives of the others."""
    for name in RULES:
        policy = baseline_shares(name)
        for k, (problem, given) in enumerate(recorded_shares(shared, which, name)):
            table.compare(SHARES, f"{which}, {name}, call {k}", policy.shares(problem).share[:, 0], given)
    for name in OPTIMISED:
        for k, (ratio, known) in enumerate(_gains(shared, which, name)):
            table.compare(
                THEMIS_OBJECTIVES if name == "themis" else OBJECTIVES,
                f"{which}, {name}, call {k}",
                {"objective": ratio, "is no worse": ratio >= 1 - 1e-6},
                {"objective": 1.0, "is no worse": True},
                known,
            )


def _gains(shared: Path, which: str, name: str) -> Iterator[tuple[float, Reason | None]]:
    """Yield how many times better our objective is than the recorded one, and a known reason, for each call."""
    policy, known = baseline_shares(name), None
    for problem, given in recorded_shares(shared, which, NAMES[name]):
        found = policy.shares(problem)
        if isinstance(policy, FinishTimeFairness):
            if (problem.steps_left < 0).any():
                known = Reason(FALLS_BACK, {"objective": Tolerance(math.inf)})
            yield themis_rho(policy, problem, given) / found.objective, known
        else:
            ours, theirs = (level_of(name, problem, each) for each in (found.share[:, 0], given))
            bisected = Tolerance(math.inf if 1 / ours < 110 else 0.06)  # nothing below 100 s is searched for
            yield ours / theirs, Reason(BISECTION, {"objective": bisected}) if name == "ossp" else None


def compare_plans(name: str, table: Table, shared: Path) -> None:
    """Compare the inputs of every recorded plan of a run, the plan made here, and the rounds of all plans."""
    with table.attempt(PLAN_INPUTS, name):
        plans, rounds = recorded_plans(shared, name)
        table.compare(PLANNED_ROUNDS, name, rounds, recorded_rounds(shared, name))
        for plan in plans:
            item = f"{name}, round {plan.solve['round']}"
            table.compare(PLAN_INPUTS, item, plan.inputs(), plan.recorded_inputs())
            ours = {"shortfall": plan.shortfall(), "shortfall of levels": plan.shortfall_of_levels()}
            table.compare(PLANS, item, ours, dict.fromkeys(ours, 0.0))


def compare_own_plans(table: Table, shared: Path) -> None:
    """Compare Shockwave in closed loop, with plans made here."""
    published = golden(shared, "published_results")["tacc_32gpus/shockwave/simulation"]
    policy = shockwave_policy("shockwave")(PlannedOptions(published=True))
    summary = replay_set(shared, PUBLISHED_SET, policy).summary["policy"]
    own = summary["published"]
    is_proven = summary["stopped_by_time_limit"] == summary["without_answer"] == 0 and summary["largest_gap"] <= 1e-3
    table.compare(
        OWN_PLANS,
        "Shockwave",
        {
            "makespan_s": own["makespan_s"],
            "average_jct_s": own["average_jct_s"],
            "is as fair": own["worst_rho"] <= 2.2 and own["unfair_percent"] <= 8.0,
            "plans without a proof": not is_proven,
        },
        {
            "makespan_s": published["makespan"],
            "average_jct_s": published["avg_jct"],
            "is as fair": True,
            "plans without a proof": False,
        },
        Reason(TIME_LIMIT, {"makespan_s": Tolerance(0.05), "average_jct_s": Tolerance(0.03)}),
    )


ROWS = (
    PROFILES,
    ROUNDS,
    JOBS,
    RUNS,
    RERUN_JOBS,
    RERUN_ENDS,
    CLOSED_LOOPS,
    LEASES,
    SHARES,
    OBJECTIVES,
    THEMIS_OBJECTIVES,
    PLAN_INPUTS,
    PLANS,
    PLANNED_ROUNDS,
    OWN_PLANS,
)
"""Rows of the table."""
PARTS = {
    **{f"profiles of {which}": partial(compare_profiles, which) for which in TRACES if "jobs" in which},
    **{f"simulation {key}": partial(compare_simulation, key) for key in SIMULATED},
    **{f"rerun {which} {name}": partial(compare_rerun, which, name) for which in RERUNS for name in RERUNS[which]},
    **{f"closed loop of {name}": partial(compare_closed_loop, name) for name in RULES},
    **{f"shares of {which}": partial(compare_shares, which) for which in RECORDED},
    **{f"plans of {name}": partial(compare_plans, name) for name in PLANNED},
    "own plans": compare_own_plans,
}
"""Parts of the comparison: functions of a table and the folder of the records."""
_FEW = {"simulation tacc_32gpus/shockwave/simulation", f"profiles of {PUBLISHED_SET}"}
_MANY = ("simulation", "rerun", "profiles", "closed loop", "own plans")
THOROUGH = {name for name in PARTS if name.startswith(_MANY) and name not in _FEW}
"""Parts that CI leaves out."""
SLOW = _FEW | {"plans of first20", "plans of first32", "plans of first12-F5"}
"""Parts that `make test` leaves out as well."""
