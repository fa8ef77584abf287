"""Any decision of a saved run, posed again.

A run holds what was decided, not what was asked: that would be a table of J x K numbers a decision. So the replay is
driven once more, by the recorded counts instead of a policy: no solver is asked, and every row of its decision table
must be the recorded one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.verify import agrees, magnitude, objective_of
from bfreplay.policies import ANY_TRIGGER, Decision, PolicyState
from bfreplay.policies.bftrainer import BFTrainerPolicy, problem_of
from bfreplay.replay.engine import Engine, ProgressCallback
from bfreplay.replay.published import random_seed_map
from bfreplay.replay.recorder import Recorder
from bfreplay.replay.result import RunResult
from bfreplay.replay.run import jobs_in_window
from bfreplay.replay.run_inputs import inputs_of
from bfreplay.replay.settings import ReplaySettings
from bfreplay.replay.tables import DECISIONS, NoSink, RowTable
from bfreplay.workload import JobSet

_SAME = (
    "time", "trigger", "n_idle", "n_joined", "n_left", "n_jobs", "n_jobs_running", "n_jobs_preempted", "n_jobs_grown",
    "n_jobs_shrunk", "n_nodes_used",
)  # fmt: skip
_CLOSE = ("rate_samples_per_s", "samples_since_last", "rescale_cost_samples", "preempt_cost_samples")
_OF_THE_ANSWER = (
    "objective", "bound", "gap", "solver", "process_status", "solver_status", "quality", "fell_back_from",
    "rejected_process_status", "rejected_solver_status", "rejected_quality", "message",
)  # fmt: skip
_POSITION = {name: k for k, name in enumerate(DECISIONS.names)}
_TOLERANCE = 1e-6
"""Another processor may round sums of samples otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedDecision:
    """One decision of a run: what was asked, and what the run answered.

    Parameters
    ----------
    index
        Row of the run's ``decisions`` table, from 0.
    time_us
        When it was made.
    problem
        What was asked, as BFTrainer poses it.
    job_names : (J,)
        Names of the jobs, in the problem's order.
    counts : (J,) int64
        What the run decided.
    about
        JSON-ready: all of this but the problem, the answer's statuses, and where it comes from.
    """

    index: int
    time_us: int
    problem: AllocationProblem
    job_names: tuple[str, ...]
    counts: NDArray[np.int64]
    about: dict[str, Any]


def recorded_decisions(
    run: RunResult | str | Path,
    indices: Iterable[int],
    *,
    events: NodeEvents | str | Path | None = None,
    jobs: JobSet | str | Path | None = None,
    curves: str | Path | None = None,
    t_fwd_s: float | None = None,
    progress: ProgressCallback | None = None,
) -> list[RecordedDecision]:
    """Pose decisions of a saved run again. All policies' runs can be asked, whatever solver they had.

    Parameters
    ----------
    run
        The run, or its folder.
    indices
        Rows of its ``decisions`` table, from 0; the replay goes as far as the last of them.
    events, jobs, curves
        Its inputs, or their files, by default where they were.
    t_fwd_s
        Forward-looking time of the problems; that of the run's policy by default.
    progress
        Called after every instant with (time reached in us, decisions so far).

    Returns
    -------
    list of RecordedDecision
        In the order of ``indices``. Each holds a table of J x (K + 1) numbers.

    Raises
    ------
    InputError
        There is no such decision, or nothing to decide in it (no job, or no idle node); the inputs are not there or
        not those of the run; the policy has no forward-looking time and none is given; or the replay goes another
        way than the run did, with the first difference.
    """
    if not isinstance(run, RunResult):
        run = RunResult.load(run)
    wanted = list(indices)
    table = _Recording(run, wanted)
    config = run.record["config"]
    of_run = config["policy"].get("t_fwd_s")
    if t_fwd_s is None and of_run is None:
        raise InputError(
            f"the policy {config['policy'].get('name')!r} of the run has no forward-looking time, and a decision is "
            "posed with one",
            column="t_fwd_s", expected="seconds > 0", fix="choose one: --t-fwd 120 (t_fwd_s=120 in Python)",
        )  # fmt: skip
    look_ahead_s = BFTrainerPolicy(of_run if t_fwd_s is None else t_fwd_s).t_fwd_s  # checked there
    if not wanted:
        return []
    log, job_set = inputs_of(run, events, jobs, curves)
    checked_with = of_run if config["policy"].get("name") == BFTrainerPolicy.name else None
    policy = _Recorded(table, set(wanted), look_ahead_s, checked_with)
    settings = ReplaySettings(config["max_parallel"], config["semantics"], config["seed"], seed_map=policy.first_map)
    anchored = jobs_in_window(job_set, log, settings, unlimited_work=config["unlimited_work"])
    recorder = Recorder.nowhere([job.name for job in anchored], min(settings.max_parallel, len(anchored)))
    recorder.decisions = table
    try:
        Engine(log, anchored, policy, settings, recorder, progress).run()
    except _LastReached:
        names = [job.name for job in anchored]
        return [_decision(run, table, policy.questions[index], index, names, look_ahead_s) for index in wanted]
    except InputError:
        raise  # a difference, or a fault of the log
    except BfreplayError as error:  # the recorded counts are impossible here
        index = table.n_rows
        raise table.difference(index, str(error), f"counts {table.counts(index).tolist()}") from error
    raise table.difference(table.n_rows, "it ends", f"{max(wanted) - table.n_rows + 1} decisions more")


def decision_at(run: RunResult, time_us: int) -> int:
    """Index of the decision in force at ``time_us``: the last one at that time or before.

    Raises
    ------
    InputError
        The time is before the first decision, or after the window.
    """
    times = np.asarray(run.table("decisions")["time"].cast("int64"))
    end_us = run.record["config"]["window_end_us"]
    if not (times.size and times[0] <= time_us <= end_us):
        raise InputError(
            "no decision of the run is in force at this time",
            value=iso_utc(time_us),
            expected=f"from {iso_utc(int(times[0]))} to {iso_utc(end_us)}" if times.size else "a run with decisions",
        )
    return int(np.searchsorted(times, time_us, side="right")) - 1


class _LastReached(Exception):  # noqa: N818  # no error: the replay need not go on
    """The last decision that was asked for has been checked."""


class _Recording(RowTable):
    """The recorded decision table up to the last row that is wanted, and the check that a replay repeats it.

    It takes the rows of the replay in place of a table that would keep them.
    """

    def __init__(self, run: RunResult, wanted: Sequence[int]) -> None:
        super().__init__(DECISIONS, NoSink())
        table = run.table("decisions")
        total = table.num_rows
        for index in wanted:
            if not 0 <= index < total:
                raise InputError(
                    "the run has no such decision", file=run.folder, column="decision", value=index,
                    expected=f"0 to {total - 1}" if total else "a run with decisions",
                )  # fmt: skip
        if "counts" not in table.column_names:
            raise InputError(
                "the run does not hold the counts that were decided", file=run.folder, column="counts",
                expected="a column of the table 'decisions'", fix="replay again with this version of bfreplay",
            )  # fmt: skip
        self._last = max(wanted, default=-1)
        table = table.slice(0, self._last + 1).combine_chunks()
        self._version = run.record["versions"].get("bfreplay")
        self._columns_of_run = {
            name: (table[name].cast("int64") if name == "time" else table[name]).to_pylist()
            for name in (*_SAME, *_CLOSE, *_OF_THE_ANSWER)
        }
        lists = table["counts"].combine_chunks()
        ends = np.cumsum(np.asarray(lists.value_lengths()), dtype=np.int64)
        self._counts = np.split(np.asarray(lists.flatten(), dtype=np.int64), ends[:-1])
        for index in wanted:
            n_jobs, n_idle = (self._columns_of_run[name][index] for name in ("n_jobs", "n_idle"))
            if not (n_jobs and n_idle):
                raise InputError(
                    "there was nothing to decide", file=run.folder, column="decision", value=index,
                    expected="a decision with jobs and idle nodes",
                    fix=f"choose another: this one had {n_jobs} jobs and {n_idle} idle nodes",
                )  # fmt: skip

    def row(self, index: int) -> dict[str, Any]:
        """What was recorded of a decision, without its counts."""
        return {name: column[index] for name, column in self._columns_of_run.items()}

    def counts(self, index: int) -> NDArray[np.int64]:
        """(J,) what was decided."""
        return self._counts[index]

    def difference(self, index: int, here: str, recorded: str) -> InputError:
        """The error for a replay that goes another way."""
        time_us = self._columns_of_run["time"][index]
        return InputError(
            f"the replay does not repeat the run: here {here}, recorded {recorded}",
            row=f"decision {index} at {iso_utc(time_us)}",
            fix=(
                f"the run was made by bfreplay {self._version}: replay again with this version. A run whose policy "
                "places nodes itself, or whose first map was not the seeded one, cannot be repeated by its counts"
            ),
        )

    def value(self, name: str) -> Any:
        """What was recorded of the decision to come."""
        return self._columns_of_run[name][self.n_rows]

    def check(self, name: str, here: Any) -> None:
        """Compare a number of the decision to come with what was recorded."""
        recorded = self.value(name)
        if here != recorded:
            raise self.difference(self.n_rows, f"{name} is {here!r}", f"{recorded!r}")

    def append(self, row: Sequence[Any]) -> None:
        """One row of the replay, in the order of the schema."""
        index = self.n_rows
        for name in _SAME:
            self.check(name, row[_POSITION[name]])
        counts = row[_POSITION["counts"]]
        if not np.array_equal(counts, self._counts[index]):
            raise self.difference(index, f"counts are {counts.tolist()}", f"{self._counts[index].tolist()}")
        for name in _CLOSE:
            here, recorded = row[_POSITION[name]], self.value(name)
            if not math.isclose(here, recorded, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                raise self.difference(index, f"{name} is {here!r}", f"{recorded!r}")
        self.n_rows += 1
        if index == self._last:
            raise _LastReached


class _Question(NamedTuple):
    """What was asked at one instant."""

    time_us: int
    job: NDArray[np.int64]  # (J,) position in the job set
    problem: AllocationProblem


class _Recorded:
    """Answers every decision as the run did, and keeps the questions that are wanted."""

    name = "recorded"
    wakes_on = ANY_TRIGGER

    def __init__(self, recording: _Recording, wanted: set[int], look_ahead_s: float, t_fwd_s: float | None) -> None:
        """``look_ahead_s`` of the questions; ``t_fwd_s`` of the run if its objectives are BFTrainer's: then checked."""
        self._recording = recording
        self._wanted = wanted
        self._t_fwd_s = t_fwd_s
        self._look_ahead_s = look_ahead_s
        self.questions: dict[int, _Question] = {}

    def decide(self, state: PolicyState) -> Decision:
        """Counts of the run for this question, after making sure that it is the same one."""
        counts = self._asked(state)
        self._check_objective(state, counts)
        return Decision(counts)

    def first_map(self, state: PolicyState, free: NDArray[np.int64], rng: np.random.Generator) -> Decision:
        """The published semantics' seeded first map, which names nodes and not only counts."""
        self._asked(state)
        return random_seed_map(state, free, rng)

    def _asked(self, state: PolicyState) -> NDArray[np.int64]:
        recording, index = self._recording, self._recording.n_rows
        for name, here in (("time", state.time_us), ("n_idle", state.n_idle), ("n_jobs", state.n_jobs)):
            recording.check(name, here)
        counts = recording.counts(index)
        if counts.size != state.n_jobs:
            raise recording.difference(index, f"there are {state.n_jobs} jobs", f"counts {counts.tolist()}")
        if index in self._wanted:
            # copied: with one job the problem's arrays may be the replay's own, which goes on
            problem = deepcopy(problem_of(state, self._look_ahead_s))
            self.questions[index] = _Question(state.time_us, state.job.copy(), problem)
        return counts

    def _check_objective(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        recording = self._recording
        recorded = recording.value("objective")
        if self._t_fwd_s is None or recorded is None or recording.value("solver") == "keep":
            return  # 'keep' counts a job below its minimum as if it had nothing
        problem = problem_of(state, self._t_fwd_s)
        worth = float(
            problem.gain[np.arange(counts.size), counts].sum()
            - problem.scale_up_loss[counts > problem.current].sum()
            - problem.scale_down_loss[counts < problem.current].sum()
        )
        if not agrees(worth, recorded, magnitude(problem)):
            raise recording.difference(recording.n_rows, f"the objective is {worth!r}", f"{recorded!r}")

    def describe(self) -> dict[str, object]:
        """Its name: it has no parameter."""
        return {"name": self.name}

    def close(self) -> None:
        """Nothing to release."""


def _decision(
    run: RunResult, recording: _Recording, asked: _Question, index: int, names: Sequence[str], t_fwd_s: float
) -> RecordedDecision:
    counts = recording.counts(index)
    row = recording.row(index)
    job_names = tuple(names[j] for j in asked.job.tolist())
    worth = objective_of(asked.problem, counts)
    record = run.record
    about = {
        "run": None if run.folder is None else run.folder.resolve().name,
        "decision": index,
        "time": iso_utc(asked.time_us),
        "trigger": row["trigger"],
        "t_fwd_s": t_fwd_s,
        "jobs": list(job_names),
        "counts": counts.tolist(),
        "objective_of_counts": worth if math.isfinite(worth) else None,
        "answer": {name: row[name] for name in _OF_THE_ANSWER},
        "config": record["config"],
        "inputs": {what: record["inputs"][what]["files"] for what in ("events", "jobs")},
        "bfreplay": record["versions"].get("bfreplay"),
    }
    return RecordedDecision(index, asked.time_us, asked.problem, job_names, counts, about)
