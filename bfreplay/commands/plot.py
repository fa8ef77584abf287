"""``bfreplay plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from bfreplay.commands.inputs import note, say, split_names
from bfreplay.commands.option_flags import PLACE, completing
from bfreplay.errors import InputError
from bfreplay.wording import count

if TYPE_CHECKING:
    from bfreplay.report.figures.figure import RunFigure
    from bfreplay.runs import RunResult

D = TypeVar("D")
_ALL = "all"
_SWEEP, _SWEEP_TITLE = "sweep", "Metrics of a sweep against an option: --x, --y, --by"
_LONGEST_NAME = 40


def _list(context: click.Context, _option: click.Parameter, is_listing: bool) -> None:
    if not is_listing or context.resilient_parsing:
        return
    from bfreplay.report.figures.figure import FIGURES, find_figure

    names = FIGURES.names()
    width = max(map(len, [*names, _SWEEP]))
    for figure_name in names:
        try:
            title = find_figure(figure_name).title
        except InputError as error:  # a figure of another package
            title = f"({error.problem})"
        say(f"{figure_name:{width}}  {title}")
    say(f"{_SWEEP:{width}}  {_SWEEP_TITLE}")
    context.exit()


def _names(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> list[str]:
    """Names separated by commas, or given one by one."""
    return split_names(",".join(values))


@click.command()
@click.argument(
    "name", metavar="NAME", shell_complete=completing(_ALL, _SWEEP, "bfreplay.report.figures.figure:FIGURES")
)
@click.argument("runs", metavar="RUN...", type=PLACE, nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    "out",
    metavar="FILE",
    type=PLACE,
    help="Picture to write (.png or .svg); with 'all' a folder.  [default: NAME.png; with 'all' here]",
)
@click.option(
    "--window",
    nargs=2,
    metavar="START END",
    help="Part of the window, for figures over time: ISO-8601 (UTC), epoch seconds, or +SECONDS after the "
    "start of the window.",
)
@click.option("--x", metavar="COLUMN", help="For 'sweep': column of the axis.")
@click.option("--y", metavar="COLUMN,...", multiple=True, callback=_names, help="For 'sweep': metrics, a panel each.")
@click.option("--by", metavar="COLUMN,...", multiple=True, callback=_names, help="For 'sweep': a line for each value.")
@click.option(
    "--log-x/--linear-x",
    default=None,
    help="For 'sweep': scale of the axis.  [default: logarithmic if values grow by a constant factor]",
)
@click.option(
    "--log-y/--linear-y",
    default=None,
    help="For 'sweep': scale of metrics.  [default: logarithmic over more than a factor of 20]",
)
@click.option("--svg", is_flag=True, help="With 'all': write .svg, not .png.")
@click.option("--force", is_flag=True, help="Replace pictures that exist.")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List names and exit.")
@click.option("--quiet", is_flag=True, help="No notes.")
def plot(
    name: str,
    runs: tuple[Path, ...],
    out: Path | None,
    window: tuple[str, str] | None,
    svg: bool,
    force: bool,
    quiet: bool,
    **axes: Any,
) -> None:
    """Draw the figure NAME of one or more saved RUNs.

    NAME is a figure of --list, or 'all'. Each RUN is a folder of 'bfreplay replay --out'. Several runs are labelled A,
    B, ... in the order given.

    'sweep' draws the table of a folder of 'bfreplay sweep --out': metrics --y against --x, with a line or bar for each
    value of --by. A point is the mean, with the spread, of all runs that differ in other options only, such as seeds.
    COLUMN.PARAMETER is a parameter in the text of a column, such as jobs.jobs_per_hour.

    \b
    Examples:
      bfreplay plot --list
      bfreplay plot timeline run
      bfreplay plot timeline run -o day.svg --window 2024-07-02 2024-07-03
      bfreplay plot jobs run --window +0 +86400
      bfreplay plot node-hours run-120 run-300 -o node-hours.svg
      bfreplay plot all run -o pictures
      bfreplay plot sweep SWEEP --x t_fwd --y samples,u
      bfreplay plot sweep SWEEP --x jobs_per_hour --y average_jct_s --by policy
    """
    if name == _ALL and window is not None:
        raise click.UsageError("--window applies to one figure over time: name it instead of 'all'.")
    if name != _ALL and svg:
        raise click.UsageError("--svg applies to 'all' only: write -o FILE.svg.")
    if find_spec("matplotlib") is None:
        raise InputError("matplotlib is not installed", fix="pip install matplotlib")
    if name == _SWEEP:
        if window is not None or axes["x"] is None or not axes["y"] or len(runs) != 1:
            raise click.UsageError("'sweep' takes one sweep, --x COLUMN and --y COLUMN, and no --window.")
        file = out or Path(f"{name}.png")
        draw_sweep(runs[0], file, SweepAxes(**axes), overwrite=force, quiet=quiet)
        return
    if surplus := [option for option, value in axes.items() if value not in (None, [])]:
        raise click.UsageError(f"--{surplus[0].replace('_', '-')} applies to 'sweep' only.")
    from bfreplay.report.figures.figure import FIGURES, NothingToShowError, find_figure
    from bfreplay.report.figures.picture_files import check_picture, save_picture

    if name == _ALL:
        if out is not None and out.exists() and not out.is_dir():
            raise InputError("the folder of the pictures is a file", file=out, fix="choose another name")
        ending = "svg" if svg else "png"
        files = {figure: (out or Path()) / f"{figure}.{ending}" for figure in FIGURES.names()}
    else:
        find_figure(name)
        files = {name: out or Path(f"{name.rpartition(':')[2]}.png")}
    for file in files.values():  # before the runs are read
        check_picture(file, overwrite=force)
    from bfreplay.runs import RunResult

    results = []
    for run in runs:
        results.append(RunResult.load(run))
        results[-1].check()  # complete, so that figures need no checks
    labelled_runs = _label_runs(results)
    if name == _ALL:
        (out or Path()).mkdir(parents=True, exist_ok=True)
    for figure_name, file in files.items():
        try:
            figure = find_figure(figure_name)
            save_picture(figure.draw_runs(_data(figure, labelled_runs, window, quiet)), file, overwrite=force)
        except InputError as error:
            # one of all may have nothing to show, or be of another package and break
            is_fault = figure_name in FIGURES.built_in and not isinstance(error, NothingToShowError)
            if name != _ALL or is_fault:
                raise
            if not quiet:
                note(f"no {file.name}: {error.problem}.")
        else:
            say(f"wrote {file}")


def _data(
    figure: RunFigure[D], runs: Mapping[str, RunResult], window: tuple[str, str] | None, quiet: bool
) -> dict[str, D]:
    """Data of the figure by run, without runs that have none; NothingToShowError if no run has any."""
    from bfreplay.report.figures.figure import NothingToShowError

    data_by_label, empty = {}, {}
    for label, run in runs.items():
        try:
            data = figure.data(run)
            data_by_label[label] = data if window is None else _part(figure, data, run, window)
        except NothingToShowError as error:
            empty[label] = error
    if not data_by_label:
        raise next(iter(empty.values()))
    for label, reason in ({} if quiet else empty).items():
        note(f"{figure.name}: {label} is skipped: {reason.problem}.")
    return data_by_label


def _part(figure: RunFigure[Any], data: Any, run: RunResult, window: tuple[str, str]) -> Any:
    from bfreplay.datasets.named_inputs import time_in_window
    from bfreplay.report.figures.time_axis import OverTime

    if not isinstance(data, OverTime):
        raise InputError(f"--window: the figure {figure.name!r} is not over time", fix="omit --window")
    start_us = run.record.config.window_start_us
    return data.between(*(time_in_window(text, start_us, "--window") for text in window))


def _label_runs(runs: list[RunResult]) -> dict[str, RunResult]:
    """Label one run "", several ``A (run-120)``, ``B (run-600)``, ..."""
    from bfreplay.experiments.run_comparison.pairing import labels_of
    from bfreplay.report.figures.job_timeline import shorten

    if len(runs) == 1:
        return {"": runs[0]}
    return {
        label if run.folder is None else f"{label} ({shorten(run.folder.resolve().name, _LONGEST_NAME)})": run
        for label, run in zip(labels_of(len(runs)), runs, strict=True)
    }


@dataclass(frozen=True, slots=True)
class SweepAxes:
    """Columns of the axis, the panels and the lines, and scales; see ``swept_lines`` and ``draw_sweep_lines``."""

    x: str
    y: Sequence[str]
    by: Sequence[str]
    log_x: bool | None = None
    log_y: bool | None = None


def draw_sweep(
    folder: Path, file: Path, axes: SweepAxes, *, overwrite: bool, quiet: bool, prints_path: bool = True
) -> None:
    """Draw a complete sweep into ``file``.

    Raises
    ------
    InputError, OutputExistsError
        No complete sweep, unknown column, or the picture cannot be written.
    """
    from bfreplay.experiments.sweep import SweepResult
    from bfreplay.report.figures.picture_files import check_picture, save_picture
    from bfreplay.report.figures.sweep_picture import draw_sweep_lines, lines_of, values_words

    check_picture(file, overwrite=overwrite)
    lines = lines_of(SweepResult.load(folder), axes.x, axes.y, axes.by)
    save_picture(draw_sweep_lines(lines, log_x=axes.log_x, log_y=axes.log_y), file, overwrite=overwrite)
    if not quiet and lines.averaged_over:
        note(f"each point is the mean of runs that differ in {values_words(lines.averaged_over)}.")
    if not quiet and lines.n_skipped:
        note(f"{count(lines.n_skipped, 'row')} of the table without a value skipped.")
    if prints_path:
        say(f"wrote {file}")
