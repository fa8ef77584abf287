"""``bfreplay jobs``, and ``bfreplay jobs fit``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from bfreplay.commands.inputs import refuse_existing, say
from bfreplay.commands.jobs_fit_costs import fit_costs_of
from bfreplay.commands.jobs_make import make
from bfreplay.commands.option_flags import PLACE, adding
from bfreplay.datasets.jobs.rate_units import NEEDS, UNITS
from bfreplay.errors import InputError
from bfreplay.options import option_name

if TYPE_CHECKING:
    from bfreplay.scalability import Scaling
    from bfreplay.scalability.choice import Choice


@click.command("fit", epilog="\n\n".join(f"{unit.examples}: {unit.title}." for unit in UNITS.values()))
@click.argument("measurements", type=PLACE)
@click.option(
    "--law",
    metavar="NAME",
    help="Fit only this law: amdahl, gustafson, usl, power, communication-weak, communication-strong, or "
    "package.module:Class.  [default: all, and choose]",
)
@click.option(
    "--scaling",
    type=click.Choice(["weak", "strong"]),
    help="Kind of measurement: weak (fixed batch per node) or strong (fixed global batch). Laws of the other kind are "
    "skipped.  [default: all laws]",
)
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1, max=1_000_000),
    help="Largest number of nodes of the curve.  [default: the largest measured count]",
)
@adding(*(click.option(f"--{option_name(name)}", type=float, help=f"{meaning}.") for name, meaning in NEEDS.items()))
@click.option(
    "--costs",
    "of_costs",
    is_flag=True,
    help="Fit what changes cost: MEASUREMENTS is a log of restarts, with the columns nodes_before (0 for a start), "
    "nodes_after, pause_s (seconds without progress), and optionally model or job.",
)
@click.option(
    "-o",
    "--out",
    type=PLACE,
    metavar="FILE.toml",
    help="Write the curves as TOML, for --curves; with --costs the keys of each model.",
)
@click.option(
    "--picture",
    type=PLACE,
    metavar="FILE.png|svg",
    help="Draw measurements, fitted laws and residuals; with several curves one file each, NAME-CURVE.png.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def fit(
    measurements: Path,
    law: str | None,
    scaling: str | None,
    max_nodes: int | None,
    of_costs: bool,
    out: Path | None,
    picture: Path | None,
    force: bool,
    as_json: bool,
    **numbers: float | None,
) -> None:
    """Fit scalability laws to the measured rates in MEASUREMENTS, and recommend one.

    MEASUREMENTS is a CSV or Parquet table with one row per measurement: a column nodes or gpus, a column of rates (see
    the units below), and optionally repeat and curve. Confidence intervals are simultaneous: they contain all
    parameters of a law in at least 95 of 100 cases.

    With --costs it fits what starts and changes of nodes cost instead: the median pause by the new number of nodes.

    \b
    Examples:
      bfreplay jobs fit measured.csv
      bfreplay jobs fit measured.csv -o curves.toml --picture fit.png
      bfreplay jobs fit measured.csv --scaling weak --max-nodes 256
      bfreplay jobs fit measured.csv --law usl --json
      bfreplay jobs fit step_times.csv --global-batch 4096
      bfreplay jobs fit restarts.csv --costs -o costs.toml
      bfreplay replay sample --jobs jobs.csv --curves curves.toml
    """
    from bfreplay.datasets.jobs.curve_points import write_curves
    from bfreplay.datasets.jobs.measurements import load_measurements
    from bfreplay.scalability import Scaling, find_law
    from bfreplay.scalability.choice import choose
    from bfreplay.scalability.fit_text import of_outliers, remarks, render, warnings
    from bfreplay.scalability.fitting import fit_law
    from bfreplay.scalability.law import laws_for

    if of_costs:
        of_curves = {"law": law, "scaling": scaling, "max_nodes": max_nodes, "picture": picture, **numbers}
        for name, value in of_curves.items():
            if value is not None:
                option = f"--{option_name(name)}"
                raise InputError(f"{option} is for curves, not for --costs", value=value, fix=f"drop {option}")
    measured_as = Scaling(scaling or Scaling.EITHER)
    laws = laws_for(measured_as) if law is None else [find_law(law)]
    if law is not None:
        _check_scaling(law, laws[0].scaling, measured_as)
    if out is not None:  # refuse before the fit, not after
        if out.suffix.lower() != ".toml":
            problem = f"--out: {'costs' if of_costs else 'curves'} are written as TOML"
            raise InputError(problem, value=out.name, expected="a name ending in .toml")
        refuse_existing(out, force)
    if of_costs:
        return fit_costs_of(measurements, out, force, as_json)
    given = {name: number for name, number in numbers.items() if number is not None}
    measurements_by_curve = load_measurements(measurements, given)
    pictures = {} if picture is None else _picture_files(picture, list(measurements_by_curve), force)
    choices: dict[str, Choice] = {}
    for name, curve_measurements in measurements_by_curve.items():
        if law is not None:
            try:
                fit_law(curve_measurements, laws[0])  # a law given by name is refused with an error, not skipped
            except InputError as error:
                raise _of_curve(error, measurements, name) from error
        try:
            choices[name] = choose(curve_measurements, laws, max_nodes, insist=law is not None)
        except InputError as error:
            raise _of_curve(error, measurements, None) from error
    if out is not None:
        curves = {name: choice.measured_curve for name, choice in choices.items()}
        write_curves(curves, out, {name: remarks(choice) for name, choice in choices.items()}, overwrite=force)
    for name, file in pictures.items():
        from bfreplay.report.figures.curve_fit import FIT
        from bfreplay.report.figures.picture_files import save_picture

        save_picture(FIT.draw_from(name, choices[name]), file, overwrite=force)
    if as_json:
        documents = {
            name: choice.to_dict() | {"warnings": [*of_outliers(choice), *warnings(choice)]}
            for name, choice in choices.items()
        }
        say(json.dumps(documents, indent=1))
    else:
        say("\n".join(render(name, choice, measured_as) for name, choice in choices.items()), nl=False)


def _check_scaling(law: str, scaling_of_law: Scaling, measured_as: Scaling) -> None:
    if "either" not in (scaling_of_law.value, measured_as.value) and scaling_of_law is not measured_as:
        raise InputError(
            f"{law} describes {scaling_of_law.value} scaling, and --scaling says {measured_as.value}",
            value=law,
            expected=f"a law of {measured_as.value} scaling, or of either",
            fix="remove --law to try all laws",
        )


def _picture_files(picture: Path, names: list[str], force: bool) -> dict[str, Path]:
    from bfreplay.report.figures.picture_files import check_picture

    files = {names[0]: picture}
    if len(names) > 1:
        parts = {curve_name: re.sub(r"[^\w.-]", "_", curve_name) for curve_name in names}
        files = {curve_name: picture.with_stem(f"{picture.stem}-{part}") for curve_name, part in parts.items()}
    curve_of_file: dict[Path, str] = {}
    for curve_name, file in files.items():
        if file in curve_of_file:
            raise InputError(
                f"the pictures of the curves {curve_of_file[file]!r} and {curve_name!r} would have one name",
                value=file.name,
                fix="rename one of the curves",
            )
        curve_of_file[file] = curve_name
        check_picture(file, overwrite=force)
    return files


def _of_curve(error: InputError, file: Path, curve: str | None) -> InputError:
    """Return the error with the file, and the curve that it is about."""
    if curve is not None:
        error.problem = f"curve {curve!r}: {error.problem.removeprefix(f'curve {curve!r}: ')}"
    return error.with_changes(file=file, row=None)


@click.group()
def jobs() -> None:
    """Jobs to replay: fit curves and costs to measurements, make campaigns and job sets.

    \b
    Measured rates to a curve:  bfreplay jobs fit MEASUREMENTS
    A log of restarts to costs: bfreplay jobs fit RESTARTS --costs
    A search to replay:         bfreplay jobs make hpo -o campaign.toml
    """


jobs.add_command(fit)
jobs.add_command(make)
