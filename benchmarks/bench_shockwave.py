"""Shockwave and six policies: beside the published runs, at four scales, and on idle nodes beside BFTrainer's MILP.

Run it: ``python benchmarks/bench_shockwave.py [published] [scale] [limit] [crossing]``. About half an hour of one core.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from dataclasses import replace

from measure import SHARED, SUMMIT, heading, table_head, table_row

from bfreplay import load_events, replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.systems.gavel.throughputs import read_throughputs
from bfreplay.systems.shockwave.trace import RESTORE_S, read_trace
from bfreplay.workload import JobSet

DATA = SHARED / "data" / "shockwave"
NAMES = {
    "shockwave": "shockwave",
    "ossp": "min_total_duration",
    "themis": "finish_time_fairness",
    "gavel": "max_min_fairness",
    "allox": "allox",
    "mst": "max_sum_throughput_perf",
    "gandiva_fair": "gandiva_fair",
}
"""Our names of the policies, and the published ones."""

SCALES = {
    32: ("120_0.2", "tacc", ""),
    64: ("220_0.2", "wisr", "k=10, priority_power=5"),
    128: ("460_0.2", "wisr", "k=0.001, priority_power=15"),
    256: ("900_0.2_5_1000_5_15", "wisr", "k=100000.0, priority_power=5"),
}
"""GPUs: how the trace's name begins, throughputs, and the published settings of the planner."""

T_FWD_S = 600.0


def jobs_at(n_gpus: int, *, elastic: bool = False) -> JobSet:
    """The jobs of the trace for so many GPUs."""
    begins, throughputs, _ = SCALES[n_gpus]
    (trace,) = (DATA / "traces").glob(f"{begins}*.trace")
    table = read_throughputs(DATA / "throughputs" / f"{throughputs}_throughputs.full.json.gz")
    return read_trace(trace, table, elastic=elastic)


def policy_at(name: str, n_gpus: int, *more: str):
    """A policy with the planner's published settings for this scale."""
    settings = ", ".join([*more, *([SCALES[n_gpus][2]] if name == "shockwave" and SCALES[n_gpus][2] else [])])
    spec = f"shockwave.{name}({settings})" if settings else f"shockwave.{name}"
    return policy_of(spec, t_fwd_s=T_FWD_S, solver=ExactSolver())


def on_cluster(n_gpus: int, name: str, *more: str) -> tuple[RunResult, float]:
    """All jobs on a cluster of their own, and CPU seconds."""
    jobs = jobs_at(n_gpus)
    started = time.process_time()
    run = replay_log(
        fixed_cluster(f"v100={n_gpus}"),
        jobs,
        policy_at(name, n_gpus, *more),
        ReplaySettings(max_parallel=len(jobs), until_done=True),
        efficiency=False,
        bound=False,
    )
    return run, time.process_time() - started


def four(makespan_s: float, jct_s: float, worst: float, unfair_percent: float) -> str:
    """Makespan, mean JCT, worst rho, and percentage of unfairly treated jobs."""
    return f"{makespan_s:,.0f} / {jct_s:,.0f} / {worst:.2f} / {unfair_percent:.1f}"


def four_of(run: RunResult) -> str:
    """The same of a run: with ``published``, as the published program computes them."""
    own = run.summary["policy"].get("published")
    if own is not None:
        return four(own["makespan_s"], own["average_jct_s"], own["worst_rho"], own["unfair_percent"])
    found = run.summary["scheduling"]
    fair = found["contention_fairness"]
    return four(found["makespan_s"], found["average_jct_s"], fair["largest_rho"], 100 * fair["unfair_share"])


def published() -> None:
    """32 GPUs: our replays beside the published simulations and the published physical runs."""
    with gzip.open(SHARED / "golden/shockwave/published_results.json.gz", "rt") as file:
        results = json.load(file)
    print(heading("Shockwave: 120 jobs on 32 GPUs; makespan, s / mean JCT, s / worst rho / unfair, %"))
    table_head("policy", "ours, published=true", "published simulation", "physical cluster", "ours, one rule", "CPU s")
    for name, theirs in NAMES.items():
        run, cpu_s = on_cluster(32, name, "published=true")
        cells = []
        for group, kind in (("tacc_32gpus", "simulation"), ("tacc_32gpus_comparison", "physical")):
            found = results.get(f"{group}/{theirs}/{kind}")
            shown = "makespan", "avg_jct", "worst_ftf", "unfair_fraction_pct_gt_1p05"
            cells.append("-" if found is None else four(*(found[key] for key in shown)))
        table_row(name, four_of(run), *cells, four_of(on_cluster(32, name)[0]), f"{cpu_s:.0f}")


def scale() -> None:
    """64, 128 and 256 GPUs with the published settings."""
    print(heading("Shockwave: 220, 460 and 900 jobs; makespan, s / mean JCT, s / worst rho / unfair, %; CPU s"))
    table_head("policy", *(f"{n} GPUs" for n in (64, 128, 256)))
    for name in NAMES:
        cells = []
        for n_gpus in (64, 128, 256):
            run, cpu_s = on_cluster(n_gpus, name, "published=true")
            cells.append(f"{four_of(run)}; {cpu_s:.0f}")
        table_row(name, *cells)


def limit() -> None:
    """What the planner's time limit costs: how many solves it stops, and what comes of that."""
    print(heading("Shockwave: the planner's time limit"))
    table_head("GPUs", "limit, s", "plans", "stopped solves", "largest gap", "makespan / JCT / worst / unfair", "CPU s")
    for n_gpus in (64, 128, 256):
        for limit_s in (0.05, 0.5, 15.0):
            run, cpu_s = on_cluster(n_gpus, "shockwave", "published=true", f"time_limit_s={limit_s}")
            own = run.summary["policy"]
            stopped = own["stopped_by_time_limit"] + own["without_answer"]
            table_row(
                f"{n_gpus}",
                f"{limit_s:g}",
                f"{own['plans']:,.0f}",
                f"{stopped:,.0f}",
                f"{own['largest_gap']:.1e}",
                four_of(run),
                f"{cpu_s:.0f}",
            )


def crossing() -> None:
    """The seven policies and BFTrainer's MILP on a cluster of their own and on Summit's idle nodes, one ledger."""
    summit = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    for n_gpus, title, events in (
        (32, "120 jobs on 32 GPUs of their own", fixed_cluster("v100=32")),
        (128, "460 jobs on the idle nodes of Summit", summit),
    ):
        print(heading(f"The crossing: {title}"))
        table_head(
            "policy", "jobs", "makespan, h", "mean JCT, h", "worst rho", "unfair, %", "useful", "rescaling", "CPU s"
        )
        for name in ("bftrainer", "bftrainer, speed-up", *(f"shockwave.{each}" for each in NAMES)):
            spec, _, objective = name.partition(", ")
            for elastic in (True, False) if spec == "bftrainer" else (False,):
                jobs, started = jobs_at(n_gpus, elastic=elastic), time.process_time()
                if spec == "bftrainer":  # a restart costs it what it costs the others
                    costs = {"scale_up_cost_s": RESTORE_S, "scale_down_cost_s": RESTORE_S}
                    jobs = JobSet([replace(job, **costs) for job in jobs], submit_is_relative=True)
                policy = policy_of(spec, t_fwd_s=T_FWD_S, solver=ExactSolver(), objective=objective or None)
                run = replay_log(
                    events,
                    jobs,
                    policy,
                    ReplaySettings(max_parallel=len(jobs), until_done=True),
                    efficiency=False,
                    bound=False,
                )
                found, ledger = run.summary["scheduling"], run.summary["ledger"]["node_hours"]
                fair = found["contention_fairness"]
                held = ledger["idle"] - ledger["unallocated"]
                table_row(
                    name,
                    "elastic" if elastic else "of one width",
                    f"{found['makespan_s'] / 3600:.2f}",
                    f"{found['average_jct_s'] / 3600:.2f}",
                    f"{fair['largest_rho']:.2f}",
                    f"{100 * fair['unfair_share']:.1f}",
                    f"{ledger['useful'] / held:.1%}",
                    f"{(ledger['rescaling'] + ledger['preempted']) / held:.1%}",
                    f"{time.process_time() - started:.0f}",
                )
        print()


PARTS = {"published": published, "scale": scale, "limit": limit, "crossing": crossing}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
        print()
