"""How long one recomputation of Gavel's shares takes, one round, and a simulation of 1,000 jobs.

Run it: ``python benchmarks/bench_gavel_speed.py [shares] [simulation]``. About six minutes of one core.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator

import numpy as np
from bench_gavel_published import SIMULATED, simulation_table
from measure import heading, spread, table_head, table_row

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import POLICIES, policy_of
from bfreplay.replay import ReplaySettings
from bfreplay.systems.gavel.generated_workload import generated_jobs
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.shares.share_problem import ShareProblem

TYPES = ("k80", "p100", "v100")
SIZES = (100, 500, 2000)
PACKED_SIZE = 100
"""Pairs grow with the square of the jobs: of this many there are some two thousand."""

TRIES = 5
TOO_LONG_S = 60.0
ONE_NODE = ("allox",)
SIMULATED_POLICIES = (
    "fifo_perf",
    "isolated",
    "max_min_fairness",
    "max_min_fairness_perf",
    "finish_time_fairness_perf",
    "min_total_duration_perf",
    "max_sum_throughput_perf",
    "gandiva",
    "max_min_fairness_water_filling_perf",
)


def problems(n_jobs: int, *, pairs: bool, one_node: bool) -> Iterator[ShareProblem]:
    """Problems of jobs as Gavel generates them, at some time between their start and their end."""
    table = simulation_table()
    for seed in range(TRIES):
        jobs = generated_jobs(table, n_jobs, seed, jobs_per_hour=10.0, multi_gpu=not one_node, priorities=True)
        rng = np.random.default_rng(seed)
        gang = np.array([job.min_nodes for job in jobs])
        models = [str(job.model) for job in jobs]
        rate = np.array(
            [[table.rate(model, int(width), name) for name in TYPES] for model, width in zip(models, gang, strict=True)]
        )
        pair = np.zeros((0, 2), np.int64)
        pair_rate = np.zeros((0, len(TYPES), 2))
        if pairs:
            colocation = table.colocation()
            one, other = np.nonzero(np.triu(gang[:, None] == gang[None, :], 1))
            pair = np.stack([one, other], axis=1)
            pair_rate = np.array(
                [[colocation.rates(models[a], models[b], int(gang[a]), name) for name in TYPES] for a, b in pair]
            )
        yield ShareProblem(
            job=np.arange(n_jobs),
            type_names=TYPES,
            n_nodes=np.full(len(TYPES), 36),
            gang=gang,
            rate=rate,
            weight=np.array([job.weight for job in jobs]),
            steps_left=np.array([job.work_samples for job in jobs]) * rng.uniform(0.01, 1.0, n_jobs),
            age_s=rng.uniform(0.0, 1e5, n_jobs),
            to_deadline_s=np.full(n_jobs, np.inf),
            price_per_hour=np.array([0.135, 0.43, 0.74]),
            pair=pair,
            pair_rate=pair_rate,
        )


def milliseconds(name: str, n_jobs: int) -> str:
    """Median and range of one recomputation, each of another set of jobs."""
    policy = POLICIES.load(f"gavel.{name}", allow_code=False)
    taken = []
    for k, problem in enumerate(
        problems(n_jobs, pairs=policy.make_shares(GavelOptions()).uses_pairs, one_node=name in ONE_NODE)
    ):
        shares = policy.make_shares(GavelOptions())
        if not k:
            shares.shares(problem)  # loads the solver, compiles loops
            shares = policy.make_shares(GavelOptions())
        started = time.perf_counter()
        shares.shares(problem)
        taken.append((time.perf_counter() - started) * 1e3)
        if sum(taken) > TOO_LONG_S * 1e3:
            break
    return spread(taken, 1)


def shares() -> None:
    """One recomputation, by policy and number of jobs."""
    print(heading("Gavel: one recomputation of shares, 3 types of 36 nodes, ms (median, least to most)"))
    table_head("policy", *(f"{n:,} jobs" for n in SIZES))
    for name in (name.removeprefix("gavel.") for name in POLICIES.names() if name.startswith("gavel.")):
        packed = POLICIES.load(f"gavel.{name}", allow_code=False).make_shares(GavelOptions()).uses_pairs
        table_row(name, *(milliseconds(name, n) if not packed or n == PACKED_SIZE else "" for n in SIZES))


def simulation() -> None:
    """1,000 jobs, one an hour, until all are done."""
    print(heading("Gavel: a simulation of 1,000 jobs at 1 job/h, several GPUs a job, until all are done"))
    table_head("policy", "seconds", "of which shares and rounds", "rounds", "recomputations", "average JCT, h")
    jobs = generated_jobs(simulation_table(), 1000, 0, jobs_per_hour=1.0, multi_gpu=True)
    for name in SIMULATED_POLICIES:
        taken, deciding = [], []
        for _ in range(3):
            policy = policy_of(f"gavel.{name}", t_fwd_s=120, solver=ExactSolver())
            settings = ReplaySettings(max_parallel=len(jobs), until_done=True)
            started = time.perf_counter()
            run = replay_log(fixed_cluster(SIMULATED), jobs, policy, settings, efficiency=False, bound=False)
            taken.append(time.perf_counter() - started)
            deciding.append(run.session["seconds"]["decide_s"])
        own = run.summary["policy"]
        table_row(
            name,
            spread(taken, 1),
            f"{statistics.median(deciding):.1f}",
            f"{own['n_rounds']:,}",
            f"{own['n_recomputations']:,}",
            f"{run.summary['scheduling']['average_jct_s'] / 3600:.2f}",
        )


PARTS = {"shares": shares, "simulation": simulation}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
        print()
