"""``bfreplay replay``."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import rich_click as click
from click.core import ParameterSource

from bfreplay.commands.backend_options import OF_BACKENDS, backend_options, solver_options
from bfreplay.commands.inputs import check_failures_folder, or_bundled, refuse_existing_early, restricted
from bfreplay.commands.log_options import allocation_options, events_argument, jobs_options, window_option
from bfreplay.commands.progress import replay_progress, warm_up_loops


@click.command()
@events_argument
@jobs_options
@click.option(
    "--policy",
    default="bftrainer",
    help="Who decides the node counts: 'bftrainer', 'equal-share', or package.module:Class.",
)
@click.option(
    "--objective",
    default=None,
    help="What is maximised: 'own' (each job's), 'throughput', 'speed-up', 'priority', 'max-min', 'deadline', ...; a "
    "weighted sum '0.7*throughput + 0.3*speed-up'; or package.module:function. See docs/objectives.md.  "
    "[default: own]",
)
@allocation_options
@click.option(
    "--learn-curves",
    type=click.Choice(["job", "model"]),
    default=None,
    help="The allocator does not know the curves: it learns them as jobs run, each job its own or all of a model "
    "together.",
)
@click.option(
    "--measurement-noise",
    type=click.FloatRange(min=0.0, max=1.0),
    default=0.0,
    help="Relative scatter of the rates that --learn-curves measures, 0.05 for 5 %.",
)
@click.option(
    "--solver",
    default="exact",
    help="'exact', a MILP back end such as 'cbc' or 'highs', or package.module:Class. See 'bfreplay solvers'.",
)
@click.option(
    "--formulation",
    default=None,
    help="MILP formulation for a back end (default: choices_reduced); 'published' also for the exact solver.",
)
@click.option(
    "--fallback",
    type=click.Choice(["exact", "keep"]),
    default="exact",
    help="When a back end fails: ask the exact solver, or keep all counts as the published program does.",
)
@solver_options
@click.option(
    "--semantics",
    type=click.Choice(["continuous", "published"]),
    default="continuous",
    help="Continuous time, or the published program's clock and accounting.",
)
@window_option
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    help="Of the random first map under --semantics published, and of --measurement-noise.",
)
@click.option(
    "--efficiency/--no-efficiency",
    "with_efficiency",
    default=True,
    help="Also replay the jobs on dedicated nodes and report U; and with known curves under --learn-curves.",
)
@click.option("--record-nodes", is_flag=True, help="Also write who held which node when (nodes.parquet).")
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Run folder to write.  [default: write nothing]"
)
@click.option("--force", is_flag=True, help="Replace the run folder if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the run's record as JSON instead of the summary.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
@click.pass_context
def replay(
    context: click.Context, /,
    events: Path, jobs_file: Path, curves_file: Path | None, policy: str, objective: str | None, t_fwd_s: float,
    max_parallel: int, learn_curves: Literal["job", "model"] | None, measurement_noise: float, solver: str,
    formulation: str | None, fallback: Literal["exact", "keep"], semantics: str, window: tuple[str, str] | None,
    unlimited_work: bool, seed: int, with_efficiency: bool, record_nodes: bool, out: Path | None, force: bool,
    as_json: bool, quiet: bool, **of_backend: Any,
) -> None:  # fmt: skip
    """Replay JOBS on the idle nodes of EVENTS and report what they got.

    EVENTS is a log of nodes becoming idle and being reclaimed: Parquet, CSV, or the published node-state matrix
    (.pkl, .tar.gz). The word 'sample' stands for the bundled log, and for its jobs after --jobs.

    JOBS is a job set, a campaign of trials (TOML, see 'bfreplay jobs make'), or package.module:Class of a job source.

    \b
    Examples:
      bfreplay replay sample --jobs sample
      bfreplay replay log.parquet --jobs jobs.toml --out run
      bfreplay replay log.parquet --jobs jobs.csv --t-fwd 300 --max-parallel 70
      bfreplay replay matrix.tar.gz --jobs bounds.pkl --curves curves.pkl
      bfreplay replay log.csv --jobs jobs.toml --window 2021-02-12 2021-02-14
      bfreplay replay sample --jobs sample --solver highs --save-failures failed
      bfreplay replay sample --jobs sample --objective max-min
      bfreplay replay sample --jobs sample --learn-curves model --measurement-noise 0.05
      bfreplay replay log.parquet --jobs campaign.toml --max-parallel 50 --out run
    """
    started = perf_counter()
    from bfreplay import load_events
    from bfreplay.campaigns.workloads import is_source_name, load_workload
    from bfreplay.milp.catalogue import solver_of
    from bfreplay.policies.catalogue import policy_of
    from bfreplay.policies.learning import LearningPolicy
    from bfreplay.replay import ReplaySettings, Semantics, replay_log
    from bfreplay.replay.summary_text import render

    if not quiet:
        _note_options_without_effect(context)
    refuse_existing_early(out, force)
    check_failures_folder(of_backend["save_failures"], out)
    events, jobs_file = or_bundled(events, "events"), or_bundled(jobs_file, "jobs")
    log = restricted(load_events(events), window)
    jobs = load_workload(jobs_file, curves_file)
    files = {
        name: str(file if name == "jobs" and is_source_name(file) else file.absolute())
        for name, file in (("events", events), ("jobs", jobs_file), ("curves", curves_file))
        if file is not None
    }
    made = solver_of(solver, formulation, fallback=fallback, **backend_options(of_backend))
    chosen = policy_of(policy, t_fwd_s=t_fwd_s, solver=made, objective=objective)
    if learn_curves is not None:
        chosen = LearningPolicy(chosen, share=learn_curves, noise=measurement_noise, seed=seed)
    loaded_s = perf_counter() - started
    warm_up_loops(quiet=quiet)
    with replay_progress(log.window_start_us, log.window_end_us, hidden=quiet) as progress:
        result = replay_log(
            log, jobs, chosen,
            ReplaySettings(max_parallel, Semantics(semantics), seed, record_nodes),
            unlimited_work=unlimited_work, with_efficiency=with_efficiency, dedicated_t_fwd_s=t_fwd_s,
            with_tables=False, out=out, overwrite=force, progress=progress,
            session={
                "command": shlex.join(["bfreplay", *sys.argv[1:]]),
                "load_s": loaded_s,
                "files": files,
            },
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps({**result.record, "session": result.session}, indent=1, sort_keys=True, allow_nan=False))
    else:
        click.echo(render(result))


def _note_options_without_effect(context: click.Context) -> None:
    """Say which of the options that the user gave change nothing."""
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    params = context.params
    without_effect = [
        (
            params["policy"] == "equal-share",
            "with --policy equal-share",
            ("solver", "formulation", "fallback", *OF_BACKENDS),
        ),
        (params["solver"] == "exact", "with --solver exact", ("fallback", *OF_BACKENDS)),
        (
            params["semantics"] == "continuous" and not params["measurement_noise"],
            "with --semantics continuous and without --measurement-noise",
            ("seed",),
        ),
        (params["learn_curves"] is None, "without --learn-curves", ("measurement_noise",)),
        (params["out"] is None, "without --out", ("force", "record_nodes")),
    ]
    for holds, when, names in without_effect:
        for name in names:
            if holds and name in given:
                given.discard(name)
                option = next(p.opts[0] for p in context.command.params if p.name == name)
                click.echo(f"Note: {option} has no effect {when}.", err=True)
