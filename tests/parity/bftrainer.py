"""BFTrainer: recorded decisions, whole replays, and the efficiency on the Summit log."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from bfreplay.datasets import load_events, read_published_jobs
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.verify import objective_of
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import RunSettings, run_replay
from tests.parity.bftrainer_records import (
    LOG_COLUMNS,
    RUNS,
    PublishedReplay,
    decision_records,
    objectives,
    recorded_problem,
    recorded_questions,
    under_limit,
)
from tests.parity.comparison import EXACT, ROUNDING, Comparison, Reason, Table, Tolerance, printed

LIMIT = (
    "Under the published model no job gains or loses more than half of the idle nodes in one decision; bfreplay has "
    "this limit under the formulation 'published' only. The 800 decisions are recorded with and without it."
)
TOO_LARGE = (
    "The published model is infeasible where the min_nodes of a job exceeds the idle nodes by more than one; bfreplay "
    "gives that job nothing."
)
BELOW_ITS_OWN_OPTIMUM = {
    "G2, decision 256": Reason(
        "Decision 256 of the replay G2: CBC called an answer optimal that is 3e-4 below the optimum of the published "
        "model.",
        Tolerance(1e-3),
    )
}
PROTOTYPE = (
    "The recorded efficiencies are those of a prototype with the published accounting and exact decisions: BFTrainer's "
    "own program takes more than a minute for a decision on 200 idle nodes. These differ by one in the third digit."
)

OPTIMUM = Comparison("recorded decisions: optimal objective", ROUNDING, notes=[LIMIT, TOO_LARGE])
LIMITED_OPTIMUM = Comparison("recorded decisions: optimum under the published limit", ROUNDING)
PUBLISHED_ANSWER = Comparison("recorded decisions: objective of the published counts", ROUNDING)
QUESTIONS = Comparison("decisions of replays: time, jobs, allocated nodes, idle nodes", EXACT)
STEP_LOG = Comparison(
    "rows of the replays' step logs: 12 columns",
    {
        "evtTime": EXACT,
        **dict.fromkeys(LOG_COLUMNS, EXACT),
        **dict.fromkeys(("ReScost", "PreCost"), printed(6)),
        "Thr": Tolerance(1e-6, is_absolute=True, reason="printed with 6 decimals, less a cost that has 6 itself"),
        "Rate": ROUNDING,
    },
)
FINAL_PROGRESS = Comparison("jobs of replays: samples done at the end", ROUNDING)
REPLAY_OPTIMUM = Comparison(
    "decisions of replays: optimum under the published limit, objective of the recorded answer", ROUNDING
)
EFFICIENCY = Comparison(
    "efficiency U on the Summit log, three digits",
    {"U": printed(3), "equivalent nodes": printed(0), "unproven decisions": EXACT},
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


def compare_decisions(table: Table, shared: Path) -> None:
    """Compare the objective of each recorded decision, with and without the published limit, and of its answer."""
    records = decision_records(shared)
    if len(records) != 800:
        raise ValueError(f"{len(records)} recorded decisions instead of 800")
    for record in records:
        item, problem = f"decision {record['id']}", recorded_problem(record)
        answer = objective_of(problem, np.array(record["published_counts"]))
        table.compare(OPTIMUM, item, ExactSolver().solve(problem).objective, record["optimal_objective"])
        limited = ExactSolver().solve(under_limit(problem)).objective
        table.compare(LIMITED_OPTIMUM, item, limited, record["published_objective"])
        table.compare(PUBLISHED_ANSWER, item, answer, record["published_objective"])


def compare_replay(run: str, table: Table, shared: Path) -> None:
    """Compare a recorded replay, repeated with its decisions."""
    replay = PublishedReplay.load(shared, run)
    with table.attempt(QUESTIONS, run):
        ours = replay.rerun.policy.questions
        table.compare_all(QUESTIONS, f"{run}, decision", ours, recorded_questions(replay))
        table.compare_all(STEP_LOG, f"{run}, row", replay.rerun.step_log(), replay.step_log)
        table.compare_all(FINAL_PROGRESS, f"{run}, job", replay.rerun.final_progress(), replay.record["final_progress"])
        optima, recorded = objectives(replay.rerun.policy)
        known = {
            item: reason
            for item, reason in BELOW_ITS_OWN_OPTIMUM.items()
            if item in {f"{run}, decision {k}" for k, (a, b) in enumerate(zip(optima, recorded, strict=True)) if a > b}
        }
        table.compare_all(REPLAY_OPTIMUM, f"{run}, decision", optima, recorded, known)


def compare_efficiency(job_set: str, max_parallel: int, t_fwd_s: int, table: Table, shared: Path) -> None:
    """Compare an entry of ``U``, by a replay of the whole Summit log."""
    folder = shared / "data" / "bftrainer"
    jobs = read_published_jobs(*(folder / JOB_FILES[job_set].format(kind) for kind in ("Jbnd", "JNPs")))
    result = run_replay(
        load_events(folder / "summit-2021-02-node-events.parquet"),
        jobs,
        BFTrainerPolicy(t_fwd_s),
        ReplaySettings(max_parallel, Semantics.PUBLISHED),
        RunSettings(unlimited_work=True, bound=False, tables=False),
    )
    unproven = set(result.summary["decisions"]) - {"proven", "proven_trivially", "unproven_by_design"}
    table.compare(
        EFFICIENCY,
        f"{job_set}, {max_parallel} at once, T_fwd {t_fwd_s} s",
        {"U": result.u, "equivalent nodes": result.summary["equivalent_nodes"], "unproven decisions": sorted(unproven)},
        {"U": U[job_set, max_parallel][T_FWD_S.index(t_fwd_s)], "equivalent nodes": 392.0, "unproven decisions": []},
        Reason(PROTOTYPE, Tolerance(1.5e-3, is_absolute=True)),
    )


ROWS = (
    OPTIMUM,
    LIMITED_OPTIMUM,
    PUBLISHED_ANSWER,
    QUESTIONS,
    STEP_LOG,
    FINAL_PROGRESS,
    REPLAY_OPTIMUM,
    EFFICIENCY,
)
"""Rows of the table."""
PARTS = {
    "decisions": compare_decisions,
    **{f"replay {run}": partial(compare_replay, run) for run in RUNS},
    **{
        f"U {job_set} {max_parallel} {t_fwd_s}": partial(compare_efficiency, job_set, max_parallel, t_fwd_s)
        for job_set, max_parallel in U
        for t_fwd_s in T_FWD_S
    },
}
"""Parts of the comparison: functions of a table and the folder of the records."""
THOROUGH = {
    f"U {job_set} {max_parallel} {t_fwd_s}"
    for row, (job_set, max_parallel) in enumerate(U)
    for column, t_fwd_s in enumerate(T_FWD_S)
    if row != column or row not in (0, 4)
}
"""Parts that CI leaves out: it has one value of ``U`` for each set of jobs."""
SLOW = {name for name in PARTS if name.startswith("U ")}
"""Parts that `make test` leaves out as well."""
