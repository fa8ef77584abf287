"""BFTrainer: recorded decisions, whole replays, and the efficiency on the Summit log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bfreplay.datasets import load_events, read_published_jobs
from bfreplay.experiments.parity.check import Check, check_runs
from bfreplay.experiments.parity.recorded import bftrainer as records
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.verify import objective_of
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import RunResult, RunSettings, run_replay

QUICK_RUNS = ("G1", "G4")

BELOW_ITS_OWN_OPTIMUM = {
    "G2, decision 256": "Decision 256 of the replay G2: CBC called an answer optimal that is 3e-4 below the "
    "optimum of the published model."
}
LIMIT = (
    "Under the published model no job gains or loses more than half of the idle nodes in one decision; bfreplay has "
    "this limit under the formulation 'published' only. The 800 decisions are recorded with and without it."
)
TOO_LARGE = (
    "The published model is infeasible where the min_nodes of a job exceeds the idle nodes by more than one; bfreplay "
    "gives that job nothing."
)
PROTOTYPE = (
    "The recorded efficiencies are those of a prototype with the published accounting and exact decisions: BFTrainer's "
    "own program takes more than a minute for a decision on 200 idle nodes."
)

T_FWD_S = (10, 30, 60, 120, 300, 600)
JOB_FILES = {"shufflenet": "hps-shufflenet-{}-1000J.pkl", "imagenet": "ImageNet-imgps-{}-1001J.pkl"}
U = {
    ("shufflenet", 10): (0.521, 0.542, 0.553, 0.557, 0.559, 0.558),
    ("shufflenet", 35): (0.840, 0.855, 0.860, 0.863, 0.864, 0.863),
    ("shufflenet", 70): (0.908, 0.924, 0.927, 0.927, 0.928, 0.928),
    ("imagenet", 10): (0.445, 0.477, 0.492, 0.498, 0.499, 0.497),
    ("imagenet", 35): (0.646, 0.679, 0.694, 0.700, 0.702, 0.700),
    ("imagenet", 70): (0.746, 0.772, 0.787, 0.794, 0.796, 0.795),
}
"""Efficiency by jobs, jobs at once and ``T_FWD_S``: published accounting, exact decisions, unlimited work."""


def checks(data: Path, *, quick: bool) -> Iterator[Check]:
    """Yield the checks: decisions, replays with recorded decisions, and efficiency."""
    yield from _decisions(data)
    runs = {run: records.PublishedReplay.load(data, run) for run in (QUICK_RUNS if quick else records.RUNS)}
    yield check_runs(
        "decisions of replays: time, jobs, allocated nodes, idle nodes",
        runs,
        "decision",
        lambda run: (run.rerun.policy.questions, records.recorded_questions(run)),
    )
    yield check_runs(
        "rows of the replays' step logs: 12 columns",
        runs,
        "row",
        lambda run: (run.rerun.step_log(), run.step_log),
        1e-8,
    )
    yield check_runs(
        "jobs of replays: samples done at the end",
        runs,
        "job",
        lambda run: (run.rerun.final_progress(), run.record["final_progress"]),
        1e-6,
    )
    yield check_runs(
        "decisions of replays: optimum under the published limit, objective of the recorded answer",
        runs,
        "decision",
        lambda run: records.objectives(run.rerun.policy),
        1e-6,
        known=BELOW_ITS_OWN_OPTIMUM,
    )
    if not quick:
        yield _efficiency(data)


def _decisions(data: Path) -> Iterator[Check]:
    def optimum(record: records.Record) -> float:
        return ExactSolver().solve(records.recorded_problem(record)).objective

    def limited_optimum(record: records.Record) -> float:
        return ExactSolver().solve(records.under_limit(records.recorded_problem(record))).objective

    def published_answer(record: records.Record) -> float:
        return objective_of(records.recorded_problem(record), np.array(record["published_counts"]))

    for what, tolerance, ours, key, notes in (
        ("optimal objective", 1e-9, optimum, "optimal_objective", [LIMIT, TOO_LARGE]),
        ("optimum under the published limit", 1e-6, limited_optimum, "published_objective", []),
        ("objective of the published counts", 1e-6, published_answer, "published_objective", []),
    ):
        check = Check(f"recorded decisions: {what}", tolerance=tolerance, notes=notes)
        for record in records.decision_records(data):
            check.compare(f"decision {record['id']}", ours(record), record[key])
        yield check


def utilisation(data: Path, job_set: str, max_parallel: int, t_fwd_s: float) -> RunResult:
    """Replay the whole Summit log for an entry of ``U``; not quick."""
    folder = data / "data" / "bftrainer"
    jobs = read_published_jobs(*(folder / JOB_FILES[job_set].format(kind) for kind in ("Jbnd", "JNPs")))
    return run_replay(
        load_events(folder / "summit-2021-02-node-events.parquet"),
        jobs,
        BFTrainerPolicy(t_fwd_s),
        ReplaySettings(max_parallel, Semantics.PUBLISHED),
        RunSettings(unlimited_work=True, bound=False, tables=False),
    )


def _efficiency(data: Path) -> Check:
    check = Check("efficiency U on the Summit log, three digits", tolerance=1.5e-3, notes=[PROTOTYPE])
    for (job_set, max_parallel), row in U.items():
        for t_fwd_s, recorded in zip(T_FWD_S, row, strict=True):
            found = utilisation(data, job_set, max_parallel, t_fwd_s)
            check.compare(f"U of {job_set}, {max_parallel} at once, T_fwd {t_fwd_s} s", found.u, recorded)
    return check
