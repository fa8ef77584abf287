"""``bfreplay explain``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import rich_click as click

from bfreplay.commands.inputs import check_picture_option, note, say
from bfreplay.commands.option_flags import PLACE, run_inputs
from bfreplay.commands.progress import replay_progress, warm_up_loops
from bfreplay.errors import InputError


@click.command()
@click.argument("run", type=PLACE)
@click.option("--job", metavar="NAME", help="Explain this job.")
@click.option(
    "--at",
    metavar="TIME",
    help="With --job: explain its nodes at this time. ISO-8601 (UTC), "
    "epoch seconds, or +SECONDS after the start of the window.",
)
@click.option(
    "--most",
    metavar="N",
    type=click.IntRange(min=2),
    default=60,
    help="With --job: largest number of changes listed; those in the middle are omitted.",
)
@run_inputs(poses="With --at: forward-looking time of the decision.")
@click.option(
    "--picture",
    type=PLACE,
    metavar="FILE",
    help="Also draw FILE (.png, .svg): finished jobs, best score and nodes over time; with --job its nodes.",
)
@click.option("--force", is_flag=True, help="Replace the picture if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
def explain(
    run: Path,
    job: str | None,
    at: str | None,
    t_fwd_s: float | None,
    objective: str | None,
    picture: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Explain the outcome of the saved RUN: all its jobs, one job, or one decision.

    Without --job: jobs, waiting times and node-hours by model, finish times, the best score, and the cost of
    jobs that ended early. With --job: every change of its nodes, its costs and its efficiency. With --job and --at: the
    decision in force at that time, the value of the nodes, and the runner-up.

    \b
    Examples:
      bfreplay explain run
      bfreplay explain run --picture campaign.png
      bfreplay explain run --job trial-0012
      bfreplay explain run --job trial-0012 --at 2024-07-01T08:00
      bfreplay explain run --job trial-0012 --at +3600 --json
    """
    if at is not None and job is None:
        raise click.UsageError("--at needs --job NAME.")
    if at is not None and picture is not None:
        raise click.UsageError("--picture draws a run or a job, not a decision: remove --at.")
    for flag, value in (("--t-fwd", t_fwd_s), ("--objective", objective)):
        if value is not None and at is None:
            raise click.UsageError(f"{flag} is for one decision: give --job and --at as well.")
    from bfreplay.runs import RunResult
    from bfreplay.runs.explain import answers
    from bfreplay.runs.run_warnings import warning_lines

    if picture is not None:
        check_picture_option(picture, force)  # refuse before the run is read, not after
    result = RunResult.load(run)

    def report(error: InputError, unknown: str) -> None:
        if not quiet:
            note(f"{error.problem}: {unknown}. Give --events, --jobs and --curves.")

    reads_inputs = job is not None or as_json
    if reads_inputs:
        warm_up_loops(quiet=quiet)
    config = result.record.config
    with replay_progress(config.window_start_us, config.window_end_us, hidden=quiet or not reads_inputs) as progress:
        answer = answers.explain(
            result,
            job,
            at,
            t_fwd=t_fwd_s,
            objective=objective,
            progress=progress,
            on_missing=report,
            **options,
        )
        document = {"warnings": result.warnings, **answer.to_dict()} if as_json else {}
    text = json.dumps(document, indent=1, allow_nan=False) if as_json else repr(answer)
    if picture is not None:
        from bfreplay.report.figures.campaign import CAMPAIGN, JOB
        from bfreplay.report.figures.picture_files import save_picture

        if isinstance(answer, answers.RunAnswer):
            save_picture(CAMPAIGN.draw_from(result, answer.campaign), picture, overwrite=force)
        elif isinstance(answer, answers.JobAnswer):
            save_picture(JOB.draw_from(result, answer.story.name, answer.story.steps), picture, overwrite=force)
    say(text if as_json or not result.warnings else "\n".join([*warning_lines(result.warnings), "", text]))
