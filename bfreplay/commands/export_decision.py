"""``bfreplay export-decision``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from bfreplay.commands.inputs import note, say
from bfreplay.commands.option_flags import PLACE, run_inputs
from bfreplay.commands.progress import replay_progress, warm_up_loops


@click.command("export-decision")
@click.argument("run", type=PLACE)
@click.option(
    "--decision",
    "decisions",
    metavar="N",
    type=int,
    multiple=True,
    help="Number of the decision: its row in decisions.parquet, from 0; repeatable.",
)
@click.option(
    "--at",
    metavar="TIME",
    help="Decision in force at this time: ISO-8601 (UTC), epoch seconds, or +SECONDS after the start of the window.",
)
@click.option("--out", type=PLACE, required=True, help="Folder to write, made if missing.")
@click.option(
    "--formulation",
    "formulations",
    metavar="NAME",
    multiple=True,
    default=("choices",),
    help="Formulation to write as MPS and LP: a name, package.module:Class, or 'all'; repeatable.",
)
@run_inputs(poses="Forward-looking time of the exported decision.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
def export_decision(
    run: Path,
    decisions: tuple[int, ...],
    at: str | None,
    out: Path,
    formulations: tuple[str, ...],
    force: bool,
    **options: Any,
) -> None:
    """Write decisions of the saved RUN as JSON, MPS and LP, for other solvers and programs.

    The run is replayed again up to the last of them with the recorded counts, without a solver, and checked against the
    record.

    \b
    Examples:
      bfreplay export-decision run --decision 1234 --out decisions
      bfreplay export-decision run --decision 77 --decision 78 --out decisions
      bfreplay export-decision run --at 2021-02-12T08:00 --out decisions
      bfreplay export-decision run --at +3600 --out decisions
      bfreplay export-decision run --decision 0 --formulation all --out dir
    """
    if bool(decisions) == (at is not None):
        raise click.UsageError("Give either --decision N (repeatable) or --at TIME.")
    from bfreplay.datasets.named_inputs import time_in_window
    from bfreplay.milp.formulations import FORMULATIONS, formulation_of
    from bfreplay.milp.formulations.formulation import needs_constant_losses
    from bfreplay.runs import RunResult
    from bfreplay.runs.decision_files import check_export, export_decisions
    from bfreplay.runs.saved_decisions import decision_at, recorded_decisions

    result = RunResult.load(run)
    config = result.record.config
    numbers = list(dict.fromkeys(decisions))
    if at is not None:
        numbers = [decision_at(result, time_in_window(at, config.window_start_us, "--at"))]
    names = [
        name
        for formulation in formulations
        for name in (FORMULATIONS.names() if formulation == "all" else [formulation])
    ]
    check_export(out, numbers, names, overwrite=force)
    quiet = options.pop("quiet")
    warm_up_loops(quiet=quiet)
    with replay_progress(config.window_start_us, config.window_end_us, hidden=quiet) as progress:
        exported = recorded_decisions(result, numbers, **options, progress=progress)
    if "all" in formulations and not all(decision.problem.has_constant_losses for decision in exported):
        refusing = [name for name in names if needs_constant_losses(formulation_of(name)) and name not in formulations]
        names = [name for name in names if name not in refusing]
        note(f"losses depend on the new count, so there is no model of {', '.join(refusing)}")
    for file in export_decisions(exported, out, names, overwrite=force):
        say(file)
