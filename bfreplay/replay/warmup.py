"""Compile every hot loop before the clock and the progress bar start."""

from __future__ import annotations

import numpy as np

from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.policies import Policy
from bfreplay.replay.run import replay_log
from bfreplay.replay.settings import ReplaySettings
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet


def warm_up(policy: Policy | None = None) -> None:
    """Replay three jobs on four nodes: seconds on the first run on a machine, then the compiled code is on disk.

    ``policy`` is what will decide, where it is not BFTrainer's with a fixed forward-looking time; it is closed.
    """
    second = 1_000_000
    events = NodeEvents.from_arrays(
        ["a", "b", "c", "d"],
        np.full(4, NodeState.IDLE, dtype=np.int8),
        [10 * second, 20 * second],
        [0, 0],
        [NodeState.BUSY, NodeState.IDLE],
        0,
        100 * second,
    )
    curve = TabulatedCurve((0, 1, 2, 3), (0.0, 1.0, 1.5, 3.0))
    jobs = JobSet(ElasticJob(name, 0, 1, 3, 1.0, 1.0, 60.0, curve) for name in ("x", "y", "z"))
    replay_log(events, jobs, policy, settings=ReplaySettings(max_parallel=2), with_efficiency=False, with_bound=False)
