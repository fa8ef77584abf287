"""Made-up campaign of elastic training jobs for a synthetic machine.

No rate was measured: all come from the small model of `rate_samples_per_s`, with round numbers of the right order for
four-accelerator nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bfreplay.datasets.times import US
from bfreplay.errors import InputError
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet

RACK_NODES = 16
"""Nodes that share a fast switch; a job on more than these pays the slower links between racks."""

_HOUR_S = 3_600
_POINTS = (1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64)
_MAX_NODES = (8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Duration of one training step of a model.

    Parameters
    ----------
    name
        Name of the model.
    node_samples_per_s
        Rate of one node.
    samples_per_step
        Samples in one step: of each node if ``grows_with_nodes``, of the whole job if not.
    grows_with_nodes
        Weak scaling (each node keeps its batch) or strong scaling (the batch is split).
    serial_s
        Part of a step that more nodes do not shorten (Amdahl).
    exchange_s
        Seconds to all-reduce the gradients over the links inside a rack.
    cross_rack
        Factor on ``exchange_s`` if the job spans racks: above 1 the curve dips there and is not concave.
    """

    name: str
    node_samples_per_s: float
    samples_per_step: int
    grows_with_nodes: bool
    serial_s: float
    exchange_s: float
    cross_rack: float


FAMILIES = (
    ModelFamily("image-classifier", 2_400.0, 512, True, 0.004, 0.030, 3.0),
    ModelFamily("image-classifier-large", 620.0, 256, True, 0.006, 0.090, 3.5),
    ModelFamily("segmentation", 95.0, 32, True, 0.010, 0.060, 1.5),
    ModelFamily("language-model", 310.0, 2_048, False, 0.020, 0.050, 2.5),
    ModelFamily("molecule-graph", 5_200.0, 16_384, False, 0.015, 0.008, 4.0),
)


def rate_samples_per_s(family: ModelFamily, nodes: int) -> float:
    """Return samples/s on ``nodes`` nodes: samples of a step / (computing + serial part + ring all-reduce).

    A ring all-reduce moves ``2 (n - 1) / n`` of the gradients over each link, and takes a little longer with each
    node of latency; both are slower by ``cross_rack`` beyond `RACK_NODES` nodes.
    """
    samples = family.samples_per_step * (nodes if family.grows_with_nodes else 1)
    computing_s = samples / nodes / family.node_samples_per_s
    link_factor = family.cross_rack if nodes > RACK_NODES else 1.0
    exchange_s = family.exchange_s * link_factor * ((nodes - 1) / nodes + 0.004 * (nodes - 1))
    return samples / (computing_s + family.serial_s + exchange_s)


def synthetic_jobs(n_jobs: int = 40, seed: int = 0, days: float = 4.0, node_hours: float = 30.0) -> JobSet:
    """Return elastic training jobs with partly non-concave curves, submitted over the first half of ``days``.

    Parameters
    ----------
    n_jobs
        Number of jobs; model families take turns.
    seed
        Same seed, same jobs.
    days
        Length of the log for which they are meant.
    node_hours
        Typical work of a job in hours of one node; each job draws 1/3 to 5/3 of it. The default 30 suits
        256 nodes with 8 % of them idle: 40 jobs need about 1,200 of 2,000 idle node-hours at perfect scaling.

    Returns
    -------
    JobSet
        Submit times relative to the start of the window, a quarter of them at the very start. Gaining nodes costs
        15-30 s, losing them 10-20 s. Each fifth job counts twice (weight 2), each eighth has a deadline.

    Raises
    ------
    InputError
        Fewer than one job, or a length or work that is not positive.
    """
    if n_jobs < 1 or not days > 0 or not node_hours > 0:
        raise InputError(
            "no jobs can be made from these numbers",
            value={"n_jobs": n_jobs, "days": days, "node_hours": node_hours},
            expected="n_jobs >= 1, days > 0 and node_hours > 0",
        )
    generator = np.random.Generator(np.random.PCG64(seed))
    half_s = int(days * 86_400 / 2)
    at_start = n_jobs // 4
    submit_s = [0] * at_start + sorted(int(seconds) for seconds in generator.integers(0, half_s + 1, n_jobs - at_start))
    jobs = []
    for job_index in range(n_jobs):
        family = FAMILIES[job_index % len(FAMILIES)]
        max_nodes = _MAX_NODES[int(generator.integers(len(_MAX_NODES)))]
        min_nodes = int(generator.choice((1, 1, 2, 4)))
        pace = float(generator.uniform(0.7, 1.3))  # hyper-parameters change how long a step takes, not how it scales
        counts = [count for count in _POINTS if count <= max_nodes]
        rates = [round(pace * rate_samples_per_s(family, count), 1) for count in counts]
        hours = node_hours * float(generator.uniform(1 / 3, 5 / 3))
        slack = float(generator.uniform(0.3, 0.5))
        jobs.append(
            ElasticJob(
                name=f"{family.name}-{job_index:02d}",
                submit_us=submit_s[job_index] * US,
                min_nodes=min_nodes,
                max_nodes=max_nodes,
                scale_up_cost_s=float(generator.integers(15, 31)),
                scale_down_cost_s=float(generator.integers(10, 21)),
                work_samples=float(round(hours * _HOUR_S * rates[0])),
                throughput=TabulatedCurve([0, *counts], [0.0, *rates]),
                weight=2.0 if job_index % 5 == 4 else 1.0,
                deadline_us=(submit_s[job_index] + int(slack * 2 * half_s)) * US if job_index % 8 == 7 else None,
                model=family.name,
            )
        )
    return JobSet(jobs, submit_is_relative=True)
