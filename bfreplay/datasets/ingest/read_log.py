"""From a scheduler's log files to node events in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bfreplay.datasets.ingest.catalogue import AUTO, readable_by, reader_named, recognised, refuse_events
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.log_file import LogFile, OpenedLog
from bfreplay.datasets.ingest.occupancy.build import BuiltLog, build_events
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.located import located
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.errors import InputError

NO_LOG_FILE = "a file in a folder or an archive is no log that this reader knows; it was left out"

Progress = Callable[[int, int], None]
"""Told bytes read so far, and bytes in all."""

_HEADERS = frozenset({"nodelist", "node", "nodes", "nodename", "hostname", "hostnames", "host", "hosts", "name"})


@dataclass(frozen=True, slots=True)
class ReadLog:
    """A scheduler's log after reading, before rules are applied: the same log under several rules is read once.

    Attributes
    ----------
    record
        Intervals and inventory.
    reader
        Name of the reader.
    sources
        Files that were read.
    why
        For ``auto``: why each file was taken for what it was.
    """

    record: ScheduleRecord
    reader: str
    sources: tuple[SourceFile, ...]
    why: tuple[str, ...]

    @property
    def is_assigned(self) -> bool:
        """Whether nodes have to be chosen by rule, since the log has only numbers of them."""
        return self.record.n_counted > 0

    def built(self, rules: OccupancyRules | None = None) -> BuiltLog:
        """Node events under ``rules``; see ``build_events``. Its errors name the (first) file."""
        try:
            return build_events(self.record, rules, self.sources)
        except InputError as error:
            if error.file is not None or not self.sources:
                raise
            raise located(error, self.sources[0].name, error.row) from error


def read_log(
    paths: Sequence[Path | str],
    reader: str = AUTO,
    options: ReadOptions | None = None,
    *,
    inventory: Path | None = None,
    inventory_only: bool = False,
    outages: Sequence[Path | str] = (),
    progress: Progress | None = None,
) -> ReadLog:
    """Read the files of one scheduler's log.

    Parameters
    ----------
    paths
        Files, folders (the files in them), tar and zip archives, plain or compressed, in any order.
    reader
        ``"slurm"``, ``"pbs"``, ...; ``"auto"`` looks at the files; or ``package.module:Class`` of your own.
    options
        What the log does not say.
    inventory
        A file with the names of all nodes, used or not.
    inventory_only
        Whether only these nodes are wanted: others that the log names are left out, and jobs hold them unseen.
    outages
        Tables of when nodes were out of use (columns node, start, end, state), beside the log of any scheduler.
    progress
        Called with bytes read and bytes in all.

    Raises
    ------
    InputError
        A file cannot be used; the message says where and how to go on.
    """
    if not paths:
        raise InputError("there is no file to read", expected="at least one file")
    options = ReadOptions() if options is None else options
    done, total = 0, 0

    def count(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes
        if progress is not None:
            progress(min(done, total), total)

    if inventory_only and inventory is None:
        raise InputError("--inventory-only needs the names of the nodes that are wanted", fix="give --inventory FILE")
    record = ScheduleRecord(node_names=options.node_names)
    if inventory is not None:
        record.give_inventory(read_inventory(inventory), inventory_only)
    if options.n_nodes is not None:
        record.set_machine_size(options.n_nodes)
    with OpenedLog([Path(path) for path in paths], count) as opened, ExitStack() as stack:
        outage_paths = [Path(path) for path in outages]
        outage_files = stack.enter_context(OpenedLog(outage_paths, count)).files if outages else []
        total = opened.n_bytes + sum(file.size for file in outage_files)
        for file in opened.files:
            refuse_events(file)
        if reader == AUTO:
            chosen, files, why = recognised(opened.files)
            record.report.facts["recognised"] = why
        else:
            chosen, why = reader_named(reader), []
            files = readable_by(chosen, opened.files)
        for file in opened.files:
            if file not in files:
                record.report.warn(NO_LOG_FILE, file.name)
        chosen.read(files, record, options)
        if outage_files:
            from bfreplay.datasets.ingest.table.outages import read_outages  # csv, pyarrow: if needed

            for file in outage_files:
                read_outages(file, record, options)
            record.report.facts.pop("outages", None)  # what a reader says of logs without them
        elif options.timezone is not None and not getattr(chosen, "reads_local_times", True):
            record.report.facts["--tz"] = "has no effect on this log, which has no local times"
        sources = opened.sources
    beside = outage_paths + ([] if inventory is None else [inventory])
    sources = (*sources, *(SourceFile.of(path) for path in beside if path.is_file()))
    return ReadLog(record, chosen.name, sources, tuple(why))


def ingest(
    paths: Sequence[Path | str],
    reader: str = AUTO,
    options: ReadOptions | None = None,
    rules: OccupancyRules | None = None,
    *,
    inventory: Path | None = None,
    inventory_only: bool = False,
    outages: Sequence[Path | str] = (),
    strict: bool = False,
    progress: Progress | None = None,
) -> tuple[NodeEvents, ImportReport]:
    """Read a scheduler's log and make node events of it, with the report of what was kept and what not.

    Parameters
    ----------
    paths, reader, options, inventory, inventory_only, outages, progress
        As ``read_log``.
    rules
        How intervals become states; ``None``: the defaults.
    strict
        Refuse a log that leaves warnings.

    Raises
    ------
    InputError
        A file cannot be used, or (``strict``) there are warnings.
    """
    log = read_log(
        paths, reader, options, inventory=inventory, inventory_only=inventory_only, outages=outages, progress=progress
    )
    built = log.built(rules)
    if strict:
        built.report.refuse_warnings()
    return built.events, built.report


def read_inventory(path: Path) -> tuple[str, ...]:
    """Names of all nodes: a name or a node list (``cn[001-128]``) a line; ``#`` begins a comment.

    What ``sinfo -N -h -o %N``, ``scontrol show hostnames`` or a node list by hand gives. Repeated names count once.

    Raises
    ------
    InputError
        A line is no list of nodes, or there is none.
    """
    check_is_file(path)
    names: dict[str, None] = {}
    for number, line in LogFile(path).lines():
        text = line.split("#", 1)[0].strip()
        try:
            if text.lower() in _HEADERS:
                raise ValueError("it is the head of a column")
            names.update(dict.fromkeys(expand_nodes(text)))
        except ValueError as error:
            raise InputError(
                f"this is no node or list of nodes: {error}",
                file=path,
                row=f"line {number}",
                value=text,
                expected="one name or node list a line, such as cn001 or cn[001-128], and nothing else",
                fix="on the cluster: sinfo -N -h -o %N | sort -u > nodes.txt (Slurm); "
                "pbsnodes -a -F dsv | cut -d'|' -f1 | sed 's/Name=//' > nodes.txt (PBS Pro)",
            ) from None
    if not names:
        raise InputError("the file names no node", file=path, expected="names of nodes", fix="check the file")
    return tuple(names)
