"""``bfreplay explain``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from bfreplay.commands.inputs import check_picture_option, note, time_in_window
from bfreplay.commands.option_flags import PLACE, run_inputs
from bfreplay.commands.progress import replay_progress, warm_up_loops
from bfreplay.errors import InputError
from bfreplay.options import option_name

if TYPE_CHECKING:
    from bfreplay.runs import RunResult


@click.command()
@click.argument("run", type=PLACE)
@click.option("--job", metavar="NAME", help="Tell what happened to this job.")
@click.option(
    "--at", metavar="TIME", help="With --job: tell why it has the nodes that it has at this time. ISO-8601 (UTC), "
    "epoch seconds, or +SECONDS after the start of the window.",
)  # fmt: skip
@click.option(
    "--most", metavar="N", type=click.IntRange(min=2), default=60,
    help="With --job: changes of its nodes that are told; those in the middle are left out.",
)  # fmt: skip
@run_inputs(poses="With --at: forward-looking time of the decision.")
@click.option(
    "--picture", type=PLACE, metavar="FILE",
    help="Also draw FILE (.png or .svg): finished jobs, best score and nodes over time; with --job its nodes.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace the picture if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
def explain(
    run: Path, job: str | None, at: str | None, picture: Path | None, force: bool, as_json: bool, **asked: Any
) -> None:
    """Tell what became of the jobs of the saved RUN, and why.

    Without --job: jobs, waiting times and node-hours by model, when the k-th job finished, the best score, and what
    jobs that ended early cost. With --job: every change of its nodes, its costs and its efficiency. With --at as well:
    the decision in force then, where the nodes came from, what they were worth, and the decision that came next.

    \b
    Examples:
      bfreplay explain run
      bfreplay explain run --picture campaign.png
      bfreplay explain run --job trial-0012
      bfreplay explain run --job trial-0012 --at 2024-07-01T08:00
      bfreplay explain run --job trial-0012 --at +3600 --json
    """
    if at is not None and job is None:
        raise click.UsageError("--at needs --job NAME: whose nodes shall be explained?")
    if at is not None and picture is not None:
        raise click.UsageError("--picture draws a run, or a job of it: leave out --at.")
    posed = {name: asked.pop(name) for name in ("t_fwd_s", "objective")}
    for name, given in posed.items():
        if given is not None and at is None:
            option = "--" + option_name(name.removesuffix("_s"))
            raise click.UsageError(f"{option} poses one decision: give --job and --at as well.")
    from bfreplay.runs import RunResult
    from bfreplay.runs.run_warnings import warning_lines

    if picture is not None:
        check_picture_option(picture, force)  # better said before the run is read than after
    saved = RunResult.load(run)
    most, quiet = asked.pop("most"), asked.pop("quiet")
    inputs = _Inputs(saved, quiet=quiet, **asked)
    if job is None:
        text = _of_run(saved, inputs, picture, force, as_json)
    elif at is None:
        text = _of_job(saved, job, inputs, most, picture, force, as_json)
    else:
        text = _of_decision(saved, job, at, inputs, as_json, **posed)
    click.echo(text if as_json or not saved.warnings else "\n".join([*warning_lines(saved.warnings), "", text]))


class _Inputs:
    """Where the inputs of the run are, and how its repetition is shown."""

    def __init__(self, run: RunResult, *, quiet: bool, **given: Any) -> None:
        self._run = run
        self._given = given
        self._quiet = quiet

    def repeated(self, answer: Any, *arguments: Any, **options: Any) -> Any:
        """Call ``answer(run, *arguments, ...)``, which goes through the run again."""
        warm_up_loops(quiet=self._quiet)
        config = self._run.record.config
        with replay_progress(config.window_start_us, config.window_end_us, hidden=self._quiet) as progress:
            return answer(self._run, *arguments, **self._given, **options, progress=progress)

    def or_note(self, error: InputError, without: str) -> None:
        """Say what cannot be told as inputs are missing; an error where they were named."""
        if any(given is not None for name, given in self._given.items() if name != "allow_code"):
            raise error
        if not self._quiet:
            note(f"{error.problem}: {without}. --events, --jobs and --curves say where they are.")


def _of_run(run: RunResult, inputs: _Inputs, picture: Path | None, force: bool, as_json: bool) -> str:
    from bfreplay.runs.explain.campaign import campaign_answer
    from bfreplay.runs.explain.jobs_of_run import job_answers, model_answers, records
    from bfreplay.runs.explain.run_text import render_run
    from bfreplay.runs.saved_decisions import recorded_jobs
    from bfreplay.runs.saved_inputs import MissingInputsError

    known = None
    if as_json:
        try:
            known = inputs.repeated(recorded_jobs)
        except MissingInputsError as error:
            inputs.or_note(error, "efficiency and slowdown are left open")
    answers = job_answers(run, known)
    models, campaign = model_answers(answers), campaign_answer(run, answers)
    if picture is not None:
        from bfreplay.report.figures.campaign import CAMPAIGN
        from bfreplay.report.figures.picture_files import save_picture

        save_picture(CAMPAIGN.drawn(run, campaign), picture, overwrite=force)
    if not as_json:
        return render_run(run, models, campaign)
    return _json(run, {"models": records(models), "campaign": campaign.to_dict(), "jobs": records(answers)})


def _of_job(
    run: RunResult, job: str, inputs: _Inputs, most: int, picture: Path | None, force: bool, as_json: bool
) -> str:
    from bfreplay.runs.explain.job_story import job_story, job_story_from_tables
    from bfreplay.runs.explain.job_story_text import render_job
    from bfreplay.runs.explain.jobs_of_run import job_answers, records
    from bfreplay.runs.explain.saved_tables import refuse_unknown_job
    from bfreplay.runs.saved_inputs import MissingInputsError

    refuse_unknown_job(run, job)
    try:
        story = inputs.repeated(job_story, job)
    except MissingInputsError as error:
        inputs.or_note(error, "costs of single changes, efficiency and slowdown are left open")
        story = job_story_from_tables(run, job)
    declined = run.summary.declined.get(job)
    answers = job_answers(run, None if story.job is None else {job: story.job})
    of_job = answers[answers["job"] == job]
    if picture is not None:
        from bfreplay.report.figures.campaign import JOB
        from bfreplay.report.figures.picture_files import save_picture

        save_picture(JOB.drawn(run, job, story.steps), picture, overwrite=force)
    if not as_json:
        return render_job({str(name): value for name, value in of_job.iloc[0].items()}, story, most, declined)
    return _json(run, {**records(of_job)[0], "declined": declined, "steps": [step.to_dict() for step in story.steps]})


def _of_decision(run: RunResult, job: str, at: str, inputs: _Inputs, as_json: bool, **posed: Any) -> str:
    from bfreplay.runs.explain.decision_answer import render_decision
    from bfreplay.runs.explain.why_these_nodes import explain_decision

    time_us = time_in_window(at, run.record.config.window_start_us, "--at")
    answer = inputs.repeated(explain_decision, job, time_us, **posed)
    return _json(run, answer.to_dict()) if as_json else render_decision(answer)


def _json(run: RunResult, document: dict[str, Any]) -> str:
    return json.dumps({"warnings": run.warnings, **document}, indent=1, allow_nan=False)
