"""Random jobs with deadlines on fixed clusters, and which admitted ones are late: from one seed each."""

from __future__ import annotations

import random

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob


def _curve(dice: random.Random, most: int) -> list[float]:
    scale, power = dice.choice([0.01, 1.0, 100.0]), dice.uniform(0.5, 1.0)
    if dice.random() < 0.6:
        rates = [scale * n**power for n in range(1, most + 1)]
    else:  # some counts are slower than lower ones
        rates = [scale * n * dice.uniform(0.2, 1.0) for n in range(1, most + 1)]
    if dice.random() < 0.3:  # powers of two only
        rates = [rate if n & (n - 1) == 0 else 0.0 for n, rate in enumerate(rates, 1)]
    return [0.0, *rates]


def _job(dice: random.Random, k: int, n_nodes: int, span_s: int, cost_s: float) -> ElasticJob:
    most = dice.randint(1, min(n_nodes, dice.choice([1, 4, 8, 32])))
    curve = _curve(dice, most)
    least = dice.choice([1, 1, 1, most])
    alone_s = dice.choice([30, 300, 3_000, 20_000]) * dice.uniform(0.3, 1)
    submit_s = dice.choice([dice.uniform(0, span_s), float(dice.randint(0, span_s))])
    due_s = submit_s + alone_s * dice.uniform(dice.choice([0.9, 1.0]), dice.choice([1.2, 1.5, 3.0, 10.0]))
    due_s = float(int(due_s)) if dice.random() < 0.5 else due_s
    submit_us = int(submit_s * 1e6)
    return ElasticJob(
        f"job{k:03d}",
        submit_us,
        least if curve[least] > 0 else 1,
        most,
        cost_s,
        cost_s,
        max(curve) * alone_s,
        TabulatedCurve(tuple(range(most + 1)), tuple(curve)),
        deadline_us=None if dice.random() < 0.1 else max(int(due_s * 1e6), submit_us + 1),
    )


def late_of_admitted(policy: str, seed: int, cost_s: float = 0.0, reserve: float = 0.0) -> tuple[list[str], int]:
    """Return the admitted jobs of the case of a seed that are late under a policy, and the number of admitted ones."""
    dice = random.Random(seed)
    n_nodes, span_s = dice.choice([1, 2, 3, 4, 8, 16, 30]), dice.choice([600, 3_600, 20_000])
    jobs = [_job(dice, k, n_nodes, span_s, cost_s) for k in range(dice.choice([5, 10, 25, 40]))]
    slot_s, most_parallel = dice.choice([1.0, 7.3, 60.0, 60.0, 240.0]), dice.choice([1, 2, 5, 100, 100])
    run = replay_log(
        fixed_cluster(f"gpu={n_nodes}"),
        sorted(jobs, key=lambda job: job.submit_us),
        max_parallel=most_parallel,
        policy=f"{policy}(slot_s={slot_s}, reserve={reserve})",
        efficiency=False,
        bound=False,
    )
    admitted = run.jobs[(run.jobs.status != "declined") & run.jobs.admitted.notna() & run.jobs.deadline.notna()]
    is_met = admitted.deadline_met.fillna(False).astype(bool)
    return admitted.job[~is_met].tolist(), len(admitted)
