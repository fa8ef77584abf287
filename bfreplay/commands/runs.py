"""``bfreplay runs``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import rich_click as click

from bfreplay.commands.inputs import json_text, say
from bfreplay.commands.option_flags import PLACE


@click.command()
@click.argument("folder", type=PLACE)
@click.option("--html", metavar="FILE", type=PLACE, help="Also write the list as a page; its name ends in .html.")
@click.option("--force", is_flag=True, help="Replace the page if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text, with every metric.")
def runs(folder: Path, html: Path | None, force: bool, as_json: bool) -> None:
    """List the runs in FOLDER with the options in which they differ and their headline metrics.

    FOLDER holds run folders at any depth, such as the runs of a sweep. Damaged folders are listed with their error.

    The page of --html sorts by any column. It links to each run folder, and to its report if it is RUN.html next to the
    run folder, or report.html in it.

    \b
    Examples:
      bfreplay runs .
      bfreplay runs sweep --html runs.html
    """
    from bfreplay.experiments.run_list import list_runs, render
    from bfreplay.report.page.templates import check_report

    if html is not None:
        check_report(html, overwrite=force)
    run_list = list_runs(folder)
    if html is not None:
        from bfreplay.report.page.run_list_page import write_run_list

        write_run_list(run_list, html, overwrite=force)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    say(json_text(run_list.to_json()) if as_json else render(run_list, width))
