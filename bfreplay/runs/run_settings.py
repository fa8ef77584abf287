"""Settings of a run besides those of its replay: what is measured, where it is written, when its state is saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bfreplay import defaults
from bfreplay.replay.engine import ProgressCallback


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Folder, progress and checkpoints of a run; none of them changes its result.

    Parameters
    ----------
    folder
        Folder to write, made when the run is complete; ``None``: nothing is written.
    overwrite
        Replace an existing run folder, and an unfinished run.
    progress
        Called after every instant with (time reached in us, decisions so far).
    session
        More entries for ``session.json``, such as the command line. ``"files"`` has the paths of ``"events"``,
        ``"jobs"`` and ``"curves"``, to read them again later.
    saving
        Checkpoints, for a run with a folder.
    """

    folder: str | Path | None = None
    overwrite: bool = False
    progress: ProgressCallback | None = None
    session: Mapping[str, Any] = field(default_factory=dict)
    saving: Saving = field(default_factory=Saving)
