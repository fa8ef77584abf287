"""``bfreplay compare runs``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import rich_click as click

from bfreplay.commands.inputs import json_text
from bfreplay.commands.pictures import drawing


@click.command()
@click.argument("runs", metavar="RUN RUN...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--bin", metavar="LENGTH", default="1h", help="Bins of time to compare: 1h, 10min, 30s, 1d.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the bootstrap.")
@click.option("--resamples", type=click.IntRange(min=100), default=2_000, help="Draws of the bootstrap.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Comparison folder to write.  [default: write nothing]"
)
@click.option("--force", is_flag=True, help="Replace the comparison folder if it exists.")
@click.option("--no-pictures", is_flag=True, help="Draw no pictures into the comparison folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the record (comparison.json) instead of the text.")
@click.option("--quiet", is_flag=True, help="No notes.")
def runs(
    runs: tuple[Path, ...], out: Path | None, force: bool, no_pictures: bool, as_json: bool, quiet: bool, **asked: Any
) -> None:
    """Tell by how much finished runs differ from the first of them, how sure that is, and why.

    Each RUN is a folder that 'bfreplay replay --out' wrote. All must have replayed the same jobs in the same window of
    the same log; everything else may differ. They are compared hour by hour, with 95 % intervals from a block bootstrap
    over time, and job by job.

    \b
    Examples:
      bfreplay compare runs run-120 run-600
      bfreplay compare runs run-120 run-300 run-600 --out comparison
      bfreplay compare runs run-120 run-600 --bin 10min --json
    """
    from bfreplay.experiments import compare_runs
    from bfreplay.experiments.run_comparison.text import render
    from bfreplay.result_folders import COMPARISON, check_target

    if out is not None:
        check_target(out, COMPARISON, overwrite=force)
    pictures = None if no_pictures or out is None else drawing("draw_comparison", quiet=quiet)
    result = compare_runs(
        runs, **asked, out=out, overwrite=force, pictures=pictures,
        session={"command": shlex.join(["bfreplay", *sys.argv[1:]])},
    )  # fmt: skip
    click.echo(json_text(result.record.to_json()) if as_json else render(result))
