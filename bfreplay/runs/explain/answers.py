"""``explain``: the outcome of a run's jobs, the story of one job, or the reasons for its nodes, with their texts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from bfreplay import checks
from bfreplay.datasets.named_inputs import time_in_window
from bfreplay.errors import InputError
from bfreplay.replay.engine import ProgressCallback
from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.replay.ledger import HELD
from bfreplay.runs.explain.campaign import EARLY, CampaignAnswer, campaign_answer
from bfreplay.runs.explain.decision_answer import DecisionAnswer, EmptyPool
from bfreplay.runs.explain.job_story import LOST, SUBMITTED, JobStory, job_story, job_story_from_tables, time_words
from bfreplay.runs.explain.jobs_of_run import job_answers, model_answers, records
from bfreplay.runs.explain.saved_tables import microseconds
from bfreplay.runs.explain.why_these_nodes import explain_decision
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.saved_decisions import recorded_jobs
from bfreplay.runs.saved_inputs import GivenInputs, MissingInputsError
from bfreplay.runs.scheduling_metrics import window_words
from bfreplay.wording import aligned_lines, amount, count, labelled_lines, maybe_duration, paragraphs, percent, samples

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
        model_records = records(model_answers(self._jobs))
        return {"models": model_records, "campaign": self.campaign.to_dict(), "jobs": records(self._jobs)}


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
        of_job = {str(column_name): cell_value for column_name, cell_value in self.row.iloc[0].items()}
        return render_job(of_job, self.story, self.most, self.declined)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per change of its nodes."""
        import pandas as pd

        return pd.DataFrame([step.to_dict() for step in self.story.steps])

    def to_dict(self) -> dict[str, Any]:
        """Return the job's row, ``declined`` and ``steps``, JSON-ready."""
        step_documents = [step.to_dict() for step in self.story.steps]
        return {**records(self.row)[0], "declined": self.declined, "steps": step_documents}


class _ExplainOptions(GivenInputs, total=False):
    most: int
    objective: str | None
    t_fwd: float | None
    progress: ProgressCallback | None
    on_missing: OnMissing | None


@overload
def explain(run: RunResult | str | Path, **options: Unpack[_ExplainOptions]) -> RunAnswer: ...
@overload
def explain(run: RunResult | str | Path, job: str, **options: Unpack[_ExplainOptions]) -> JobAnswer: ...
@overload
def explain(
    run: RunResult | str | Path, job: str | None = None, at: str | None = None, **options: Unpack[_ExplainOptions]
) -> RunAnswer | JobAnswer | DecisionAnswer | EmptyPool: ...
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
    checks.known_keys(inputs, ("job", "at", *_ExplainOptions.__annotations__), "explain", "option")
    run = run if isinstance(run, RunResult) else RunResult.load(run)
    run_inputs = _Inputs(inputs, progress, on_missing)
    if job is None:
        return RunAnswer(run, run_inputs)
    if at is not None:
        time_us = time_in_window(at, run.record.config.window_start_us, "--at")
        decision: DecisionAnswer | EmptyPool = run_inputs.ask(
            explain_decision, run, job, time_us, objective=objective, t_fwd_s=t_fwd
        )
        return decision
    try:
        story: JobStory = run_inputs.ask(job_story, run, job)
    except MissingInputsError as error:
        run_inputs.missing(error, "costs of single changes, efficiency and slowdown remain unknown")
        story = job_story_from_tables(run, job)
    answers_of_jobs = job_answers(run, None if story.job is None else {job: story.job})
    return JobAnswer(answers_of_jobs[answers_of_jobs["job"] == job], story, run.summary.declined.get(job), most)


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
        if any(input_path is not None for input_name, input_path in self.given.items() if input_name != "allow_code"):
            raise error
        if self.on_missing is not None:
            self.on_missing(error, unknown)
        else:
            warnings.warn(f"{error.problem}: {unknown}; give events, jobs and curves", stacklevel=4)


def render_job(of_job: Mapping[str, Any], story: JobStory, most_steps: int, declined: str | None = None) -> str:
    """Return several lines of text, without a newline at the end.

    Parameters
    ----------
    of_job
        Its row of ``job_answers``.
    story
        Its story.
    most_steps
        Largest number of changes listed, half from the beginning and half from the end.
    declined
        Reason for which the policy declined it; ``None`` for a job that it took.
    """
    facts = (*_head(of_job, story, declined), *_node_time(of_job), *_training(of_job))
    return "\n".join([*facts, "", *_steps(story, most_steps)])


def _head(of_job: Mapping[str, Any], story: JobStory, declined: str | None) -> Iterator[str]:
    model_words = f" ({of_job['model']})" if isinstance(of_job["model"], str) else ""
    yield f"{of_job['job']}{model_words}: {of_job['status'].replace('_', ' ')}{f' ({declined})' if declined else ''}"
    start_words = "never started"
    if not any(step.reason == SUBMITTED for step in story.steps):
        submit_us = microseconds(of_job["submitted"])
        if submit_us is not None:
            start_words += f": it was to be submitted at {time_words(submit_us, story.origin_us)}"
    if not math.isnan(of_job["queue_s"]):
        start_words = f"started after {maybe_duration(of_job['queue_s'])} in the queue"
    finish_words = ""
    if not math.isnan(of_job["completion_s"]):
        finish_words = f", finished {maybe_duration(of_job['completion_s'])} after it was submitted"
        if not math.isnan(of_job["slowdown"]):
            finish_words += f" ({amount(of_job['slowdown'])} times as long as at the best rate of its curve)"
    yield f"  {start_words}{finish_words}"


def _node_time(of_job: Mapping[str, Any]) -> Iterator[str]:
    node_hours = of_job["held_node_hours"]
    if not node_hours:
        return
    node_words = f"{amount(of_job['mean_nodes'])} nodes on average for {maybe_duration(of_job['held_s'])}"
    yield f"  held {node_words}: {amount(node_hours)} node-hours"
    for ledger_label in HELD:
        hours = of_job[f"{ledger_label}_node_hours"]
        if hours:
            yield f"    {ledger_label.replace('_', ' '):<20}{amount(hours):>10}  {percent(hours / node_hours):>8}"


def _training(of_job: Mapping[str, Any]) -> Iterator[str]:
    work_words = f" of {samples(of_job['work_samples'])}" if math.isfinite(of_job["work_samples"]) else ""
    yield f"  {samples(of_job['done_samples'])} samples done{work_words}"
    if not math.isnan(of_job["efficiency"]):
        node_words, held_time = f"{amount(of_job['mean_nodes'])} dedicated nodes", maybe_duration(of_job["held_s"])
        share_words = f"{percent(of_job['efficiency'])} of what {node_words} would process"
        yield f"    {share_words} in the {held_time} for which it held nodes"
    scale_ups = of_job["n_scale_ups"] - of_job["n_starts"]  # a start counts as a scale-up in the table
    rescale_words = f"scaled up {count(int(scale_ups), 'time')}, down {count(int(of_job['n_scale_downs']), 'time')}"
    lost_samples = samples(of_job["rescale_cost_samples"])
    yield f"  {count(int(of_job['n_starts']), 'start')}, {rescale_words}: {lost_samples} samples lost"
    if of_job["n_preemptions"]:
        lost_samples = samples(of_job["preemption_cost_samples"])
        yield f"  {count(int(of_job['n_preemptions']), 'preemption')}: {lost_samples} samples lost"
    if of_job["repeated_samples"]:
        yield f"  work since the last checkpoint lost: {samples(of_job['repeated_samples'])} samples"
    if of_job["n_reports"] and not math.isnan(of_job["n_reports"]):
        best_score, last_score = of_job["best_score"], of_job["last_score"]
        score_words = "" if math.isnan(best_score) else f": best score {best_score:.6g}, last {last_score:.6g}"
        yield f"  {count(int(of_job['n_reports']), 'report')}{score_words}"


def _steps(story: JobStory, most_steps: int) -> Iterator[str]:
    steps = story.steps
    n_omitted, n_first = max(0, len(steps) - most_steps), most_steps - most_steps // 2
    shown_steps = (*steps[:n_first], *steps[n_first + n_omitted :])
    header = ["time" if story.origin_us is None else "seconds", "", "nodes", "cost in samples", "decision"]
    table_lines = aligned_lines([header, *(step.cells(story.origin_us) for step in shown_steps)], left=(0, 1))
    for line_number, table_line in enumerate(table_lines):
        if n_omitted and line_number == 1 + n_first:
            yield f"... {count(n_omitted, 'change')} omitted ..."
        yield table_line
    if any(step.reason == LOST for step in steps):
        yield "'preempted or scaled down' and unknown costs: to resolve them, give the inputs (--events, --jobs)"


_SHARES = (0.25, 0.5, 0.75, 0.9)


def render_run(run: RunResult, models: pd.DataFrame, campaign: CampaignAnswer) -> str:
    """Return several lines of text, without a newline at the end."""
    jobs = f"{count(int(models['n_jobs'].sum()), 'job')} of {count(len(models), 'model')}" if len(models) else "no job"
    span_words = f"from {window_words(run.record)} ({maybe_duration(run.summary['duration_s'])})"
    of_campaign = chain(_finish_times(campaign), _scores(campaign), _early(campaign), _budget(campaign))
    model_lines = [*_models(models)] if len(models) else []
    return paragraphs([[f"{jobs} {span_words}"], model_lines, labelled_lines(of_campaign, 13)])


def _models(models: pd.DataFrame) -> Iterator[str]:
    statuses = [status for status in STATUSES if models[status].any()]
    status_words = [status.replace("_", " ") for status in statuses]
    header = ["model", "jobs", *status_words, "queue", "95 %", "completion", "95 %", "samples", "node-hours", "useful"]
    table_rows = []
    for row in models.to_dict("records"):
        count_cells = [f"{row[column]:,}" for column in ("n_jobs", *statuses)]
        times_s = [row[f"{what}_{statistic}_s"] for what in ("queue", "completion") for statistic in ("median", "p95")]
        node_hours, useful_share = row["held_node_hours"], _share(row["useful_node_hours"], row["held_node_hours"])
        amounts = [f"{row['samples']:.4g}", amount(node_hours), useful_share]
        table_rows.append([row["model"], *count_cells, *map(maybe_duration, times_s), *amounts])
    yield from aligned_lines([header, *table_rows])
    yield "queue: from submit to first start; completion: from submit to finish: median, and 95 % within"


def _finish_times(campaign: CampaignAnswer) -> Iterator[tuple[str, str]]:
    n_finished = len(campaign.finished_s)
    if not n_finished:
        yield "Finished", "no job"
        return
    numbers = sorted({1, *(max(1, round(finished_share * n_finished)) for finished_share in _SHARES), n_finished})
    times_s = [float(campaign.finished_s[number - 1]) for number in numbers]
    texts = [f"{number:,} after {maybe_duration(time_s)}" for number, time_s in zip(numbers, times_s, strict=True)]
    yield "Finished", f"{', '.join(texts)} (from the start of the window)"


def _scores(campaign: CampaignAnswer) -> Iterator[tuple[str, str]]:
    if campaign.higher_is_better is None:
        return
    if not len(campaign.best_score):
        yield "Best score", "none was reported"
        return
    better = "higher" if campaign.higher_is_better else "lower"
    scores = [f"{score:.6g}" for score in campaign.best_score.tolist()]
    times = [f"after {maybe_duration(time_s)}" for time_s in campaign.best_s.tolist()]
    yield "Best score", f"{scores[-1]} ({better} is better) of {campaign.best_job} {times[-1]}"
    n_before = len(scores) - 1
    steps = sorted({round(step_index * n_before / 4) for step_index in range(4)} - {n_before})
    if steps:
        before_words = "before" if len(steps) == n_before else f"{len(steps)} of the {n_before:,} before"
        yield "", f"{before_words}: {', '.join(f'{scores[step_index]} {times[step_index]}' for step_index in steps)}"


def _early(campaign: CampaignAnswer) -> Iterator[tuple[str, str]]:
    hours, statuses = campaign.node_hours, [status for status in EARLY if status in campaign.by_status]
    if statuses:
        texts = [f"{campaign.by_status[state]:,} {state} ({amount(hours[state])} node-hours)" for state in statuses]
        hours_share = _share(campaign.early_node_hours, sum(hours.values()))
        yield "Ended early", f"{', '.join(texts)}: {hours_share} of the node-hours"


def _budget(campaign: CampaignAnswer) -> Iterator[tuple[str, str]]:
    for limit_name, of_limit in campaign.budget.items():
        limit, usage = of_limit["limit"], of_limit["used"]
        usage_words = "unknown" if usage is None or limit is None else f"{usage:,.6g} ({_share(usage, limit)})"
        yield "Budget", f"{limit_name.replace('_', ' ')}: {usage_words} of {limit:,.6g} used"


def _share(numerator: float, denominator: float) -> str:
    return percent(numerator / denominator) if denominator else "-"
