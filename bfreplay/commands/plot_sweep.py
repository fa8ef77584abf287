"""``bfreplay plot sweep``: the picture of a sweep's table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from bfreplay.commands.inputs import note
from bfreplay.wording import count

NAME = "sweep"
TITLE = "Metrics of a sweep against what varies: --x, --y, --by"


def draw_sweep(
    folder: Path, file: Path, x: str, y: Sequence[str], by: Sequence[str], *, log_x: bool | None, log_y: bool | None,
    overwrite: bool, quiet: bool, says_so: bool = True,
) -> None:  # fmt: skip
    """Draw a complete sweep into ``file``; arguments as those of ``swept_lines`` and ``draw_swept``.

    Raises
    ------
    InputError, OutputExistsError
        It is no complete sweep, has no such column, or the picture cannot be written.
    """
    from bfreplay.experiments.sweep import SweepResult
    from bfreplay.report.figures.picture_files import check_picture, save_picture
    from bfreplay.report.figures.sweep_lines import SATURATED_ABOVE, swept_lines
    from bfreplay.report.figures.sweep_picture import draw_swept

    check_picture(file, overwrite=overwrite)
    sweep = SweepResult.load(folder)
    # the jobs of a run on a log need not be done at its end
    end_with_jobs = all(not {"cluster", "measure"}.isdisjoint(run.options) for run in sweep.record.runs.values())
    found = swept_lines(sweep.table, x, y, by, saturated_above=SATURATED_ABOVE if end_with_jobs else None)
    save_picture(draw_swept(found, log_x=log_x, log_y=log_y), file, overwrite=overwrite)
    if not quiet and found.averaged_over:
        varied = ", ".join(f"{name} ({n:,} values)" for name, n in found.averaged_over.items())
        note(f"a point is the mean of all runs that differ in {varied}.")
    if not quiet and found.n_left_out:
        note(f"{count(found.n_left_out, 'row')} of the table without a value left out.")
    if says_so:
        click.echo(f"wrote {file}")
