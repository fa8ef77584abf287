"""load_events and write_events: logs from and to files, by the ending of the name."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.named_inputs import resolve_sample
from bfreplay.datasets.readers_by_ending import EVENT_READERS, ending_of, read_by_ending
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole

_WRITABLE = (".parquet", ".csv", ".csv.gz")


def load_events(path: str | PathLike[str]) -> NodeEvents:
    """Open a log of node states; the rows are read, and checked, by each pass over ``batches()``.

    Parameters
    ----------
    path
        ``.parquet``, ``.csv`` or ``.csv.gz`` with the columns ``time``, ``node``, ``state`` (or the two-state form
        ``time``, ``node``, ``idle``), or a published node-state matrix as ``.pkl`` or ``.tar.gz``.
        Times without a zone are UTC. CSV times are ISO-8601 or seconds since 1970. ``"sample"``: the bundled log.

    Notes
    -----
    A file that ``write_events`` wrote carries its window and all its nodes; a CSV has them in ``<name>.meta.json``
    beside it, which is read if it exists and is then one of the ``sources``. For any other file one pass finds them:
    the nodes with rows, busy before their first row, and the window from the first row to the last.

    Raises
    ------
    InputError
        The file cannot be used; the message says where and how to fix it.
    """
    checks.instance("path", path, (str, PathLike), "the path of a log, or 'sample'")
    file = resolve_sample(Path(path), "events")
    ingest = f"bfreplay ingest auto {file.name} -o events.parquet"
    fix = f"convert a scheduler's log into events by: {ingest}; another file may need another name"
    events: NodeEvents = read_by_ending(file, EVENT_READERS, fix=fix)
    return events


def write_events(events: NodeEvents, path: str | PathLike[str], overwrite: bool = False) -> None:
    """Write a log in the neutral schema, in one pass; the same log gives the same bytes.

    Parameters
    ----------
    events
        The log; the file starts with the state of every node at the start of its window.
    path
        ``.parquet`` (window, nodes and metadata inside), or ``.csv`` / ``.csv.gz`` (the same in ``<name>.meta.json``).
    overwrite
        Replace an existing file. The new one takes its name only when it is complete.

    Raises
    ------
    OutputExistsError
        The file exists and ``overwrite`` is false.
    InputError
        Another ending, a fault in the log, or in CSV a node whose name a spreadsheet would run as a formula.
    """
    checks.instance("events", events, NodeEvents, "NodeEvents, as load_events and ingest return them")
    file = Path(path)
    is_parquet = writable_ending(file) == ".parquet"
    from bfreplay.datasets.log.event_files import write_csv, write_parquet, write_sidecar
    from bfreplay.datasets.log.event_tables import sidecar_path

    if is_parquet:
        with written_whole([file], overwrite) as (temporary,):
            write_parquet(events, temporary)
        return
    for node_name in events.nodes:
        checks.no_formula("node", node_name, file)
    with written_whole([sidecar_path(file), file], overwrite) as (sidecar, table):
        write_sidecar(events, sidecar)
        write_csv(events, table, gzipped=file.suffix.lower() == ".gz")


def writable_ending(log_file: Path) -> str:
    """Return the ending of a name, one of the formats in which logs can be written.

    Raises
    ------
    InputError
        Another ending.
    """
    ending = ending_of(log_file, _WRITABLE)
    if ending is None:
        raise InputError(
            "logs cannot be written to this kind of file",
            file=log_file,
            value=log_file.name,
            expected="a name ending in " + ", ".join(_WRITABLE),
        )
    return ending
