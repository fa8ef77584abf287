"""Decisions of a saved run, posed again.

A run holds the decided counts, not the problems, which would be a table of J x K numbers per decision. So the replay is
rerun with the recorded counts instead of a policy (see ``rerun``), and the problem is posed by the objective of the
run, on the curves that its policy knew or believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.verify import objective_of as worth_of
from bfreplay.policies import PolicyState
from bfreplay.replay.engine import ProgressCallback
from bfreplay.runs.explain.saved_allocations import SavedAllocations
from bfreplay.runs.rerun import OF_THE_ANSWER, Moment, Rerun, check_decision
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.saved_inputs import GivenInputs, jobs_of
from bfreplay.runs.saved_questions import Poser
from bfreplay.workload import ElasticJob, JobSet


def is_placed_by_policy(run: RunResult) -> bool:
    """Return whether the policy chose nodes, not only their number, so that counts alone do not repeat the run."""
    words = run.columns("decisions", "trigger")["trigger"].cast("string").unique().to_pylist()
    return (
        len(run.record.inputs.node_types) > 1
        or (run.has_table("allocations") and SavedAllocations.of(run).is_shared)
        or any("round" in word.split("+") for word in words)
    )


def refuse_placed_by_policy(run: RunResult, fix: str) -> None:
    """Raise ``InputError`` for a run whose decisions cannot be posed again; ``fix`` names an alternative."""
    if is_placed_by_policy(run):
        raise InputError(
            f"the policy {run.record['config']['policy']['name']!r} chose the nodes of jobs itself, so its "
            "decisions cannot be posed again as node counts",
            file=run.folder,
            column="policy",
            fix=fix,
        )


@dataclass(frozen=True, slots=True, eq=False)
class RecordedDecision:
    """One decision of a run: the problem and the answer.

    Parameters
    ----------
    index
        Row of the run's ``decisions`` table, from 0.
    time_us
        Time of the decision.
    problem
        Problem as posed by the objective of the run.
    job_names : (J,)
        Names of the jobs, in the problem's order.
    counts : (J,) int64
        Counts decided by the run.
    about
        JSON-ready: everything but the problem, with the answer's statuses and the origin.
    state
        State of the replay, with the true curves whatever the policy believed.
    held : (J,) int64
        Nodes of each job before this instant.
    reclaimed : (J,) int64
        Number of these reclaimed at this instant.
    """

    index: int
    time_us: int
    problem: AllocationProblem
    job_names: tuple[str, ...]
    counts: NDArray[np.int64]
    about: dict[str, Any]
    state: PolicyState
    held: NDArray[np.int64]
    reclaimed: NDArray[np.int64]


def recorded_decisions(
    run: RunResult | str | Path,
    indices: Iterable[int],
    *,
    objective: str | None = None,
    t_fwd_s: float | None = None,
    progress: ProgressCallback | None = None,
    **inputs: Unpack[GivenInputs],
) -> list[RecordedDecision]:
    """Pose decisions of a saved run again, whatever its policy and solver.

    Parameters
    ----------
    run
        The run, or its folder.
    indices
        Rows of its ``decisions`` table, from 0; the replay stops after the last of them.
    objective
        Spec of the run's objective, needed where it is code: code named by the record is not imported.
    t_fwd_s
        Forward-looking time of the problems; by default that of the run's policy at each decision.
    progress
        Called after every instant with (time reached in us, decisions so far).
    inputs
        ``events``, ``jobs``, ``curves``: the run's inputs or their files, by default at their recorded paths.
        ``allow_code``: import code that the run and the files of its inputs name.

    Returns
    -------
    list of RecordedDecision
        In the order of ``indices``. Each holds a table of J x (K + 1) numbers.

    Raises
    ------
    InputError
        The policy chose the nodes itself; a decision does not exist, or had no job or no idle node; the inputs are
        missing or not those of the run; neither the policy nor the caller gives a forward-looking time; code may not be
        imported; or the replay differs from the run (with the first difference).
    """
    if not isinstance(run, RunResult):
        run = RunResult.load(run)
    refuse_placed_by_policy(run, "look at decisions.parquet and allocations.parquet of the run")
    wanted = list(indices)
    for index in wanted:
        _check_something_to_decide(run, index)
    poser = Poser(run, t_fwd_s, objective, allow_code=inputs.get("allow_code", False))
    if not wanted:
        return []
    rerun = Rerun(run, max(wanted), progress, **inputs)
    chosen = set(wanted)
    found: dict[int, RecordedDecision] = {}

    def watch(moment: Moment) -> None:
        problem = poser.pose(moment, rerun, is_wanted=moment.index in chosen)
        if problem is not None:
            names = [rerun.jobs[j].name for j in moment.state.job.tolist()]
            found[moment.index] = _decision(run, moment, problem, names, poser.t_fwd_s(moment))

    rerun.run(watch)
    return [found[index] for index in wanted]


def recorded_jobs(
    run: RunResult, *, progress: ProgressCallback | None = None, **inputs: Unpack[GivenInputs]
) -> dict[str, ElasticJob]:
    """Return the jobs of a saved run by name; a job source makes them again in a rerun of the whole run.

    Parameters
    ----------
    run
        The run.
    progress
        Called after every instant with (time reached in us, decisions so far).
    inputs
        As for ``recorded_decisions``. The log is read for a job source only.

    Raises
    ------
    InputError
        As ``recorded_decisions``.
    """
    given = jobs_of(run, inputs.get("jobs"), inputs.get("curves"), allow_code=inputs.get("allow_code", False))
    if isinstance(given, JobSet):
        return {job.name: job for job in given}
    rerun = Rerun(run, None, progress, events=inputs.get("events"), jobs=given)
    rerun.run(lambda moment: None)
    return {job.name: job for job in rerun.jobs}


def decision_at(run: RunResult, time_us: int) -> int:
    """Return the index of the decision in force at ``time_us``: the last one at that time or before.

    Raises
    ------
    InputError
        The time is before the first decision, or after the window.
    """
    times = np.asarray(run.columns("decisions", "time")["time"].cast("int64"))
    end_us = run.record.config.window_end_us
    if not (times.size and times[0] <= time_us <= end_us):
        raise InputError(
            "no decision of the run is in force at this time",
            value=iso_utc(time_us),
            expected=f"from {iso_utc(int(times[0]))} to {iso_utc(end_us)}" if times.size else "a run with decisions",
        )
    return int(np.searchsorted(times, time_us, side="right")) - 1


def _check_something_to_decide(run: RunResult, index: int) -> None:
    check_decision(run, index)
    table = run.columns("decisions", "n_jobs", "n_idle")
    n_jobs, n_idle = (table[name][index].as_py() for name in ("n_jobs", "n_idle"))
    if not (n_jobs and n_idle):
        raise InputError(
            "there was nothing to decide",
            file=run.folder,
            column="decision",
            value=index,
            expected="a decision with jobs and idle nodes",
            fix=f"choose another: this one had {n_jobs} jobs and {n_idle} idle nodes",
        )


def _decision(
    run: RunResult, moment: Moment, problem: AllocationProblem, names: Sequence[str], t_fwd_s: float
) -> RecordedDecision:
    worth = worth_of(problem, moment.counts)
    record = run.record
    about = {
        "run": None if run.folder is None else run.folder.resolve().name,
        "decision": moment.index,
        "time": iso_utc(moment.state.time_us),
        "trigger": moment.row["trigger"],
        "t_fwd_s": t_fwd_s,
        "jobs": list(names),
        "counts": moment.counts.tolist(),
        "objective_of_counts": worth if math.isfinite(worth) else None,
        "answer": {name: moment.row[name] for name in OF_THE_ANSWER},
        "config": record.config.to_json(),
        "inputs": {
            "events": [asdict(file) for file in record.inputs.events.files],
            "jobs": [asdict(file) for file in record.inputs.jobs.files],
        },
        "bfreplay": record.versions.get("bfreplay"),
    }
    return RecordedDecision(
        moment.index,
        moment.state.time_us,
        problem,
        tuple(names),
        moment.counts,
        about,
        deepcopy(moment.state),
        moment.held.copy(),
        moment.reclaimed.copy(),
    )
