"""Who runs on which nodes in a round, and for how many steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NOBODY = -1
"""Second member of a job that runs alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """The k micro-tasks of a round: a job alone, or a pair of jobs that share nodes, for one round on one node type.

    Parameters
    ----------
    member : (k, 2) int64
        Job numbers, the lower one first; ``NOBODY`` second where a job runs alone.
    node_type : (k,) int64
        Position of the type.
    node_offset : (k + 1,) int64
        Micro-task i runs on ``node[node_offset[i]:node_offset[i + 1]]``.
    node : (sum of gangs,) int64
        Node numbers, increasing within a micro-task.
    steps : (k, 2) float64
        Steps that each member does until ``finish_s``; 0 for nobody.
    start_s, finish_s : (k,) float64
        A pair finishes when its later member does; restarts lie in between.
    counted_from_s : (k,) float64
        What the time that a micro-task ran is counted from: its start, unless that is stale (``Quirks``).
    restarts : (k, 2) bool
        Whether a member did not run on these very nodes in the round before, and so loses ``restart_s`` of its rules.
    fails : (k,) bool
        Its steps will not count (``Quirks.few_steps_fail``).
    """

    member: NDArray[np.int64]
    node_type: NDArray[np.int64]
    node_offset: NDArray[np.int64]
    node: NDArray[np.int64]
    steps: NDArray[np.float64]
    start_s: NDArray[np.float64]
    finish_s: NDArray[np.float64]
    counted_from_s: NDArray[np.float64]
    restarts: NDArray[np.bool_]
    fails: NDArray[np.bool_]

    @property
    def n_tasks(self) -> int:
        """Number k of micro-tasks."""
        return int(self.node_type.shape[0])

    def nodes_of(self, task: int) -> NDArray[np.int64]:
        """Node numbers of a micro-task, increasing."""
        return self.node[self.node_offset[task] : self.node_offset[task + 1]]


def nothing_runs() -> Assignment:
    """The assignment of no micro-tasks."""
    no_times = np.zeros(0)
    return Assignment(
        member=np.zeros((0, 2), np.int64),
        node_type=np.zeros(0, np.int64),
        node_offset=np.zeros(1, np.int64),
        node=np.zeros(0, np.int64),
        steps=np.zeros((0, 2)),
        start_s=no_times,
        finish_s=no_times,
        counted_from_s=no_times,
        restarts=np.zeros((0, 2), np.bool_),
        fails=np.zeros(0, np.bool_),
    )
