"""``bfreplay tune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from bfreplay.commands.inputs import check_picture_option, drawing, json_text, say
from bfreplay.commands.option_flags import PLACE, check_workers, option_lists, run_options, worker_options
from bfreplay.commands.progress import sweeping
from bfreplay.options import REQUIRED

if TYPE_CHECKING:
    from bfreplay.result_folders.tuning import Tuning


@click.command()
@run_options("events", "jobs", "curves", "allow_code", "window", events={"default": REQUIRED})
@option_lists(t_fwd="10,30,60,120,300,600,1200,auto", max_parallel="5,10,20,35,70, at most the number of jobs")
@option_lists(reserve="none: no trade-off", min_age="none")
@run_options("policy", "objective", "clear", "notice")
@click.option(
    "--unlimited-work/--own-work",
    default=True,
    help="Jobs that never end, all submitted at the start, to measure capacity; or the work of the jobs.",
)
@click.option("--train", type=float, default=0.67, help="Share of the log to tune on; the rest validates.")
@click.option(
    "--tolerance",
    type=float,
    default=0.01,
    help="Recommend the smallest number of jobs at once within this relative distance of the best.",
)
@click.option(
    "--out",
    type=PLACE,
    help="Folder for record, picture and runs; resumes an unfinished one.  [default: write nothing]",
)
@worker_options
@click.option("--picture", type=PLACE, help="Draw the curves into this file, .png or .svg.")
@click.option("--force", is_flag=True, help="Replace the picture if it is there.")
@click.option("--json", "as_json", is_flag=True, help="Print the record (tuning.json) instead of the text.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
def tune(
    picture: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    out: Path | None,
    scheduler: str | None,
    **options: Any,
) -> None:
    """Recommend --t-fwd and --max-parallel for JOBS on the idle nodes of EVENTS.

    With --reserve or --min-age it also weighs training against delay to batch jobs, and recommends the knee.

    Every combination is replayed on the first part of the log, which decides, and on the rest, which validates the
    recommendation on unseen days. With --out, the same command resumes an unfinished tuning.

    A log of more than 30,000 pool events has fewer default values: 30,120,600,auto and 10,35,70.

    \b
    Examples:
      bfreplay tune sample --jobs sample
      bfreplay tune log.parquet --jobs jobs.csv --out tuning
      bfreplay tune log.parquet --jobs jobs.csv --t-fwd 60,120,300,auto --max-parallel 10,35 --picture tuning.png
      bfreplay tune sample --jobs sample --t-fwd 120 --max-parallel 20 --reserve 0,2,5,10 --min-age 0s,2min,10min
      bfreplay tune log.parquet --jobs jobs.csv --own-work --window 2021-02-12 2021-02-19
    """
    from bfreplay.experiments.resumable_folder import check_folder
    from bfreplay.experiments.tuning.tuner import tune as run_tune
    from bfreplay.experiments.tuning.tuning_text import render
    from bfreplay.result_folders.records import TUNING

    check_workers(options["processes"], scheduler)
    if out is not None:
        check_folder(out, TUNING)
    if picture is not None:
        check_picture_option(picture, force)
    stop_text = None if out is None else "Stopped: finished runs are kept. The same command resumes."
    with sweeping(scheduler, quiet=quiet, stop_notice=lambda: stop_text) as sweep_keywords:
        tuning = run_tune(**options, out=out, scheduler=scheduler, **sweep_keywords)
    _draw(tuning, out, picture, force=force, quiet=quiet)
    say(json_text(tuning.record.to_json()) if as_json else render(tuning))


def _draw(tuning: Tuning, folder: Path | None, picture: Path | None, *, force: bool, quiet: bool) -> None:
    if picture is not None:
        from bfreplay.report.figures.picture_files import save_picture
        from bfreplay.report.figures.tuning import TUNING

        save_picture(TUNING.draw_from(tuning.record), picture, overwrite=force)
    draw = None if folder is None else drawing("draw_tuning", quiet=quiet)
    if draw is not None and folder is not None:
        draw(folder)
