"""Logs of Cobalt and of the Argonne Leadership Computing Facility (ALCF), which publishes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.scheduler_logs.cobalt.jobs import NO_LOCATION, CobaltJobs
from bfreplay.datasets.scheduler_logs.cobalt.kinds import Kind, Layout, layout_of
from bfreplay.datasets.scheduler_logs.cobalt.machines import MACHINE_SIZES
from bfreplay.datasets.scheduler_logs.cobalt.outages import CobaltOutages
from bfreplay.datasets.scheduler_logs.cobalt.stamps import Stamps
from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.datasets.scheduler_logs.options import ReadOptions
from bfreplay.datasets.scheduler_logs.reader import Export
from bfreplay.datasets.scheduler_logs.table.csv_rows import check_text, first_line, rows_of
from bfreplay.datasets.scheduler_logs.table.identity import Identities
from bfreplay.datasets.scheduler_logs.table.jobs import UNREADABLE
from bfreplay.datasets.scheduler_logs.table.outages import OUTAGES_UNREADABLE
from bfreplay.errors import InputError

_ADDRESS = "https://reports.alcf.anl.gov/data/"
_HOW = f"take ANL-ALCF-DJC-<MACHINE>_<from>_<to>.csv.gz from {_ADDRESS}"
_FORMATS = {
    Kind.JOBS: "alcf jobs",
    Kind.STATUS: "alcf machine status",
    Kind.RESERVATIONS: "cobalt reservations",
    Kind.MAINTENANCE: "maintenance periods",
}
_OUTAGES_FIRST = (Kind.MAINTENANCE, Kind.STATUS, Kind.RESERVATIONS, Kind.JOBS)
_ROLE = "MACHINE_NAME"

Add = Callable[[Mapping[str, str], str, int], None]


class CobaltReader:
    """Job tables of ALCF (Mira, Theta, ThetaGPU, Cooley, Polaris, Aurora), raw Cobalt rows, and what goes with them.

    - jobs: ``ANL-ALCF-DJC-<MACHINE>_*.csv`` (DIM_JOB_COMPOSITE), or raw Cobalt job rows of 27 columns, with or without
      their header;
    - ``ANL-ALCF-MACHINESTATUS-<MACHINE>_*.csv``, maintenance periods (start, end), reservations (16 columns).

    Stamps are UTC unless ``timezone`` says otherwise; when 20 or more maintenance periods are given, the hour of their
    starts in Chicago is checked. The size of the machine follows from its name unless ``n_nodes`` says otherwise. Nodes
    are known where ``LOCATION`` lists them; blocks (Mira) give only their number, lists that were cut short give some.
    """

    name = "cobalt"
    title = "Cobalt and ALCF's public tables: jobs, machine status, maintenance periods, reservations"
    exports: Sequence[Export] = (
        Export(f"{_ADDRESS}: ANL-ALCF-DJC-<MACHINE>_<from>_<to>.csv.gz", "jobs of one machine and period"),
        Export(f"{_ADDRESS}: ANL-ALCF-MACHINESTATUS-<MACHINE>_<from>_<to>.csv.gz", "when the whole machine was down"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Say which of the kinds of ALCF files this is, and by what."""
        try:
            layout = layout_of(file)
        except InputError:  # damaged: what it is cannot be seen
            return None
        return None if layout is None else f"{_FORMATS[layout.kind]}: {layout.why}"

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read jobs, and what goes with them, of one machine."""
        layouts = [(file, _layout(file, options)) for file in files]
        if not any(layout.kind is Kind.JOBS for _, layout in layouts):
            raise InputError(
                "there are no jobs in what was given: " + ", ".join(_FORMATS[layout.kind] for _, layout in layouts),
                file=files[0].name,
                expected="a table of jobs, beside machine status, maintenance periods and reservations",
                fix=f"give the jobs of the same machine and time too: {_HOW}",
            )
        machine = _machine(layouts)
        size = options.n_nodes or MACHINE_SIZES.get(machine or "")
        if size is not None:
            record.set_machine_size(size)
            known = f"{machine} has {size:,} nodes (--nodes for another number)"
            record.lint.facts["machine size"] = f"{size:,} nodes, as given" if options.n_nodes else known
        record.cluster = machine or record.cluster
        stamps = Stamps(options, record.lint, _HOW)
        record.timezone = stamps.zone
        outages = CobaltOutages(record, stamps, machine, size, options.reservations)
        identities = Identities(record.lint)
        jobs: CobaltJobs | None = None
        intervals = 0
        for kind in _OUTAGES_FIRST:
            if kind is Kind.JOBS:
                open_starts = [start_us for start_us, _, _ in sorted(outages.open_ended)]
                jobs = CobaltJobs(record, stamps, identities, machine, size, open_starts)
                intervals = record.lint.kept.get("job intervals", 0)
            for file, layout in layouts:
                if layout.kind is kind:
                    identities.next_file()
                    record.add_format(_FORMATS[kind])
                    add = _adder(kind, outages, jobs)
                    _read_one(file, layout, add, record)
        if jobs is None or record.lint.kept.get("job intervals", 0) == intervals:
            raise _nothing(files, record)
        jobs.finish()
        outages.close(jobs.next_start)
        if outages.left_out_us:
            hours = outages.left_out_us / 3_600_000_000
            record.lint.facts["reservations left out"] = f"{hours:,.0f} node-hours on nodes that cannot be told"
        record.lint.facts["time zone"] = stamps.evidence()


def _adder(kind: Kind, outages: CobaltOutages, jobs: CobaltJobs | None) -> Add:
    if kind is Kind.JOBS and jobs is not None:
        return jobs.add
    by_kind: Mapping[Kind, Add] = {
        Kind.STATUS: outages.add_status,
        Kind.MAINTENANCE: outages.add_maintenance,
        Kind.RESERVATIONS: outages.add_reservation,
    }
    return by_kind[kind]


def _layout(file: LogFile, options: ReadOptions) -> Layout:
    check_text(file)
    layout = layout_of(file)
    if layout is None and options.columns is not None:
        layout = layout_of(file, options.columns)
    if layout is None:
        raise InputError(
            "this is none of ALCF's tables",
            file=file.name,
            row="line 1",
            value=first_line(file)[:160],
            expected="columns START_TIMESTAMP, END_TIMESTAMP, NODES_USED (or USED_NODES), MACHINE_NAME; or 27 cells of "
            "a raw Cobalt job, 16 of a reservation, 2 of a maintenance period",
            fix=f"{_HOW}; for rows without a header: --columns START_TIMESTAMP,END_TIMESTAMP,...",
        )
    repeated = [name for name in ("START_TIMESTAMP", "END_TIMESTAMP", "LOCATION") if layout.names.count(name) > 1]
    if repeated:
        raise InputError(
            f"two columns are called {repeated[0]}",
            file=file.name,
            row="line 1",
            expected="each column once",
            fix="remove one of them",
        )
    return layout


def _machine(layouts: Sequence[tuple[LogFile, Layout]]) -> str | None:
    """Machine that most of the first jobs name, in lower case."""
    names: Counter[str] = Counter()
    for file, layout in layouts:
        if layout.kind is Kind.JOBS and _ROLE in layout.places:
            lines = enumerate(file.head_lines(), 1)
            if layout.has_header:
                next(lines, None)
            for row in rows_of(lines, ",", len(layout.names)):
                if row.cells is not None and row.cells[layout.places[_ROLE]].strip():
                    names[row.cells[layout.places[_ROLE]].strip().lower()] += 1
    return max(names, key=lambda name: (names[name], name), default=None)


def _read_one(file: LogFile, layout: Layout, add: Add, record: ScheduleRecord) -> None:
    lint = record.lint
    doubt = UNREADABLE if layout.kind is Kind.JOBS else OUTAGES_UNREADABLE
    if layout.kind is Kind.JOBS and not {"LOCATION", "MACHINE_PARTITION"} & set(layout.names):
        lint.facts["nodes of jobs"] = NO_LOCATION
    lines = ((line, text.removeprefix("\ufeff") if line == 1 else text) for line, text in file.lines())
    is_first = layout.has_header
    header = first_line(file)
    for row in rows_of(lines, ",", len(layout.names)):
        if is_first:
            is_first = row.text.startswith("#")
            continue
        lint.read()
        if row.cells is None:
            lint.drop("a row with another number of columns", file.name, row.line, row.text)
            lint.doubt(doubt, file.name, row.line, row.text)
        elif layout.has_header and row.text == header:
            lint.drop("the header again", file.name, row.line, row.text)
        else:
            add(dict(zip(layout.names, row.cells, strict=True)), file.name, row.line)


def _nothing(files: Sequence[LogFile], record: ScheduleRecord) -> InputError:
    dropped = sorted(record.lint.dropped.items(), key=lambda item: (-item[1].count, item[0]))
    reasons = "; ".join(f"{reason} ({tally.count:,} x)" for reason, tally in dropped[:3])
    example = next((tally.examples[0] for _, tally in dropped if tally.examples), None)
    return InputError(
        "no job in these files can be used" + (f": {reasons}" if reasons else ": there are no rows"),
        file=example.file if example is not None and example.file else files[0].name,
        row=None if example is None or example.line is None else f"line {example.line}",
        value=example.value if example is not None else "",
        expected="jobs with START_TIMESTAMP, END_TIMESTAMP and NODES_USED",
        fix=f"{_HOW}, as it is",
    )
