"""``explain``: what became of a run's jobs, what happened to one of them, or why it had its nodes."""

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
"""Changes of a job's nodes that its text has."""

OnMissing = Callable[[MissingInputsError, str], None]
"""Called with the error and what is left open, where inputs are missing that no argument named."""


@dataclass(frozen=True, repr=False)
class RunAnswer:
    """Jobs, waiting times and node-hours by model, and the best score; its repr is the text of ``bfreplay explain``."""

    run: RunResult
    _inputs: _Inputs

    @cached_property
    def campaign(self) -> CampaignAnswer:
        """When the k-th job finished, scores, and what jobs that ended early cost."""
        return campaign_answer(self.run, self._tables)

    @cached_property
    def _tables(self) -> pd.DataFrame:
        return job_answers(self.run)

    @cached_property
    def _jobs(self) -> pd.DataFrame:
        try:
            return job_answers(self.run, self._inputs.ask(recorded_jobs, self.run))
        except MissingInputsError as error:
            self._inputs.missing(error, "efficiency and slowdown are left open")
            return self._tables

    def __repr__(self) -> str:
        return render_run(self.run, model_answers(self._tables), self.campaign)

    def to_frame(self) -> pd.DataFrame:
        """One row a job; see ``job_answers``. The jobs of a source are made again by going through the run."""
        return self._jobs.copy()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: ``models``, ``campaign`` and ``jobs``."""
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
        What happened to it.
    declined
        Why the policy did not take it; ``None`` for a job that it took.
    most
        Changes that the text has.
    """

    row: pd.DataFrame
    story: JobStory
    declined: str | None
    most: int

    def __repr__(self) -> str:
        of_job = {str(name): value for name, value in self.row.iloc[0].items()}
        return render_job(of_job, self.story, self.most, self.declined)

    def to_frame(self) -> pd.DataFrame:
        """One row a change of its nodes."""
        import pandas as pd

        return pd.DataFrame([step.to_dict() for step in self.story.steps])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the job's row, ``declined`` and ``steps``."""
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
        Name of a job: what happened to it.
    at
        With ``job``: why it has its nodes at this time. ISO-8601 (UTC), epoch seconds, or ``"+3600"``: seconds after
        the start of the window.
    most
        With ``job``: changes of its nodes in the text; those in the middle are left out.
    objective, t_fwd
        With ``at``: pose the decision with these instead of the policy's own.
    progress
        Called after every instant of a repeated replay with (time reached in us, decisions so far).
    on_missing
        Called where inputs are missing that no argument named, with the error and what is left open; by default a
        ``UserWarning``.
    **inputs
        ``events``, ``jobs`` and ``curves``, where they are no longer where they were, and ``allow_code``.

    Returns
    -------
    RunAnswer, JobAnswer, DecisionAnswer or EmptyPool
        The repr is the text of the command; ``to_dict()`` is what it prints with ``--json``.

    Raises
    ------
    InputError
        The folder is no run, there is no such job or time, or the inputs are not those of the run.
    """
    if at is not None and job is None:
        raise InputError("there is a time and no job", column="at", value=at, expected="job=NAME with at=TIME")
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
        given.missing(error, "costs of single changes, efficiency and slowdown are left open")
        story = job_story_from_tables(run, job)
    answers = job_answers(run, None if story.job is None else {job: story.job})
    return JobAnswer(answers[answers["job"] == job], story, run.summary.declined.get(job), most)


@dataclass(frozen=True)
class _Inputs:
    """Where the inputs of the run are, and who hears that one is missing."""

    given: GivenInputs
    progress: ProgressCallback | None
    on_missing: OnMissing | None

    def ask(self, answer: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function that reads the inputs again."""
        return answer(*arguments, **options, **self.given, progress=self.progress)

    def missing(self, error: MissingInputsError, left_open: str) -> None:
        """Raise the error where an argument named the input; tell of it otherwise."""
        if any(given is not None for name, given in self.given.items() if name != "allow_code"):
            raise error
        if self.on_missing is not None:
            self.on_missing(error, left_open)
        else:
            warnings.warn(f"{error.problem}: {left_open}; events, jobs and curves say where they are", stacklevel=4)
