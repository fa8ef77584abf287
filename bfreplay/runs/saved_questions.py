"""Poses the problem of a recorded decision as the policy of its run had it.

The objective is that of the run, and the curves are those that its policy knew or believed at that time.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.located import locate_errors
from bfreplay.errors import InputError
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus
from bfreplay.milp.verify import agrees, magnitude
from bfreplay.policies import ANY_TRIGGER, BFTrainerPolicy, Trigger
from bfreplay.policies.forward_time import FixedForwardTime
from bfreplay.policies.learning import LearningPolicy, learning_from_record
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.objectives.objective import Objective
from bfreplay.replay.progress import Semantics
from bfreplay.result_folders.records import RUN
from bfreplay.runs.rerun import Moment, Rerun
from bfreplay.runs.run_result import RunResult


class Poser:
    """Poses the problems of a run as its policy had them, and compares the objectives of the answers.

    Parameters
    ----------
    run
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
        self, run: RunResult, t_fwd_s: float | None, objective: str | None = None, *, allow_code: bool = False
    ) -> None:
        config = run.record.config
        policy = config.policy_description
        # for decisions without a recorded one, which were not put to the policy
        self._default_s = policy.t_fwd_s if policy.forward_time is None else policy.forward_time.start_s
        self._given = None if t_fwd_s is None else FixedForwardTime(t_fwd_s).t_fwd_s
        if self._given is None and self._default_s is None:
            raise InputError(
                f"the policy {policy.name!r} of the run has no forward-looking time, and a decision is posed with one",
                column="t_fwd_s",
                expected="seconds > 0",
                fix="choose one: --t-fwd 120 (t_fwd_s=120 in Python)",
            )
        self._is_bftrainers = policy.name == BFTrainerPolicy.name
        self._objective = _objective_of(run, policy.objective_spec, objective, allow_code)
        self._learner = _learner_of(run)
        self._is_seeded = config.semantics == Semantics.PUBLISHED

    def t_fwd_s(self, moment: Moment) -> float:
        """Return the forward-looking time of the problem: the given one, or that of the run's policy."""
        return self._of_run(moment) if self._given is None else self._given

    def _of_run(self, moment: Moment) -> float:
        recorded = moment.row["t_fwd_s"]
        return float((self._default_s or 0.0) if recorded is None else recorded)

    def pose(self, moment: Moment, rerun: Rerun, *, is_wanted: bool) -> AllocationProblem | None:
        """Return the problem if it is wanted; a policy that learns is always updated.

        Wherever the recorded objective is that of the counts, it is compared.
        """
        is_asked = moment.row["process_status"] != ProcessStatus.NOT_NEEDED and not (
            self._is_seeded and moment.index == 0  # the first map is drawn
        )
        recorded = moment.row["objective"]
        # 'keep' counts a job below its minimum as if it had nothing
        is_checked = self._is_bftrainers and recorded is not None and moment.row["solver"] != "keep"
        state = moment.state
        if self._learner is not None and (is_asked or is_wanted):
            learner = self._learner if is_asked else deepcopy(self._learner)
            state = learner.believed_state(moment.state)
            if is_asked:
                learner.note_decision(moment.state, moment.counts)
        if is_checked:
            asked = self._objective.problem(state, self._of_run(moment))
            worth = _worth(asked, moment.counts)
            if not agrees(worth, recorded, magnitude(asked)):
                raise rerun.difference(f"the objective is {worth!r}", f"{recorded!r}")
        # copied: with one job the problem's arrays may be the replay's own, which goes on
        return deepcopy(self._objective.problem(state, self.t_fwd_s(moment))) if is_wanted else None


def _objective_of(run: RunResult, recorded: str, given: str | None, allow_code: bool) -> Objective:
    """Make the objective of the run from the user's spec, or from that in its record."""
    if given is None:
        with locate_errors((run.folder or Path()) / RUN.record_file, "config.policy.objective", "spec"):
            # a run without a folder was made in this process, from objects of the user
            return objective_of(recorded, allow_code=allow_code or run.folder is None)
    made = objective_of(given)
    if made.spec != recorded:
        raise InputError(
            "the objective is not that of the run",
            file=run.folder,
            column="objective",
            value=made.spec,
            expected=recorded,
            fix="remove it, or give that of the run",
        )
    return made


def _learner_of(run: RunResult) -> LearningPolicy | None:
    """Return the policy that learned the curves in the run; ``None`` where the curves were known."""
    options = learning_from_record(run.record.config.policy)
    if options is None:
        return None
    asked = BFTrainerPolicy()  # any policy will do: learning depends only on the times of its decisions
    asked.wakes_on = _woken_by(run)
    return LearningPolicy(asked, **options)


def _woken_by(run: RunResult) -> Trigger:
    """Return the events after which the policy decided: all but those with status ``not_needed``."""
    names = ("trigger", "n_jobs", "n_idle", "process_status")
    slept_through = {
        word
        for rows in run.batches("decisions", names)
        for trigger, n_jobs, n_idle, status in zip(*(rows[name].to_pylist() for name in names), strict=True)
        if n_jobs and n_idle and status == ProcessStatus.NOT_NEEDED
        for word in trigger.split("+")
    }
    woken = Trigger.NONE
    for event in Trigger:
        if event & ANY_TRIGGER and str(event.name).lower() not in slept_through:
            woken |= event
    return woken


def _worth(problem: AllocationProblem, counts: NDArray[np.int64]) -> float:
    """Return gains less losses, whether or not the counts are feasible."""
    return float(
        problem.gain[np.arange(counts.size), counts].sum()
        - problem.scale_up_loss[counts > problem.current].sum()
        - problem.scale_down_loss[counts < problem.current].sum()
    )
