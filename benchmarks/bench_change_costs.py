"""Shares of the bound where every change restarts a job and loses the work since its last checkpoint.

Run it: ``python benchmarks/bench_change_costs.py [cases] [windows]``. About five minutes of one core. Every start,
rescale and reclaim pauses a job for 60 s, and a checkpoint is taken every c seconds: ``bfreplay replay LOG --jobs JOBS
--restart-cost 60 --work-saved-every C --unlimited-work --policy POLICY --t-fwd T``. Told: BFTrainer's decision with a
constant price of 60 + c/2 seconds, ``bftrainer(price_s=...)``. Shares of what free rescaling would process. The
ceiling: an idle interval of L seconds gives at most floor(L / c) c - 60 useful ones, whoever uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from measure import SUMMIT, heading, table_head, table_row
from real_logs import published_jobs, real_logs

from bfreplay import ElasticJob, JobSet, NodeEvents, load_events, load_jobs, replay_log
from bfreplay.bounds import upper_bound

RESTART_S = 60.0
INTERVALS_S = (0.0, 120.0, 600.0, 1800.0)
POLICIES = {
    "told": ({"policy": "bftrainer(price_s={price:g})", "t_fwd": 600.0}),
    "known": {"policy": "bftrainer", "t_fwd": 150.0},
    "known, runs": {"policy": "bftrainer", "t_fwd": 150.0, "placement": "runs"},
    "reclaim-aware": {"policy": "reclaim-aware", "t_fwd": 150.0},
}


def shares(
    log: NodeEvents,
    jobs: JobSet,
    parallel: int,
    every_s: float,
    policies: Mapping[str, dict[str, Any]] = POLICIES,
    restart_s: float = RESTART_S,
) -> dict[str, float]:
    """Share of the bound by policy, and the ceiling."""
    endless = jobs.endless(parallel, log.window_start_us)
    bound = upper_bound(log, endless, parallel).free_rescaling_samples
    assert bound is not None
    costs = {"restart_cost": restart_s, "work_saved_every": every_s}
    found = {}
    for label, options in policies.items():
        policy = options["policy"].format(price=restart_s + every_s / 2)
        chosen = costs | options | {"policy": policy}
        if not every_s:  # nothing is ever at risk
            chosen.pop("saves", None)
        found[label] = samples(log, jobs, parallel, **chosen) / bound
    return found | {"ceiling": ceiling(log, every_s)}


def samples(log: NodeEvents, jobs: JobSet, parallel: int, **options: Any) -> float:
    """Samples of a run without end."""
    common = {"unlimited_work": True, "efficiency": False, "bound": False, "with_tables": False}
    return replay_log(log, jobs, max_parallel=parallel, **common, **options).summary.ledger.samples


def ceiling(log: NodeEvents, every_s: float) -> float:
    """Most useful seconds of an idle second of all, with one restart in each idle interval; the best may have more."""
    lengths_s = np.array([length_us / 1e6 for length_us in idle_lengths_us(log)])
    saved_s = lengths_s if not every_s else np.floor(lengths_s / every_s) * every_s
    return float(np.maximum(saved_s - RESTART_S, 0.0).sum() / lengths_s.sum())


def idle_lengths_us(log: NodeEvents) -> Iterator[int]:
    """Lengths of all idle intervals, cut at the ends of the window."""
    since: dict[int, int] = {}
    for batch in log.batches():
        columns = batch.time_us.tolist(), batch.node.tolist(), batch.state.tolist()
        for time_us, node, state in zip(*columns, strict=True):
            if state == 0:
                since.setdefault(node, time_us)
            elif node in since:
                yield time_us - since.pop(node)
    yield from (log.window_end_us - from_us for from_us in since.values())


def cases() -> None:
    """Every checkpoint interval on the sample and on four days of Summit."""
    print(heading("Work at risk: shares of the bound with free rescaling, %"))
    table_head("case, c", *POLICIES, "ceiling")
    for label, case in all_cases().items():
        for every_s in INTERVALS_S:
            row(f"{label}, {every_s:g} s", shares(*case, every_s))


def all_cases() -> dict[str, tuple[NodeEvents, JobSet, int]]:
    """Log, jobs and their number at once: the sample in speed-up, and four days of Summit."""
    summit = load_events(SUMMIT / "summit-2021-02-node-events.parquet").between("2021-02-11", "2021-02-15")
    sample = JobSet(map(ElasticJob.in_speed_up, load_jobs("sample")))
    hpo = published_jobs("HPO")
    return {
        "sample": (load_events("sample"), sample, 10),
        "Summit 10": (summit, hpo, 10),
        "Summit 35": (summit, hpo, 35),
    }


def row(label: str, found: dict[str, float]) -> None:
    """Print a row of shares."""
    table_row(label, *(f"{100 * share:.1f}" for share in found.values()))


def windows() -> None:
    """Ten windows of 1.4 days of Summit, and two ingested logs, at c = 600 s; nothing was tuned on them."""
    print(heading("Work at risk: ten other windows of Summit and two other logs, c = 600 s, 10 jobs, %"))
    table_head("log", *POLICIES, "ceiling")
    hpo = published_jobs("HPO")
    gains = []
    for label, log in summit_windows():
        found = shares(log, hpo, 10, 600.0)
        gains.append(found["reclaim-aware"] - found["told"])
        row(label, found)
    print(f"reclaim-aware over told: {100 * np.mean(gains):.1f}, {100 * min(gains):.1f} to {100 * max(gains):.1f}")
    for label, log in list(real_logs().items())[1:]:
        row(label, shares(log, hpo, 10, 600.0))


def summit_windows() -> Iterator[tuple[str, NodeEvents]]:
    """Ten windows of 1.4 days, 0.92 days apart, after the days of ``all_cases``."""
    summit = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    begin = datetime(2021, 2, 15, tzinfo=UTC)
    for k in range(10):
        start = begin + k * timedelta(days=0.92)
        yield f"Summit, {start:%m-%d %H:%M}", summit.between(start, start + timedelta(days=1.4))


PARTS = {"cases": cases, "windows": windows}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
