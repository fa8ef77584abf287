"""ElasticFlow: time of its published runs, orders and reserves, and on idle nodes beside BFTrainer's MILP.

Run it: ``python benchmarks/bench_elasticflow.py [speed] [orders] [crossing]``. About ten minutes of one core.
"""

from __future__ import annotations

import sys
import time

from measure import SHARED, SUMMIT, heading, table_head, table_row

from bfreplay import load_events, replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.systems.elasticflow.generated_workload import generated_jobs
from bfreplay.systems.elasticflow.throughputs import read_throughputs
from bfreplay.systems.elasticflow.trace import read_trace
from bfreplay.workload import JobSet

DATA = SHARED / "data" / "elasticflow"
T_FWD_S = 600.0


def trace(name: str, gpu_type: str = "A100") -> JobSet:
    """The jobs of a published trace."""
    return read_trace(DATA / f"traces/{name}.csv", read_throughputs(DATA / f"throughputs_{gpu_type}"))


def replayed(events, jobs: JobSet, spec: str, objective: str | None = None, **more) -> tuple[RunResult, float]:
    """A replay of all jobs, and its CPU seconds."""
    policy = policy_of(spec, t_fwd_s=T_FWD_S, solver=ExactSolver(), objective=objective)
    started = time.process_time()
    settings = ReplaySettings(max_parallel=len(jobs), **more)
    run = replay_log(events, jobs, policy, settings, efficiency=False, bound=False)
    return run, time.process_time() - started


def speed() -> None:
    """CPU seconds of ElasticFlow, as published and by one rule, whole replay."""
    print(heading("ElasticFlow: CPU seconds of a replay"))
    table_head("jobs", "GPUs", "rules", "decisions", "met", "declined", "CPU s", "the original, s")
    fig9 = trace("fig9_1000job_1500lam_seed0_ddlseed12345")
    replayed(fixed_cluster("a100=8"), trace("resnet_cifar_trace"), "elasticflow.elasticflow")  # compile
    for jobs, gpus, slot_s, original in ((fig9, 64, 240, "117"), (trace("cluster01"), 512, 60, "> 480")):
        for rules in ("published=true", "published=false"):
            run, cpu_s = replayed(
                fixed_cluster(f"a100={gpus}"),
                jobs,
                f"elasticflow.elasticflow({rules}, slot_s={slot_s})",
                until_done=True,
            )
            deadlines = run.summary["deadlines"]
            table_row(
                f"{len(jobs):,}",
                str(gpus),
                rules,
                f"{run.summary['n_decisions']:,}",
                f"{deadlines['met']:,}",
                f"{deadlines['declined']:,}",
                f"{cpu_s:.1f}",
                original,
            )


def orders() -> None:
    """Deadlines met, declined and missed under both orders of giving spare nodes, and under reserves."""
    print(heading("ElasticFlow: who gets spare nodes first, and a reserve for rescaling"))
    table_head("trace", "GPUs", "order", "reserve", "met", "missed", "declined", "mean JCT, s", "rescales")
    cases = (
        ("195job_first25", "A100", 32, 240),
        ("195job", "A100", 128, 240),
        ("elasticVpollux_e", "T4", 64, 60),
        ("fig9_1000job_1500lam_seed0_ddlseed12345", "A100", 64, 240),
    )
    for name, gpu_type, gpus, slot_s in cases:
        for order, reserve in (("paper", 0), ("artifact", 0), ("paper", 1), ("paper", 2), ("paper", 4)):
            spec = f"elasticflow.elasticflow(slot_s={slot_s}, order={order}, reserve={reserve})"
            run, _ = replayed(fixed_cluster(f"gpu={gpus}"), trace(name, gpu_type), spec, until_done=True)
            found, summary = run.summary["deadlines"], run.summary
            table_row(
                name.partition("_1500")[0],
                str(gpus),
                order,
                str(reserve),
                *(f"{found[each]:,}" for each in ("met", "missed", "declined")),
                f"{summary['scheduling']['average_jct_s']:,.0f}",
                f"{summary['n_scale_ups'] + summary['n_scale_downs']:,}",
            )


CROSSING = (
    ("bftrainer", "throughput"),
    ("bftrainer", "deadline"),
    ("bftrainer(admission=true)", "deadline"),
    ("elasticflow.elasticflow", None),
    ("elasticflow.edf", None),
    ("elasticflow.edf_admission", None),
    ("elasticflow.tiresias", None),
    ("elasticflow.gandiva", None),
)


def crossing() -> None:
    """The same jobs with deadlines on the idle nodes of Summit, and on as many nodes of their own."""
    jobs = generated_jobs(read_throughputs(DATA / "throughputs_A100"), 2000, gap_s=500.0, deadline_seed=12345)
    summit = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    for title, events in (
        ("on the idle nodes of Summit", summit),
        ("on 391 nodes of their own", fixed_cluster("node=391")),
        ("on 128 nodes of their own", fixed_cluster("node=128")),
    ):
        print(heading(f"The crossing: 2,000 jobs with deadlines {title}"))
        table_head("policy", "objective", "met", "missed", "declined", "open", "useful", "lost", "CPU s")
        for spec, objective in CROSSING:
            is_log = events is summit
            run, cpu_s = replayed(events, jobs, spec, objective, until_done=not is_log)
            found, hours = run.summary["deadlines"], run.summary["ledger"]["node_hours"]
            held = hours["idle"] - hours["unallocated"]
            table_row(
                spec,
                objective or "-",
                f"{found['met']:,}",
                f"{found['missed']:,}",
                f"{found['declined']:,}",
                f"{found['open']:,}",
                f"{hours['useful'] / held:.1%}",
                f"{(hours['rescaling'] + hours['preempted']) / held:.1%}",
                f"{cpu_s:.0f}",
            )
        print()


PARTS = {"speed": speed, "orders": orders, "crossing": crossing}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
        print()
