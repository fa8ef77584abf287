"""``bfreplay datasets``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from bfreplay.commands.inputs import note, say
from bfreplay.commands.progress import BAR, DOWNLOAD, SPEED, TIME_LEFT, terminal_bar

if TYPE_CHECKING:
    from rich.progress import Progress

    from bfreplay.datasets.public_logs.entries import LogFile


_FOLDER = click.Path(file_okay=False, path_type=Path)


def _log_names(_context: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    from bfreplay.datasets.public_logs.entries import catalogue

    return [public_log.name for public_log in catalogue() if public_log.name.startswith(incomplete)]


@click.group()
def datasets() -> None:
    """List and fetch public scheduler logs.

    Logs are kept in the user's cache folder; the environment variable BFREPLAY_DATA names another.
    """


@datasets.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def list_logs(as_json: bool) -> None:
    """List the logs of the catalogue, one per line, with their state here.

    \b
    Classes:
      A  the nodes of each job are known
      B  only their number: an allocator places the jobs, and shapes the idle intervals
      C  states of nodes or of the machine, without jobs

    \b
    Example:
      bfreplay datasets list
    """
    from bfreplay.datasets.public_logs.entries import catalogue, render_list
    from bfreplay.datasets.public_logs.fetching import data_folder, fetch_state

    folder = data_folder()
    rows = [(public_log, fetch_state(public_log, folder)) for public_log in catalogue()]
    if as_json:
        documents = [public_log.to_dict() | {"bytes": public_log.bytes, "fetched": state} for public_log, state in rows]
        say(json.dumps(documents, indent=1))
    else:
        say(render_list(rows, folder))


@datasets.command()
@click.argument("name", shell_complete=_log_names)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def info(name: str, as_json: bool) -> None:
    """Show the log NAME: source, licence, citation, traps, and the command that ingests it.

    \b
    Example:
      bfreplay datasets info kth-sp2-1996
    """
    from bfreplay.datasets.public_logs.entries import ingest_command, public_log, render_info
    from bfreplay.datasets.public_logs.fetching import data_folder, fetch_state

    log, folder = public_log(name), data_folder()
    state = fetch_state(log, folder)
    if as_json:
        details = {"bytes": log.bytes, "fetched": state, "folder": str(folder), "ingest": ingest_command(log, folder)}
        say(json.dumps(log.to_dict() | details, indent=1))
    else:
        say(render_info(log, state, folder))


@datasets.command()
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=_log_names)
@click.option("--all", "everything", is_flag=True, help="Fetch every log of the catalogue.")
@click.option(
    "--to", "folder", type=_FOLDER, help="Target folder.  [default: BFREPLAY_DATA, or the user's cache folder]"
)
@click.option(
    "--from",
    "source",
    type=_FOLDER,
    help="Folder with the files, instead of the network; they are found by name or by hash.",
)
@click.option("--force", is_flag=True, help="Replace a file of the right name and wrong content.")
@click.option("--quiet", is_flag=True, help="Omit progress bar and notes.")
def fetch(
    names: tuple[str, ...], everything: bool, folder: Path | None, source: Path | None, force: bool, quiet: bool
) -> None:
    """Fetch logs by NAME, check their hashes, and print their paths.

    Files that exist with the right content are not fetched again. A log is fetched whole or not at all.

    \b
    Examples:
      bfreplay datasets fetch kth-sp2-1996
      bfreplay datasets fetch xdmod-phillips xdmod-pozidriv --to logs
      bfreplay datasets fetch --all --from Downloads
    """
    from bfreplay.datasets.public_logs import fetch_all

    if everything == bool(names):
        raise click.UsageError("Give names of logs, or --all (bfreplay datasets list shows them).")
    names_to_fetch = _everything(folder, source, quiet=quiet) if everything else list(names)
    with _download_bars(hidden=quiet or source is not None) as progress:
        paths_of = fetch_all(names_to_fetch, folder, source=source, overwrite=force, progress=progress)
    for paths in paths_of.values():
        for path in paths:
            say(path)


def _everything(folder: Path | None, source: Path | None, *, quiet: bool) -> list[str]:
    """Return the names of all logs that can be fetched here; a note names the others."""
    from bfreplay.datasets.public_logs import catalogue
    from bfreplay.datasets.public_logs.fetching import data_folder, fetch_state

    target = folder or data_folder()
    log_names = []
    for log in catalogue():
        if source is not None or log.downloadable or fetch_state(log, target) == "yes":
            log_names.append(log.name)
        elif not quiet:
            note(f"{log.name} is skipped: it cannot be downloaded (bfreplay datasets info {log.name}).")
    return log_names


@terminal_bar("{task.description}", BAR, DOWNLOAD, SPEED, "left", TIME_LEFT)
def _download_bars(bar: Progress) -> Iterator[Callable[[LogFile, int], None]]:
    """Show one bar per file on a terminal's stderr: share, speed, time left."""
    tasks = {}

    def update(file: LogFile, n_bytes: int) -> None:
        if file.name not in tasks:
            tasks[file.name] = bar.add_task(file.name, total=file.bytes)
        # published uncompressed, the download is longer than the stored file
        total = file.bytes if n_bytes <= file.bytes else file.content_bytes
        bar.update(tasks[file.name], completed=n_bytes, total=total)

    yield update
