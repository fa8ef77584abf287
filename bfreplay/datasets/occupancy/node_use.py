"""When each node was first and last used by a job, and by how many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.occupancy.rules import OccupancyRules, microseconds
from bfreplay.datasets.occupancy.spool import OPEN_END, JobIntervals


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Of the N nodes of a record, in index order.

    ``first_us (N,) int64`` (``OPEN_END`` for a node that no job names), ``last_us (N,)`` (``OPEN_END`` while a job that
    names it has no end, ``-OPEN_END`` for none), ``jobs_on (N,)`` runs of jobs that name it.
    """

    first_us: NDArray[np.int64]
    last_us: NDArray[np.int64]
    jobs_on: NDArray[np.int64]

    @property
    def is_used(self) -> NDArray[np.bool_]:
        """Whether any job names the node, ``(N,)``."""
        return self.jobs_on > 0


def node_use(record: ScheduleRecord, rules: OccupancyRules, log_end_us: int) -> NodeUse:
    """Look through all job intervals; runaway jobs end at their time limit and grace."""
    n_nodes = len(record.nodes)
    first_us, last_us = np.full(n_nodes, OPEN_END, np.int64), np.full(n_nodes, -OPEN_END, np.int64)
    jobs_on = np.zeros(n_nodes, np.int64)
    for jobs, _ in record.jobs.slices():
        n_listed = np.diff(jobs.first_node)
        np.minimum.at(first_us, jobs.nodes, np.repeat(jobs.start_us, n_listed))
        np.maximum.at(last_us, jobs.nodes, np.repeat(ends(jobs, rules, log_end_us), n_listed))
        jobs_on += np.bincount(jobs.nodes, minlength=n_nodes)
    return NodeUse(first_us, last_us, jobs_on)


def ends(jobs: JobIntervals, rules: OccupancyRules, log_end_us: int) -> NDArray[np.int64]:
    """End of each job, ``(J,)``: its own; else its limit and grace, if the log goes on then; else ``OPEN_END``."""
    grace_us = microseconds(rules.limit_grace_s)
    limit_us = np.minimum(jobs.limit_end_us, OPEN_END - grace_us) + grace_us
    is_runaway = (jobs.end_us == OPEN_END) & (limit_us < log_end_us)
    return np.where(is_runaway, limit_us, jobs.end_us)


def free_again_us(jobs: JobIntervals, rules: OccupancyRules, log_end_us: int) -> NDArray[np.int64]:
    """When the nodes of each job are free: after its end and the release delay, or its limit and grace."""
    is_open = jobs.end_us == OPEN_END
    end_us = jobs.end_us + np.where(is_open, 0, microseconds(rules.release_delay_s))
    if is_open.any():
        # without an end it runs beyond the end of the log, and its nodes are never free in it
        end_us[is_open] = ends(jobs, rules, log_end_us)[is_open]
    return end_us
