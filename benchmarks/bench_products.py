"""What the rules that products ship reach, where every change restarts a job: shares of the bound.

Run it: ``python benchmarks/bench_products.py [cases] [restarts] [windows]``. About half an hour of one core.
Costs and cases are those of ``bench_change_costs.py``; ``files`` has the costs of the job files instead, against the
bound that knows them. Horovod keeps its state in memory: a change pauses its jobs for 10 s and saves their work first.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from bench_change_costs import INTERVALS_S, POLICIES, all_cases, row, samples, shares, summit_windows
from measure import SUMMIT, heading, table_head
from real_logs import published_jobs, real_logs

from bfreplay import load_events
from bfreplay.bounds import upper_bound

RULES: dict[str, dict[str, Any]] = {
    "bftrainer, told": POLICIES["told"],
    "reclaim-aware": POLICIES["reclaim-aware"],
    "equal-share": {"policy": "equal-share"},
    "ray": {"policy": "products.ray"},
    "ray, a cluster each": {"policy": "products.ray(share=one-cluster-each)"},
    "the same, 600 s": {"policy": "products.ray(share=one-cluster-each, interval_s=600)"},
    "torchrun": {"policy": "products.torchrun"},
    "gang, Volcano": {"policy": "products.gang"},
    "gang, KAI": {"policy": "products.gang(order=kai)"},
    "kueue": {"policy": "products.kueue"},
    "kueue, partial": {"policy": "products.kueue(growth=partial)"},
    "horovod": {"policy": "products.horovod", "restart_cost": 10.0, "saves": "on-resize"},
    "scavenger, 8 nodes": {"policy": "products.scavenger(size=8)"},
    "scavenger, 64 nodes": {"policy": "products.scavenger(size=64)"},
}


def cases() -> None:
    """Every rule under the costs of the files, and under every checkpoint interval."""
    print(heading("Rules of products: shares of the bound, %"))
    table_head("case, c", *RULES, "ceiling")
    two_weeks = load_events(SUMMIT / "summit-2021-02-node-events.parquet"), published_jobs("HPO"), 10
    for label, (log, jobs, parallel) in (all_cases() | {"Summit, two weeks": two_weeks}).items():
        priced = upper_bound(log, jobs.endless(parallel, log.window_start_us), parallel).samples
        of_files = {
            rule: samples(log, jobs, parallel, policy=options["policy"].format(price=0.0)) / priced
            for rule, options in RULES.items()
        }
        of_files["bftrainer, told"] = samples(log, jobs, parallel, policy="bftrainer", t_fwd=120.0) / priced
        row(f"{label}, files", of_files)
        for every_s in INTERVALS_S:
            row(f"{label}, {every_s:g} s", shares(log, jobs, parallel, every_s, RULES))


def restarts() -> None:
    """Restarts of 30 and 120 s in place of 60, a checkpoint every 600 s."""
    print(heading("Rules of products: restarts of 30 and 120 s, c = 600 s, %"))
    table_head("case, restart", *RULES, "ceiling")
    for label, case in all_cases().items():
        for restart_s in (30.0, 120.0):
            row(f"{label}, {restart_s:g} s", shares(*case, 600.0, RULES, restart_s))


def windows() -> None:
    """Ten windows of Summit with mean, least and most, and two ingested logs, at c = 600 s."""
    print(heading("Rules of products: ten windows of Summit and two other logs, c = 600 s, 10 jobs, %"))
    table_head("log", *RULES, "ceiling")
    hpo, of_windows = published_jobs("HPO"), []
    for label, log in summit_windows():
        of_windows.append(shares(log, hpo, 10, 600.0, RULES))
        row(label, of_windows[-1])
    for word, summary in (("mean", np.mean), ("least", min), ("most", max)):
        row(word, {rule: float(summary([found[rule] for found in of_windows])) for rule in of_windows[0]})
    for label, log in list(real_logs().items())[1:]:
        row(label, shares(log, hpo, 10, 600.0, RULES))


PARTS = {"cases": cases, "restarts": restarts, "windows": windows}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
