"""``bfreplay replay``."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import rich_click as click

from bfreplay import defaults
from bfreplay.commands.backend_options import solver_options
from bfreplay.commands.inputs import check_failures_folder, refuse_existing_early
from bfreplay.commands.log_options import (
    allocation_options_with_cluster,
    jobs_options,
    measure_options,
    nodes_options,
    window_option,
)
from bfreplay.commands.progress import progress_of, warm_up_loops
from bfreplay.commands.without_effect import note_options_without_effect, note_prices_of_no_node

if TYPE_CHECKING:
    from bfreplay.policies import Policy


@click.command()
@nodes_options
@jobs_options
@click.option(
    "--policy",
    default="bftrainer",
    help="Who decides the node counts: 'bftrainer'; 'look-ahead', which expects what it has seen; 'equal-share'; "
    "'foresight(events=10)', which is shown the log; one of Gavel's, such as 'gavel.max_min_fairness_perf'; or "
    "package.module:Class. Parameters in brackets.",
)
@click.option(
    "--round",
    "round_s",
    metavar="SECONDS",
    type=float,
    default=None,
    help="Length of a round, for policies that decide in rounds.  [default: the policy's own; 360 of Gavel's]",
)
@click.option(
    "--objective",
    default=None,
    help="What is maximised: 'own' (each job's), 'throughput', 'speed-up', 'priority', 'max-min', 'deadline', ...; a "
    "weighted sum '0.7*throughput + 0.3*speed-up'; or package.module:function. See docs/objectives.md.  "
    "[default: own]",
)
@allocation_options_with_cluster
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
@measure_options
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
@click.option(
    "--bound/--no-bound",
    "with_bound",
    default=True,
    help="Also report how much anyone could have processed, and which share of it the run has.",
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
    events: Path | None, cluster: str | None, node_type: str | None, jobs_file: Path, curves_file: Path | None,
    allow_code: bool, policy: str, round_s: float | None, objective: str | None, t_fwd_s: float,
    max_parallel: int | None, learn_curves: Literal["job", "model"] | None, measurement_noise: float, solver: str,
    formulation: str | None, fallback: Literal["exact", "keep"], semantics: str, window: tuple[str, str] | None,
    measure: str | None, prices: str | None, fairness: bool, unlimited_work: bool, seed: int, with_efficiency: bool,
    with_bound: bool, record_nodes: bool, out: Path | None, force: bool, as_json: bool, quiet: bool,
    **of_backend: Any,
) -> None:  # fmt: skip
    """Replay JOBS on the idle nodes of EVENTS, or on a CLUSTER of one's own, and report what they got.

    EVENTS is a log of nodes becoming idle and being reclaimed: Parquet, CSV, or the published node-state matrix
    (.pkl, .tar.gz). The word 'sample' stands for the bundled log, and for its jobs after --jobs.

    JOBS is a job set, a campaign of trials (TOML, see 'bfreplay jobs make'), one of Gavel's traces or generated
    workloads, or package.module:Class of a job source.

    With --cluster all nodes are there from the start to the end, and the run ends when the jobs are done. U and the
    bound, which are told of idle nodes, are left out.

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
      bfreplay replay sample --jobs sample --t-fwd auto
      bfreplay replay sample --jobs sample --policy "look-ahead(events=3)" --unlimited-work
      bfreplay replay log.parquet --jobs campaign.toml --max-parallel 50 --out run
      bfreplay replay --cluster v100=36,p100=36,k80=36 --jobs jobs.trace --curves throughputs.json --policy gavel.fifo
      bfreplay replay --cluster v100=8,k80=8 --jobs "gavel(n=100, jobs_per_hour=2)" --curves throughputs.json \\
                      --policy gavel.max_min_fairness_perf --round 360 --fairness --out run
      bfreplay replay log.parquet --node-type v100 --jobs jobs.trace --curves throughputs.json --policy gavel.fifo_perf
    """
    from bfreplay.experiments.option_checks import parsed_measure
    from bfreplay.experiments.run_options import RunOptions
    from bfreplay.replay.summary_text import render

    if not quiet:
        note_options_without_effect(context)
    refuse_existing_early(out, force)
    check_failures_folder(of_backend["save_failures"], out)
    options = RunOptions(
        events=events, cluster=cluster, node_type=node_type, jobs=jobs_file, curves=curves_file, window=window,
        measure=parsed_measure(measure), policy=policy, round=round_s, objective=objective, t_fwd=t_fwd_s,
        max_parallel=max_parallel, unlimited_work=unlimited_work, learn_curves=learn_curves,
        measurement_noise=measurement_noise, solver=solver, formulation=formulation, fallback=fallback,
        semantics=semantics, seed=seed, record_nodes=record_nodes, prices=prices, fairness=fairness,
        efficiency=with_efficiency, bound=with_bound, allow_code=allow_code,
        time_limit=of_backend["time_limit_s"], gap=of_backend["relative_gap"], threads=of_backend["threads"],
        solver_seed=of_backend["solver_seed"], warm_start=of_backend["warm_start"],
        reformulate_sets=of_backend["reformulate_sets"], memory_limit=of_backend["memory_limit_mb"],
    )  # fmt: skip
    run = options.prepare(save_failures=of_backend["save_failures"])
    if not quiet:
        note_prices_of_no_node(run)
    warm_up_loops(quiet=quiet, policy=_with_loops_of_its_own(t_fwd_s, policy))
    with progress_of(run, hidden=quiet) as progress:
        result = run.replay(
            out, overwrite=force, progress=progress, session={"command": shlex.join(["bfreplay", *sys.argv[1:]])}
        )
    if as_json:
        click.echo(json.dumps({**result.record, "session": result.session}, indent=1, sort_keys=True, allow_nan=False))
    else:
        click.echo(render(result))


def _with_loops_of_its_own(t_fwd: float | str, policy: str) -> Policy | None:
    """Such a policy, to be compiled before the clock starts; ``None`` where BFTrainer's loops are enough."""
    from bfreplay.milp.exact import ExactSolver
    from bfreplay.policies import BFTrainerPolicy
    from bfreplay.policies.catalogue import capabilities_of, policy_of

    warm_up = capabilities_of(policy).warm_up
    if warm_up is not None:
        return policy_of(warm_up, t_fwd_s=defaults.T_FWD_S, solver=ExactSolver())
    return BFTrainerPolicy(t_fwd) if isinstance(t_fwd, str) else None
