"""What it costs on the Summit log that the allocator has to learn the curves: T_fwd 120 s, exact decisions.

Run it: ``python benchmarks/bench_learning.py``. About four minutes of one core.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace

from measure import SHARED, SUMMIT, heading, table_head, table_row

from bfreplay import load_events, load_jobs, replay_log
from bfreplay.datasets import NodeEvents
from bfreplay.policies import BFTrainerPolicy, Policy
from bfreplay.policies.learning import LearningPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet

T_FWD_S = 120.0
ELASTICFLOW = SHARED / "data" / "elasticflow" / "throughputs_A100"
MODELS = ("bert", "gpt2", "inception3", "resnet50", "vgg16")
BEST_TIME_S = 1800.0
"""What a job with ElasticFlow's curves takes on its best count."""

LEARNERS = [("job", 0.0), ("model", 0.0), ("job", 0.05), ("model", 0.05)]


def imagenet() -> JobSet:
    """Seven models, nearly linear up to 64 nodes."""
    return load_jobs(SUMMIT / "ImageNet-imgps-Jbnd-1001J.pkl", curves=SUMMIT / "ImageNet-imgps-JNPs-1001J.pkl")


def shufflenet() -> JobSet:
    """One model, nearly linear; named here, so that its trials can learn from one another."""
    jobs = load_jobs(SUMMIT / "hps-shufflenet-Jbnd-1000J.pkl", curves=SUMMIT / "hps-shufflenet-JNPs-1000J.pkl")
    return JobSet((replace(job, model="shufflenet") for job in jobs), submit_is_relative=jobs.submit_is_relative)


def elasticflow() -> JobSet:
    """The ImageNet jobs with the curves that ElasticFlow measured: each peaks at another count, some at 8."""
    curves = list(_elasticflow_curves())
    return JobSet(_with_curve(job, *curves[k % len(curves)]) for k, job in enumerate(imagenet()))


def _elasticflow_curves() -> Iterator[tuple[str, TabulatedCurve]]:
    """Model and batch size, and samples/s on 1 to 64 GPUs, for those that run on all of them."""
    for model in MODELS:
        with (ELASTICFLOW / f"{model}.csv").open(newline="") as file:
            (_, *counts), *rows = csv.reader(file)
        for batch, *iterations_per_s in rows:
            rates = [float(batch) * float(rate) for rate in iterations_per_s]
            if min(rates) > 0:
                yield f"{model}, batch {batch}", TabulatedCurve([0, *map(int, counts)], [0.0, *rates])


def _with_curve(job: ElasticJob, model: str, curve: TabulatedCurve) -> ElasticJob:
    return replace(job, model=model, throughput=curve, work_samples=BEST_TIME_S * max(curve.values))


def replayed(events: NodeEvents, jobs: JobSet, policy: Policy, max_parallel: int, *, unlimited: bool) -> RunResult:
    """One replay, without tables and without comparisons."""
    settings = ReplaySettings(max_parallel=max_parallel)
    return replay_log(events, jobs, policy, settings, unlimited_work=unlimited, efficiency=False, with_tables=False)


def lost(learned: RunResult, known: RunResult) -> str:
    """Samples lost, and how much later the last job was done where all are done in both."""
    here, there = learned.summary, known.summary
    share = 1 - here["ledger"]["samples"] / there["ledger"]["samples"]
    start_us = known.record["config"]["window_start_us"]
    if here["last_finish_us"] is None or there["last_finish_us"] is None:
        return f"{share:.2%} of samples"
    return f"{(here['last_finish_us'] - start_us) / (there['last_finish_us'] - start_us) - 1:+.2%} of time"


def main() -> None:
    """Print one table."""
    print(heading("Learning the curves: what it costs on the Summit log"))
    table_head("jobs", "at once", "work", *(f"by {share}, noise {noise:g}" for share, noise in LEARNERS))
    events = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    for make in (imagenet, shufflenet, elasticflow):
        jobs = make()
        for max_parallel in (10, 35):
            for unlimited in (True, False):
                known = replayed(events, jobs, BFTrainerPolicy(T_FWD_S), max_parallel, unlimited=unlimited)
                cells = []
                for share, noise in LEARNERS:
                    policy = LearningPolicy(BFTrainerPolicy(T_FWD_S), share, noise=noise)
                    learned = replayed(events, jobs, policy, max_parallel, unlimited=unlimited)
                    cells.append(lost(learned, known))
                table_row(make.__name__, str(max_parallel), "unlimited" if unlimited else "as given", *cells)


if __name__ == "__main__":
    main()
