"""ElasticFlow: plans of jobs, runs of the eight published schedulers, and the logs of figure 10."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bfreplay.experiments.parity.check import Check, check_runs
from bfreplay.experiments.parity.recorded import elasticflow as records
from bfreplay.experiments.parity.recorded.records import golden
from bfreplay.policies.deadlines.plan import Steps, minimum_share
from bfreplay.policies.deadlines.spare_nodes import PlannedJob, share_spare
from bfreplay.systems.elasticflow.published.deadline_schedulers import job_to_plan
from bfreplay.systems.elasticflow.published.themis import missing_solver

QUICK_FILES = ("small_n1g8", "25job_n4g8")
PLAN_CASES = ("unit_mss_n1g8_slot240", "unit_mss_n4g8_slot240")
LOGGED = ("edf", "gandiva", "themis", "dlas-gpu", "ef-accessctrl")

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


def checks(data: Path, *, quick: bool) -> Iterator[Check]:
    """Yield the checks: plans, runs, Chronus, and published logs."""
    shares, spare = _plans(data)
    yield shares
    yield spare
    recorded = {run.name: run for run in records.runs(data, QUICK_FILES if quick else records.FILES)}
    notes = [BY_WORK, NOT_ON_DISK, OLD_REVISION]
    if problem := missing_solver():
        recorded = {name: run for name, run in recorded.items() if run.schedule != "themis"}
        notes.append(f"Runs of Themis are not compared: {problem}")
    yield check_runs("runs of seven schedules: jobs accepted and declined", recorded, "", _counts, notes=notes)
    yield check_runs(
        "jobs of these runs: start, end, GPUs, in time",
        recorded,
        "job",
        lambda run: (run.ends(), run.recorded_ends()),
        notes=[NO_STARTS],
    )
    yield check_runs(
        "events of these runs: time, jobs of all GPUs, efficiency of the cluster (nine digits)",
        {name: run for name, run in recorded.items() if "events" in run.record},
        "event",
        lambda run: (run.events(), run.record["events"]),
        1e-8,
    )
    chronus = {name: records.ChronusRecord.load(data, name) for name in records.chronus_records(data)}
    yield check_runs(
        "jobs of runs of Chronus: end, GPUs, stops, starts, in time",
        {name: run for name, run in chronus.items() if not quick or len(run.jobs) <= 25},
        "job",
        lambda run: (run.ends(), run.recorded_ends()),
        notes=[GREEDY],
    )
    if not quick:
        yield _published_logs(data, {run.schedule: run for run in recorded.values() if run.name.startswith("fig10/")})
        yield _published_chronus_log(data)


def _plans(data: Path) -> tuple[Check, Check]:
    """Compare minimum satisfactory shares of jobs planned by deadline, and the result of allocating spare GPUs."""
    shares = Check("sets of jobs: minimum satisfactory shares, free GPUs, feasibility")
    spare = Check("sets of jobs: GPUs, ends after spare GPUs are given out")
    for file in PLAN_CASES:
        written = golden(data, f"elasticflow/{file}")
        slot_s, total = float(written["scheduling_slot"]), float(written["cluster_gpus"])
        for k, case in enumerate(written["cases"]):
            item = f"{file}, case {k}"
            jobs = [
                job_to_plan(deadline_s, work, records.tables(data, "A100").of(model, batch_size), most)
                for model, batch_size, work, deadline_s, most in case["jobs"]
            ]
            free = _plan_by_deadline(jobs, float(case["now"]), slot_s, total)
            feasible = all(job.plan.finish_s <= job.deadline_s for job in jobs)
            ours = [[_pairs(job.plan.nodes), job.plan.end_s, job.plan.finish_s] for job in jobs]
            shares.compare(
                item, [ours, _pairs(free), feasible], [case["alloc"], case["future_free"], case["feasible_all"]]
            )
            if "elastic" in case:
                _, free = share_spare(jobs, free, slot_s, total, largest_growth_first=True)
                ours = [[job.count, job.plan.end_s, job.plan.finish_s] for job in jobs]
                spare.compare(item, [ours, _pairs(free)], [case["elastic"], case["elastic_future_free"]])
    return shares, spare


def _plan_by_deadline(jobs: Iterable[PlannedJob], now_s: float, slot_s: float, total: float) -> Steps:
    """Plan jobs from an empty cluster on; return the free GPUs then."""
    free = Steps(np.array([now_s]), np.array([total]))
    for job in sorted(jobs, key=lambda job: job.deadline_s):
        job.follow(minimum_share(free, job.deadline_s, slot_s, job.work, job.counts, job.rates, total))
        free = job.plan.free
    return free


def _pairs(steps: Steps) -> list[list[float]]:
    return [list(pair) for pair in zip(steps.time.tolist(), steps.value.tolist(), strict=True)]


def _counts(run: records.RecordedRun) -> tuple[list[Any], list[Any]]:
    ours = [run.rerun.accepted, run.rerun.declined, len(run.rerun.moments)]
    return ours, [run.record[key] for key in ("accepted", "declined", "n_scheduling_rows")]


def _published_logs(data: Path, runs_by_schedule: dict[str, records.RecordedRun]) -> Check:
    """Compare the authors' own logs; the record shows differences between a log and later commits of the program."""
    logs = {schedule: records.published_log(data, schedule) for schedule in LOGGED if schedule in runs_by_schedule}
    named = {
        f"{schedule}, job {job}": LATER_COMMITS
        for schedule, log in logs.items()
        for job, row in runs_by_schedule[schedule].recorded_ends().items()
        if row[:3] != log.get(job)
    }
    return check_runs(
        "jobs of the published logs of figure 10: start, end, GPUs",
        {schedule: schedule for schedule in logs},
        "job",
        lambda schedule: ({job: row[:3] for job, row in runs_by_schedule[schedule].ends().items()}, logs[schedule]),
        known=named,
    )


def _published_chronus_log(data: Path) -> Check:
    check = Check("rows of Chronus' published log of figure 10: free GPUs, running jobs, efficiency", tolerance=1e-12)
    times_s, log = records.published_chronus_log(data)
    ours_at = records.ChronusRecord.load(data, "fig10/greedy_fallback").log(times_s)
    for time_s, ours, row in zip(times_s, ours_at, log, strict=True):
        check.compare(f"{time_s:.0f} s", ours, row)
    return check
