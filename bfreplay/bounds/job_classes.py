"""Jobs that are alike for a bound: the same curve within the same bounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.workload import ElasticJob


@dataclass(frozen=True, slots=True, eq=False)
class JobClass:
    """Jobs of one curve and one pair of bounds.

    Where their rescale costs differ, the least of them stands for all: a bound may be too high, never too low.

    Parameters
    ----------
    rate : (K + 1,) float64
        Samples/s at each count, 0 below ``min_nodes``; K is ``max_nodes``, or all nodes there are if that is less.
    min_nodes
        Fewest nodes to run on.
    scale_up_s, scale_down_s
        Least rescale costs of the jobs, seconds.
    submit_us, work_samples : (N,)
        When each is submitted, ascending, and its work, ``inf`` for one without end.
    """

    rate: NDArray[np.float64]
    min_nodes: int
    scale_up_s: float
    scale_down_s: float
    submit_us: NDArray[np.int64]
    work_samples: NDArray[np.float64]

    @property
    def n_jobs(self) -> int:
        """N."""
        return int(self.submit_us.size)


def job_classes(jobs: Iterable[ElasticJob], most_nodes: int) -> tuple[JobClass, ...]:
    """Group ``jobs``, which are in order of submission; counts above ``most_nodes`` are left out.

    Jobs that need more nodes than that, or make nothing on any, are in no class.
    """
    groups: dict[tuple[int, bytes], list[ElasticJob]] = {}
    for job in jobs:
        if job.min_nodes > most_nodes:
            continue
        rate = job.throughput.table(min(job.max_nodes, most_nodes))
        if not rate[job.min_nodes :].any():
            continue
        groups.setdefault((job.min_nodes, rate.tobytes()), []).append(job)
    classes = []
    for (min_nodes, rate_bytes), members in groups.items():
        rate = np.frombuffer(rate_bytes, np.float64).copy()
        rate[:min_nodes] = 0.0
        classes.append(
            JobClass(
                rate=rate,
                min_nodes=min_nodes,
                scale_up_s=min(job.scale_up_cost_s for job in members),
                scale_down_s=min(job.scale_down_cost_s for job in members),
                submit_us=np.array([job.submit_us for job in members], np.int64),
                work_samples=np.array([job.work_samples for job in members]),
            )
        )
    return tuple(classes)


def merged(classes: tuple[JobClass, ...], at_most: int) -> tuple[JobClass, ...]:
    """Fewer classes, each as good as the best of those it replaces at every count: a bound may rise, never fall."""
    if len(classes) <= at_most:
        return classes
    by_rate = sorted(classes, key=lambda each: float(each.rate.max()))
    cuts = [len(by_rate) * part // at_most for part in range(at_most + 1)]
    return tuple(_as_one(by_rate[low:high]) for low, high in itertools.pairwise(cuts))


def _as_one(classes: list[JobClass]) -> JobClass:
    rate = np.zeros(max(each.rate.size for each in classes))
    for each in classes:
        rate[: each.rate.size] = np.maximum(rate[: each.rate.size], each.rate)
    submit_us = np.concatenate([each.submit_us for each in classes])
    order = np.argsort(submit_us, kind="stable")
    return JobClass(
        rate=rate,
        min_nodes=min(each.min_nodes for each in classes),
        scale_up_s=min(each.scale_up_s for each in classes),
        scale_down_s=min(each.scale_down_s for each in classes),
        submit_us=submit_us[order],
        work_samples=np.concatenate([each.work_samples for each in classes])[order],
    )
