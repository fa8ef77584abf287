"""File in the Standard Workload Format, read into a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.hostlists import MOST_NODES
from bfreplay.datasets.ingest.local_times import zone_of_name
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import MOST_EXAMPLES, UNREADABLE
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import JobSpool
from bfreplay.datasets.ingest.occupancy.submissions import Submission
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.swf.machine import (
    NODES,
    PROCESSORS,
    START,
    ZONE,
    Header,
    Machine,
    machine_of,
    most_in_use,
)
from bfreplay.datasets.ingest.swf.rows import MOST_PROCESSORS, UNKNOWN, Block, Rows
from bfreplay.datasets.times import FIRST_TIME_US, HOUR_US, LAST_TIME_US, US
from bfreplay.errors import InputError

NO_START = "jobs that ran have no submit or no waiting time: they were skipped and their nodes look idle"
WAIT_IS_ZERO = "jobs without a waiting time start at their submit time"
IN_PIECES = (
    "jobs were stopped and continued: each was taken to run in one piece, as its summary row has it, from its start "
    "for its total running time"
)

EPOCHS_FROM_S = 500_000_000
"""16 years: if the first jobs are submitted so long after the start, their times count from 1970 (1985 and later)."""

_RELATIVE = f"no {START}: times count from the start of the log, which is put at 1970-01-01; no zone is needed"
_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]
_PIECES, _CANCELLED = (2, 3, 4), 5
_FILE_SHIFT, _NO_NUMBER = 48, 1 << 47
_ENOUGH_UNREADABLE = 1_000

ANOTHER_NUMBER = "column 19 lists another number of processors than column 5: the listed nodes are used"


class SwfLog:
    """File number ``index`` read into ``record``.

    Attributes
    ----------
    header
        Its comments.
    n_rows, n_unreadable, n_with_wait, n_waited, n_kept
        Rows; lines that are neither rows nor comments; rows with a waiting time, and with one above 0; rows kept as job
        intervals.
    n_requested
        Kept rows with requested in place of used processors.
    statuses
        Rows by status.
    """

    def __init__(self, log_file: LogFile, index: int, record: ScheduleRecord, options: ReadOptions) -> None:
        self.file, self.index, self.record, self.options = log_file, index, record, options
        self.report = record.report
        self.header = Header(log_file.name)
        self.start_us: int | None = None
        self.machine: Machine | None = None
        self.n_rows = self.n_unreadable = self.n_kept = self.n_with_wait = self.n_waited = self.n_requested = 0
        self.statuses: Counter[int] = Counter()

    def read(self, alone: bool) -> None:
        """Read the file into the record; ``alone``: it is the only file.

        Raises
        ------
        InputError
            Another format, or the machine or the start of times is not known or differs between files.
        """
        line_number = 1
        for data in self.file.blocks():
            block = Block(data, line_number)
            first_job = min((int(rows.line[0]) for rows in (block.standard, block.extended) if len(rows)), default=None)
            for at, comment_text in block.comments:
                after_jobs = self.start_us is not None or (first_job is not None and at > first_job)
                if after_jobs and self.start_us is None:
                    self._begin(alone, block)
                self.header.add(at, comment_text, after_jobs)
            if first_job is not None and self.start_us is None:
                self._begin(alone, block)
            self._add_unreadable(block)
            self._add(block, block.standard)
            self._add(block, block.extended)
            line_number += block.n_lines

    def _begin(self, alone: bool, block: Block) -> None:
        """Begin after the comments before the first job; ``block`` has the first jobs."""
        record = self.record
        unix_start_s = self.header.number(START)
        submit_us = np.concatenate([block_rows.submit_us for block_rows in (block.standard, block.extended)])
        submit_us = submit_us[submit_us >= 0]
        is_epoch = len(submit_us) > 0 and int(submit_us.min()) >= EPOCHS_FROM_S * US
        is_relative = (unix_start_s is None or unix_start_s <= 0) and not is_epoch  # -1 is unknown in this format
        if is_relative and not alone:
            raise self.file.error(
                "the times of this log count from its own start, so it cannot be joined with another",
                column=START,
                value=self.header.values.get(START),
                expected=f"a comment '; {START}: ' with seconds since 1970-01-01 UTC in each of several files",
                fix="give one file at a time, or add the comment",
            )
        self.start_us = 0 if unix_start_s is None or is_relative or is_epoch else unix_start_s * US
        if is_relative:
            record.time_origin = "relative"
            self.report.facts["time zone"] = _RELATIVE
            return
        evidence = f"{START} counts seconds since 1970-01-01 UTC: no zone is needed"
        if is_epoch:
            evidence = (
                f"submit times are read as seconds since 1970-01-01 UTC, as they would be years after the start of a "
                f"log ({START}: {self.header.values.get(START, 'none')}): no zone is needed"
            )
        zone = self.header.values.get(ZONE)
        if zone is not None:
            try:
                record.timezone = zone_of_name(zone).key
            except InputError:
                evidence += f"; {ZONE} {zone!r} is not the name of a zone and was not used"
        self.report.facts["time zone"] = evidence

    def _add_unreadable(self, block: Block) -> None:
        self.report.read(len(block.unreadable))
        for line_number, skip_reason in block.unreadable:
            line_text = block.text(line_number)
            self.report.skip_with_warning(skip_reason, self.file.name, line_number, line_text)
        self.n_unreadable += len(block.unreadable)
        if not self.n_rows + len(block.standard) + len(block.extended) and self.n_unreadable >= _ENOUGH_UNREADABLE:
            raise not_swf(self)

    def _add(self, block: Block, rows: Rows) -> None:
        if not len(rows):
            return
        self.report.read(len(rows))
        self.n_rows += len(rows)
        self.n_with_wait += int((rows.wait_us >= 0).sum())
        self.n_waited += int((rows.wait_us > 0).sum())
        codes, n_times = np.unique(rows.status, return_counts=True)
        self.statuses.update(dict(zip(codes.tolist(), n_times.tolist(), strict=True)))
        processors, wait_us = self._processors(rows), rows.wait_us
        is_without_wait = wait_us < 0
        if self.options.missing_wait_is_zero or self.header.submit_is_start:
            wait_us = np.maximum(wait_us, 0)
        start_us = rows.submit_us + wait_us + (self.start_us or 0)
        end_us = start_us + rows.run_us
        is_piece = np.isin(rows.status, _PIECES)
        is_usable, row_warnings = np.ones(len(rows), np.bool_), []
        for skip_reason, is_out, warning in (
            ("a piece of a job that was stopped and continued", is_piece, IN_PIECES),
            ("run time is missing", rows.run_us < 0, None),
            ("ran no time", rows.run_us == 0, None),
            ("no processors", processors <= 0, None),
            ("more processors than a machine has", processors >= MOST_PROCESSORS, UNREADABLE),
            ("submit time is missing", rows.submit_us < 0, NO_START),
            ("wait is missing", wait_us < 0, NO_START),
            ("a time outside the calendar", (start_us <= FIRST_TIME_US) | (end_us >= LAST_TIME_US), UNREADABLE),
        ):
            self._count(self.report.skip, block, rows.line[is_usable & is_out], skip_reason)
            if warning is not None:
                row_warnings.append((warning, is_usable & is_out))
            is_usable &= ~is_out
        usable_rows = np.flatnonzero(is_usable)
        if not self.header.submit_is_start:
            row_warnings.append((WAIT_IS_ZERO, is_usable & is_without_wait))
        machine = None if rows.node_lists or not (len(usable_rows) or self._is_sized) else self._machine_or_error()
        node_time_us = None
        if machine is not None or rows.node_lists:
            n_used_nodes = processors if machine is None else machine.nodes_of(np.clip(processors, 0, MOST_PROCESSORS))
            node_time_us = n_used_nodes.astype(np.float64) * np.maximum(rows.run_us, 0)
        for warning, is_one in row_warnings:
            part_us = None if node_time_us is None else node_time_us[is_one]
            self._count(self.report.warn, block, rows.line[is_one], warning, part_us)
        if not len(usable_rows):
            return
        if not rows.node_lists:
            self.n_requested += int((is_usable & (rows.processors == UNKNOWN) & (processors > 0)).sum())
        self.n_kept += len(usable_rows)
        job_key = np.where(rows.job >= 0, rows.job, _NO_NUMBER + rows.line) + (self.index << _FILE_SHIFT)
        if self.record.job_names is not None:
            for index in usable_rows[job_key[usable_rows] != rows.job[usable_rows]].tolist():
                place = f"{Path(self.file.name).name} line {rows.line[index]}"
                self.record.job_names.add(int(job_key[index]), place if rows.job[index] < 0 else str(rows.job[index]))
        if rows.node_lists:
            self._add_listed(rows, usable_rows, job_key[usable_rows], start_us[usable_rows], end_us[usable_rows])
            self.record.add_format("swf with node lists")
            machine_size = self.header.number(NODES) if self.options.n_nodes is None else self.options.n_nodes
            if machine_size:
                self._set_machine_size(machine_size)
            return
        assert machine is not None
        assert node_time_us is not None
        surplus_us = node_time_us - machine.shares_of(processors) * rows.run_us
        is_partial = is_usable & machine.has_partial_node(processors)
        self._count(self.report.warn, block, rows.line[is_partial], machine.rounding_warning, surplus_us[is_partial])
        n_nodes = machine.nodes_of(processors[usable_rows])
        job_key, start_us, end_us = (column[usable_rows] for column in (job_key, start_us, end_us))
        self.record.add_counted_jobs(job_key, start_us, end_us, n_nodes, start_us - wait_us[usable_rows])
        self.record.add_format("swf")

    def _add_listed(self, rows: Rows, usable_rows: _Ints, job_key: _Ints, start_us: _Ints, end_us: _Ints) -> None:
        """Add the rows ``usable_rows`` (indices) with these keys and times, on the nodes that they list."""
        record, list_sizes, file_name = self.record, list_lengths(rows), self.file.name
        job_columns = (usable_rows.tolist(), job_key.tolist(), start_us.tolist(), end_us.tolist())
        for row_index, job_number, start_time_us, end_time_us in zip(*job_columns, strict=True):
            line_number, processors = int(rows.line[row_index]), int(rows.processors[row_index])
            record.report.read(0)
            if processors != list_sizes[row_index]:
                numbers_text = f"{processors} processors, {list_sizes[row_index]} listed"
                record.report.warn(ANOTHER_NUMBER, file_name, line_number, numbers_text)
            node_ids = record.node_ids(nodes_of_list(rows.node_lists[row_index]))
            submission = Submission(int(rows.submit_us[row_index]) + (self.start_us or 0))
            interval = start_time_us, end_time_us
            record.add_job(job_number, *interval, node_ids, file=file_name, line=line_number, submission=submission)

    def _processors(self, rows: Rows) -> _Ints:
        """Return the processors held; the requested ones if the log has none for a job that was not cancelled."""
        if rows.node_lists:
            return list_lengths(rows)
        is_guess = (rows.processors == UNKNOWN) & (rows.requested > 0) & (rows.status != _CANCELLED)
        return np.where(is_guess, rows.requested, rows.processors)

    def _count(
        self, count: Callable[..., None], block: Block, lines: _Ints, reason: str, node_time_us: _Floats | None = None
    ) -> None:
        """Count these lines, and of warnings the node-microseconds of each, if they are known."""
        for line_index, line_number in enumerate(lines[:MOST_EXAMPLES].tolist()):
            amount = {} if node_time_us is None else {"node_hours": float(node_time_us[line_index]) / HOUR_US}
            count(reason, self.file.name, line_number, block.text(line_number), **amount)
        amount = {} if node_time_us is None else {"node_hours": float(node_time_us[MOST_EXAMPLES:].sum()) / HOUR_US}
        count(reason, count=len(lines[MOST_EXAMPLES:]), **amount)

    @property
    def _is_sized(self) -> bool:
        """True if the number and the size of the nodes are known."""
        header, options = self.header.values, self.options
        is_counted = options.n_nodes is not None or NODES in header
        return is_counted and (options.procs_per_node is not None or PROCESSORS in header)

    def _machine_or_error(self) -> Machine:
        if self.machine is None:
            self.machine = machine_of(self.header, self.options, self.file.name, self._use)
            self._set_machine_size(self.machine.n_nodes)
            self.report.facts["processors per node"] = self.machine.source
        return self.machine

    def _set_machine_size(self, n_nodes: int) -> None:
        if not 0 < n_nodes <= MOST_NODES:
            raise self.file.error(
                "the number of nodes cannot be right",
                column=NODES,
                value=n_nodes,
                expected=f"1 to {MOST_NODES:,} nodes",
                fix="give the machine: --nodes N",
            )
        machine_size = self.record.machine_size
        if self.index and machine_size is not None and machine_size != n_nodes:
            raise self.file.error(
                "the files are logs of machines of different size",
                value=f"{n_nodes:,} nodes here, {machine_size:,} before",
                expected="logs of one machine",
                fix="import each machine on its own, or give its size: --nodes N --procs-per-node P",
            )
        self.record.set_machine_size(n_nodes)

    def _use(self) -> tuple[int, float]:
        """Return the most processors in use at once, from the whole file, and their mean idle share."""
        jobs, line_number = JobSpool(), 1
        for data in self.file.blocks():
            line_block = Block(data, line_number)
            block_rows = line_block.standard
            line_number += line_block.n_lines
            processors, wait_us = self._processors(block_rows), np.maximum(block_rows.wait_us, 0)
            has_run = (block_rows.run_us > 0) & (processors > 0) & (processors < MOST_PROCESSORS)
            has_run &= (block_rows.submit_us >= 0) & ~np.isin(block_rows.status, _PIECES)
            start_us = (block_rows.submit_us + wait_us)[has_run]
            end_us = start_us + block_rows.run_us[has_run]
            jobs.add_counts(start_us, end_us, start_us, block_rows.line[has_run], processors[has_run])
        return most_in_use(jobs)


def not_swf(swf_log: SwfLog) -> InputError:
    """Return the error for a file without any row of the format, with its first other line."""
    examples = chain.from_iterable(tally.examples for tally in swf_log.report.skipped.values())
    example = next((example for example in examples if example.file == swf_log.file.name), None)
    return swf_log.file.error(
        "there is no row of the Standard Workload Format in this file",
        row=example.row if example else None,
        value=None if example is None else example.value,
        expected="rows of 18 columns separated by spaces: job, submit, wait, run, processors, ... (comments: ;)",
        fix="check what wrote the file; `bfreplay ingest --help` lists the formats that can be read",
    )


@lru_cache(maxsize=65_536)
def nodes_of_list(line_text: str) -> tuple[str, ...]:
    """Return the nodes of a list, each once, in order, without leading zeros."""
    return tuple(dict.fromkeys(str(int(node_number)) for node_number in line_text.strip("{}").split(",")))


def list_lengths(rows: Rows) -> _Ints:
    """Return the number of processors listed by each row, ``(R,)``."""
    return np.array([list_text.count(",") + 1 for list_text in rows.node_lists], np.int64)
