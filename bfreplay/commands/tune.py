"""``bfreplay tune``."""

from __future__ import annotations

from typing import Any

import rich_click as click

from bfreplay.commands.many_runs import answer_options, print_answer
from bfreplay.commands.option_flags import declared_options, option_lists, run_options
from bfreplay.experiments.study_options import TuningOptions
from bfreplay.options import REQUIRED


@click.command()
@run_options("events", "jobs", "curves", "allow_code", "window", events={"default": REQUIRED})
@option_lists(t_fwd="10,30,60,120,300,600,1200,auto", max_parallel="5,10,20,35,70, at most the number of jobs")
@option_lists(reserve="none: no trade-off", min_age="none")
@run_options("policy", "objective", "clear", "notice")
@click.option(
    "--unlimited-work/--own-work",
    default=True,
    help="Jobs that never end, all submitted at the start, to measure capacity; or the work of the jobs.",
)
@declared_options(TuningOptions)
@answer_options("tuning.json", "curves")
def tune(**options: Any) -> None:
    """Recommend --t-fwd and --max-parallel for JOBS on the idle nodes of EVENTS.

    With --reserve or --min-age it also weighs training against delay to batch jobs, and recommends the knee.

    Every combination is replayed on the first part of the log, which decides, and on the rest, which validates the
    recommendation on unseen days. With --out, the same command resumes an unfinished tuning.

    A log of more than 30,000 pool events has fewer default values: 30,120,600,auto and 10,35,70.

    \b
    Examples:
      bfreplay tune sample --jobs sample
      bfreplay tune log.parquet --jobs jobs.csv --out tuning
      bfreplay tune log.parquet --jobs jobs.csv --t-fwd 60,120,300,auto --max-parallel 10,35 --picture tuning.png
      bfreplay tune sample --jobs sample --t-fwd 120 --max-parallel 20 --reserve 0,2,5,10 --min-age 0s,2min,10min
      bfreplay tune log.parquet --jobs jobs.csv --own-work --window 2021-02-12 2021-02-19
    """
    from bfreplay.experiments.tuning.tuner import tune as run_tune
    from bfreplay.experiments.tuning.tuning_text import render
    from bfreplay.report.figures.tuning import TUNING as FIGURE
    from bfreplay.result_folders.records import TUNING

    print_answer(run_tune, TUNING, FIGURE, render, **options)
