"""Gavel's published figures: the physical cluster's traces, static traces for the makespan, continuous arrivals.

Run it: ``python benchmarks/bench_gavel_published.py [physical] [recorded] [static] [continuous]``; all take about
eight minutes of one core, the first two ten seconds each.
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import SHARED, heading, table_head, table_row

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.systems.gavel.generated_workload import generated_jobs
from bfreplay.systems.gavel.throughputs import ThroughputTable, read_throughputs
from bfreplay.systems.gavel.trace import read_trace
from bfreplay.workload import JobSet

DATA, GOLDEN = SHARED / "data" / "gavel", SHARED / "golden" / "gavel"
SIMULATED = "v100=36,p100=36,k80=36"
PHYSICAL = "v100=8,p100=16,k80=24"
WINDOW = (4000, 5000)


def simulation_table() -> ThroughputTable:
    """The throughputs that Gavel's simulations take."""
    return read_throughputs(DATA / "simulation_throughputs.json.gz")


def physical_table() -> ThroughputTable:
    """The same with the values that were measured on the physical cluster."""
    with gzip.open(DATA / "simulation_throughputs.json.gz", "rt") as file:
        throughputs = json.load(file)
    changes = json.loads((DATA / "physical_vs_simulation_throughputs.diff.json").read_text())
    for node_type, job, partner, _, measured in changes["rows"]:
        throughputs[node_type][job][partner] = measured
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "physical_throughputs.json"
        path.write_text(json.dumps(throughputs))
        return read_throughputs(path)


def replayed(cluster: str, jobs: JobSet, spec: str, measured: tuple[int, int] | None = None) -> RunResult:
    """One replay until the jobs are done, without comparisons."""
    settings = ReplaySettings(max_parallel=len(jobs), until_done=True, measured=measured)
    policy = policy_of(spec, t_fwd_s=120, solver=ExactSolver())
    return replay_log(fixed_cluster(cluster), jobs, policy, settings, efficiency=False, bound=False)


def average_jct_h(run: RunResult) -> float:
    """Mean time from submission to completion of the measured jobs, hours."""
    seconds: float = run.summary["scheduling"]["average_jct_s"]
    return seconds / 3600


def makespan_h(run: RunResult) -> float:
    """From 0 to the end of the last job, hours."""
    seconds: float = run.summary["scheduling"]["makespan_s"]
    return seconds / 3600


def physical() -> None:
    """Two traces of the physical cluster: the fair policies by average JCT, the others by makespan."""
    print(heading("Gavel: the traces of the physical cluster (8 V100, 16 P100, 24 K80)"))
    table_head("trace", "figure", "throughputs", "clock", "baseline", "Gavel", "ratio", "published")
    comparisons: list[tuple[str, str, Callable[[RunResult], float], str, str, str]] = [
        (
            "max_min_fairness",
            "average JCT, h",
            average_jct_h,
            "max_min_fairness",
            "max_min_fairness_perf",
            "1.36 (LAS)",
        ),
        ("minimize_makespan", "makespan, h", makespan_h, "gandiva", "min_total_duration_perf", "1.2 (Gandiva)"),
    ]
    for trace, name, figure, baseline, gavel, published in comparisons:
        for what, table in (("measured", physical_table()), ("of the simulations", simulation_table())):
            jobs = read_trace(DATA / "traces" / "physical_cluster" / f"{trace}.trace", table)
            for clock, options in (("bfreplay's", ""), ("published", "(published=true)")):
                one, other = (figure(replayed(PHYSICAL, jobs, f"gavel.{each}{options}")) for each in (baseline, gavel))
                table_row(trace, name, what, clock, f"{one:.2f}", f"{other:.2f}", f"{one / other:.3f}", published)


SCENARIOS = ("static8_single", "cont12_single", "static12_multi", "cont10_prio")


def recorded() -> None:
    """The recorded simulations with bfreplay's own shares, as published and without the throttle and the defects."""
    print(heading("Gavel: the recorded simulations with bfreplay's own shares"))
    table_head("scenario", "policy", "original: JCT, s", "end, s", "published=true: JCT", "end", "default: JCT", "end")
    for scenario in SCENARIOS:
        with gzip.open(GOLDEN / "simulations" / f"{scenario}.json.gz", "rt") as file:
            record = json.load(file)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "throughputs.json"
            path.write_text(json.dumps(record["throughputs"]))
            trace = Path(folder) / f"{scenario}.trace"
            trace.write_text(record["trace"])
            jobs = read_trace(trace, read_throughputs(path))
        cluster = ",".join(f"{name}={n}" for name, n in record["cluster_spec"].items() if n)
        for policy, there in record["results"].items():
            jct_s, end_s = there["average_jct"], there["total_duration_from_t0"]
            cells = [f"{jct_s:,.0f}", f"{end_s:,.0f}"]
            for options in ("(published=true)", ""):
                run = replayed(cluster, jobs, f"gavel.{policy}{options}")
                cells.append(f"{average_jct_h(run) * 3600 / jct_s - 1:+.1%}")
                cells.append(f"{run.summary['duration_s'] / end_s - 1:+.1%}")  # there is no makespan where a job failed
            table_row(scenario, policy, *cells)


def static() -> None:
    """All jobs at once: makespan, mean of seeds 0 to 2, beside the original on the same jobs."""
    print(heading("Gavel: makespan of 100 and 300 jobs that are there from the start (36 of each type)"))
    table_head("jobs", "policy", "original, h", "published clock, h", "bfreplay's, h", "seconds each")
    with gzip.open(GOLDEN / "reproduction_static_36_36_36.json.gz", "rt") as file:
        originals = json.load(file)["runs"]
    table = simulation_table()
    for n_jobs in (100, 300):
        for policy in ("fifo", "fifo_perf", "gandiva", "min_total_duration", "min_total_duration_perf"):
            there = {
                run["seed"]: run["makespan_h"]
                for run in originals
                if (run["policy"], run["num_jobs"]) == (policy, n_jobs)
            }
            if not there:
                continue
            found: dict[str, list[float]] = {"published=true, ": [], "": []}
            started = time.perf_counter()
            for seed in there:
                jobs = generated_jobs(table, n_jobs, seed, multi_gpu=True)
                for options, makespans in found.items():
                    run = replayed(SIMULATED, jobs, f"gavel.{policy}({options}seed={seed})")
                    makespans.append(makespan_h(run))
            each_s = (time.perf_counter() - started) / (2 * len(there))
            means = [statistics.mean(values) for values in (there.values(), *found.values())]
            table_row(str(n_jobs), policy, *(f"{mean:.2f}" for mean in means), f"{each_s:.1f}")


def continuous() -> None:
    """One job an hour, several GPUs a job, jobs 4000 to 4999 measured: average JCT."""
    print(heading("Gavel: continuous arrivals, 1 job/h, several GPUs a job, jobs 4000 to 4999 (36 of each type)"))
    table_head("policy", "published, h", "original here, h", "published clock, h", "bfreplay's, h", "seconds each")
    with gzip.open(GOLDEN / "reproduction_continuous.json.gz", "rt") as file:
        originals = {run["policy"]: run for run in json.load(file)["runs"]}
    jobs = generated_jobs(simulation_table(), 5600, 0, jobs_per_hour=1.0, multi_gpu=True)
    found: dict[str, list[float]] = {}
    for policy, there in originals.items():
        started = time.perf_counter()
        runs = (replayed(SIMULATED, jobs, f"gavel.{policy}{each}", WINDOW) for each in ("(published=true)", ""))
        found[policy] = [there["published_avg_jct_h"], there["avg_jct_h"], *map(average_jct_h, runs)]
        each_s = (time.perf_counter() - started) / 2
        table_row(policy, *(f"{value:.2f}" for value in found[policy]), f"{each_s:.0f}")
    ratios = [las / gavel for las, gavel in zip(found["max_min_fairness"], found["max_min_fairness_perf"], strict=True)]
    table_row("LAS over Gavel", *(f"{ratio:.3f}" for ratio in ratios), "")


PARTS = {"physical": physical, "recorded": recorded, "static": static, "continuous": continuous}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
        print()
