"""``bfreplay explain``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import rich_click as click

from bfreplay.commands.inputs import check_picture_option, note
from bfreplay.commands.option_flags import PLACE, run_inputs
from bfreplay.commands.progress import replay_progress, warm_up_loops
from bfreplay.errors import InputError
from bfreplay.options import option_name


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
    from bfreplay.runs.explain import answers
    from bfreplay.runs.run_warnings import warning_lines

    if picture is not None:
        check_picture_option(picture, force)  # better said before the run is read than after
    saved = RunResult.load(run)
    config, quiet = saved.record.config, asked.pop("quiet")

    def tell(error: InputError, left_open: str) -> None:
        if not quiet:
            note(f"{error.problem}: {left_open}. --events, --jobs and --curves say where they are.")

    reads_inputs = job is not None or as_json
    if reads_inputs:
        warm_up_loops(quiet=quiet)
    edges_us = config.window_start_us, config.window_end_us
    with replay_progress(*edges_us, hidden=quiet or not reads_inputs) as progress:
        answer = answers.explain(
            saved, job, at, t_fwd=posed["t_fwd_s"], objective=posed["objective"], progress=progress, on_missing=tell,
            **asked,
        )  # fmt: skip
        document = {"warnings": saved.warnings, **answer.to_dict()} if as_json else {}
    text = json.dumps(document, indent=1, allow_nan=False) if as_json else repr(answer)
    if picture is not None:
        from bfreplay.report.figures.campaign import CAMPAIGN, JOB
        from bfreplay.report.figures.picture_files import save_picture

        if isinstance(answer, answers.RunAnswer):
            save_picture(CAMPAIGN.drawn(saved, answer.campaign), picture, overwrite=force)
        elif isinstance(answer, answers.JobAnswer):
            save_picture(JOB.drawn(saved, answer.story.name, answer.story.steps), picture, overwrite=force)
    click.echo(text if as_json or not saved.warnings else "\n".join([*warning_lines(saved.warnings), "", text]))
