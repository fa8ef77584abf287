"""``bfreplay compare``: compares finished runs, two logs of one machine, rules of products, or formulations."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import rich_click as click

from bfreplay import defaults
from bfreplay.commands.inputs import check_failures_folder, command_line, drawing, json_text, say, split_names
from bfreplay.commands.many_runs import answer_options, print_answer
from bfreplay.commands.option_flags import (
    MILP_OPTIONS,
    PLACE,
    declared_options,
    run_options,
    save_failures_option,
)
from bfreplay.commands.progress import announce_compiling, lab_progress, warm_up_loops
from bfreplay.experiments.declared_options import OPTIONS
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.study_options import Bootstrap, SampleOptions
from bfreplay.options import REQUIRED
from bfreplay.systems.products import SYSTEM


@click.command()
@click.argument("runs", metavar="RUN RUN...", type=PLACE, nargs=-1, required=True)
@click.option("--bin", metavar="LENGTH", default="1h", help="Length of the bins of time: 1h, 10min, 30s, 1d.")
@declared_options(Bootstrap)
@click.option("--out", type=PLACE, help="Comparison folder to write.  [default: none]")
@click.option("--force", is_flag=True, help="Replace the comparison folder if it exists.")
@click.option("--no-pictures", is_flag=True, help="Do not draw pictures into the comparison folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the record (comparison.json), not the text.")
@click.option("--quiet", is_flag=True, help="No notes.")
def runs(
    runs: tuple[Path, ...], out: Path | None, force: bool, no_pictures: bool, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Compare finished runs with the first one: differences, their confidence intervals, and their causes.

    Each RUN is a folder written by 'bfreplay replay --out'. All runs must have the same jobs and the same window of the
    same log. A run on a cluster can be compared with one on a log, or on another cluster, if the jobs are submitted at
    the same times after the start. The comparison is hour by hour, with 95 % intervals from a block bootstrap over
    time, and job by job.

    \b
    Examples:
      bfreplay compare runs run-120 run-600
      bfreplay compare runs run-120 run-300 run-600 --out comparison
      bfreplay compare runs run-120 run-600 --bin 10min --json
    """
    from bfreplay.experiments.run_comparison import comparison
    from bfreplay.experiments.run_comparison.comparison import render
    from bfreplay.result_folders.records import COMPARISON
    from bfreplay.result_folders.writing import check_target

    if out is not None:
        check_target(out, COMPARISON, overwrite=force)
    pictures = None if no_pictures or out is None else drawing("draw_comparison", quiet=quiet)
    result = comparison.compare(*runs, **options, out=out, overwrite=force, pictures=pictures, session=command_line())
    say(json_text(result.record.to_json()) if as_json else render(result))


class _Compare(click.RichGroup):
    """Tells who leaves ``runs`` or ``logs`` out what is missing."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the subcommand."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if not Path(args[0]).exists():
                raise
            kind = "runs" if Path(args[0]).is_dir() else "logs"
            suggestion = f"{ctx.command_path} {kind} {shlex.join(args)}"
            raise click.UsageError(f"{error.format_message()} Did you mean: {suggestion}?", ctx) from error


@click.group(cls=_Compare)
def compare() -> None:
    """Compare finished runs, two logs of one machine, elasticity rules of products, or formulations and solvers."""


compare.add_command(runs)


@compare.command()
@click.argument("a", metavar="A", type=PLACE)
@click.argument("b", metavar="B", type=PLACE)
@click.option(
    "--tolerance",
    metavar="TIME",
    default=defaults.LOG_TOLERANCE,
    help="Longest difference between the times of one change in both logs that counts as polling: 2s, 1min.",
)
@run_options("window")
@click.option("--nodes", metavar="N", type=int, default=defaults.WORST_NODES, help="Nodes to list that differ most.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def logs(a: Path, b: Path, as_json: bool, **options: Any) -> None:
    """Compare two logs of one machine, node by node: agreement on idle nodes, and what differs, by rule.

    A and B are logs of node states as 'bfreplay describe' takes them: one followed and one made from accounting, say,
    or two imports of one site. They are compared over the time and the nodes that both have.

    A tolerance should be the interval between polls, and another second where a log has whole seconds.

    \b
    Examples:
      bfreplay compare logs followed.csv accounted.parquet
      bfreplay compare logs followed.csv accounted.parquet --tolerance 31s --nodes 20
      bfreplay compare logs a.parquet b.parquet --window 2024-07-01 2024-07-02 --json
    """
    from bfreplay import compare_logs
    from bfreplay.datasets.agreement.comparison_text import render

    announce_compiling(quiet=False)
    result = compare_logs(a, b, **options)
    say(json_text(result.to_dict()) if as_json else render(result), nl=as_json)


@compare.command()
@run_options("events", "jobs", "curves", "allow_code", "window", events={"default": REQUIRED})
@click.option(
    "--rule",
    "rules",
    type=click.Choice([*SYSTEM.policies]),
    multiple=True,
    help="Rule to replay; repeatable.  [default: all]",
)
@click.option("--yours", metavar="'RULE(key=value)'", help="Rule with the settings that your site runs now.")
@click.option(
    "--count",
    type=click.Choice(["speed-up", "samples"]),
    default="speed-up",
    help="What counts: rates over those on one node, or samples, of which fast models make the most.",
)
@run_options("max_parallel", "batch_jobs", "clear", "notice", max_parallel={"default": defaults.MAX_PARALLEL})
@run_options(
    *("restart_cost", "work_saved_every", "saves"),
    restart_cost={"usual": f"{defaults.RESTART_S:g}; 10 of horovod"},
    work_saved_every={"usual": f"{defaults.WORK_SAVED_EVERY_S:g}"},
    saves={"usual": "never; on-resize of horovod"},
)
@answer_options("rules.json", "shares")
def rules(**options: Any) -> None:
    """Compare the elasticity rules of products on the idle nodes of EVENTS, with settings that a site could choose.

    The first --max-parallel JOBS are replayed without end under every rule and setting, and under policies that know
    curves and costs; shares are of the upper bound with free rescaling. With --out, the same command resumes an
    unfinished one, and 'bfreplay report' makes a page.

    No product publishes how long a restart takes or has a default checkpoint interval: give your own.

    \b
    Examples:
      bfreplay compare rules sample --jobs sample
      bfreplay compare rules sample --jobs sample --yours "products.ray(interval_s=120)" --out rules
      bfreplay compare rules log.parquet --jobs jobs.csv --rule scavenger --rule ray --picture rules.png
      bfreplay compare rules log.parquet --jobs jobs.csv --restart-cost 30 --work-saved-every 5min
    """
    from bfreplay.experiments.rule_comparison import compare_rules
    from bfreplay.report.figures.rules import RULES as FIGURE
    from bfreplay.result_folders.records import RULES
    from bfreplay.runs.rule_text import render

    print_answer(compare_rules, RULES, FIGURE, lambda result: render(result.record, result.folder), **options)


@compare.command()
@run_options("events", "jobs", "curves", "allow_code", events={"default": REQUIRED})
@declared_options(SampleOptions)
@click.option("--formulations", metavar="NAME,...", help="Built-in formulations to compare.  [default: all]")
@click.option(
    "--backends", metavar="NAME,...", help="MILP back ends to compare them on.  [default: all that work here]"
)
@click.option(
    "--formulation",
    "more_formulations",
    metavar="package.module:Class",
    multiple=True,
    help="Formulation of your own to compare with those of --formulations; repeatable.",
)
@click.option(
    "--backend",
    "more_backends",
    metavar="package.module:Class",
    multiple=True,
    help="Back end of your own to compare with those of --backends; repeatable.",
)
@run_options("t_fwd", "max_parallel", "unlimited_work", "window", max_parallel={"default": defaults.MAX_PARALLEL})
@run_options(*MILP_OPTIONS)
@save_failures_option()
@click.option("--out", type=PLACE, help="Lab folder to write.  [default: none]")
@click.option("--force", is_flag=True, help="Replace the lab folder if it exists.")
@click.option("--no-pictures", is_flag=True, help="Do not draw pictures into the lab folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the record (lab.json), not the summary.")
@click.option("--strict", is_flag=True, help="Exit with code 1 if any answer was wrong, after writing everything.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
def formulations(
    sample: int, seed: int, out: Path | None, force: bool, as_json: bool, strict: bool, quiet: bool, **options: Any
) -> None:
    """Compare formulations and back ends on real decisions: speed, proofs, and wrong answers.

    JOBS are replayed on the idle nodes of EVENTS with BFTrainer's policy and exact decisions. A stratified sample of
    the decisions is solved by every pair of a formulation and a back end, and by the exact solver, which also checks
    every answer. 'sample' is the bundled log; '--jobs sample' is its jobs.

    With --out, models and decisions of rejected answers are kept in OUT/failures, 5 per pair and outcome;
    --save-failures names another folder, which gets all of them.

    \b
    Examples:
      bfreplay compare formulations sample --jobs sample --sample 20
      bfreplay compare formulations log.parquet --jobs jobs.toml \\
        --sample 200 --out lab
      bfreplay compare formulations log.parquet --jobs jobs.csv \\
        --formulations choices,counts_sos2 --backends cbc,highs
      bfreplay compare formulations sample --jobs sample --out lab \\
        --formulations choices --formulation mine:Mine
    """
    from bfreplay.experiments import LabSettings, compare_formulations
    from bfreplay.experiments.formulation_lab.lab_text import render
    from bfreplay.experiments.prepared_run import load_jobs_of, load_log, max_parallel_of, solver_keywords
    from bfreplay.result_folders.records import LAB
    from bfreplay.result_folders.writing import check_target

    if out is not None:
        check_target(out, LAB, overwrite=force)  # refuse before the solvers work, not after
    check_failures_folder(options["save_failures"], out)
    for option in ("formulations", "backends"):
        options[option] = None if options[option] is None else split_names(options[option])
    pictures = None if options.pop("no_pictures") or out is None else drawing("draw_lab", quiet=quiet)
    decision_options = RunOptions(**{option: options.pop(option) for option in OPTIONS if option in options})
    of_solver = solver_keywords(decision_options)
    del of_solver["fallback"]
    log, jobs = load_log(decision_options), load_jobs_of(decision_options)
    settings = LabSettings(
        sample,
        seed,
        t_fwd_s=decision_options.t_fwd,
        max_parallel=max_parallel_of(decision_options, log, jobs),
        unlimited_work=decision_options.unlimited_work,
        solver_seed=of_solver.pop("seed"),
        **of_solver,
    )
    warm_up_loops(quiet=quiet, is_waiting=True)
    with lab_progress(hidden=quiet) as progress:
        result = compare_formulations(
            log,
            jobs,
            settings,
            **options,
            out=out,
            overwrite=force,
            pictures=pictures,
            progress=progress,
            session=command_line(),
        )
    say(json_text(result.record.to_json()) if as_json else render(result))
    if strict and any(summary_row.wrong for summary_row in result.record.summary):
        sys.exit(1)
