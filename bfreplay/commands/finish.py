"""``bfreplay finish``."""

from __future__ import annotations

from typing import Any

import rich_click as click

from bfreplay.commands.many_runs import answer_options, print_answer
from bfreplay.commands.option_flags import declared_options, run_options, time_zone_option
from bfreplay.experiments.study_options import FinishOptions
from bfreplay.options import REQUIRED, Whole


@click.command()
@run_options("events", "jobs", "curves", "allow_code", "window", "node_type", events={"default": REQUIRED})
@click.option("--against", type=click.Path(), metavar="JOBS", help="Other jobs, compared from the same starts.")
@declared_options(FinishOptions, starts={"check": Whole(1, 10_000)})
@run_options("policy", "objective", "t_fwd", "max_parallel", max_parallel={"usual": "10"})
@time_zone_option()
@answer_options("finish.json", "times")
def finish(**options: Any) -> None:
    """Say when JOBS are all done on the idle nodes of EVENTS, and on how many dedicated nodes that would be so soon.

    JOBS, a job set or a campaign, are replayed from many starts: one at random in each of --starts equal parts of the
    log. A start that is unfinished when the log ends counts with the time that it had. Dedicated nodes have the same
    policy and limits. With --out, the same command resumes an unfinished one, and 'bfreplay report' makes a page.

    \b
    Examples:
      bfreplay finish sample --jobs sample
      bfreplay finish log.parquet --jobs search.toml --dedicated 32 --out finish
      bfreplay finish log.parquet --jobs asha.toml --against median.toml
      bfreplay finish log.parquet --jobs jobs.csv --max-parallel 35 --starts 200 --picture finish.png
    """
    from bfreplay.experiments.finish_text import render
    from bfreplay.experiments.finish_times import finish as run_finish
    from bfreplay.report.figures.finish import FINISH as FIGURE
    from bfreplay.result_folders.records import FINISH

    print_answer(run_finish, FINISH, FIGURE, render, **options)
