"""ElasticFlow: plans of jobs, runs of the eight published schedulers, and the logs of figure 10."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from bfreplay.policies.deadlines.plan import NOT_FORCED, Steps, minimum_share
from bfreplay.policies.deadlines.spare_nodes import PlannedJob, share_spare
from bfreplay.systems.elasticflow.published.deadline_schedulers import job_to_plan
from bfreplay.systems.elasticflow.published.themis import missing_solver, themis
from tests.parity.comparison import ANY, EXACT, ROUNDING, Comparison, Reason, Table, printed
from tests.parity.elasticflow_records import (
    PROGRAMS,
    TRACES,
    ChronusRecord,
    RecordedRun,
    published_chronus_log,
    published_events,
    published_log,
    recorded_replay,
    replay,
    tables,
)
from tests.parity.records import golden

NOT_ON_DISK = (
    "Not on disk: jobs of the runs of figures 8a (but for Chronus), 8b, 9 and 11 by the last commit; deadlines of "
    "figures 9 and 11; runs of Pollux."
)
OLD_REVISION = "bfreplay repeats the last commit, not the revision of 2022."
LATER_COMMITS = (
    "The published logs of figure 10 are of the revision of 2022; later commits (0d29ad9, a8c66e6) changed times of "
    "Tiresias and ElasticFlow. As many deadlines are met."
)
GREEDY = (
    "Chronus was recorded, and is repeated, with its greedy fallback; its authors' runs with Gurobi are not recorded."
)
BY_WORK = (
    "ElasticFlow with admission judges a deadline by the end of the work, without the overhead and slot in its logged "
    "end, and so does bfreplay; the rows on jobs compare logged ends."
)
NO_STARTS = "Themis' program never sets the start of a job: only ends are compared."
WITHOUT_ECOS = [f"Runs of Themis are not compared: {missing_solver()}"] if missing_solver() else []

PLAN_CASES = ("unit_mss_n1g8_slot240", "unit_mss_n4g8_slot240")
CHRONUS_RUNS = (
    "fig10/greedy_fallback",
    "fig8a/greedy_fallback",
    "fig8a/greedy_fallback_bestslot60",
    "n16g8_195job/greedy_fallback",
    "n1g8_resnet/greedy_fallback",
    "n4g8_first25/greedy_fallback",
)
LOGGED = ("edf", "gandiva", "themis", "dlas-gpu", "ef-accessctrl")

SHARES = Comparison("sets of jobs: minimum satisfactory shares, free GPUs, feasibility", EXACT)
SPARE = Comparison("sets of jobs: GPUs, ends after spare GPUs are given out", EXACT)
COUNTS = Comparison(
    "runs of seven schedules: jobs accepted, declined and never run, number of events, order of ends",
    dict.fromkeys(("accepted", "declined", "never run", "events", "order of ends"), EXACT),
    notes=[BY_WORK, NOT_ON_DISK, OLD_REVISION, *WITHOUT_ECOS],
)
ENDS = Comparison("jobs of these runs: start, end, GPUs, in time", EXACT, notes=[NO_STARTS])
EVENTS = Comparison(
    "events of these runs: time, jobs of all GPUs, efficiency of the cluster (nine digits)",
    {"time": EXACT, "jobs of GPUs": EXACT, "efficiency": printed(9)},
)
FAST_THEMIS = Comparison("jobs under Themis where shares are computed only if jobs contend: end, GPUs, in time", EXACT)
REPLAYS = Comparison(
    "these runs in the replay: ends of all jobs (us), deadlines met, jobs accepted and declined",
    dict.fromkeys(("ends (us)", "deadlines met", "policy", "declined"), EXACT),
)
CHRONUS = Comparison("jobs of runs of Chronus: end, GPUs, stops, starts, in time", EXACT, notes=[GREEDY])
CHRONUS_COUNTS = Comparison(
    "these runs: number and share of deadlines met, GPUs of running jobs",
    {"deadlines met": EXACT, "share": ROUNDING, "GPUs as asked for": EXACT},
)
LOGS = Comparison("jobs of the published logs of figure 10: start, end, GPUs", EXACT)
LOG_EVENTS = Comparison(
    "events of the published logs of figure 10: jobs of all GPUs under Gandiva, running jobs under Themis", EXACT
)
CHRONUS_LOG = Comparison(
    "rows of Chronus' published log of figure 10: free GPUs, running jobs, efficiency",
    {"free GPUs": EXACT, "running jobs": EXACT, "efficiency": ROUNDING},
)


def compare_plans(file: str, table: Table, shared: Path) -> None:
    """Compare minimum satisfactory shares of jobs planned by deadline, and the result of allocating spare GPUs."""
    written = golden(shared, f"elasticflow/{file}")
    slot_s, total = float(written["scheduling_slot"]), float(written["cluster_gpus"])
    for k, case in enumerate(written["cases"]):
        item = f"{file}, case {k}"
        jobs = [
            job_to_plan(deadline_s, work, tables(shared, "A100").of(model, batch_size), most)
            for model, batch_size, work, deadline_s, most in case["jobs"]
        ]
        free = _plan_by_deadline(jobs, float(case["now"]), slot_s, total)
        feasible = all(job.plan.finish_s <= job.deadline_s for job in jobs)
        ours = [[_pairs(job.plan.nodes), job.plan.end_s, job.plan.finish_s] for job in jobs]
        recorded = [case["alloc"], case["future_free"], case["feasible_all"]]
        table.compare(SHARES, item, [ours, _pairs(free), feasible], recorded)
        if "elastic" in case:
            _, free = share_spare(jobs, free, slot_s, total, largest_growth_first=True)
            ours = [[job.count, job.plan.end_s, job.plan.finish_s] for job in jobs]
            table.compare(SPARE, item, [ours, _pairs(free)], [case["elastic"], case["elastic_future_free"]])


def _plan_by_deadline(jobs: Iterable[PlannedJob], now_s: float, slot_s: float, total: float) -> Steps:
    """Plan jobs from an empty cluster on; return the free GPUs then."""
    free = Steps(np.array([now_s]), np.array([total]))
    for job in sorted(jobs, key=lambda job: job.deadline_s):
        job.follow(minimum_share(free, job.deadline_s, slot_s, job.work, job.counts, job.rates, total, NOT_FORCED))
        free = job.plan.free
    return free


def _pairs(steps: Steps) -> list[list[float]]:
    return [list(pair) for pair in zip(steps.time.tolist(), steps.value.tolist(), strict=True)]


def compare_run(name: str, table: Table, shared: Path) -> None:
    """Compare a recorded run of a schedule, repeated by our program of the same name."""
    run = RecordedRun.load(shared, name)
    with table.attempt(COUNTS, name):
        table.compare(COUNTS, name, run.counts(), run.recorded_counts())
        table.compare_all(ENDS, f"{name}, job", run.ends(), run.recorded_ends())
        if "events" in run.record:
            table.compare_all(EVENTS, f"{name}, event", run.events(), run.recorded_events())


def compare_fast_themis(trace: str, table: Table, shared: Path) -> None:
    """Compare a recorded run of Themis with the faster program that the replay has."""
    name = f"{trace}/themis"
    run = RecordedRun.load(shared, name)
    fast = themis(run.jobs, run.servers, run.record["meta"]["scheduling_slot"])
    table.compare_all(FAST_THEMIS, f"{name}, job", run.ends(fast), run.recorded_ends())
    counts = {**run.recorded_counts(), "order of ends": run.counts(fast)["order of ends"]}
    table.compare(COUNTS, f"{name}, fast", run.counts(fast), counts)
    if trace == "fig10":
        log = published_log(shared, "themis")
        table.compare_all(LOGS, "fast themis, job", {job: row[:3] for job, row in run.ends(fast).items()}, log)
        ours = [(moment.time_s, sorted(moment.running)) for moment in fast.moments]
        events = [(at_s, sorted(set(jobs) - {None})) for at_s, jobs in published_events(shared, "themis")]
        table.compare_all(LOG_EVENTS, "themis, event", ours, events)


def compare_replay(name: str, table: Table, shared: Path) -> None:
    """Compare a recorded run with that of our policy in the replay."""
    run = RecordedRun.load(shared, name)
    table.compare(REPLAYS, name, replay(shared, run), recorded_replay(shared, run))


def compare_chronus(name: str, table: Table, shared: Path) -> None:
    """Compare a recorded run of Chronus; that of figure 10 also with its authors' log."""
    run = ChronusRecord.load(shared, name)
    with table.attempt(CHRONUS, name):
        table.compare_all(CHRONUS, f"{name}, job", run.ends(), run.recorded_ends())
        table.compare(CHRONUS_COUNTS, name, run.counts(), run.recorded_counts())
    if name.startswith("fig10/"):
        times_s, log = published_chronus_log(shared)
        rows = zip(times_s, run.log(times_s), log, strict=True)
        for time_s, ours, row in rows:
            figures = (dict(zip(CHRONUS_LOG.figures, each, strict=True)) for each in (ours, row))
            table.compare(CHRONUS_LOG, f"{time_s:.0f} s", *figures)
        last_s = max(each.time_s for each in run.rerun.moments)
        if last_s > times_s[-1]:
            raise ValueError(f"an event at {last_s} s, after the last one of the log")


def compare_log(schedule: str, table: Table, shared: Path) -> None:
    """Compare the authors' own log; the record shows differences between a log and later commits of the program."""
    run, log = RecordedRun.load(shared, f"fig10/{schedule}"), published_log(shared, schedule)
    named = {
        f"{schedule}, job {job}": Reason(LATER_COMMITS, ANY)
        for job, row in run.recorded_ends().items()
        if row[:3] != log.get(job)
    }
    table.compare_all(LOGS, f"{schedule}, job", {job: row[:3] for job, row in run.ends().items()}, log, named)
    if schedule == "gandiva":
        ours = [(moment.time_s, run.job_of_gpu(moment)) for moment in run.rerun.moments]
        table.compare_all(LOG_EVENTS, "gandiva, event", ours, published_events(shared, schedule))


ROWS = (
    SHARES,
    SPARE,
    COUNTS,
    ENDS,
    EVENTS,
    FAST_THEMIS,
    REPLAYS,
    CHRONUS,
    CHRONUS_COUNTS,
    LOGS,
    LOG_EVENTS,
    CHRONUS_LOG,
)
"""Rows of the table."""
PARTS = {
    **{f"plans of {file}": partial(compare_plans, file) for file in PLAN_CASES},
    **{f"run {trace}/{each}": partial(compare_run, f"{trace}/{each}") for trace in TRACES for each in PROGRAMS},
    **{f"fast run {trace}/themis": partial(compare_fast_themis, trace) for trace in TRACES},
    **{f"replay {trace}/{each}": partial(compare_replay, f"{trace}/{each}") for trace in TRACES for each in PROGRAMS},
    **{f"chronus {name}": partial(compare_chronus, name) for name in CHRONUS_RUNS},
    **{f"log of {schedule}": partial(compare_log, schedule) for schedule in LOGGED},
}
"""Parts of the comparison: functions of a table and the folder of the records."""
if missing_solver():
    PARTS = {name: part for name, part in PARTS.items() if not name.endswith("themis")}
SMALL = ("n1g8_resnet_cifar_trace", "n1g8_syn10tight")
THOROUGH = {name for name in PARTS if (name.startswith("replay") and name.split()[1].split("/")[0] not in SMALL)}
"""Parts that CI leaves out."""
LARGE = ("fig8a", "fig10", "n16g8_195job")
SLOW = {name for name in PARTS if any(f" {trace}/" in name for trace in LARGE) or name.startswith("log of")}
"""Parts that `make test` leaves out as well."""
