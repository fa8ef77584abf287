"""From a scheduler's log files to node events in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path

from bfreplay._compiling import expect_rows
from bfreplay.datasets.ingest.catalogue import AUTO, READERS, find_reader, readable_by, recognise_files, refuse_events
from bfreplay.datasets.ingest.log_file import AS_READ, BARE_RETURNS, JOINED_ROWS, OpenedLog
from bfreplay.datasets.ingest.node_table import CPU_TYPE, NodeTable, read_inventory
from bfreplay.datasets.ingest.occupancy.build import BuiltLog, build_events
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.submissions import JobNames
from bfreplay.datasets.ingest.occupancy.units import Units
from bfreplay.datasets.ingest.reader import OF_ALL_LOGS, LogReader, ReadOptions
from bfreplay.datasets.located import with_location
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.metadata import UNITS, SourceFile
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from bfreplay.options import flag_of
from bfreplay.wording import count

NO_LOG_FILE = "a file in a folder or an archive is not recognised by this reader; it was skipped"

Progress = Callable[[int, int], None]
"""Called with bytes read so far, and total bytes."""

_ROW_BYTES = 8
"""Bytes of a scheduler's log that take an interpreted loop as long as one event."""


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Scheduler log after reading and before the rules, so that a log under several rules is read once.

    Attributes
    ----------
    record
        Intervals and inventory.
    reader
        Name of the reader.
    sources
        Files that were read.
    why
        For ``auto``: the reason for the reader of each file.
    """

    record: ScheduleRecord
    reader: str
    sources: tuple[SourceFile, ...]
    why: tuple[str, ...]

    @property
    def is_assigned(self) -> bool:
        """True if nodes are assigned by rule, because the log has only counts."""
        return self.record.n_counted > 0

    def build(self, rules: OccupancyRules | None = None) -> BuiltLog:
        """Build the node events under ``rules``; see ``build_events``. Errors name the first file."""
        try:
            return build_events(self.record, rules, self.sources)
        except InputError as error:
            if error.file is not None or not self.sources:
                raise
            raise with_location(error, self.sources[0].name, error.row) from error


def read_log(
    paths: Path | str | Sequence[Path | str],
    reader: str = AUTO,
    options: ReadOptions | None = None,
    *,
    inventory: Path | str | None = None,
    inventory_only: bool = False,
    units: Path | str | None = None,
    outages: Sequence[Path | str] = (),
    job_names: bool = False,
    progress: Progress | None = None,
) -> ReadLog:
    """Read the files of one scheduler's log.

    Parameters
    ----------
    paths
        One or several files, folders (the files in them), tar and zip archives, plain or compressed, in any order.
    reader
        ``"slurm"``, ``"pbs"``, ...; ``"auto"`` looks at the files; or ``package.module:Class`` of your own.
    options
        Facts that the log lacks.
    inventory
        File with the names of all nodes, used or not.
    inventory_only
        True to keep only these nodes; others in the log are skipped, and jobs hold them unseen.
    units
        Table of the nodes with their GPUs and cores (``NodeTable``), in place of ``inventory``.
    outages
        Tables of outages (columns node, start, end, state), with the log of any scheduler.
    job_names
        True to keep the names of jobs, for ``BuiltLog.write_batch_jobs``.
    progress
        Called with bytes read and total bytes.

    Raises
    ------
    InputError
        A file cannot be used; the message says where and how to fix it.
    """
    paths = [paths] if isinstance(paths, str | Path) else paths
    if not paths:
        raise InputError("no file to read", expected="at least one file")
    options = ReadOptions() if options is None else options
    n_read, total_bytes = 0, 0

    def count(n_bytes: int) -> None:
        nonlocal n_read
        n_read += n_bytes
        if progress is not None:
            progress(min(n_read, total_bytes), total_bytes)

    if inventory_only and inventory is None and units is None:
        raise InputError("--inventory-only needs the names of the nodes to keep", fix="give --inventory FILE")
    record = ScheduleRecord(node_names=options.node_names)
    record.job_names = JobNames() if job_names else None
    if units is not None or options.unit != "node":
        _give_units(record, options, units, inventory, inventory_only)
    if inventory is not None:
        record.give_inventory(read_inventory(Path(inventory)), inventory_only)
    if options.n_nodes is not None:
        record.set_machine_size(options.n_nodes)
    with OpenedLog([Path(path) for path in paths], count) as log_sources, ExitStack() as stack:
        outage_paths = [Path(path) for path in outages]
        outage_files = stack.enter_context(OpenedLog(outage_paths, count)).files if outages else []
        total_bytes = log_sources.n_bytes + sum(file.size for file in outage_files)
        expect_rows(total_bytes // _ROW_BYTES)
        for file in log_sources.files:
            refuse_events(file)
        if reader == AUTO:
            log_reader, files, evidence = recognise_files(log_sources.files)
            record.report.facts["recognised"] = evidence
        else:
            log_reader, evidence = find_reader(reader), []
            files = readable_by(log_reader, log_sources.files)
        _refuse_options_without_use(log_reader, options, record.report, has_outages=bool(outages))
        for file in log_sources.files:
            if file not in files:
                record.report.warn(NO_LOG_FILE, file.name, why_no_amount="nothing shows what the file holds")
        log_reader.read(files, record, options)
        record.report.read(0)
        if record.units is not None:
            _check_units(record, options.unit)
        is_clear = options.dst_fold != "reject" and not any("--dst-fold" in text for text in record.report.warnings)
        record.report.note_no_effect("--dst-fold", "no local time was left ambiguous", is_clear)
        has_reservations = any(outage.state == NodeState.RESERVED for outage in record.outages)
        are_none = options.reservations == "reserved" and not has_reservations
        record.report.note_no_effect("--reservations", "no reservation was read other than for maintenance", are_none)
        if outage_files:
            from bfreplay.datasets.ingest.table.table_outages import read_outages  # imports csv or pyarrow if needed

            for file in outage_files:
                read_outages(file, record, options)
            record.report.facts.pop("outages", None)  # set by readers of logs without local times
        for file in (*log_sources.files, *outage_files):
            if file.has_bare_returns:
                record.report.warn(BARE_RETURNS, file.name, why_no_amount="it is about all of the file", aside=AS_READ)
            for line_number in file.joined_at:
                record.report.warn(JOINED_ROWS, file.name, line_number, aside=AS_READ)
        sources = log_sources.sources
    beside = outage_paths + [Path(file) for file in (inventory, units) if file is not None]
    sources = (*sources, *(SourceFile.of(path) for path in beside if path.is_file()))
    return ReadLog(record, log_reader.name, sources, tuple(evidence))


def _give_units(
    record: ScheduleRecord,
    options: ReadOptions,
    units: Path | str | None,
    inventory: Path | str | None,
    inventory_only: bool,
) -> None:
    """Give a record the nodes of a table, and their units if these are what can be idle."""
    unit = options.unit
    if units is None:
        raise InputError(
            f"the {UNITS[unit]}s of the nodes are not known",
            column="--unit",
            value=unit,
            expected=f"how many {UNITS[unit]}s each node has, in a file",
            fix="give --units FILE: scontrol show node > FILE (Slurm), or a table node,gpus,cores by hand",
        )
    others = {
        "--inventory": inventory,
        "--nodes": options.n_nodes,
        "--inventory-only": inventory_only and unit != "node",
    }
    for flag in (flag for flag, is_given in others.items() if is_given):
        fix = f"omit {flag}; a node that has 0 units in the file is left out"
        raise InputError(f"--units and {flag} cannot both be: the file of --units names all nodes", fix=fix)
    table = NodeTable.load(Path(units))
    record.give_inventory(table.rows, inventory_only)
    if record.n_given < len(table.rows):
        raise InputError("names of --units become one node by --node-names", file=units, fix="omit --node-names")
    has_types = any(row.type not in ("", CPU_TYPE) for row in table.rows.values())
    rows = zip(record.nodes, table.rows.values(), strict=True)
    record.node_table = {node: (row.type if has_types else "", row.partitions) for node, row in rows}
    if unit == "node":
        return
    counts, cores = table.units(unit), [row.cores or 0 for row in table.rows.values()]
    record.give_units(Units(unit, record.nodes, counts, cores))
    n_without = counts.count(0)
    without = f"; {n_without:,} of its {len(counts):,} nodes without any are left out" if n_without else ""
    record.report.facts["units"] = f"the nodes below are {UNITS[unit]}s of nodes (--units){without}"


def _check_units(record: ScheduleRecord, unit: str) -> None:
    """Refuse a log that says of nodes what ``--units`` cannot say of their units."""
    if record.states_seen:
        problem = f"samples of node states do not say which {UNITS[unit]}s are held"
        raise InputError(problem, column="--unit", value=unit, fix="give logs of jobs only, or omit --unit")
    if record.strange_nodes:
        first = list(record.strange_nodes)[:3]
        raise InputError(
            f"jobs ran on {count(len(record.strange_nodes), 'node')} that the file of --units does not have",
            column="--units",
            value=", ".join([*first, "..."] if len(record.strange_nodes) > len(first) else first),
            expected="every node on which a job ran",
            fix=f"add them to the file, with 0 {UNITS[unit]}s to leave them out",
        )


def _refuse_options_without_use(
    log_reader: LogReader, options: ReadOptions, report: ImportReport, *, has_outages: bool
) -> None:
    """Raise ``InputError`` for an option that the reader has no use for; note those of clocks that the log lacks."""
    option_names = {*getattr(log_reader, "options", (field.name for field in fields(ReadOptions))), *OF_ALL_LOGS}
    if has_outages:
        option_names.update(("timezone", "dst_fold", "time_unit", "time_format"))
    default = ReadOptions()
    for option_name in (field.name for field in fields(ReadOptions) if field.name not in option_names):
        option_value, option_flag = getattr(options, option_name), flag_of(ReadOptions, option_name)
        if option_value == getattr(default, option_name) or option_name == "dst_fold":  # noted after the log is read
            continue
        if option_name == "timezone":
            report.facts[option_flag] = "has no effect on this log, which has no local times"
            continue
        of_others = [reader for reader in READERS.names() if option_name in getattr(find_reader(reader), "options", ())]
        raise InputError(
            f"{option_flag} does not apply to a log read as {log_reader.name}",
            column=option_flag,
            value=option_value if isinstance(option_value, str | int) else str(option_value),
            expected=f"an option of this format; {option_flag} is for {', '.join(of_others)}",
            fix=f"omit {option_flag}, or name another format: bfreplay ingest {of_others[-1]} ...",
        )


def ingest(
    paths: Path | str | Sequence[Path | str],
    reader: str = AUTO,
    options: ReadOptions | None = None,
    rules: OccupancyRules | None = None,
    *,
    inventory: Path | str | None = None,
    inventory_only: bool = False,
    units: Path | str | None = None,
    outages: Sequence[Path | str] = (),
    batch_jobs: Path | str | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> tuple[NodeEvents, ImportReport]:
    """Read a scheduler's log and convert it to node events, with an import report.

    Parameters
    ----------
    paths
        One or several files, folders (the files in them), tar and zip archives, plain or compressed, in any order.
    reader
        ``"slurm"``, ``"pbs"``, ...; ``"auto"`` looks at the files; or ``package.module:Class`` of your own.
    options
        Facts that the log lacks, such as ``ReadOptions(timezone="Europe/Paris")``.
    inventory, inventory_only
        File with the names of all nodes, used or not; true to skip others in the log.
    units
        Table of the nodes with their GPUs and cores, in place of ``inventory``; needed for ``ReadOptions.unit``.
    outages
        Tables of outages (columns node, start, end, state), with the log of any scheduler.
    progress
        Called with bytes read and total bytes.
    rules
        Rules for node states; ``None``: the defaults.
    batch_jobs
        Parquet file to write, with the batch jobs and their nodes.
    strict
        Refuse a log with warnings.

    Raises
    ------
    InputError
        A file cannot be used, or (``strict``) there are warnings.
    """
    log = read_log(
        paths,
        reader,
        options,
        inventory=inventory,
        inventory_only=inventory_only,
        units=units,
        outages=outages,
        job_names=batch_jobs is not None,
        progress=progress,
    )
    import_ = log.build(rules)
    if strict:
        import_.report.refuse_warnings()
    if batch_jobs is not None:
        import_.write_batch_jobs(batch_jobs)
    return import_.events, import_.report
