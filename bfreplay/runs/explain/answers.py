"""``explain``: the outcome of a run's jobs, the story of one job, or the reasons for its nodes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from bfreplay.datasets.named_inputs import time_in_window
from bfreplay.errors import InputError
from bfreplay.replay.engine import ProgressCallback
from bfreplay.runs.explain.campaign import CampaignAnswer, campaign_answer
from bfreplay.runs.explain.decision_answer import DecisionAnswer, EmptyPool
from bfreplay.runs.explain.job_story import JobStory, job_story, job_story_from_tables
from bfreplay.runs.explain.job_story_text import render_job
from bfreplay.runs.explain.jobs_of_run import job_answers, model_answers, records
from bfreplay.runs.explain.run_text import render_run
from bfreplay.runs.explain.saved_tables import refuse_unknown_job
from bfreplay.runs.explain.why_these_nodes import explain_decision
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.saved_decisions import recorded_jobs
from bfreplay.runs.saved_inputs import GivenInputs, MissingInputsError

if TYPE_CHECKING:
    import pandas as pd

MOST_STEPS = 60
"""Largest number of changes in the text of a job."""

OnMissing = Callable[[MissingInputsError, str], None]
"""Called with the error and what remains unknown, where recorded inputs are missing."""


@dataclass(frozen=True, repr=False)
class RunAnswer:
    """Jobs, waiting times and node-hours by model, and the best score; its repr is the text of ``bfreplay explain``."""

    run: RunResult
    _inputs: _Inputs

    @cached_property
    def campaign(self) -> CampaignAnswer:
        """Finish times, scores, and the cost of jobs that ended early."""
        return campaign_answer(self.run, self._tables)

    @cached_property
    def _tables(self) -> pd.DataFrame:
        return job_answers(self.run)

    @cached_property
    def _jobs(self) -> pd.DataFrame:
        try:
            return job_answers(self.run, self._inputs.ask(recorded_jobs, self.run))
        except MissingInputsError as error:
            self._inputs.missing(error, "efficiency and slowdown remain unknown")
            return self._tables

    def __repr__(self) -> str:
        return render_run(self.run, model_answers(self._tables), self.campaign)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per job; see ``job_answers``. A job source makes its jobs again in a rerun."""
        return self._jobs.copy()

    def to_dict(self) -> dict[str, Any]:
        """Return ``models``, ``campaign`` and ``jobs``, JSON-ready."""
        models = records(model_answers(self._jobs))
        return {"models": models, "campaign": self.campaign.to_dict(), "jobs": records(self._jobs)}


@dataclass(frozen=True, repr=False)
class JobAnswer:
    """Every change of a job's nodes, its costs and its efficiency; its repr is the text of ``bfreplay explain --job``.

    Parameters
    ----------
    row
        Its row of ``job_answers``.
    story
        Its story.
    declined
        Reason for which the policy declined it; ``None`` for a job that it took.
    most
        Largest number of changes in the text.
    """

    row: pd.DataFrame
    story: JobStory
    declined: str | None
    most: int

    def __repr__(self) -> str:
        of_job = {str(name): value for name, value in self.row.iloc[0].items()}
        return render_job(of_job, self.story, self.most, self.declined)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per change of its nodes."""
        import pandas as pd

        return pd.DataFrame([step.to_dict() for step in self.story.steps])

    def to_dict(self) -> dict[str, Any]:
        """Return the job's row, ``declined`` and ``steps``, JSON-ready."""
        steps = [step.to_dict() for step in self.story.steps]
        return {**records(self.row)[0], "declined": self.declined, "steps": steps}


def explain(
    run: RunResult | str | Path,
    job: str | None = None,
    at: str | None = None,
    *,
    most: int = MOST_STEPS,
    objective: str | None = None,
    t_fwd: float | None = None,
    progress: ProgressCallback | None = None,
    on_missing: OnMissing | None = None,
    **inputs: Unpack[GivenInputs],
) -> RunAnswer | JobAnswer | DecisionAnswer | EmptyPool:
    """Explain a run, one of its jobs, or the nodes of a job at a time.

    Parameters
    ----------
    run
        A run, or its folder.
    job
        Name of a job, to explain its story.
    at
        With ``job``: time at which to explain its nodes. ISO-8601 (UTC), epoch seconds, or ``"+3600"``: seconds after
        the start of the window.
    most
        With ``job``: largest number of changes in the text; those in the middle are omitted.
    objective, t_fwd
        With ``at``: pose the decision with these instead of the policy's own.
    progress
        Called after every instant of a rerun with (time reached in us, decisions so far).
    on_missing
        Called where recorded inputs are missing, with the error and what remains unknown; by default a ``UserWarning``.
    **inputs
        ``events``, ``jobs`` and ``curves``, if they have moved, and ``allow_code``.

    Returns
    -------
    RunAnswer, JobAnswer, DecisionAnswer or EmptyPool
        The repr is the text of the command; ``to_dict()`` is its output with ``--json``.

    Raises
    ------
    InputError
        The folder is no run, the job or time does not exist, or the inputs are not those of the run.
    """
    if at is not None and job is None:
        raise InputError("at=TIME needs a job", column="at", value=at, expected="job=NAME with at=TIME")
    if at is None and (objective, t_fwd) != (None, None):
        raise InputError("objective and t_fwd pose one decision", expected="job=NAME and at=TIME with them")
    run = run if isinstance(run, RunResult) else RunResult.load(run)
    given = _Inputs(inputs, progress, on_missing)
    if job is None:
        return RunAnswer(run, given)
    if at is not None:
        time_us = time_in_window(at, run.record.config.window_start_us, "--at")
        decision: DecisionAnswer | EmptyPool = given.ask(
            explain_decision, run, job, time_us, objective=objective, t_fwd_s=t_fwd
        )
        return decision
    refuse_unknown_job(run, job)
    try:
        story: JobStory = given.ask(job_story, run, job)
    except MissingInputsError as error:
        given.missing(error, "costs of single changes, efficiency and slowdown remain unknown")
        story = job_story_from_tables(run, job)
    answers = job_answers(run, None if story.job is None else {job: story.job})
    return JobAnswer(answers[answers["job"] == job], story, run.summary.declined.get(job), most)


@dataclass(frozen=True)
class _Inputs:
    """Paths of the run's inputs, and the callback for a missing one."""

    given: GivenInputs
    progress: ProgressCallback | None
    on_missing: OnMissing | None

    def ask(self, answer: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function that reads the inputs again."""
        return answer(*arguments, **options, **self.given, progress=self.progress)

    def missing(self, error: MissingInputsError, unknown: str) -> None:
        """Raise the error where an argument named the input; otherwise report it."""
        if any(given is not None for name, given in self.given.items() if name != "allow_code"):
            raise error
        if self.on_missing is not None:
            self.on_missing(error, unknown)
        else:
            warnings.warn(f"{error.problem}: {unknown}; give events, jobs and curves", stacklevel=4)
