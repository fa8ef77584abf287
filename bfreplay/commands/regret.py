"""``bfreplay regret``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import rich_click as click

from bfreplay.commands.inputs import json_text, say
from bfreplay.commands.option_flags import PLACE, run_inputs
from bfreplay.commands.progress import BAR, SHARE, TIME_LEFT, terminal_bar, warm_up_loops

if TYPE_CHECKING:
    from rich.progress import Progress


_TIMED = (2, 6)
"""Evaluations between which the time is measured; the first ones load code."""


@click.command()
@click.argument("runs", type=PLACE, nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--effort",
    type=click.Choice(["quick", "thorough"]),
    default="thorough",
    help="'quick': the bound in each run. 'thorough': search for a lower one, about a minute for a log of weeks.",
)
@click.option("--evaluations", type=click.IntRange(min=3), default=350, help="Most evaluations of a thorough search.")
@run_inputs("runs'")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def regret(runs: tuple[Path, ...], as_json: bool, quiet: bool, **asked: Any) -> None:
    """Compare each RUN with a proven upper bound on the samples of any policy.

    No policy, forecast or solver can exceed the bound, even with full knowledge of the future; the distance of a run
    from it is the most that was left to gain. For unlimited work the bound includes the cost of rescaling; for jobs
    that end it is a fluid schedule with free rescaling, and a lower bound on the finish.

    \b
    Examples:
      bfreplay regret run
      bfreplay regret run-60 run-120 run-300 --effort quick
      bfreplay regret sweep/runs/* --json
    """
    from bfreplay.experiments.regret import regret as regret_of
    from bfreplay.experiments.regret import render

    warm_up_loops(quiet=quiet)
    with _progress(hidden=quiet) as progress:
        found = regret_of(runs, **asked, progress=progress)
    say(json_text([each.to_json() for each in found]) if as_json else render(found))


@terminal_bar("Bound {task.fields[number]}", BAR, SHARE, TIME_LEFT, piped=True)
def _progress(bar: Progress) -> Iterator[Callable[[int, int, int, int], None]]:
    """Print an upper estimate of the time; then show a bar on stderr: evaluations of the search of each bound."""
    from bfreplay.wording import count, duration

    task = bar.add_task("bound", total=None, number="")
    begun = 0.0

    def update(done: int, n_bounds: int, evaluation: int, most: int) -> None:
        nonlocal begun
        at = done * most + evaluation
        if at == _TIMED[0]:
            begun = perf_counter()
        if at == _TIMED[1]:
            left_s = (perf_counter() - begun) / (_TIMED[1] - _TIMED[0]) * (n_bounds * most - at)
            if left_s >= 1:
                say(f"{count(n_bounds, 'bound')} to find: at most about {duration(left_s)}", err=True)
        bar.update(task, total=n_bounds * most, completed=at, number=f"{done + 1} of {n_bounds}")

    yield update
