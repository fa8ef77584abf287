"""``bfreplay ingest``, and its options: missing facts of a log, and the rules that make node states of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import rich_click as click

from bfreplay.commands.inputs import refuse_existing, say
from bfreplay.commands.option_flags import PLACE, Parsed, adding
from bfreplay.commands.progress import BAR, DOWNLOAD, SPEED, TIME_LEFT, tell_of_compiling, terminal_bar
from bfreplay.errors import InputError
from bfreplay.experiments.option_checks import amount
from bfreplay.wording import paragraphs

if TYPE_CHECKING:
    from rich.progress import Progress

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _one_of(flag: str, words_text: str, text: str) -> Callable[[_Command], _Command]:
    """Return an option for one of the listed words, by default the first."""
    choices = words_text.split()
    return click.option(flag, type=click.Choice(choices), default=choices[0], help=text)


def _amount(flag: str, name: str, default: float, text: str, unit_s: float = 1.0) -> Callable[[_Command], _Command]:
    of_unit = Parsed(lambda word: amount(word, unit_s))
    return click.option(flag, name, type=of_unit, metavar="TIME", default=default, help=text)


reading_options = adding(
    click.option(
        "--tz", "timezone", metavar="ZONE", help="Time zone of local times in all files, e.g. Europe/Paris or UTC."
    ),
    _one_of(
        "--dst-fold",
        "reject earlier later",
        "Treatment of local times that occur twice at the end of summer time and stay ambiguous.",
    ),
    click.option("--nodes", "n_nodes", type=click.IntRange(min=1), help="Number of nodes, if the log has only counts."),
    click.option("--procs-per-node", type=click.IntRange(min=1), help="Processors per node, if the log counts them."),
    click.option("--inventory", type=PLACE, help="File with the names of all nodes, used or not."),
    click.option(
        "--inventory-only", is_flag=True, help="Keep only the nodes of --inventory, and skip others in the log."
    ),
    _one_of(
        "--node-names",
        "as-is short lower short-lower",
        "Node names in all files: as they are, without the domain (cn01.hpc: cn01), in lower case, or both.",
    ),
    click.option(
        "--outages",
        "outages",
        type=PLACE,
        multiple=True,
        help="Table of outages (node, start, end, state), with any log; repeatable.",
    ),
    click.option("--columns", metavar="NAME,...", help="Column names of a log without a header line, in order."),
    click.option("--delimiter", metavar="CHARACTER", help="Column separator."),
    click.option(
        "--map",
        "mapping",
        metavar="ROLE=COLUMN[:UNIT]",
        multiple=True,
        help="For 'table': column of a role (start, end, nodes, node_count, job, ...); repeatable.",
    ),
    _one_of("--time-unit", "s ms us ns", "Unit of numbers in a table's start and end."),
    click.option("--time-format", metavar="FORMAT", help="Format of times in a table, e.g. '%d.%m.%Y %H:%M:%S'."),
    click.option("--missing-wait-is-zero", is_flag=True, help="SWF: a job without a waiting time did not wait."),
    _one_of("--reservations", "idle reserved", "State of reserved nodes, other than for maintenance."),
)
"""Adds the options of ``ReadOptions``, the list of nodes and outages."""

rule_options = adding(
    _one_of(
        "--assignment",
        "lowest-id most-recently-used least-recently-used random all",
        "Assignment of nodes if the log has only counts; 'all': a log for each rule, and the spread.",
    ),
    click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of --assignment random."),
    _one_of(
        "--oversubscription",
        "clip drop delay",
        "A job that needs more nodes than are free: gets the free ones, and the others as they become free; is "
        "skipped; or starts later.",
    ),
    _one_of(
        "--shared-nodes",
        "count refuse",
        "Jobs that share a node: it is idle when the last one has left; or they are an error.",
    ),
    _one_of(
        "--empty-machine",
        "auto down idle",
        "State of the nodes while the whole machine has no job; 'auto': down, unless the log records outages.",
    ),
    _amount(
        "--empty-after", "empty_after_min", 60.0, "Shortest time without any job for --empty-machine, in minutes.", 60.0
    ),
    _amount("--min-gap", "min_gap_s", 10.0, "Shortest idle interval to keep, in seconds."),
    _amount("--release-delay", "release_delay_s", 0.0, "Time from the end of a job to free nodes, in seconds."),
    click.option(
        "--window",
        nargs=2,
        metavar="START END",
        help="Part of the log to keep: two ISO-8601 times (UTC) or epoch seconds.  [default: estimated from the load]",
    ),
    click.option("--full-window", is_flag=True, help="Keep the whole log, with edges that lack jobs."),
    click.option(
        "--log-end", metavar="TIME", help="Time at which the log was written: running jobs end there or later."
    ),
    _amount(
        "--limit-grace",
        "limit_grace_min",
        60.0,
        "Time from its limit to the assumed end of a job without an end, in minutes.",
        60.0,
    ),
    _amount(
        "--absent-after",
        "absent_after_days",
        7.0,
        "Time without use at an edge of the log from which a node counts as absent, in days; not with --inventory.",
        86_400.0,
    ),
)
"""Adds the options of ``OccupancyRules``."""


def read_options(parameters: dict[str, Any]) -> Any:
    """Return ``ReadOptions`` from the given options, which are removed from ``parameters``."""
    from bfreplay.datasets.ingest.reader import ReadOptions

    columns, mapping = parameters.pop("columns"), {}
    for text in parameters.pop("mapping"):
        role, sign, column = text.partition("=")
        if not sign or not role.strip() or not column.strip():
            raise InputError("--map cannot be read", value=text, expected="ROLE=COLUMN, e.g. --map start=start_time")
        mapping[role.strip()] = column.strip()
    plain = {field.name for field in fields(ReadOptions)} - {"columns", "mapping"}
    return ReadOptions(
        columns=None if columns is None else tuple(name.strip() for name in columns.split(",")),
        mapping=mapping,
        **{name: parameters.pop(name) for name in plain},
    )


def occupancy_rules(parameters: dict[str, Any]) -> Any:
    """Return ``OccupancyRules`` from the options, which are removed from ``parameters``; for ``all`` the first rule."""
    from bfreplay.datasets.ingest.occupancy.rules import DAY_S, OccupancyRules

    window, full = parameters.pop("window"), parameters.pop("full_window")
    if window is not None and full:
        raise InputError("--window and --full-window cannot both be", fix="give one of them")
    log_end, assignment = parameters.pop("log_end"), parameters.pop("assignment")
    return OccupancyRules(
        assignment="lowest-id" if assignment == "all" else assignment,
        window="full" if full else "estimate" if window is None else _times("--window", window),
        log_end_us=None if log_end is None else _times("--log-end", [log_end])[0],
        empty_after_s=parameters.pop("empty_after_min") * 60,
        limit_grace_s=parameters.pop("limit_grace_min") * 60,
        absent_after_s=parameters.pop("absent_after_days") * DAY_S,
        **{field.name: parameters.pop(field.name) for field in fields(OccupancyRules) if field.name in parameters},
    )


def _times(option: str, texts: Any) -> Any:
    from bfreplay.datasets.times import EXPECTED_TIME, ISO_FIX, parse_time_us

    times = []
    for text in texts:
        try:
            times.append(parse_time_us(text))
        except ValueError as error:
            raise InputError(f"{option}: {error}", value=text, expected=EXPECTED_TIME, fix=ISO_FIX) from error
    return tuple(times)


@click.command()
@click.argument("reader", metavar="FORMAT")
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

    FORMAT is slurm, pbs, swf, cobalt, lsf, flux, batsim, or table (any CSV or Parquet of jobs); 'auto' looks at the
    files and says why; or package.module:Class of your own. FILES may be compressed (gz, bz2, xz, zst), tar or zip
    archives, or folders, in any order.

    \b
    Examples:
      bfreplay ingest slurm --how
      bfreplay ingest slurm jobs.psv outages.psv --tz UTC -o events.parquet
      bfreplay ingest pbs accounting.tar.gz -o events.parquet
      bfreplay ingest swf KTH-SP2-1996-2.1-cln.swf.gz -o kth.parquet --assignment all
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
    from bfreplay._compiled import notice_of_compiling
    from bfreplay.datasets.ingest.occupancy.rules import ASSIGNMENTS
    from bfreplay.datasets.ingest.read_log import read_log

    is_spread = parameters["assignment"] == "all"
    rules, options = occupancy_rules(parameters), read_options(parameters)
    outputs = _outputs(out, ASSIGNMENTS if is_spread else (), force)
    if batch_jobs is not None:
        _check_batch_jobs(batch_jobs, out, is_spread, force)
    if not quiet:
        cast(click.Context, click.get_current_context()).with_resource(notice_of_compiling(tell_of_compiling))
    with _progress(hidden=quiet) as progress:
        schedule = read_log(files, reader, options, **parameters, job_names=batch_jobs is not None, progress=progress)
    if is_spread and not schedule.is_assigned:
        raise InputError(
            "--assignment all has nothing to compare: the log names the nodes of every job", fix="omit --assignment"
        )
    with _status("Converting to node events ...", is_hidden=quiet):
        rule_sets = [replace(rules, assignment=name) for name in ASSIGNMENTS] if is_spread else [rules]
        built_logs = [schedule.build(each) for each in rule_sets]
        for each in built_logs if strict else []:
            each.report.refuse_warnings()
        for each, file in zip(built_logs, outputs, strict=False):
            write_events(each.events, file, overwrite=force)
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

    found_readers = [find_reader(name) for name in (READERS.names() if reader == AUTO else [reader])]
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
    outputs = [out.with_name(f"{stem}.{name}{out.name[len(stem) :]}") for name in assignments] or [out]
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
    spread = {"spread": [asdict(measure(each)) for each in built_logs]} if is_spread else {}
    return {**metadata.notes["ingest"], **outcome, **spread}


def _text(built_logs: list[Any], reader: str, outputs: list[Path], is_spread: bool) -> str:
    from bfreplay.datasets.ingest.occupancy.build import measure, spread_text
    from bfreplay.datasets.ingest.occupancy.report_text import render

    text = render(built_logs[0], reader)
    if is_spread:
        text += "\n" + spread_text([measure(each) for each in built_logs])
    then = f"bfreplay describe {outputs[0]}" if outputs else "nothing was written: -o FILE writes the events"
    return f"{text}\nnext        {then}"


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
