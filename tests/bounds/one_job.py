"""One job and the intervals of a pool, as compiled loops take them."""

from __future__ import annotations

import numpy as np

from bfreplay.bounds.job_classes import Horizon, JobClass
from bfreplay.bounds.prices import PricedJob


def one_job(rate, min_nodes: int, up_s: float, down_s: float) -> JobClass:
    """A class of one job without end."""
    return JobClass(rate, min_nodes, float(up_s), float(down_s), np.zeros(1, np.int64), np.array([np.inf]))


def intervals(seconds, idle, reclaimed) -> Horizon:
    """A horizon of these intervals."""
    start_us = np.round(1e6 * (np.cumsum(seconds) - seconds)).astype(np.int64)
    return Horizon(start_us, seconds, idle.astype(np.int32), reclaimed.astype(np.int32))


def most_of_one(rate, min_nodes, up_s, down_s, price, seconds, idle, reclaimed, parts=1) -> float:
    """The most that one job makes beyond what it pays, given the intervals in so many parts."""
    job, horizon = PricedJob(one_job(rate, min_nodes, up_s, down_s)), intervals(seconds, idle, reclaimed)
    for part in np.array_split(np.arange(seconds.size), parts):
        job.advance(price[part], Horizon(*(column[part] for column in horizon)))
    return job.most
