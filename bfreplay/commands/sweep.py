"""``bfreplay sweep``."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path

import rich_click as click

from bfreplay.commands.inputs import say
from bfreplay.commands.many_runs import check_workers, sweeping, worker_options
from bfreplay.commands.option_flags import PLACE, run_options


@click.command()
@click.argument("spec", type=PLACE)
@click.option("--out", type=PLACE, required=True, help="Folder of the sweep; resumes an unfinished sweep.")
@worker_options
@run_options("allow_code")
@click.option("--dry-run", is_flag=True, help="Check everything and list the runs, without running them.")
@click.option("--retry-failed", is_flag=True, help="Also repeat the runs that failed before.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON, not the summary.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
def sweep(
    spec: Path,
    out: Path,
    processes: int | None,
    scheduler: str | None,
    allow_code: bool,
    dry_run: bool,
    retry_failed: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Replay every combination of options in SPEC, and make one table of the results.

    SPEC is a TOML file: [run] has options of every run, named as in 'bfreplay replay'; [vary] has a list of values for
    each option that varies; [[runs]] adds single runs. Paths are relative to its folder. With [picture] (x, y, by, as
    for 'bfreplay plot sweep') the sweep's picture is also drawn.

    To resume an interrupted sweep, repeat the command. Runs are identified by their content, so an extended spec makes
    only the new runs. A failed run is a row of the table with its error; the exit code is then 1.

    \b
    Examples:
      bfreplay sweep sweep.toml --out sweep --dry-run
      bfreplay sweep sweep.toml --out sweep
      bfreplay sweep sweep.toml --out sweep --processes 8 --retry-failed
      bfreplay sweep sweep.toml --out sweep --scheduler tcp://login1:8786
    """
    from bfreplay.experiments.sweep.run_sweep import outlook, plan_of
    from bfreplay.experiments.sweep.run_sweep import sweep as run_sweep
    from bfreplay.experiments.sweep.store import Store
    from bfreplay.experiments.sweep.sweep_text import render, render_outlook

    check_workers(processes, scheduler)
    plan = plan_of(spec, allow_code=allow_code)
    if dry_run:
        say(render_outlook(plan, outlook(plan, Store(out.absolute()))))
        return

    def stop_notice() -> str:
        n_finished = len(outlook(plan, Store(out.absolute())).finished)
        progress_text = f"{n_finished:,} of {len(plan.runs):,} runs"
        return f"Stopped: {progress_text} are finished and kept. Repeat the command to resume."

    with sweeping(scheduler, quiet=quiet, stop_notice=stop_notice) as keywords:
        result = run_sweep(plan, out, processes=processes, scheduler=scheduler, retry_failed=retry_failed, **keywords)
    rows = result.results.to_pylist()
    if plan.spec.picture is not None:
        from bfreplay.commands.plot import SweepAxes, draw_sweep

        axes = SweepAxes(*plan.spec.picture)
        draw_sweep(out, out / "picture.svg", axes, overwrite=True, quiet=True, prints_path=not as_json)
    say(json.dumps(rows, indent=1, allow_nan=False, default=datetime.isoformat) if as_json else render(result))
    if result.n_failed:
        sys.exit(1)
