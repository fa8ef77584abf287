"""``bfreplay replay``: its flags for output; the options of a run are in ``declared_options``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from bfreplay import defaults
from bfreplay.commands.inputs import check_failures_folder, command_line, json_text, note
from bfreplay.commands.option_flags import PLACE, RARE, note_options_without_effect, run_options, save_failures_option
from bfreplay.commands.progress import progress_of, warm_up_loops
from bfreplay.experiments.declared_options import OUTPUT
from bfreplay.experiments.run_options import RunOptions

if TYPE_CHECKING:
    from bfreplay.policies import Policy


@click.command()
@run_options()
@save_failures_option(RARE)
@click.option("--out", type=PLACE, panel=OUTPUT, help="Run folder to write.  [default: none]")
@click.option("--force", is_flag=True, panel=OUTPUT, help="Replace the run folder if it exists.")
@click.option("--json", "as_json", is_flag=True, panel=OUTPUT, help="Print the run's record as JSON, not the summary.")
@click.option("--quiet", is_flag=True, panel=OUTPUT, help="No progress bar, no notes.")
@click.pass_context
def replay(
    context: click.Context, /, save_failures: Path | None, out: Path | None, force: bool, as_json: bool, quiet: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Replay JOBS on the idle nodes of EVENTS, or on a dedicated CLUSTER, and print a summary.

    EVENTS is a log of nodes that become idle and are reclaimed: Parquet, CSV, or the published node-state matrix
    (.pkl, .tar.gz). 'sample' is the bundled log; '--jobs sample' is its jobs.

    JOBS is a job set, a campaign of trials (TOML, see 'bfreplay jobs make'), a trace or generated workload of
    Gavel, Shockwave or ElasticFlow, or package.module:Class of a job source.

    With --cluster all nodes are available throughout, and the run ends when its jobs are done. U and the upper bound
    are not computed for a cluster.

    \b
    Examples:
      bfreplay replay sample --jobs sample
      bfreplay replay log.parquet --jobs jobs.toml --out run
      bfreplay replay log.parquet --jobs jobs.csv --t-fwd 300 --max-parallel 70
      bfreplay replay matrix.tar.gz --jobs bounds.pkl --curves curves.pkl
      bfreplay replay log.csv --jobs jobs.toml --window 2021-02-12 2021-02-14
      bfreplay replay sample --jobs sample --solver highs --save-failures failed
      bfreplay replay sample --jobs sample --objective max-min
      bfreplay replay sample --jobs sample --learn-curves model
      bfreplay replay sample --jobs sample --t-fwd auto
      bfreplay replay sample --jobs sample --policy "look-ahead(events=3)"
      bfreplay replay log.parquet --jobs campaign.toml --max-parallel 50
      bfreplay replay --cluster v100=36,p100=36,k80=36 --jobs jobs.trace \\
        --curves throughputs.json --policy gavel.fifo
      bfreplay replay --cluster v100=8,k80=8 --curves throughputs.json \\
        --jobs "gavel(n=100, jobs_per_hour=2)" --out run --fairness \\
        --policy gavel.max_min_fairness_perf --round 360
      bfreplay replay log.parquet --node-type v100 --jobs jobs.trace \\
        --curves throughputs.json --policy gavel.fifo_perf
    """
    from bfreplay.result_folders.records import RUN
    from bfreplay.result_folders.writing import check_target
    from bfreplay.runs.summary_text import render

    options_of_run = RunOptions(**options)
    if not quiet:
        note_options_without_effect(context, options_of_run)
    if out is not None:
        check_target(out, RUN, overwrite=force)  # refuse before the replay, not after
    check_failures_folder(save_failures, out)
    run = options_of_run.prepare(save_failures=save_failures)
    types = run.log.node_types.names
    others = [node_type for node_type in run.settings.prices if node_type not in types]
    if others and not quiet:
        note(f"--prices has types without nodes: {', '.join(others)}. Node types: {', '.join(types)}.")
    warm_up_loops(quiet=quiet, policy=_policy_to_compile(options_of_run))
    with progress_of(run, hidden=quiet) as progress:
        result = run.replay(out, overwrite=force, progress=progress, session=command_line())
    document = result.record.to_json() | {"session": result.session.to_json()}
    click.echo(json_text(document) if as_json else render(result))


def _policy_to_compile(run: RunOptions) -> Policy | None:
    """Return a policy with its own compiled loops, to warm up; ``None`` where BFTrainer's are enough."""
    from bfreplay.milp.exact import ExactSolver
    from bfreplay.policies import BFTrainerPolicy
    from bfreplay.policies.catalogue import capabilities_of, policy_of

    warm_up = capabilities_of(run.policy).warm_up
    if warm_up is not None:
        return policy_of(warm_up, t_fwd_s=defaults.T_FWD_S, solver=ExactSolver())
    return BFTrainerPolicy(run.t_fwd) if isinstance(run.t_fwd, str) else None
