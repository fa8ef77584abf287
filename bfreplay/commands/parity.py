"""``bfreplay parity``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from bfreplay.commands.inputs import json_text, say
from bfreplay.commands.option_flags import PLACE
from bfreplay.commands.progress import BAR, terminal_bar, warm_up_loops

if TYPE_CHECKING:
    from rich.progress import Progress


@click.command()
@click.argument("systems", nargs=-1, metavar="[SYSTEM]...")
@click.option(
    "--data",
    type=PLACE,
    metavar="FOLDER",
    show_default="the variable BFREPLAY_SHARED, or ../shared beside the checkout",
    help="Folder of the recorded results and their inputs: golden/SYSTEM and data/SYSTEM.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Compare only a part, in less than a minute: all recorded single decisions, shares and plans, and these whole "
    "runs: two of BFTrainer's seven and none of the Summit log, four of Gavel's seven scenarios, two of Shockwave's 15 "
    "published simulations and one of its three sets of further runs, ElasticFlow's runs of at most 25 jobs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--markdown", is_flag=True, help="Print Markdown instead, without seconds, as in the documentation.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def parity(
    systems: tuple[str, ...], data: Path | None, quick: bool, as_json: bool, markdown: bool, quiet: bool
) -> None:
    """Compare bfreplay with recorded runs of the published systems.

    SYSTEM is bftrainer, gavel, shockwave or elasticflow; by default all that have data. Recorded decisions are solved
    again and recorded runs replayed, each result is compared with its record, and differences are counted. Differences
    with a known reason are named. Any other difference makes the exit code 1.

    \b
    Examples:
      bfreplay parity
      bfreplay parity --quick
      bfreplay parity gavel shockwave --data ../shared
      bfreplay parity --json > parity.json
    """
    from bfreplay.experiments.parity.check import data_folder
    from bfreplay.experiments.parity.check import parity as parity_of
    from bfreplay.experiments.parity.parity_text import render, to_json, to_markdown

    folder = data_folder(data)
    warm_up_loops(quiet=quiet)
    with _progress(hidden=quiet) as progress:
        results = parity_of(folder, systems, quick=quick, progress=progress)
    say(json_text(to_json(results)) if as_json else to_markdown(results) if markdown else render(results))
    if any(each.has_failed for each in results):
        sys.exit(1)


@terminal_bar(
    "Repeating {task.fields[system]}", BAR, "{task.completed} checks", "{task.fields[last]}", "TimeElapsedColumn"
)
def _progress(bar: Progress) -> Iterator[Callable[[str, str], None]]:
    """Progress bar on a terminal's stderr: system, number of checks done, and the last one."""
    task = bar.add_task("parity", total=None, system="", last="")

    def update(system: str, last: str) -> None:
        bar.update(task, system=system, last=last, advance=1 if last else 0)

    yield update
