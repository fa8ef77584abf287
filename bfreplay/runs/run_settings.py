"""Settings of a run besides those of its replay, and the schedule of its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bfreplay import defaults


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of a run besides those of its replay.

    Parameters
    ----------
    unlimited_work
        Replay the first ``max_parallel`` jobs from the start, with work that never ends: the setting in which BFTrainer
        measures its efficiency.
    efficiency
        Also replay the jobs on dedicated nodes and report U; for a policy that learns curves or rates of pairs, replay
        also with known ones and report the cost of learning.
    dedicated_t_fwd_s
        Forward-looking time on dedicated nodes for a policy that has none.
    bound
        Also report the upper bound on samples (``bounds.upper_bound``), for a set of jobs.
    fairness
        Also replay the jobs under ``gavel.isolated`` (an equal part of the nodes for each) and report finish-time
        fairness; for a set of jobs.
    ideal
        Also apply the shares of a Gavel policy without rounds, on a cluster, and report the cost of rounds.
    tables
        Without a folder, keep the tables of decisions, jobs and allocations in memory; they grow with the log.
    """

    unlimited_work: bool = False
    efficiency: bool = True
    dedicated_t_fwd_s: float = defaults.T_FWD_S
    bound: bool = True
    fairness: bool = False
    ideal: bool = False
    tables: bool = True


@dataclass(slots=True, kw_only=True)
class Saving:
    """Schedule of a run's checkpoints, and whether the run resumes from the last of an earlier process.

    Parameters
    ----------
    every_s
        Seconds of wall time between two checkpoints; ``None``: none, or only when a resumed run is stopped.
    resume
        Go on from the last checkpoint of the run in the same folder.
    options
        Options to make the run from again, for the checkpoint.
    stops
        Set it while the run ``listens``, and it saves its state after the current instant and raises ``StoppedError``.
    signal
        Number of the signal that set it.
    """

    every_s: float | None = None
    resume: bool = False
    options: Mapping[str, Any] | None = None
    stops: bool = False
    signal: int = 0
    listens: bool = False
