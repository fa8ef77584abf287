"""The crossing: Gavel's policies on Summit's idle nodes, and BFTrainer's MILP on Gavel's cluster. One table each.

Run it: ``python benchmarks/bench_crossing.py [summit] [cluster]``. About ten minutes of one core.
"""

from __future__ import annotations

import sys
import time

from bench_gavel_published import DATA, PHYSICAL, simulation_table
from measure import SUMMIT, heading, table_head, table_row
from real_logs import published_jobs

from bfreplay import load_events, replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.systems.gavel.trace import read_trace

T_FWD_S = 120.0
GANG = 8
"""Nodes of a job under policies that give a job one width; ImageNet jobs run on 1 to 64."""

AT_ONCE = 70
FAIR = (
    "max_min_fairness",
    "max_min_fairness_perf",
    "max_min_fairness_water_filling_perf",
    "finish_time_fairness_perf",
    "min_total_duration_perf",
    "max_sum_throughput_perf",
    "fifo_perf",
    "isolated",
)
ELASTIC = ("bftrainer", "bftrainer, speed-up", "bftrainer, max-min", "equal-share")


def _policy(spec: str):
    name, _, objective = spec.partition(", ")
    return policy_of(name, t_fwd_s=T_FWD_S, solver=ExactSolver(), objective=objective or None)


def _row(name: str, run: RunResult, started: float) -> None:
    found, ledger = run.summary["scheduling"], run.summary["ledger"]["node_hours"]
    rho = found["finish_time_fairness"]
    makespan = "not all" if found["makespan_s"] is None else f"{found['makespan_s'] / 3600:.1f}"
    table_row(
        name,
        f"{found['n_completed']:,}",
        f"{found['average_jct_s'] / 3600:.2f}",
        makespan,
        f"{found['utilisation']:.1%}",
        f"{ledger['rescaling']:,.0f}",
        f"{ledger['preempted']:,.0f}",
        "" if rho is None else f"{rho['average_rho']:.2f}",
        "" if rho is None else f"{rho['largest_rho']:.2f}",
        f"{time.perf_counter() - started:.0f}",
    )


_COLUMNS = (
    "policy",
    "jobs done",
    "average JCT, h",
    "makespan, h",
    "utilisation",
    "rescaling, node-h",
    "lost, node-h",
    "rho, mean",
    "rho, largest",
    "seconds",
)


def summit() -> None:
    """1,001 ImageNet jobs on two weeks of Summit's idle nodes, under one ledger."""
    print(
        heading(f"The crossing: ImageNet jobs on Summit's idle nodes, {AT_ONCE} at once, gangs of {GANG} under Gavel")
    )
    table_head(*_COLUMNS)
    events = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    jobs = published_jobs("ImageNet")
    for name in (*ELASTIC, *(f"gavel.{each}(gang={GANG})" for each in FAIR)):
        started = time.perf_counter()
        run = replay_log(
            events, jobs, _policy(name), ReplaySettings(max_parallel=AT_ONCE), efficiency=False, bound=False
        )
        _row(name, run, started)


def cluster() -> None:
    """The trace of Gavel's physical cluster: jobs of one width on three types, and the same jobs made elastic."""
    table = simulation_table()
    trace = DATA / "traces" / "physical_cluster" / "max_min_fairness.trace"
    for elastic in (False, True):
        width = "elastic (1 to 8 nodes where measured)" if elastic else "of one width"
        print(heading(f"The crossing: the trace of Gavel's physical cluster (8 V100, 16 P100, 24 K80), jobs {width}"))
        table_head(*_COLUMNS)
        jobs = read_trace(trace, table, elastic=elastic)
        for name in (*ELASTIC[:2], *(f"gavel.{each}" for each in FAIR if not elastic)):
            started = time.perf_counter()
            run = replay_log(
                fixed_cluster(PHYSICAL),
                jobs,
                _policy(name),
                ReplaySettings(max_parallel=len(jobs), until_done=True),
                efficiency=False,
                bound=False,
                fairness=not elastic,
            )
            _row(name, run, started)
        print()


PARTS = {"summit": summit, "cluster": cluster}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
        print()
