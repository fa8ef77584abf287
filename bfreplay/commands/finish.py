"""``bfreplay finish``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from bfreplay.commands.inputs import check_picture_option, drawing, json_text, say
from bfreplay.commands.option_flags import PLACE, check_workers, run_options, worker_options
from bfreplay.commands.progress import sweeping
from bfreplay.options import REQUIRED

if TYPE_CHECKING:
    from bfreplay.result_folders.finish import Finish


@click.command()
@run_options("events", "jobs", "curves", "allow_code", "window", "node_type", events={"default": REQUIRED})
@click.option(
    "--dedicated", type=click.IntRange(min=1), metavar="NODES", help="Also say how long dedicated nodes take."
)
@click.option("--starts", type=click.IntRange(min=1, max=10_000), default=48, help="Number of starts in the log.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the random starts.")
@run_options("policy", "objective", "t_fwd", "max_parallel", max_parallel={"usual": "10"})
@click.option(
    "--tz",
    metavar="ZONE",
    help="IANA name of the time zone for hours and weekdays, e.g. Europe/Paris.  "
    "[default: that of the log's source where it is known, else UTC]",
)
@click.option(
    "--out",
    type=PLACE,
    help="Folder for record, picture and runs; resumes an unfinished one.  [default: write nothing]",
)
@worker_options
@click.option("--picture", type=PLACE, help="Draw the times into this file, .png or .svg.")
@click.option("--force", is_flag=True, help="Replace the picture if it is there.")
@click.option("--json", "as_json", is_flag=True, help="Print the record (finish.json) instead of the text.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
def finish(
    picture: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    out: Path | None,
    scheduler: str | None,
    **options: Any,
) -> None:
    """Say when JOBS are all done on the idle nodes of EVENTS, and on how many dedicated nodes that would be so soon.

    JOBS, a job set or a campaign, are replayed from many starts: one at random in each of --starts equal parts of the
    log. A start that is unfinished when the log ends counts with the time that it had. Dedicated nodes have the same
    policy and limits. With --out, the same command resumes an unfinished one, and 'bfreplay report' makes a page.

    \b
    Examples:
      bfreplay finish sample --jobs sample
      bfreplay finish log.parquet --jobs search.toml --dedicated 32 --out finish
      bfreplay finish log.parquet --jobs jobs.csv --max-parallel 35 --starts 200 --picture finish.png
    """
    from bfreplay.experiments.finish_text import render
    from bfreplay.experiments.finish_times import finish as run_finish
    from bfreplay.experiments.resumable_folder import check_folder
    from bfreplay.result_folders.records import FINISH

    check_workers(options["processes"], scheduler)
    if out is not None:
        check_folder(out, FINISH)
    if picture is not None:
        check_picture_option(picture, force)
    stop_text = None if out is None else "Stopped: finished runs are kept. The same command resumes."
    with sweeping(scheduler, quiet=quiet, stop_notice=lambda: stop_text) as sweep_keywords:
        result = run_finish(**options, out=out, scheduler=scheduler, **sweep_keywords)
    _draw(result, out, picture, force=force, quiet=quiet)
    say(json_text(result.record.to_json()) if as_json else render(result))


def _draw(result: Finish, folder: Path | None, picture: Path | None, *, force: bool, quiet: bool) -> None:
    if picture is not None:
        from bfreplay.report.figures.finish import FINISH
        from bfreplay.report.figures.picture_files import save_picture

        save_picture(FINISH.draw_from(result.record), picture, overwrite=force)
    draw = None if folder is None else drawing("draw_finish", quiet=quiet)
    if draw is not None and folder is not None:
        draw(folder)
