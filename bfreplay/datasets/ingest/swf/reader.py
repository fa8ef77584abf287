"""SwfReader: logs in the Standard Workload Format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import Export, ReadOptions, or_none
from bfreplay.datasets.ingest.swf.log import SwfLog, not_swf
from bfreplay.datasets.ingest.swf.machine import SHOWN, key_and_value
from bfreplay.datasets.ingest.swf.rows import read_line
from bfreplay.datasets.times import HOUR_US
from bfreplay.wording import amount

CLEANED = "jobs were removed from this log (a cleaned version): their nodes look idle while they ran"
SUBMIT_IS_START = "start times: the submit times, by a note of the log"
WAIT_BESIDE_NOTE = "jobs have a waiting time, though a note says that submit times are start times: they start after it"
_LINES_TO_RECOGNISE = 50
_MOST_IN_MEDIAN = 1_000_000


class SwfReader:
    """Reader of the Standard Workload Format 2.2, and of the form of the Alea simulator with node ids.

    The start of a job is its submit time plus its waiting time plus ``UnixStartTime``, its end is that plus its
    running time. The status does not tell whether a job ran: cancelled jobs (5) did, if they have a running time and
    processors. It counts only if the processors in use are unknown (-1): the requested ones are used, unless the job
    was cancelled, as such jobs did not run (SDSC Blue Horizon has 8,899 of them, without processors
    and processor time, which would put 2,944 processors in use on a machine of 1,152). Rows of status 2, 3 and 4 are
    pieces of jobs whose summary row has status 0 or 1.

    A job is known by its number and the file: the same job in two files counts twice, so files must not overlap.
    """

    name = "swf"
    title = "Standard Workload Format: logs of the Parallel Workloads Archive (.swf), Alea's form with node ids"
    options = ("procs_per_node", "missing_wait_is_zero")
    exports: Sequence[Export] = (
        Export(
            "bfreplay datasets fetch kth-sp2-1996",
            "a log of the Parallel Workloads Archive ('bfreplay datasets list' shows others). No scheduler writes this "
            "format: a site's own log is better given as its scheduler exports it, with the nodes of each job",
        ),
    )

    def recognise(self, file: LogFile) -> str | None:
        """Recognise header comments with keys of the standard, or rows of 18 (or 21) numbers; see ``LogReader``."""
        keys: set[str] = set()
        n_rows = 0
        for line_text in file.head_lines()[: 10 * _LINES_TO_RECOGNISE]:
            line_bytes = line_text.encode("utf-8", "surrogateescape").removeprefix(b"\xef\xbb\xbf")
            if not line_bytes.strip():
                continue
            if line_bytes.lstrip().startswith(b";"):
                pair = key_and_value(line_bytes.decode("utf-8", "surrogateescape"))
                keys.update(pair[:1] if pair is not None else ())
                continue
            if isinstance(read_line(line_bytes), str) or not _is_numeric(line_bytes):
                return None
            n_rows += 1
            if n_rows == _LINES_TO_RECOGNISE:
                break
        if len(keys) >= 2:
            first_keys = ", ".join(sorted(keys)[:3])
            return f"comment lines that begin with ';' have the standard's keys ({first_keys})"
        return f"its first {n_rows} rows have 18 numbers each" if n_rows >= 2 else None

    def read(self, files: Sequence[LogFile], record: ScheduleRecord, options: ReadOptions) -> None:
        """Read the files; see ``LogReader``.

        Raises
        ------
        InputError
            No usable row; no job has a waiting time and ``options.missing_wait_is_zero`` is not set; the machine
            is not known; files of different machines, or several without ``UnixStartTime``.
        """
        paths = [log_file.path.resolve() for log_file in files]
        for log_file, path in zip(files, paths, strict=True):
            if paths.count(path) > 1:
                fix = "name it once: its jobs would count twice"
                raise log_file.error("the same file is given twice", expected="each log once", fix=fix)
        logs = [SwfLog(log_file, file_index, record, options) for file_index, log_file in enumerate(files)]
        for swf_log in logs:
            swf_log.read(alone=len(logs) == 1)
        _conclude(logs, record)


def _conclude(logs: Sequence[SwfLog], record: ScheduleRecord) -> None:
    """Add facts and warnings about whole files; raise errors for unusable logs."""
    report = record.report
    statuses = sum((swf_log.statuses for swf_log in logs), Counter[int]())
    n_removals = sum(swf_log.header.removed_jobs for swf_log in logs)
    for swf_log in logs:
        if swf_log.header.submit_is_start:
            report.facts[SUBMIT_IS_START] = swf_log.header.submit_is_start
            why_no_amount, n_waited = "which of the two holds is not known", swf_log.n_waited
            report.warn(WAIT_BESIDE_NOTE, swf_log.file.name, count=n_waited, why_no_amount=why_no_amount)
    if logs[0].options.missing_wait_is_zero:
        all_wait = all(swf_log.n_with_wait == swf_log.n_rows for swf_log in logs)
        has_note = all(swf_log.header.submit_is_start for swf_log in logs)
        why_unused = "the note of the log says so already" if has_note else "every job has a waiting time"
        report.note_no_effect("--missing-wait-is-zero", why_unused, has_note or all_wait)
    names_nodes = logs[0].options.procs_per_node and all(swf_log.machine is None for swf_log in logs)
    report.note_no_effect("--procs-per-node", "the log names the nodes of jobs", names_nodes)
    for swf_log in logs:
        if swf_log.n_kept:
            continue
        if not swf_log.n_rows:
            raise not_swf(swf_log)
        if not swf_log.n_with_wait and not swf_log.options.missing_wait_is_zero:
            raise swf_log.file.error(
                f"no job in this log has a waiting time (column 3 is -1 in all {swf_log.n_rows:,} rows), so nobody can "
                "tell when they started",
                column="3 (wait)",
                value=-1,
                expected="seconds between submission and start, 0 or more",
                fix="take the log from its scheduler, which knows; or let each job start when it was submitted, which "
                "is wrong by every hour that it queued: --missing-wait-is-zero",
            )
        reasons = sorted(report.skipped.items(), key=lambda item: -item[1].count)
        raise swf_log.file.error(
            f"no job of this log can be used: {swf_log.n_rows:,} rows were read",
            value="; ".join(f"{tally.count:,} x {skip_reason}" for skip_reason, tally in reasons[:3]),
            expected="jobs with a submit, wait and run time, and processors",
            fix="check that this is the whole log of a real machine; models of workloads have no waiting times",
        )
    if len(logs) == 1 or not report.facts.get("log"):
        header = logs[0].header.values
        if header_facts := {header_key: header[header_key] for header_key in SHOWN if header_key in header}:
            report.facts["log"] = header_facts
        record.cluster = record.cluster or header.get("Computer") or header.get("Installation")
    report.facts["jobs by status (not used to tell who ran)"] = {str(code): statuses[code] for code in sorted(statuses)}
    n_requests = sum(swf_log.n_requested for swf_log in logs)
    if n_requests:
        report.facts["jobs whose processors are those requested, as those in use are unknown"] = n_requests
    report.read(0)
    if n_removals or any(swf_log.header.is_cleaned for swf_log in logs):
        hours, why_no_amount, removal_text = None, "the log does not tell how many", f"{n_removals:,} jobs"
        if n_removals and record.jobs.n_rows:
            hours, why_no_amount = n_removals * _median_node_hours(record), ""
            at_mean = n_removals * (record.mean_node_hours or 0.0)
            removal_text += f": {amount(hours)} node-hours at the median of the others, {amount(at_mean)} at their mean"
        report_place, n_jobs = (logs[0].file.name, None, removal_text), max(1, n_removals)
        report.warn(CLEANED, *report_place, n_jobs, hours, why_no_amount, is_estimate=bool(hours))


def _median_node_hours(record: ScheduleRecord) -> float:
    """Return the median node-hours of the jobs that stayed, of at most a million of them."""
    step = 1 + record.jobs.n_rows // _MOST_IN_MEDIAN
    node_times_us = [(jobs.count * (jobs.end_us - jobs.start_us))[::step] for jobs, _ in record.jobs.slices()]
    return float(np.median(np.concatenate(node_times_us))) / HOUR_US


def _is_numeric(line_bytes: bytes) -> bool:
    """Return whether all fields are numbers, except from column 19 on in the extended form."""
    return all(or_none(float, field_bytes) is not None for field_bytes in line_bytes.split()[:18])
