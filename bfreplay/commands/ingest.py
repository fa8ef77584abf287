"""``bfreplay ingest``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click

from bfreplay.commands.ingest_options import occupancy_rules, read_options, reading_options, rule_options
from bfreplay.errors import InputError, OutputExistsError


@click.command()
@click.argument("reader", metavar="FORMAT")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--how", is_flag=True, help="Print the commands that get FORMAT's log out of the scheduler, and stop.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=None,
    help="Events to write: .parquet, .csv or .csv.gz.  [default: write nothing, show the report]",
)  # fmt: skip
@reading_options
@rule_options
@click.option("--strict", is_flag=True, help="Doubts are errors.")
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--quiet", is_flag=True, help="No progress bar, no report; doubts are still told.")
def ingest(
    reader: str, files: tuple[Path, ...], how: bool, out: Path | None, inventory: Path | None,
    inventory_only: bool, outages: tuple[Path, ...], strict: bool, force: bool, as_json: bool, quiet: bool,
    **given: Any,
) -> None:  # fmt: skip
    """Make node events of a scheduler's log, with a report of what was kept, left out, assumed and doubtful.

    FORMAT is slurm, pbs, swf, cobalt, lsf, flux, batsim, or table (any CSV or Parquet of jobs); 'auto' looks at the
    files and says why; or package.module:Class of your own. FILES may be compressed (gz, bz2, xz, zst), tar or zip
    archives, or folders, in any order.

    \b
    Examples:
      bfreplay ingest slurm --how
      bfreplay ingest slurm jobs.psv events.psv --tz UTC -o events.parquet
      bfreplay ingest pbs accounting.tar.gz -o events.parquet
      bfreplay ingest swf KTH-SP2-1996-2.1-cln.swf.gz -o kth.parquet --assignment all
      bfreplay ingest table jobs.csv --map start=begin --map end=finish --map nodes=hosts -o events.parquet
      bfreplay ingest auto FILES... --strict
    """
    if how:
        click.echo(_how(reader))
        return
    if not files and Path(reader).exists():
        raise InputError(
            f"{reader} was taken for the FORMAT",
            expected="a FORMAT before the files",
            fix=f"bfreplay ingest auto {reader}",
        )
    from bfreplay.datasets.occupancy.rules import ASSIGNMENTS
    from bfreplay.datasets.scheduler_logs.ingest import each_assignment, read_log

    is_spread = given["assignment"] == "all"
    rules, options = occupancy_rules(given), read_options(given)
    outputs = _outputs(out, ASSIGNMENTS if is_spread else (), force)
    with _progress(hidden=quiet) as progress:
        log = read_log(
            files, reader, options, inventory=inventory, inventory_only=inventory_only, outages=outages,
            progress=progress,
        )  # fmt: skip
    if is_spread and not log.is_assigned:
        raise InputError(
            "--assignment all has nothing to compare: the log says which nodes every job had",
            fix="leave --assignment out",
        )
    with _status("Making node events ...", hidden=quiet):
        built = [log.built(each) for each in (each_assignment(rules, ASSIGNMENTS) if is_spread else [rules])]
        for each in built if strict else []:
            each.lint.refuse_doubts()
        _write(built, outputs, force)
    if quiet:
        for sentence, tally in built[0].lint.doubts.items():
            click.echo(f"Doubt: {tally.count:,} x {sentence}", err=True)
        return
    for file in outputs:
        click.echo(f"wrote {file}", err=True)
    if as_json:
        click.echo(json.dumps(_document(built, outputs, is_spread), indent=1, sort_keys=True))
    else:
        click.echo(_text(built, log.reader, outputs, is_spread))


def _how(reader: str) -> str:
    """Commands of one reader, or of all of them for ``auto``."""
    from bfreplay.datasets.scheduler_logs.catalogue import AUTO, READERS, reader_named

    lines = []
    for each in [reader_named(name) for name in (READERS.names() if reader == AUTO else [reader])]:
        lines += [each.title, *(f"  {export.command}\n    # {export.gives}" for export in each.exports), ""]
    return "\n".join(lines).rstrip()


def _outputs(out: Path | None, assignments: tuple[str, ...], force: bool) -> list[Path]:
    """Files to write, refused before anything is read if they cannot be: one, or one for each rule."""
    if out is None:
        return []
    from bfreplay.datasets.log_files.load import writable_ending

    ending = writable_ending(out)
    stem = out.name[: -len(ending)]
    outputs = [out.with_name(f"{stem}.{name}{out.name[len(stem) :]}") for name in assignments] or [out]
    for file in outputs:
        if file.exists() and not force:
            raise OutputExistsError(f"{file} is there already; choose another name, or replace it with --force")
    return outputs


def _write(built: list[Any], outputs: list[Path], force: bool) -> None:
    from bfreplay import write_events

    for each, file in zip(built, outputs, strict=False):
        write_events(each.events, file, overwrite=force)


def _document(built: list[Any], outputs: list[Path], is_spread: bool) -> dict[str, Any]:
    from bfreplay.datasets.occupancy.build import measured

    document: dict[str, Any] = {
        **built[0].events.metadata.notes["ingest"],
        "metadata": built[0].events.metadata.to_json(),
        "outputs": [str(file) for file in outputs],
    }
    if is_spread:
        document["spread"] = [asdict(measured(each)) for each in built]
    return document


def _text(built: list[Any], reader: str, outputs: list[Path], is_spread: bool) -> str:
    from bfreplay.datasets.occupancy.build import measured, spread_text
    from bfreplay.datasets.occupancy.report_text import render

    text = render(built[0], reader)
    if is_spread:
        text += "\n" + spread_text([measured(each) for each in built])
    if outputs:
        text += f"\nnext        bfreplay describe {outputs[0]}"
    return text


@contextmanager
def _status(what: str, *, hidden: bool) -> Iterator[None]:
    """A sign of life on a terminal's stderr."""
    if hidden or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def _progress(*, hidden: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal's stderr: bytes read, rate, time left."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("Reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TextColumn("left"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("read", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
