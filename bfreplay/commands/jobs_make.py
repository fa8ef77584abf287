"""``bfreplay jobs make``."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from bfreplay.commands.inputs import refuse_existing, say
from bfreplay.commands.option_flags import PLACE, ListOf, Parsed, adding, run_options
from bfreplay.errors import InputError
from bfreplay.experiments.option_checks import amount
from bfreplay.wording import count

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _output(ending: str) -> Callable[[_Command], _Command]:
    """Add -o and --force."""
    help_text = f"File to write; its name ends in {ending}."
    return adding(
        click.option("-o", "--out", type=PLACE, required=True, help=help_text),
        click.option("--force", is_flag=True, help="Replace the file if it exists."),
    )


def _cost(text: str) -> float | str:
    """Parse a length of time; a cost by count stays as it is, for the job to check."""
    return text if ":" in text else amount(text)


def _cost_option(change: str, default_s: float, when: str) -> Callable[[_Command], _Command]:
    name, help_text = f"{change.replace('-', '_')}_cost_s", f"Seconds lost when it {when}."
    return click.option(
        f"--{change}-cost",
        name,
        type=Parsed(_cost),
        default=default_s,
        metavar="TIME",
        help=help_text,
    )


_OTHER_COSTS = {
    "start_cost_s": 0.0,
    "restart": "charge",
    "work_saved_every_s": 0.0,
    "saves": "never",
    "counts": None,
}
"""What else a change does to a job, and the counts that it may change to, as by default."""
_NODES = click.IntRange(1, 100_000)
_MEASURED = "what the curve of --curves was measured at"
_job_options = adding(
    click.option("--min-nodes", type=int, help=f"Minimum nodes of a job.  [default: {_MEASURED}, else 1]"),
    click.option("--max-nodes", type=_NODES, help=f"Maximum nodes of a job.  [default: {_MEASURED}, else 16]"),
    _cost_option("scale-up", 20.0, "gains nodes while it runs; by the new count of nodes, '0:20 4:29'"),
    _cost_option("scale-down", 10.0, "loses nodes, also by preemption"),
    _cost_option("start", 0.0, "begins to run, from fewer nodes than its minimum"),
    click.option(
        "--restart",
        type=click.Choice(["charge", "pause"]),
        default="charge",
        help="A change costs its seconds at the rate before, worked off at the new rate (charge), or they pass without "
        "progress (pause).",
    ),
    click.option(
        "--work-saved-every",
        "work_saved_every_s",
        type=Parsed(amount),
        default=0.0,
        metavar="TIME",
        help="Time between checkpoints: a change loses the work since the last one; 0: none is lost.",
    ),
    click.option(
        "--saves",
        type=click.Choice(["never", "on-notice", "on-resize"]),
        default="never",
        help="Other checkpoints: on the notice of a preemption, or also before each rescale.",
    ),
    click.option(
        "--counts",
        type=ListOf(click.INT),
        metavar="N,N,...",
        help="Node counts that it can use, from --min-nodes to --max-nodes.  [default: all]",
    ),
)
"""Adds the options of every job: bounds and costs."""

_trial_options = adding(
    click.option("--epochs", type=int, default=27, help="Epochs of a trial that is not stopped early."),
    click.option("--samples-per-epoch", type=float, default=1_000_000.0, help="Samples per epoch."),
)
"""Adds the options of trials."""

_ARRIVALS = "Arrivals: at-once, every:TIME, or poisson:PER_HOUR."
_arrival = click.option("--arrival", default="at-once", metavar="PATTERN", help=_ARRIVALS)


def _search_options(trials: int) -> Callable[[_Command], _Command]:
    """Add the options of a campaign."""
    return adding(
        click.option("--trials", type=int, default=trials, help="Maximum number of trials."),
        click.option("--name", help="Name of the campaign.  [default: the file's name]"),
        click.option(
            "--parallel",
            type=int,
            help="Maximum number of trials at once.  [default: no limit; 10 with --proposer optuna]",
        ),
        _arrival,
        click.option(
            "--pruner",
            help="Pruner: none, asha, successive-halving, median, optuna (the study's own), or "
            "package.module:Class.  [default: asha; with --proposer optuna its own]",
        ),
        click.option(
            "--pruner-option",
            "pruner_options",
            multiple=True,
            metavar="KEY=VALUE",
            help="Parameter of the pruner, such as eta=4 of asha; docs/campaigns.md lists them; repeatable.",
        ),
        click.option("--failures-per-epoch", type=float, default=0.0, help="Mean number of crashes per epoch."),
        click.option("--budget-node-hours", type=float, help="Stop the campaign after this many node-hours."),
        click.option(
            "--budget-hours",
            type=Parsed(partial(amount, unit_s=3_600.0)),
            metavar="HOURS",
            help="Stop the campaign after this many hours.",
        ),
        click.option("--lower-is-better", is_flag=True, help="Lower scores are better, as for losses."),
        click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed."),
    )


def _curves(help_text: str) -> Callable[[_Command], _Command]:
    curves = click.option("--curves", "curves_file", type=PLACE, help=help_text)
    return adding(curves, run_options("allow_code"))


@click.group()
def make() -> None:
    """Make campaigns and job sets from a few numbers, as files to edit and replay.

    \b
    Trials of one model:       bfreplay jobs make hpo -o campaign.toml
    Trials of several models:  bfreplay jobs make nas -o campaign.toml
    A plain list of jobs:      bfreplay jobs make list --job image-classifier:20 -o jobs.csv
    Throughputs for Gavel:     bfreplay jobs make throughputs -o throughputs.json
    """


@make.command()
@_output(".toml")
@_search_options(100)
@_job_options
@_trial_options
@click.option(
    "--curve", help="Throughput: a name in --curves, points '0:0 1:400 8:2400', or a law.  [default: made up]"
)
@_curves("File of curves (CSV, Parquet, TOML) for --curve.")
@click.option("--proposer", default="random", help="Proposer: random, optuna, or package.module:Class.")
def hpo(
    out: Path, force: bool, curve: str | None, curves_file: Path | None, allow_code: bool, proposer: str, **options: Any
) -> None:
    """Write an HPO campaign: trials of one model, bad ones stopped early.

    Scores are simulated. Comments in the file explain each key.

    \b
    Examples:
      bfreplay jobs make hpo -o campaign.toml
      bfreplay jobs make hpo -o campaign.toml --trials 81 --parallel 20
      bfreplay jobs make hpo -o c.toml --curve 'amdahl(rate_1=400, serial=0.02)'
      bfreplay jobs make hpo -o c.toml --curves curves.csv --curve resnet50
      bfreplay jobs make hpo -o campaign.toml --pruner median --arrival poisson:6
      bfreplay jobs make hpo -o campaign.toml --max-nodes 8 --counts 1,2,4,8
      bfreplay jobs make hpo -o campaign.toml --proposer optuna
    """
    from bfreplay.campaigns.make_campaign import curves_of_file, hpo_text

    _check_output(out, force)
    curves = None if curves_file is None else curves_of_file(curves_file, allow_code=allow_code)
    is_optuna = proposer == "optuna"
    if is_optuna and options["parallel"] is None:
        options["parallel"] = 10  # trials proposed at once cannot learn from one another
    tables = _tables(options, usual_pruner="optuna" if is_optuna else "asha")
    tables["campaign"]["proposer"] = proposer
    _write(out, force, hpo_text(tables, curve, curves, out), f"{count(options['trials'], 'trial')} of one model")


@make.command()
@_output(".toml")
@_search_options(60)
@_job_options
@_trial_options
@click.option(
    "--curve", "names", multiple=True, metavar="NAME", help="Curve in --curves to use; repeatable.  [default: all]"
)
@_curves("File of curves (CSV, Parquet, TOML), one model for each.  [default: made-up models]")
@click.option(
    "--models", "n_models", type=click.IntRange(min=1, max=10_000), default=6, help="Models made up without --curves."
)
@click.option(
    "--model-choice",
    type=click.Choice(["in-turn", "by-seed"]),
    default="in-turn",
    help="Choice of the model of a trial: in turn, or drawn by the seed.",
)
def nas(
    out: Path, force: bool, names: tuple[str, ...], curves_file: Path | None, allow_code: bool, **options: Any
) -> None:
    """Write a NAS campaign: trials of models that scale differently.

    Scores are simulated, and without --curves the models are made up.

    \b
    Examples:
      bfreplay jobs make nas -o campaign.toml
      bfreplay jobs make nas -o campaign.toml --models 20 --trials 200 --seed 7
      bfreplay jobs make nas -o campaign.toml --curves curves.csv
      bfreplay jobs make nas -o c.toml --curves curves.csv --curve resnet18
    """
    from bfreplay.campaigns.make_campaign import curves_of_file, nas_text

    _check_output(out, force)
    if names and curves_file is None:
        raise InputError("--curve names curves of a file", value=names[0], fix="give the file too: --curves FILE")
    curves = None if curves_file is None else curves_of_file(curves_file, allow_code=allow_code)
    tables = _tables(options, usual_pruner="asha")
    tables["trial"]["model_choice"] = options["model_choice"]
    campaign_text = nas_text(tables, names, curves, options["n_models"], out)
    n_of = len(names or curves) if curves is not None else options["n_models"]
    _write(out, force, campaign_text, f"{count(options['trials'], 'trial')} of {count(n_of, 'model')}")


@make.command("list")
@_output(".csv")
@click.option(
    "--job", "items", multiple=True, required=True, metavar="CURVE:COUNT", help="Jobs of one curve; repeatable."
)
@_curves("File of curves (CSV, Parquet, TOML).  [default: made-up model families]")
@_job_options
@click.option("--node-hours", type=float, default=30.0, help="Work of each job, in hours on one node.")
@_arrival
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of arrivals, and of the order of jobs.")
def make_list(
    out: Path, force: bool, items: tuple[str, ...], curves_file: Path | None, allow_code: bool, **shape: Any
) -> None:
    """Write a list of jobs with a given number of each curve.

    Curves without --curves, all made up: image-classifier, image-classifier-large, segmentation,
    language-model, molecule-graph.

    \b
    Examples:
      bfreplay jobs make list --job image-classifier:20 -o jobs.csv
      bfreplay jobs make list --job language-model:5 --job segmentation:10 -o jobs.csv
      bfreplay jobs make list --curves curves.csv --job resnet50:40 -o jobs.csv
      bfreplay jobs make list --job segmentation:10 --max-nodes 8 --counts 1,2,4,8 -o jobs.csv
    """
    from bfreplay import write_jobs
    from bfreplay.campaigns.make_campaign import MAX_NODES, curves_of_file, family_curves
    from bfreplay.campaigns.make_list import JobShape, jobs_of_list

    _check_output(out, force, ".csv")
    arrival, seed = shape.pop("arrival"), shape.pop("seed")
    curves = (
        {family.name: family.curve for family in family_curves(shape["max_nodes"] or MAX_NODES)}
        if curves_file is None
        else curves_of_file(curves_file, allow_code=allow_code)
    )
    changes = _changes(shape)
    job_set = jobs_of_list(items, curves, JobShape(**shape, changes=changes), arrival, seed)
    write_jobs(job_set, out, overwrite=force)
    _say(out, count(len(job_set), "job"))


@make.command("throughputs")
@_output(".json")
def make_throughputs(out: Path, force: bool) -> None:
    """Write made-up throughputs in Gavel's format: 26 job types on v100, p100 and k80, alone and colocated.

    '--curves sample' uses the same throughputs. Edit the file, or replace them by measurements.

    \b
    Example:
      bfreplay jobs make throughputs -o throughputs.json
    """
    from bfreplay.systems.gavel.made_up_throughputs import sample_throughputs
    from bfreplay.systems.gavel.throughputs import write_throughputs

    _check_output(out, force, ".json")
    table = sample_throughputs()
    write_throughputs(table, out, overwrite=force)
    description = f"made-up rates of {count(len(table.job_types), 'job type')} on {', '.join(table.node_types)}"
    cluster = ",".join(f"{node_type}=8" for node_type in table.tables)
    jobs = f'--jobs "gavel(n=20, jobs_per_hour=8)" --curves {shlex.quote(str(out))}'
    _say(out, description, f"bfreplay replay --cluster {cluster} {jobs} --policy gavel.max_min_fairness_perf")


def _changes(options: dict[str, Any]) -> dict[str, Any]:
    """Remove ``_OTHER_COSTS`` from the options; return those that are not as by default."""
    given = {setting: options.pop(setting) for setting in _OTHER_COSTS}
    return {setting: value for setting, value in given.items() if value != _OTHER_COSTS[setting]}


def _tables(options: dict[str, Any], *, usual_pruner: str) -> dict[str, Any]:
    """Return the tables of a campaign file from the given options; the file has defaults for the others."""
    from bfreplay.campaigns.make_campaign import arrival_of, plain, pruner_table
    from bfreplay.documents import pick

    arrival = arrival_of(options["arrival"])
    settings = {
        **{setting: options[setting] for setting in ("name", "trials", "seed", "parallel")},
        "arrival": arrival.pattern,
        **pick(arrival, "every_s", "per_hour"),
        "higher_is_better": not options["lower_is_better"],
    }
    limits = {"node_hours": options["budget_node_hours"], "hours": options["budget_hours"]}
    settings["budget"] = {setting: plain(value) for setting, value in limits.items() if value is not None}
    of_jobs = ("epochs", "samples_per_epoch", "min_nodes", "max_nodes", "scale_up_cost_s", "scale_down_cost_s")
    trial = {setting: options[setting] for setting in of_jobs if options[setting] is not None} | _changes(options)
    tables = {
        "campaign": {setting: value for setting, value in settings.items() if value is not None},
        "trial": {setting: plain(value) if isinstance(value, float) else value for setting, value in trial.items()},
        "pruner": pruner_table(options["pruner"] or usual_pruner, options["pruner_options"]),
    }
    if options["failures_per_epoch"]:
        tables["retries"] = {"failures_per_epoch": options["failures_per_epoch"], "most": 2, "from": "checkpoint"}
    return tables


def _check_output(out: Path, force: bool, ending: str = ".toml") -> None:
    """Raise an error for an output that cannot be written, before anything is read."""
    if out.suffix.lower() != ending:
        raise InputError(
            f"this is written as {ending[1:].upper()}",
            file=out,
            value=out.name,
            expected=f"a name ending in {ending}",
            fix=f"-o {out.with_suffix(ending) if out.name else 'campaign' + ending}",
        )
    refuse_existing(out, force)


def _write(out: Path, force: bool, file_text: str, description: str) -> None:
    from bfreplay.outputs import written_whole

    with written_whole([out], force) as (part_file,):
        part_file.write_text(file_text, encoding="utf-8")
    _say(out, description)


def _say(out: Path, description: str, next_step: str | None = None) -> None:
    say(f"wrote       {out}: {description}")
    say(f"next        {next_step or f'bfreplay replay sample --jobs {shlex.quote(str(out))}'}")
