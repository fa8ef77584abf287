"""``bfreplay ingest``, and its options: missing facts of a log, and the rules that make node states of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from bfreplay.commands.inputs import refuse_existing, say
from bfreplay.commands.option_flags import PLACE, adding, completing, declared_options, made_from
from bfreplay.commands.progress import BAR, DOWNLOAD, SPEED, TIME_LEFT, announce_compiling, terminal_bar
from bfreplay.datasets.ingest.occupancy.rules import ASSIGNMENTS, OccupancyRules
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.errors import InputError
from bfreplay.options import OneOf, options_of
from bfreplay.wording import paragraphs

if TYPE_CHECKING:
    from rich.progress import Progress


reading_options = adding(
    declared_options(ReadOptions),
    click.option("--inventory", type=PLACE, help="File with the names of all nodes, used or not."),
    click.option(
        "--inventory-only", is_flag=True, help="Keep only the nodes of --inventory, and skip others in the log."
    ),
    click.option(
        "--units",
        type=PLACE,
        help="Table node,gpus,cores of all nodes, or scontrol show node: for --unit, and in place of --inventory.",
    ),
    click.option(
        "--outages",
        type=PLACE,
        multiple=True,
        help="Table of outages (node, start, end, state), with any log; repeatable.",
    ),
)
"""Adds the options of ``ReadOptions``, the list of nodes and outages."""

rule_options = adding(
    declared_options(
        OccupancyRules,
        assignment={
            "check": OneOf((*ASSIGNMENTS, "all")),
            "help": f"{options_of(OccupancyRules)['assignment'].help} 'all': a log for each rule, and the spread.",
        },
        window={"default": None},
    ),
    click.option("--full-window", is_flag=True, help="Keep the whole log, with edges that lack jobs."),
)
"""Adds the options of ``OccupancyRules``."""


def occupancy_rules(parameters: dict[str, Any]) -> OccupancyRules:
    """Return the rules from the options, which are removed from ``parameters``; for ``all`` the first rule."""
    is_full = parameters.pop("full_window")
    if is_full and parameters["window"] is not None:
        raise InputError("--window and --full-window cannot both be", fix="give one of them")
    if is_full:
        parameters["window"] = "full"
    if parameters["assignment"] == "all":
        parameters["assignment"] = ASSIGNMENTS[0]
    return made_from(OccupancyRules, parameters)


@click.command()
@click.argument(
    "reader", metavar="FORMAT", shell_complete=completing("auto", "bfreplay.datasets.ingest.catalogue:READERS")
)
@click.argument("files", nargs=-1, type=PLACE)
@click.option("--how", is_flag=True, help="Print the commands that get FORMAT's log out of the scheduler, and stop.")
@click.option(
    "-o",
    "--out",
    type=PLACE,
    help="Events to write: .parquet, .csv or .csv.gz.  [default: write nothing, show the report]",
)
@click.option(
    "--batch-jobs",
    type=PLACE,
    help="Batch jobs with their nodes to write beside the events: .parquet. Not with --assignment all.",
)
@reading_options
@rule_options
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--quiet", is_flag=True, help="Omit the progress bar and the report; warnings are still shown.")
def ingest(
    reader: str,
    files: tuple[Path, ...],
    how: bool,
    out: Path | None,
    batch_jobs: Path | None,
    strict: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
    **parameters: Any,
) -> None:
    """Convert a scheduler's log to node events, with a report: rows kept and skipped, assumptions, warnings.

    FORMAT is slurm, pbs, swf, cobalt, lsf, grid-engine, flux, batsim, snapshots (of all nodes, a file a poll), or table
    (any CSV or Parquet of jobs); 'auto' looks at the files and says why; or package.module:Class of your own. FILES may
    be compressed (gz, bz2, xz, zst), tar or zip archives, or folders, in any order.

    \b
    Examples:
      bfreplay ingest slurm --how
      bfreplay ingest slurm jobs.psv outages.psv --tz UTC -o events.parquet
      bfreplay ingest pbs accounting.tar.gz -o events.parquet
      bfreplay ingest swf KTH-SP2-1996-2.1-cln.swf.gz -o kth.parquet --assignment all
      bfreplay ingest slurm jobs.psv --unit gpu --units nodes.txt -o gpus.parquet
      bfreplay ingest table jobs.csv --map start=begin --map end=finish --map nodes=hosts -o events.parquet
      bfreplay ingest auto FILES... --strict
    """
    if how:
        say(_how(reader))
        return
    if not files and Path(reader).exists():
        raise InputError(
            f"the FORMAT is missing: {reader} is a file",
            expected="a FORMAT before the files",
            fix=f"bfreplay ingest auto {reader}",
        )
    from bfreplay import write_events
    from bfreplay.datasets.ingest.read_log import read_log

    is_spread = parameters["assignment"] == "all"
    rules, options = occupancy_rules(parameters), made_from(ReadOptions, parameters)
    outputs = _outputs(out, ASSIGNMENTS if is_spread else (), force)
    if batch_jobs is not None:
        _check_batch_jobs(batch_jobs, out, is_spread, force)
    announce_compiling(quiet=quiet)
    with _progress(hidden=quiet) as progress:
        schedule = read_log(files, reader, options, **parameters, job_names=batch_jobs is not None, progress=progress)
    if is_spread and not schedule.is_assigned:
        raise InputError(
            "--assignment all has nothing to compare: the log names the nodes of every job", fix="omit --assignment"
        )
    with _status("Converting to node events ...", is_hidden=quiet):
        rule_sets = [replace(rules, assignment=rule_name) for rule_name in ASSIGNMENTS] if is_spread else [rules]
        built_logs = [schedule.build(built_log) for built_log in rule_sets]
        for built_log in built_logs if strict else []:
            built_log.report.refuse_warnings()
        for built_log, file in zip(built_logs, outputs, strict=False):
            write_events(built_log.events, file, overwrite=force)
        if batch_jobs is not None:
            built_logs[0].write_batch_jobs(batch_jobs, overwrite=force)
            outputs.append(batch_jobs)
    if quiet:
        for warning in built_logs[0].events.metadata.log_warnings.warnings:
            say(f"Warning: {warning}", err=True)
        return
    for file in outputs:
        say(f"wrote {file}", err=True)
    if as_json:
        say(json.dumps(_document(built_logs, outputs, is_spread), indent=1, sort_keys=True))
    else:
        say(_text(built_logs, schedule.reader, outputs, is_spread))


def _how(reader: str) -> str:
    """Return the export commands of one reader, or of all for ``auto``."""
    from bfreplay.datasets.ingest.catalogue import AUTO, READERS, find_reader

    found_readers = [find_reader(reader_name) for reader_name in (READERS.names() if reader == AUTO else [reader])]
    return paragraphs(
        [reader.title, *(f"  {export.command}\n    # {export.gives}" for export in reader.exports)]
        for reader in found_readers
    )


def _outputs(out: Path | None, assignments: tuple[str, ...], force: bool) -> list[Path]:
    """Return the files to write, one or one per rule; refused before reading if they cannot be written."""
    if out is None:
        return []
    from bfreplay.datasets.log.load import writable_ending

    stem = out.name[: -len(writable_ending(out))]
    outputs = [out.with_name(f"{stem}.{assignment}{out.name[len(stem) :]}") for assignment in assignments] or [out]
    for file in outputs:
        refuse_existing(file, force)
    return outputs


def _check_batch_jobs(batch_jobs: Path, out: Path | None, is_spread: bool, force: bool) -> None:
    """Refuse the file for batch jobs before reading if it cannot be written, or is of no log."""
    from bfreplay.datasets.batch_jobs import refuse_other_ending

    if is_spread:
        raise InputError(
            "--batch-jobs is of one log, and --assignment all writes several", fix="give one rule with --assignment"
        )
    if out is None or batch_jobs.resolve() == out.resolve():
        raise InputError(
            "--batch-jobs needs a file of events beside it",
            column="--batch-jobs",
            value=str(batch_jobs),
            expected="-o with another file",
            fix="ingest ... -o events.parquet --batch-jobs batch_jobs.parquet",
        )
    refuse_other_ending(batch_jobs)
    refuse_existing(batch_jobs, force)


def _document(built_logs: list[Any], outputs: list[Path], is_spread: bool) -> dict[str, Any]:
    from bfreplay.datasets.ingest.occupancy.build import measure

    metadata = built_logs[0].events.metadata
    outcome = {"metadata": metadata.to_json(), "outputs": [str(file) for file in outputs]}
    spread = {"spread": [asdict(measure(built_log)) for built_log in built_logs]} if is_spread else {}
    return {**metadata.notes["ingest"], **outcome, **spread}


def _text(built_logs: list[Any], reader: str, outputs: list[Path], is_spread: bool) -> str:
    from bfreplay.datasets.ingest.occupancy.build import measure, spread_text
    from bfreplay.datasets.ingest.occupancy.report_text import render

    report_text = render(built_logs[0], reader)
    if is_spread:
        report_text += "\n" + spread_text([measure(built_log) for built_log in built_logs])
    then = f"bfreplay describe {outputs[0]}" if outputs else "nothing was written: -o FILE writes the events"
    return f"{report_text}\nnext        {then}"


@contextmanager
def _status(status_text: str, *, is_hidden: bool) -> Iterator[None]:
    """Show a status line on a terminal's stderr."""
    if is_hidden or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(status_text):
        yield


@terminal_bar("Reading", BAR, DOWNLOAD, SPEED, "left", TIME_LEFT)
def _progress(bar: Progress) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal's stderr: bytes read, rate, time left."""
    task = bar.add_task("read", total=None)
    yield lambda n_bytes, total: bar.update(task, completed=n_bytes, total=total)
