"""``run_replay``: from a log, jobs and a policy to a ``RunResult``."""

from __future__ import annotations

from os import PathLike

import numpy as np

from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.policies import BFTrainerPolicy, Policy
from bfreplay.replay.settings import ReplaySettings
from bfreplay.runs.replay_session import ReplaySession
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_settings import Output, RunSettings
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet, JobSource


def run_replay(
    events: NodeEvents,
    jobs: JobSet | JobSource,
    policy: Policy,
    settings: ReplaySettings,
    run_settings: RunSettings,
    output: Output | None = None,
    *,
    batch_jobs: str | PathLike[str] | None = None,
) -> RunResult:
    """Replay ``jobs`` on the idle nodes of ``events``, and measure the run against its baselines.

    Parameters
    ----------
    events, jobs, policy, settings, run_settings, output, batch_jobs
        As for ``ReplaySession``.

    Raises
    ------
    InputError, OutputExistsError
        The log, the jobs or the output folder cannot be used.
    LedgerError
        The ledger does not close.
    StoppedError
        The run was stopped, after its state was saved.
    """
    with ReplaySession(events, jobs, policy, settings, run_settings, output, batch_jobs=batch_jobs) as replay:
        return replay.run()


def warm_up(policy: Policy | None = None) -> None:
    """Compile by replaying three jobs on four nodes; takes seconds once per machine, then the code is on disk.

    ``policy``, closed at the end, is by default BFTrainer's with a fixed forward-looking time.
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
    policy = policy or BFTrainerPolicy()
    run_replay(events, jobs, policy, ReplaySettings(max_parallel=2), RunSettings(efficiency=False, bound=False))
