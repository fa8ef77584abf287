"""``bfreplay compare``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import rich_click as click

from bfreplay.commands.backend_options import backend_options, solver_options
from bfreplay.commands.compare_runs import runs
from bfreplay.commands.inputs import check_failures_folder, or_bundled, restricted
from bfreplay.commands.lab_progress import lab_progress
from bfreplay.commands.log_options import allocation_options, events_argument, jobs_options, window_option
from bfreplay.commands.pictures import drawing
from bfreplay.commands.progress import warm_up_loops


@click.group()
def compare() -> None:
    """Compare finished runs, or formulations and solvers on the same decisions."""


compare.add_command(runs)


@compare.command()
@events_argument
@jobs_options
@click.option("--sample", type=click.IntRange(min=1), default=50, help="Decisions to take from the replay.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the choice of decisions.")
@click.option(
    "--formulations",
    metavar="NAME,...",
    default=None,
    help="Formulations to compare.  [default: all]",
)
@click.option(
    "--backends",
    metavar="NAME,...",
    default=None,
    help="MILP back ends to compare them on.  [default: all that work here]",
)
@click.option(
    "--formulation",
    "more_formulations",
    metavar="package.module:Class",
    multiple=True,
    help="A formulation of your own beside them; may be given several times.",
)
@click.option(
    "--backend",
    "more_backends",
    metavar="package.module:Class",
    multiple=True,
    help="A back end of your own beside them; may be given several times.",
)
@allocation_options
@window_option
@solver_options
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Lab folder to write.  [default: write nothing]"
)
@click.option("--force", is_flag=True, help="Replace the lab folder if it exists.")
@click.option("--no-pictures", is_flag=True, help="Draw no pictures into the lab folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the record (lab.json) instead of the summary.")
@click.option("--strict", is_flag=True, help="Exit with code 1, after writing everything, when any answer was wrong.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
def formulations(
    events: Path, jobs_file: Path, curves_file: Path | None, allow_code: bool, sample: int, seed: int,
    formulations: str | None, backends: str | None, more_formulations: tuple[str, ...], more_backends: tuple[str, ...],
    t_fwd_s: float, max_parallel: int, window: tuple[str, str] | None, unlimited_work: bool, out: Path | None,
    force: bool, no_pictures: bool, as_json: bool, strict: bool, quiet: bool, **of_backend: Any,
) -> None:  # fmt: skip
    """Tell which formulation on which solver wins on real decisions, by how much, and whether any answer was wrong.

    The JOBS are replayed on the idle nodes of EVENTS by BFTrainer's policy with exact decisions. A sample of its
    decisions, spread over small and large ones, is posed to every pair of a formulation and a back end, and to the
    exact solver, which also checks every answer. The word 'sample' stands for the bundled log, and for its jobs after
    --jobs.

    With --out, models and decisions of rejected answers are kept in OUT/failures, 5 of each pair and outcome;
    --save-failures names another folder, which gets all.

    \b
    Examples:
      bfreplay compare formulations sample --jobs sample --sample 20
      bfreplay compare formulations log.parquet --jobs jobs.toml --sample 200 --out lab
      bfreplay compare formulations log.parquet --jobs jobs.csv --formulations choices,counts_sos2 --backends cbc,highs
      bfreplay compare formulations sample --jobs sample --formulations choices --formulation mine:Mine --out lab
    """
    from bfreplay import load_events
    from bfreplay.campaigns.workloads import load_workload
    from bfreplay.experiments import LabSettings, compare_formulations
    from bfreplay.experiments.formulation_lab.text import render
    from bfreplay.result_folders import LAB, check_target, record_json

    if out is not None:
        check_target(out, LAB, overwrite=force)  # better said before the solvers work than after
    check_failures_folder(of_backend["save_failures"], out)
    pictures = None if no_pictures or out is None else drawing("draw_lab", quiet=quiet)
    options = backend_options(of_backend)
    save_failures = options.pop("save_failures")
    options["solver_seed"] = options.pop("seed")
    settings = LabSettings(sample, seed, t_fwd_s, max_parallel, unlimited_work, **options)
    log = restricted(load_events(or_bundled(events, "events")), window)
    jobs = load_workload(or_bundled(jobs_file, "jobs"), curves_file, allow_code=allow_code)
    warm_up_loops(quiet=quiet)
    with lab_progress(hidden=quiet) as progress:
        result = compare_formulations(
            log, jobs, settings,
            formulations=_names(formulations), backends=_names(backends),
            more_formulations=more_formulations, more_backends=more_backends, save_failures=save_failures,
            out=out, overwrite=force, pictures=pictures, progress=progress,
            session={"command": shlex.join(["bfreplay", *sys.argv[1:]])},
        )  # fmt: skip
    if as_json:
        click.echo(record_json(result.record, "the comparison"), nl=False)
    else:
        click.echo(render(result))
    if strict and any(row.wrong for row in result.record.summary):
        sys.exit(1)


def _names(listed: str | None) -> list[str] | None:
    """``"choices, counts_sos2"`` as a list."""
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]
