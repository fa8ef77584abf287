"""``bfreplay tune``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from bfreplay.commands.log_options import events_argument, jobs_options, window_option
from bfreplay.commands.progress import warm_up_loops
from bfreplay.commands.sweep_progress import sweep_progress
from bfreplay.commands.worker_options import worker_options

if TYPE_CHECKING:
    from bfreplay.experiments.tuning import Tuning


@click.command()
@events_argument
@jobs_options
@window_option
@click.option(
    "--t-fwd",
    "t_fwd_text",
    metavar="LIST",
    default=None,
    help="Forward-looking times to try: seconds with commas between them, and auto.  "
    "[default: 10,30,60,120,300,600,1200,auto]",
)
@click.option(
    "--max-parallel",
    "max_parallel_text",
    metavar="LIST",
    default=None,
    help="Numbers of jobs at once to try.  [default: 5,10,20,35,70, never more than there are]",
)
@click.option("--policy", default="bftrainer", help="As for 'bfreplay replay'.")
@click.option("--objective", default=None, help="As for 'bfreplay replay'.  [default: each job's own]")
@click.option(
    "--unlimited-work/--own-work",
    default=True,
    help="Jobs that never end, all there from the start: how much can training get? Or the jobs' own work.",
)
@click.option("--train", type=float, default=0.67, help="Share of the log that is tuned on; the rest validates.")
@click.option(
    "--tolerance",
    type=float,
    default=0.01,
    help="The smallest number of jobs at once that comes this near to the best is recommended.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder for record, picture and runs; an earlier one is gone on with.  [default: write nothing]",
)
@worker_options
@click.option(
    "--picture", type=click.Path(path_type=Path), default=None, help="Draw the curves into this file, .png or .svg."
)
@click.option("--force", is_flag=True, help="Replace the picture if it is there.")
@click.option("--json", "as_json", is_flag=True, help="Print the record (tuning.json) instead of the text.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
def tune(
    events: Path, jobs_file: Path, curves_file: Path | None, allow_code: bool, window: tuple[str, str] | None,
    t_fwd_text: str | None, max_parallel_text: str | None, policy: str, objective: str | None, unlimited_work: bool,
    train: float, tolerance: float, out: Path | None, processes: int | None, scheduler: str | None,
    picture: Path | None, force: bool, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Recommend --t-fwd and --max-parallel for JOBS on the idle nodes of EVENTS.

    Every combination is replayed on the first part of the log, which decides, and on the rest, which tells what the
    recommendation is worth on days that it does not know. With --out, the same command goes on where it stopped.

    \b
    Examples:
      bfreplay tune sample --jobs sample
      bfreplay tune log.parquet --jobs jobs.csv --out tuning
      bfreplay tune log.parquet --jobs jobs.csv --t-fwd 60,120,300,auto --max-parallel 10,35 --picture tuning.png
      bfreplay tune log.parquet --jobs jobs.csv --own-work --window 2021-02-12 2021-02-19
    """
    from bfreplay.errors import InputError
    from bfreplay.experiments.tuning import tune as run_tune
    from bfreplay.experiments.tuning.grid import forward_time_of, listed, number_of
    from bfreplay.experiments.tuning.text import render
    from bfreplay.experiments.tuning.tuner import check_folder
    from bfreplay.result_folders import record_json

    if processes is not None and scheduler is not None:
        raise InputError(
            "--processes has no meaning with --scheduler, which has workers of its own", value=processes,
            fix="leave one of the two out",
        )  # fmt: skip
    t_fwd = None if t_fwd_text is None else [forward_time_of(word) for word in listed("t-fwd", t_fwd_text)]
    numbers = (
        None if max_parallel_text is None else [number_of(word) for word in listed("max-parallel", max_parallel_text)]
    )
    if out is not None:
        check_folder(out)
    if picture is not None:
        _check_picture(picture, force)
    if scheduler is None:
        warm_up_loops(quiet=quiet)
    try:
        with sweep_progress(hidden=quiet) as progress:
            found = run_tune(
                events, jobs_file, t_fwd=t_fwd, max_parallel=numbers, train=train, tolerance=tolerance,
                unlimited_work=unlimited_work, out=out, processes=processes, scheduler=scheduler, progress=progress,
                on_wait=None if quiet else lambda: click.echo("Waiting for the first Dask worker ...", err=True),
                curves=curves_file, window=window, policy=policy, objective=objective,
                allow_code=allow_code,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit, SystemError):
        if out is not None and not quiet:
            click.echo("Stopped: finished runs stay. The same command goes on from there.", err=True)
        raise
    _draw(found, out, picture, force=force, quiet=quiet)
    click.echo(record_json(found.record, "the tuning").rstrip() if as_json else render(found))


def _check_picture(picture: Path, force: bool) -> None:
    from bfreplay.errors import InputError
    from bfreplay.report.picture_file import check_picture

    if find_spec("matplotlib") is None:
        raise InputError(
            "--picture: matplotlib is not installed", value=str(picture), fix="pip install matplotlib, or leave it out"
        )
    check_picture(picture, overwrite=force)


def _draw(found: Tuning, out: Path | None, picture: Path | None, *, force: bool, quiet: bool) -> None:
    if picture is not None:
        from bfreplay.report import tuning_figure
        from bfreplay.report.picture_file import save_picture

        save_picture(tuning_figure(found.record), picture, overwrite=force)
    if out is None:
        return
    if find_spec("matplotlib") is None:
        if not quiet:
            click.echo(
                "Note: no picture was drawn: matplotlib is not installed (pip install matplotlib).", err=True
            )  # fmt: skip
        return
    from bfreplay.report import draw_tuning

    draw_tuning(out)
