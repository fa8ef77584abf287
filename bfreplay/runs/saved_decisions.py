"""Decisions of a saved run, posed again.

A run holds the decided counts, not the problems, which would be a table of J x K numbers per decision. So the replay is
rerun with the recorded counts instead of a policy (see ``rerun``), and the problem is posed by the objective of the
run, on the curves that its policy knew or believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from bfreplay import defaults
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus
from bfreplay.milp.verify import agrees, magnitude
from bfreplay.milp.verify import objective_of as worth_of
from bfreplay.policies import ANY_TRIGGER, BFTrainerPolicy, PolicyState, Trigger
from bfreplay.policies.bftrainer import at_price
from bfreplay.policies.catalogue import policy_of_record
from bfreplay.policies.forward_time import FixedForwardTime
from bfreplay.policies.learning import LearningPolicy, learning_from_record
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.reclaims.policy import Reasons, ReclaimAwarePolicy
from bfreplay.replay.engine import ProgressCallback
from bfreplay.replay.progress import Semantics
from bfreplay.result_folders.records import RUN
from bfreplay.runs.explain.saved_tables import SavedAllocations
from bfreplay.runs.rerun import OF_THE_ANSWER, Moment, Rerun, check_decision
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.saved_inputs import GivenInputs, jobs_of
from bfreplay.workload import ElasticJob, JobSet


class PosedProblem(NamedTuple):
    """A problem, and what of its loss by each job's change is the restart, ``(J,)``: all but the work at risk."""

    problem: AllocationProblem
    restart_loss: NDArray[np.float64]


class Poser:
    """Poses the problems of a run as its policy had them, and compares the objectives of the answers.

    Parameters
    ----------
    run_result
        The run.
    t_fwd_s
        Forward-looking time of the problems; by default that of the run's policy at each decision.
    objective
        Spec of the run's objective; by default from the run's record.
    allow_code
        Allow to import code for the objective of the record.

    Raises
    ------
    InputError
        Neither the policy nor the caller gives a forward-looking time; the objective may not or cannot be made; or the
        given one is not that of the run.
    """

    def __init__(
        self, run_result: RunResult, t_fwd_s: float | None, objective: str | None = None, *, allow_code: bool = False
    ) -> None:
        config = run_result.record.config
        policy = config.policy_description
        # for decisions without a recorded one, which were not put to the policy
        self._default_s = policy.t_fwd_s if policy.forward_time is None else policy.forward_time.start_s
        if policy_of_record(config.policy) is not None:
            self._default_s = defaults.T_FWD_S  # decisions by a rule are measured by something
        self._given = None if t_fwd_s is None else FixedForwardTime(t_fwd_s).t_fwd_s
        if self._given is None and self._default_s is None:
            raise InputError(
                f"the policy {policy.name!r} of the run has no forward-looking time, and a decision is posed with one",
                column="t_fwd_s",
                expected="seconds > 0",
                fix="choose one: --t-fwd 120 (t_fwd_s=120 in Python)",
            )
        self._is_bftrainers = policy.name == BFTrainerPolicy.name
        self._price_s = config.policy.get("price_s") if self._is_bftrainers else None
        self._objective = _objective_of(run_result, policy.objective_spec, objective, allow_code)
        self._learner = _learner_of(run_result)
        self._is_seeded = config.semantics == Semantics.PUBLISHED

    def t_fwd_s(self, moment: Moment) -> float:
        """Return the forward-looking time of the problem: the given one, or that of the run's policy."""
        return self._of_run(moment) if self._given is None else self._given

    def _of_run(self, moment: Moment) -> float:
        recorded_s = moment.row["t_fwd_s"]
        return float((self._default_s or 0.0) if recorded_s is None else recorded_s)

    def pose(self, moment: Moment, rerun: Rerun, *, needs_problem: bool) -> PosedProblem | None:
        """Return the problem if it is wanted; a policy that learns is always updated.

        Wherever the recorded objective is that of the counts, it is compared.
        """
        policy_decides = moment.row["process_status"] != ProcessStatus.NOT_NEEDED and not (
            self._is_seeded and moment.index == 0  # the first map is drawn
        )
        record_value = moment.row["objective"]
        # 'keep' counts a job below its minimum as if it had nothing
        checks_objective = self._is_bftrainers and record_value is not None and moment.row["solver"] != "keep"
        if moment.reasons is not None:
            posed = self._of_reasons(moment, rerun, moment.reasons)
            return posed if needs_problem else None
        state = moment.state
        if self._learner is not None and (policy_decides or needs_problem):
            learner = self._learner if policy_decides else deepcopy(self._learner)
            state = learner.believed_state(moment.state)
            if policy_decides:
                learner.note_decision(moment.state, moment.counts)
        state = at_price(state, self._price_s)
        if checks_objective:
            own_problem = self._objective.problem(state, self._of_run(moment))
            chosen = np.arange(moment.counts.size), moment.counts
            # gains less losses, whether or not the counts are feasible
            worth = float(own_problem.gain[chosen].sum() - own_problem.loss[chosen].sum())
            if not agrees(worth, record_value, magnitude(own_problem)):
                raise rerun.difference(f"the objective is {worth!r}", f"{record_value!r}")
        # copied: with one job the problem's arrays may be the replay's own, which goes on
        if not needs_problem:
            return None
        t_fwd_s = self.t_fwd_s(moment)
        problem = deepcopy(self._objective.problem(state, t_fwd_s))
        return PosedProblem(problem, self._restart_loss(moment, state, problem, t_fwd_s))

    def _of_reasons(self, moment: Moment, rerun: Rerun, reasons: Reasons) -> PosedProblem:
        if self._given not in (None, self._of_run(moment)):
            raise InputError(
                "decisions from learned reclaims are posed with the forward-looking time that they had",
                column="t_fwd_s",
                value=self._given,
                expected=f"{self._of_run(moment):g}",
                fix="leave it out",
            )
        solution = reasons.decision.solution
        assert solution is not None
        if not agrees(solution.objective, moment.row["objective"], magnitude(reasons.problem)):
            raise rerun.difference(f"the objective is {solution.objective!r}", f"{moment.row['objective']!r}")
        problem = deepcopy(reasons.problem)
        return PosedProblem(problem, problem.loss[np.arange(moment.counts.size), moment.counts])

    def _restart_loss(
        self, moment: Moment, state: PolicyState, problem: AllocationProblem, t_fwd_s: float
    ) -> NDArray[np.float64]:
        if state.costs is not None:
            costs = state.costs._replace(unsaved_samples=np.zeros(state.n_jobs))
            problem = self._objective.problem(replace(state, costs=costs), t_fwd_s)
        loss: NDArray[np.float64] = problem.loss[np.arange(state.n_jobs), moment.counts].copy()
        return loss


def _objective_of(run_result: RunResult, spec_of_run: str, given_spec: str | None, allow_code: bool) -> Objective:
    """Make the objective of the run from the user's spec, or from that in its record."""
    if given_spec is None:
        with locate_errors((run_result.folder or Path()) / RUN.record_file, "config.policy.objective", "spec"):
            # a run without a folder was made in this process, from objects of the user
            return objective_of(spec_of_run, allow_code=allow_code or run_result.folder is None)
    objective = objective_of(given_spec)
    if objective.spec != spec_of_run:
        raise InputError(
            "the objective is not that of the run",
            file=run_result.folder,
            column="objective",
            value=objective.spec,
            expected=spec_of_run,
            fix="remove it, or give that of the run",
        )
    return objective


def _learner_of(run_result: RunResult) -> LearningPolicy | None:
    """Return the policy that learned the curves in the run; ``None`` where the curves were known."""
    options = learning_from_record(run_result.record.config.policy)
    if options is None:
        return None
    base_policy = BFTrainerPolicy()  # any policy will do: learning depends only on the times of its decisions
    base_policy.wakes_on = _wake_triggers(run_result)
    return LearningPolicy(base_policy, **options)


def _wake_triggers(run_result: RunResult) -> Trigger:
    """Return the events after which the policy decided: all but those with status ``not_needed``."""
    names = ("trigger", "n_jobs", "n_idle", "process_status")
    ignored_words = {
        word
        for rows in run_result.batches("decisions", names)
        for trigger, n_jobs, n_idle, status in zip(*(rows[name].to_pylist() for name in names), strict=True)
        if n_jobs and n_idle and status == ProcessStatus.NOT_NEEDED
        for word in trigger.split("+")
    }
    triggers = Trigger.NONE
    for event in Trigger:
        if event & ANY_TRIGGER and str(event.name).lower() not in ignored_words:
            triggers |= event
    return triggers


def is_placed_by_policy(run_result: RunResult) -> bool:
    """Return whether the policy chose nodes, not only their number, so that counts alone do not repeat the run.

    Those that ``ReclaimAwarePolicy`` chose by counts that are proven, on known curves, can be chosen again, and so can
    those of a policy that ``decides_again``.
    """
    policy = run_result.record.config.policy_description
    if policy_of_record(run_result.record.config.policy) is not None:
        return False
    if policy.name == ReclaimAwarePolicy.name:
        solver_name = None if policy.solver is None else policy.solver.name
        return solver_name != ExactSolver().name or policy.learning is not None
    words = run_result.columns("decisions", "trigger")["trigger"].cast("string").unique().to_pylist()
    return (
        len(run_result.record.inputs.node_types) > 1
        or (run_result.has_table("allocations") and SavedAllocations.of(run_result).is_shared)
        or any("round" in word.split("+") for word in words)
    )


def refuse_placed_by_policy(run_result: RunResult, advice: str) -> None:
    """Raise ``InputError`` for a run whose decisions cannot be posed again; ``advice`` names an alternative."""
    if is_placed_by_policy(run_result):
        raise InputError(
            f"the policy {run_result.record['config']['policy']['name']!r} chose the nodes of jobs itself, so its "
            "decisions cannot be posed again as node counts",
            file=run_result.folder,
            column="policy",
            fix=advice,
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
    jobs : (J,)
        Jobs as they were replayed, in the problem's order.
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
    restart_loss : (J,) float64
        Loss of the problem by each job's change, but for its work at risk.
    reasons
        What the decision of a ``ReclaimAwarePolicy`` came from; ``None`` for any other.
    whys : (J,)
        What a policy that decides again says of each job's nodes; empty for any other.
    """

    index: int
    time_us: int
    problem: AllocationProblem
    jobs: tuple[ElasticJob, ...]
    counts: NDArray[np.int64]
    about: dict[str, Any]
    state: PolicyState
    held: NDArray[np.int64]
    reclaimed: NDArray[np.int64]
    restart_loss: NDArray[np.float64]
    reasons: Reasons | None = None
    whys: tuple[str | None, ...] = ()

    @property
    def job_names(self) -> tuple[str, ...]:
        """(J,) names of the jobs, in the problem's order."""
        return tuple(job.name for job in self.jobs)


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
    decision_numbers = list(indices)
    for index in decision_numbers:
        _check_something_to_decide(run, index)
    poser = Poser(run, t_fwd_s, objective, allow_code=inputs.get("allow_code", False))
    if not decision_numbers:
        return []
    rerun = Rerun(run, max(decision_numbers), progress, **inputs)
    distinct_numbers = set(decision_numbers)
    decisions: dict[int, RecordedDecision] = {}

    def watch(moment: Moment) -> None:
        posed = poser.pose(moment, rerun, needs_problem=moment.index in distinct_numbers)
        if posed is not None:
            jobs = [rerun.jobs[job_index] for job_index in moment.state.job.tolist()]
            decisions[moment.index] = _decision(run, moment, posed, jobs, poser.t_fwd_s(moment))

    rerun.run(watch)
    return [decisions[index] for index in decision_numbers]


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
    jobs_of_files = jobs_of(run, inputs.get("jobs"), inputs.get("curves"), allow_code=inputs.get("allow_code", False))
    if isinstance(jobs_of_files, JobSet):
        return {job.name: job for job in jobs_of_files}
    rerun = Rerun(run, None, progress, events=inputs.get("events"), jobs=jobs_of_files)
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


def _check_something_to_decide(run_result: RunResult, index: int) -> None:
    check_decision(run_result, index)
    table = run_result.columns("decisions", "n_jobs", "n_idle")
    n_jobs, n_idle = (table[name][index].as_py() for name in ("n_jobs", "n_idle"))
    if not (n_jobs and n_idle):
        raise InputError(
            "there was nothing to decide",
            file=run_result.folder,
            column="decision",
            value=index,
            expected="a decision with jobs and idle nodes",
            fix=f"choose another: this one had {n_jobs} jobs and {n_idle} idle nodes",
        )


def _decision(
    run_result: RunResult, moment: Moment, posed: PosedProblem, jobs: Sequence[ElasticJob], t_fwd_s: float
) -> RecordedDecision:
    problem = posed.problem
    worth = worth_of(problem, moment.counts)
    record = run_result.record
    about = {
        "run": None if run_result.folder is None else run_result.folder.resolve().name,
        "decision": moment.index,
        "time": iso_utc(moment.state.time_us),
        "trigger": moment.row["trigger"],
        "t_fwd_s": t_fwd_s,
        "jobs": [job.name for job in jobs],
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
        tuple(jobs),
        moment.counts,
        about,
        deepcopy(moment.state),
        moment.held.copy(),
        moment.reclaimed.copy(),
        posed.restart_loss,
        moment.reasons,
        tuple(moment.policy.why(moment.state, row) for row in range(len(jobs))) if moment.policy else (),
    )
