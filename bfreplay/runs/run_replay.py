"""``run_replay``: from a log, jobs and a policy to a ``RunResult``."""

from __future__ import annotations

from functools import cache
from os import PathLike

import numpy as np

from bfreplay._compiling import compiling_first
from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.defaults import T_FWD_S
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import Policy
from bfreplay.policies.catalogue import capabilities_of, policy_of
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


def compile_loops(policy: str = "bftrainer", t_fwd: float | str = T_FWD_S) -> None:
    """Compile the loops of a replay now, so that none is interpreted, or compiled, in the replays that follow.

    Takes half a minute once on a machine: machine code is kept on disk. With BFREPLAY_COMPILE=never nothing is
    compiled.

    Parameters
    ----------
    policy, t_fwd
        As for ``replay_log``.
    """
    with compiling_first():
        warm_up(policy, t_fwd)


def warm_up(policy: str = "bftrainer", t_fwd: float | str = T_FWD_S) -> None:
    """Replay three jobs on four nodes, which loads or compiles the loops of ``policy``."""
    _replay_example(capabilities_of(policy).warm_up or "bftrainer", t_fwd)


@cache
def warm_up_once(example: str, t_fwd: float | str) -> None:
    """Load or compile the loops of the policy with this spec, once in this process; waits for the compiler."""
    with compiling_first():
        _replay_example(example, t_fwd)


def _replay_example(example: str, t_fwd: float | str) -> None:
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
    settings, baselines = ReplaySettings(max_parallel=2), RunSettings(efficiency=False, bound=False)
    run_replay(events, jobs, policy_of(example, t_fwd_s=t_fwd, solver=ExactSolver()), settings, baselines)
