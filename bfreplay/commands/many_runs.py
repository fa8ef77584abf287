"""Options and progress of commands that make many runs, and the course of those that answer one question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from bfreplay import checks
from bfreplay.commands.inputs import check_picture_option, drawing, json_text, say
from bfreplay.commands.option_flags import PLACE, adding
from bfreplay.commands.progress import sweep_progress, warm_up_loops
from bfreplay.errors import InputError

if TYPE_CHECKING:
    from bfreplay.report.figures.figure import Figure
    from bfreplay.result_folders.reading import Result
    from bfreplay.result_folders.records import ResultKind

worker_options = adding(
    click.option(
        "--processes",
        type=click.IntRange(min=1, max=checks.MOST_THREADS),
        help="Number of parallel runs on this machine.  [default: the number of processors]",
    ),
    click.option(
        "--scheduler", metavar="ADDRESS", help="Use the workers of a Dask scheduler instead, tcp://host:8786."
    ),
)
"""Adds --processes and --scheduler."""


def check_workers(processes: int | None, scheduler: str | None) -> None:
    """Raise ``InputError`` for --processes with --scheduler."""
    if processes is not None and scheduler is not None:
        raise InputError(
            "--processes cannot be combined with --scheduler, which has its own workers",
            value=processes,
            fix="remove one of the two",
        )


@contextmanager
def sweeping(scheduler: str | None, *, quiet: bool, stop_notice: Callable[[], str | None]) -> Iterator[dict[str, Any]]:
    """Yield keywords for ``sweep`` and ``tune`` that show progress; ``stop_notice`` returns a note after Ctrl-C."""
    if scheduler is None:
        warm_up_loops(quiet=quiet, is_waiting=True)
    waiting = "Waiting for the first Dask worker ..."
    try:
        with sweep_progress(hidden=quiet) as progress:
            yield {"progress": progress, "on_wait": None if quiet else lambda: say(waiting, err=True)}
    except (KeyboardInterrupt, SystemExit, SystemError):
        if not quiet and (notice := stop_notice()) is not None:
            say(notice, err=True)
        raise


def answer_options(record_file: str, subject: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options for folder, workers, picture of ``subject`` and output of a command for ``print_answer``."""
    folder_text = "Folder for record, picture and runs; resumes an unfinished one.  [default: write nothing]"
    return adding(
        click.option("--out", type=PLACE, help=folder_text),
        worker_options,
        click.option("--picture", type=PLACE, help=f"Draw the {subject} into this file, .png or .svg."),
        click.option("--force", is_flag=True, help="Replace the picture if it is there."),
        click.option("--json", "as_json", is_flag=True, help=f"Print the record ({record_file}) instead of the text."),
        click.option("--quiet", is_flag=True, help="No progress bar, no notes."),
    )


def print_answer(
    make_runs: Callable[..., Result[Any]],
    kind: ResultKind,
    figure: Figure[Any],
    render: Callable[[Any], str],
    *,
    out: Path | None,
    picture: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Make the runs behind an answer, draw its pictures, and print it; keywords are those of ``answer_options``.

    Parameters
    ----------
    make_runs
        Function of the other options that returns the result.
    kind, figure, render
        Kind of its folder, its figure, and the function that writes it as text.
    """
    from bfreplay.experiments.resumable_folder import check_folder
    from bfreplay.report.figures.picture_files import save_picture

    check_workers(options["processes"], options["scheduler"])
    if out is not None:
        check_folder(out, kind)
    if picture is not None:
        check_picture_option(picture, force)
    stop_text = None if out is None else "Stopped: finished runs are kept. The same command resumes."
    with sweeping(options["scheduler"], quiet=quiet, stop_notice=lambda: stop_text) as sweep_keywords:
        result = make_runs(**options, out=out, **sweep_keywords)
    if picture is not None:
        save_picture(figure.draw_from(result.record), picture, overwrite=force)
    draw = None if out is None else drawing(f"draw_{kind.word}", quiet=quiet)
    if draw is not None and out is not None:
        draw(out)
    say(json_text(result.record.to_json()) if as_json else render(result))
