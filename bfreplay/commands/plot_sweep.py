"""``bfreplay plot sweep``: the picture of a sweep's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bfreplay.commands.inputs import note, say
from bfreplay.wording import count

NAME = "sweep"
TITLE = "Metrics of a sweep against an option: --x, --y, --by"


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
    from bfreplay.report.figures.sweep_lines import SATURATED_ABOVE, swept_lines
    from bfreplay.report.figures.sweep_picture import draw_sweep_lines

    check_picture(file, overwrite=overwrite)
    sweep = SweepResult.load(folder)
    # the jobs of a run on a log need not be done at its end
    end_with_jobs = all(not {"cluster", "measure"}.isdisjoint(run.options) for run in sweep.record.runs.values())
    saturated_above = SATURATED_ABOVE if end_with_jobs else None
    found = swept_lines(sweep.table, axes.x, axes.y, axes.by, saturated_above=saturated_above)
    save_picture(draw_sweep_lines(found, log_x=axes.log_x, log_y=axes.log_y), file, overwrite=overwrite)
    if not quiet and found.averaged_over:
        varied = ", ".join(f"{name} ({n:,} values)" for name, n in found.averaged_over.items())
        note(f"each point is the mean of runs that differ in {varied}.")
    if not quiet and found.n_skipped:
        note(f"{count(found.n_skipped, 'row')} of the table without a value skipped.")
    if prints_path:
        say(f"wrote {file}")
