"""PbsReader: accounting files of PBS Pro, OpenPBS and TORQUE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.pbs import records
from bfreplay.datasets.ingest.pbs.records import FARTHEST_US, Line, StampClock
from bfreplay.datasets.ingest.pbs.runs import ORDER_WARNING, Runs
from bfreplay.datasets.ingest.reader import Export, ReadOptions
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import US

PBS_EXPORT = "sh -c '. /etc/pbs.conf; tar czf pbs-accounting.tar.gz -C \"$PBS_HOME/server_priv\" accounting'"
TORQUE_EXPORT = "tar czf torque-accounting.tar.gz -C /var/spool/torque/server_priv accounting"
_HOW = f"run this on your cluster: {PBS_EXPORT} (TORQUE: {TORQUE_EXPORT})"

_EXPECTED = "lines MM/DD/YYYY HH:MM:SS;TYPE;JOBID;key=value ..."
CUT_END_WARNING = "the last line of a file has no end: it may have been cut, and its last value is not used"
_NO_JOB = "a record without a job's id"
_OPEN_QUOTE = re.compile(r"""(?<!\S)[A-Za-z][\w.\-]*=(?:"[^"]*|'[^']*)$""", re.ASCII)
_BACK_US = 3_900 * US  # the end of summer time puts the clock back by one hour
_QUIET_US = 7 * 86_400 * US

_WITHOUT_RUN = {
    **{"Q": "queued record", "L": "licence record", "M": "moved to another server", "a": "alteration of a job"},
    **dict.fromkeys("Pp", "provisioning record"),
    **dict.fromkeys("zr", "suspend or resume record"),
}
_OUTAGES = (
    "not in accounting logs: nodes that were down or drained look idle; give them with --outages FILE"
    " (columns node, start, end, state)"
)

RESERVATION_KINDS = "BFUYKk"
_REASON = "reservation"
_UNREADABLE = "a reservation that cannot be read"
_UNREADABLE_WARNING = "reservations that cannot be read were skipped: their nodes look usable"


class PbsReader:
    """Reader of PBS Pro, OpenPBS and TORQUE accounting: the daily files, in any order, or all in one."""

    name = "pbs"
    title = "PBS Pro, OpenPBS, TORQUE: files of server_priv/accounting"
    options = ("timezone", "dst_fold", "reservations", "unit")
    exports: Sequence[Export] = (
        Export(PBS_EXPORT, "PBS Pro, OpenPBS: all accounting files (as root on the server)"),
        Export(TORQUE_EXPORT, "TORQUE: all accounting files (as root on the server)"),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Return why ``file`` looks like PBS accounting, ``None`` if it does not."""
        lines = file.first_rows()
        count = len(list(filter(records.RECORD_START.match, lines)))
        if not count or 2 * count < len(lines):
            return None
        return f"{count} of the first {len(lines)} lines are PBS accounting records: MM/DD/YYYY HH:MM:SS;TYPE;ID;..."

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read accounting files into ``record``; memory grows with the concurrent jobs.

        Raises
        ------
        InputError
            Another file; a log without usable runs; a needed text stamp of unknown zone.
        """
        firsts = [_first_stamp(log_file) for log_file in files]
        file_order = sorted(range(len(files)), key=lambda file_index: (firsts[file_index], files[file_index].name))
        report = record.report
        n_before = report.kept.get("job intervals", 0)
        clock = StampClock(options, report)
        runs = Runs(record, clock)
        reservations = Reservations(record, clock, options.reservations == "reserved")
        last_us: int | None = None
        covered_days = records.FileDays()
        for file_index in file_order:
            last_us = _read_file(files[file_index], report, runs, reservations, last_us)
            covered_days.add(firsts[file_index], firsts[file_index] if last_us is None else last_us)
        clock.finish()
        runs.finish()
        reservations.finish()
        report.read(0)
        covered_days.finish(report, len(record.nodes))
        if last_us is not None:
            last_moment_us, latest = clock.moment(last_us), clock.latest_us
            if last_moment_us is not None and latest is not None and last_moment_us < latest + _QUIET_US:
                record.stamp(last_moment_us)  # time of the last record, if a time near it confirms it
        if report.kept.get("job intervals", 0) == n_before:
            raise report.no_runs(
                "",
                file=files[file_order[0]].name,
                expected="S and E records with start=, end= and exec_host=",
                fix=_HOW,
            )
        record.add_format("pbs accounting")
        if options.timezone is not None:
            record.timezone = options.timezone
        report.facts["outages"] = _OUTAGES


def _read_file(
    log_file: LogFile, report: ImportReport, runs: Runs, reservations: Reservations, last_us: int | None
) -> int | None:
    """Read a file; return the last text stamp, on the server's clock."""
    for line_number, line_text, is_whole in log_file.lines_with_ends(records.RECORD_START):
        if not line_text.strip():
            continue
        report.read()
        if not is_whole:
            report.warn(CUT_END_WARNING, log_file.name, line_number, line_text)
        line = records.parse_line(line_text if is_whole else _complete(line_text), log_file.name, line_number)
        if line is None or not line.job.strip():
            reason = "a line that is not a record" if line is None else _NO_JOB
            report.skip_with_warning(reason, log_file.name, line_number, line_text)
            continue
        if last_us is not None and line.stamp_us < last_us - _BACK_US:
            why_no_amount = "which runs it moves is not known"
            report.warn(ORDER_WARNING, log_file.name, line_number, line_text[:19], why_no_amount=why_no_amount)
        last_us = line.stamp_us
        _take(line, report, runs, reservations)
    return last_us


def _complete(line_text: str) -> str:
    """Return a possibly cut record without its last attribute; empty if not even the job's id is whole.

    An attribute is whole if another one follows it.
    """
    line_parts = line_text.split(";", 3)
    if len(line_parts) < 4:
        return ""
    head, attributes = line_text[: -len(line_parts[3])] if line_parts[3] else line_text, line_parts[3]
    open_quote = _OPEN_QUOTE.search(attributes)
    whole_end = open_quote.start() if open_quote is not None else max(attributes.rfind(" "), 0)
    return head + attributes[:whole_end]


def _take(line: Line, report: ImportReport, runs: Runs, reservations: Reservations) -> None:
    kind = line.kind
    if kind in _WITHOUT_RUN:
        report.skip(_WITHOUT_RUN[kind], *line.place)
    elif kind in RESERVATION_KINDS:
        reservations.take(line)
    elif kind not in "SERADCTcsue":
        report.skip("other record type", line.file, line.number, f"{kind};{line.job}")
    elif not records.is_job(line.job):
        report.skip_with_warning(_NO_JOB, line.file, line.number, f"{kind};{line.job}")
    elif "[]" in line.job:
        report.skip("array parent", *line.place)
    elif kind == "S":
        runs.start(line)
    elif kind in "ERA":
        runs.end(line)
    elif kind == "D":
        runs.delete(line)
    elif kind in "CT":
        runs.checkpoint(line)
    else:
        runs.give_back(line)


def _first_stamp(log_file: LogFile) -> int:
    """Return the text stamp of the first record, by which files are sorted.

    Raises
    ------
    InputError
        Another file, without a record.
    """
    head_lines = log_file.first_rows()
    stamps = (records.stamp_of(line_text[:19]) for line_text in head_lines if records.RECORD_START.match(line_text))
    first_stamp_us = next((stamp_us for stamp_us in stamps if stamp_us is not None), None)
    if first_stamp_us is not None:
        return first_stamp_us
    if any(records.SERVER_LOG_START.match(line_text) for line_text in head_lines):
        raise log_file.error(
            "this is a log of the PBS server, which has no nodes of jobs",
            expected=f"accounting: {_EXPECTED}",
            fix=_HOW,
        )
    raise log_file.wrong_start(
        "this is not a PBS accounting file",
        value=head_lines[0][:100] if head_lines else "",
        expected=_EXPECTED,
        fix=f"omit this file, or {_HOW}",
    )


@dataclass(frozen=True, slots=True)
class _Reservation:
    start_us: int
    end_us: int
    names: tuple[str, ...]
    line: Line


class Reservations:
    """Converter of begun reservations to ``RESERVED`` outages, if the options ask for it; otherwise skips them."""

    def __init__(self, record: ScheduleRecord, clock: StampClock, keeps_them: bool) -> None:
        self._record = record
        self._clock = clock
        self._are_kept = keeps_them
        self._open: dict[str, _Reservation] = {}

    def take(self, line: Line) -> None:
        """Read a record of ``RESERVATION_KINDS``."""
        if line.kind == "B":
            return self._begin(line)
        self._record.report.skip(_REASON, *line.place)
        reservation = self._open.pop(line.job, None) if line.kind in "FKk" else None
        if reservation is not None:
            self._clock.resolve(line, reservation.start_us, partial(self._add, reservation))

    def finish(self) -> None:
        """Add the reservations that were not ended early, with their planned length."""
        for reservation in self._open.values():
            self._add(reservation, reservation.end_us)
        self._open.clear()

    def _begin(self, line: Line) -> None:
        report = self._record.report
        try:
            attributes = records.attributes(line.text)
            start_time, end_time = records.epoch_us(attributes, "start"), records.epoch_us(attributes, "end")
            if start_time is None or end_time is None or abs(start_time - line.stamp_us) > FARTHEST_US:
                raise ValueError("no start and end")
            host_names = records.vnode_hosts(attributes.get("nodes", "").strip("\"'"))
        except ValueError as error:
            if not self._are_kept:
                return report.skip(_REASON, *line.place)
            fault_text, why_no_amount = f"{line.job}: {error}", "when it was, or of which nodes, cannot be read"
            return report.skip_with_warning(
                _UNREADABLE, *line.place[:2], fault_text, warning=_UNREADABLE_WARNING, why_no_amount=why_no_amount
            )
        open_reservation = self._open.get(line.job)
        if open_reservation is not None and open_reservation.start_us == start_time:
            report.skip(_REASON, *open_reservation.line.place)
        elif open_reservation is not None:
            self._add(open_reservation, open_reservation.end_us)
        self._open[line.job] = _Reservation(start_time, end_time, host_names, line)

    def _add(self, reservation: _Reservation, end_us: int) -> None:
        start_us, end_us = reservation.start_us, min(end_us, reservation.end_us)
        if not self._are_kept:
            self._record.report.skip(_REASON, *reservation.line.place)
            return self._record.add_reservation(start_us, end_us, reservation.names)
        node_ids = self._record.node_ids(reservation.names)
        self._record.add_outage(NodeState.RESERVED, start_us, end_us, node_ids, *reservation.line.place[:2])
