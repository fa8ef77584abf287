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


_TIMING_RANGE = (2, 6)
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
def regret(runs: tuple[Path, ...], as_json: bool, quiet: bool, **options: Any) -> None:
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
        regrets = regret_of(runs, **options, progress=progress)
    say(json_text([run_regret.to_json() for run_regret in regrets]) if as_json else render(regrets))


@terminal_bar("Bound {task.fields[number]}", BAR, SHARE, TIME_LEFT, is_piped=True)
def _progress(bar: Progress) -> Iterator[Callable[[int, int, int, int], None]]:
    """Print an upper estimate of the time; then show a bar on stderr: evaluations of the search of each bound."""
    from bfreplay.wording import count, duration

    task = bar.add_task("bound", total=None, number="")
    begin_s = 0.0

    def update(n_done: int, n_bounds: int, evaluation: int, n_evaluations: int) -> None:
        nonlocal begin_s
        position = n_done * n_evaluations + evaluation
        if position == _TIMING_RANGE[0]:
            begin_s = perf_counter()
        if position == _TIMING_RANGE[1]:
            remaining_s = (
                (perf_counter() - begin_s)
                / (_TIMING_RANGE[1] - _TIMING_RANGE[0])
                * (n_bounds * n_evaluations - position)
            )
            if remaining_s >= 1:
                say(f"{count(n_bounds, 'bound')} to find: at most about {duration(remaining_s)}", err=True)
        bar.update(task, total=n_bounds * n_evaluations, completed=position, number=f"{n_done + 1} of {n_bounds}")

    yield update
