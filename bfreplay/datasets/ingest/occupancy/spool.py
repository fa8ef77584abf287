"""Job intervals sorted by start from any order, in bounded memory.

Rows are gathered in *runs*; a full run is sorted and written to a temporary folder. Reading merges the runs block by
block. A log that fits into one run never touches the disk.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bfreplay.datasets.times import NOT_KNOWN_US
from bfreplay.outputs import naming, scratch_prefix

RUN_ROWS = 262_144
RUN_NODES = 8 * RUN_ROWS
BLOCK_ROWS = 8_192
"""Rows of a run in memory at a time, with at most a run / BLOCKS listed nodes; one row at least."""

BLOCKS = 32

OPEN_END = np.iinfo(np.int64).max
"""End of an interval that was open when the log was written."""

_COLUMNS = ("start_us", "end_us", "limit_end_us", "job_key", "count", "eligible_us", "kind", "first_node")
_WIDTH = len(_COLUMNS)


@dataclass(frozen=True, slots=True)
class JobIntervals:
    """Job intervals (J), sorted by start and job.

    ``start_us``, ``end_us`` (``OPEN_END`` while running), ``limit_end_us`` (latest end by the time limit, ``OPEN_END``
    without one), ``job_key`` (equal for runs of one job), ``count`` (nodes held), ``eligible_us`` (time from which the
    job waited, ``NOT_KNOWN_US`` without one) and ``kind`` (its partition and QOS as numbered by the record, 0: unknown)
    are ``(J,) int64``. Job j's listed nodes are ``nodes[first_node[j]:first_node[j + 1]]``, with ``first_node (J + 1,)
    int64`` and ``nodes int32``; a job may list fewer nodes than it holds, none if the log has only counts.
    """

    start_us: NDArray[np.int64]
    end_us: NDArray[np.int64]
    limit_end_us: NDArray[np.int64]
    job_key: NDArray[np.int64]
    count: NDArray[np.int64]
    eligible_us: NDArray[np.int64]
    kind: NDArray[np.int64]
    first_node: NDArray[np.int64]
    nodes: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.start_us)

    @property
    def columns(self) -> tuple[NDArray[np.int64], ...]:
        """Columns with one number per job: all but the listed nodes."""
        return self.start_us, self.end_us, self.limit_end_us, self.job_key, self.count, self.eligible_us, self.kind

    def take(self, row_indices: NDArray[np.int64]) -> JobIntervals:
        """Return the rows ``row_indices``, in that order."""
        lengths = np.diff(self.first_node)[row_indices]
        first_node = first_of_each(lengths)
        source = np.repeat(self.first_node[:-1][row_indices] - first_node[:-1], lengths) + np.arange(first_node[-1])
        return _intervals((job_column[row_indices] for job_column in self.columns), first_node, self.nodes[source])

    def part(self, begin_row: int, end_row: int) -> JobIntervals:
        """Return the rows from ``begin_row`` up to ``end_row``."""
        first, after_last = int(self.first_node[begin_row]), int(self.first_node[end_row])
        columns = (job_column[begin_row:end_row] for job_column in self.columns)
        return _intervals(columns, self.first_node[begin_row : end_row + 1] - first, self.nodes[first:after_last])


class JobSpool:
    """Spool that takes job intervals in any order and returns them sorted, as often as wanted.

    Parameters
    ----------
    run_rows, run_nodes
        Rows, or listed nodes, of a full run.

    Attributes
    ----------
    n_rows
        Rows added.
    n_repeated, n_contradicting
        Rows that the latest pass over ``slices`` skipped so far as duplicate runs of a job, and those among them with
        other nodes, or another known end.
    """

    def __init__(self, run_rows: int = RUN_ROWS, run_nodes: int = RUN_NODES) -> None:
        self._run_rows, self._run_nodes = run_rows, run_nodes
        self._rows = array("q")
        self._listed: list[NDArray[np.int32]] = []
        self._n_listed = 0
        self._runs: list[_Run] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.n_rows = 0
        self.n_repeated = self.n_contradicting = 0

    def add(
        self,
        start_us: int,
        end_us: int,
        limit_end_us: int,
        job_key: int,
        count: int,
        nodes: NDArray[np.int32] | None,
        eligible_us: int = NOT_KNOWN_US,
        kind: int = 0,
    ) -> None:
        """Add one interval; ``nodes`` are the listed ones, no more than ``count``."""
        n_names = 0 if nodes is None else len(nodes)
        self._rows.extend((start_us, end_us, limit_end_us, job_key, count, eligible_us, kind, n_names))
        if nodes is not None and n_names:
            self._listed.append(nodes)
            self._n_listed += n_names
        self.n_rows += 1
        if len(self._rows) >= self._run_rows * _WIDTH or self._n_listed >= self._run_nodes:
            self._end_run()

    def add_counts(
        self,
        start_us: NDArray[np.int64],
        end_us: NDArray[np.int64],
        limit_end_us: NDArray[np.int64],
        job_key: NDArray[np.int64],
        count: NDArray[np.int64],
        eligible_us: NDArray[np.int64] | None = None,
    ) -> None:
        """Add J intervals without listed nodes, ``(J,)`` each."""
        none = np.zeros(len(count), np.int64)
        eligible_us = none + NOT_KNOWN_US if eligible_us is None else eligible_us
        table_rows = np.column_stack([start_us, end_us, limit_end_us, job_key, count, eligible_us, none, none])
        for begin_row in range(0, len(table_rows), self._run_rows):
            rows_of_run = table_rows[begin_row : begin_row + self._run_rows]
            self._rows.frombytes(np.ascontiguousarray(rows_of_run, dtype=np.int64).tobytes())
            self.n_rows += len(rows_of_run)
            if len(self._rows) >= self._run_rows * _WIDTH:
                self._end_run()

    def add_with_nodes(self, jobs: JobIntervals) -> None:
        """Add J intervals that list all their nodes."""
        first_node = jobs.first_node
        table_rows = np.column_stack([*jobs.columns, np.diff(first_node)])
        begin_row = 0
        while begin_row < len(table_rows):
            # a run ends with the same row as if they were added one by one
            full_row = int(np.searchsorted(first_node, first_node[begin_row] + self._run_nodes - self._n_listed))
            end_row = min(full_row, begin_row + self._run_rows - len(self._rows) // _WIDTH, len(table_rows))
            self._rows.frombytes(table_rows[begin_row:end_row].tobytes())
            self._listed.append(jobs.nodes[first_node[begin_row] : first_node[end_row]])
            self._n_listed += len(self._listed[-1])
            self.n_rows += end_row - begin_row
            if len(self._rows) >= self._run_rows * _WIDTH or self._n_listed >= self._run_nodes:
                self._end_run()
            begin_row = end_row

    def slices(self) -> Iterator[tuple[JobIntervals, int]]:
        """Yield all intervals in order of start, in pieces, each with the next start (``OPEN_END`` at the end).

        A run that was read twice (same job, same start: overlapping exports) comes once, with the known end, or the
        later one. No start is split over two pieces.
        """
        self.n_repeated = self.n_contradicting = 0
        readers: list[_BlockReader] = [_RunReader(run, self._run_nodes // BLOCKS) for run in self._runs]
        if self._rows:
            readers.append(_BlockReader(self._run_by_start()))
        while True:
            for reader in readers:
                reader.fill()
            readers = [reader for reader in readers if len(reader.block)]
            if not readers:
                return
            waiting = [int(reader.block.start_us[-1]) for reader in readers if not reader.is_last]
            boundary_us = min(waiting, default=OPEN_END)
            sorted_parts = [reader.take_before(boundary_us) for reader in readers]
            sorted_parts = [sorted_part for sorted_part in sorted_parts if len(sorted_part)]
            if not sorted_parts:  # one start fills a whole block
                for reader in readers:
                    if not reader.is_last and int(reader.block.start_us[-1]) == boundary_us:
                        reader.grow()
                continue
            # a run with rows on disk has one in its block: the last start of a block is never before the boundary
            starts_us = [int(reader.block.start_us[0]) for reader in readers if len(reader.block)]
            following = min(starts_us, default=OPEN_END)
            yield self._without_twins(_merge(sorted_parts)), following

    def _without_twins(self, job_rows: JobIntervals) -> JobIntervals:
        is_twin = (job_rows.start_us[1:] == job_rows.start_us[:-1]) & (job_rows.job_key[1:] == job_rows.job_key[:-1])
        if not is_twin.any():
            return job_rows
        group_number = first_of_each(~is_twin)
        has_end = job_rows.end_us != OPEN_END
        best = np.lexsort((job_rows.end_us, has_end, group_number))  # last of each group: the latest known end, if any
        is_best = np.concatenate([np.diff(group_number[best]) > 0, np.ones(1, np.bool_)])
        best_of_group = best[is_best]
        self.n_repeated += len(job_rows) - len(best_of_group)
        for row_index in best[~is_best].tolist():
            best_row = int(best_of_group[group_number[row_index]])
            is_other = job_rows.count[row_index] != job_rows.count[best_row]
            is_other |= set(_nodes_of(job_rows, row_index)) != set(_nodes_of(job_rows, best_row))
            is_other |= has_end[row_index] and job_rows.end_us[row_index] != job_rows.end_us[best_row]
            self.n_contradicting += bool(is_other)
        return job_rows.take(best_of_group)

    def _run_by_start(self) -> JobIntervals:
        table = np.frombuffer(self._rows, dtype=np.int64).reshape(-1, _WIDTH)
        first_node = first_of_each(table[:, -1])
        nodes = np.concatenate(self._listed) if self._listed else np.empty(0, np.int32)
        return _in_order(_intervals(np.ascontiguousarray(table[:, :-1].T), first_node, nodes))

    def _end_run(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=scratch_prefix("ingest"))
        self._runs.append(_Run.write(self._run_by_start(), Path(self._folder.name) / f"run-{len(self._runs)}"))
        self._rows, self._listed, self._n_listed = array("q"), [], 0


@dataclass(frozen=True, slots=True)
class _Run:
    """Sorted run on disk: rows of int64 (``_COLUMNS``), and the listed nodes one after another."""

    rows_file: Path
    nodes_file: Path
    n_rows: int

    @classmethod
    def write(cls, run: JobIntervals, stem: Path) -> _Run:
        table_rows = np.column_stack([*run.columns, run.first_node[:-1]])
        end_row = np.array([[OPEN_END, *[0] * (_WIDTH - 2), run.first_node[-1]]], dtype=np.int64)
        files_of_run = cls(stem.with_suffix(".rows"), stem.with_suffix(".nodes"), len(run))
        tables = (np.concatenate([table_rows, end_row]), files_of_run.rows_file), (run.nodes, files_of_run.nodes_file)
        for table, file in tables:
            with naming(file):
                file.write_bytes(np.ascontiguousarray(table).data)  # ndarray.tofile ignores a full disk
        return files_of_run


class _BlockReader:
    """Reader of a run in memory."""

    def __init__(self, run: JobIntervals) -> None:
        self.block = run
        self.is_last = True

    def fill(self) -> None:
        """Nothing is left to load."""

    def grow(self) -> None:
        """Nothing is left to load."""

    def take_before(self, boundary_us: int) -> JobIntervals:
        n_rows = len(self.block) if boundary_us == OPEN_END else int(np.searchsorted(self.block.start_us, boundary_us))
        rows_before, self.block = self.block.part(0, n_rows), self.block.part(n_rows, len(self.block))
        return rows_before


class _RunReader(_BlockReader):
    """Reader of a run on disk, a block at a time."""

    def __init__(self, run: _Run, most_nodes: int) -> None:
        super().__init__(no_jobs())
        self._most_nodes = most_nodes
        self._run = run
        self._done = 0
        self.is_last = False

    def fill(self) -> None:
        if not len(self.block) and self._done < self._run.n_rows:
            self.grow()

    def grow(self) -> None:
        n_rows = min(BLOCK_ROWS, self._run.n_rows - self._done)
        row_numbers = np.fromfile(self._run.rows_file, np.int64, (n_rows + 1) * _WIDTH, offset=8 * _WIDTH * self._done)
        table = row_numbers.reshape(-1, _WIDTH)
        n_rows = max(1, int(np.searchsorted(table[1:, -1] - table[0, -1], self._most_nodes, side="right")))
        table = table[: n_rows + 1]
        first = np.ascontiguousarray(table[:, -1])
        nodes = np.fromfile(self._run.nodes_file, np.int32, int(first[-1] - first[0]), offset=4 * int(first[0]))
        self._done += n_rows
        self.is_last = self._done == self._run.n_rows
        rows = _intervals(np.ascontiguousarray(table[:-1, :-1].T), first - first[0], nodes)
        self.block = _join([self.block, rows])


def first_of_each(lengths: ArrayLike) -> NDArray[np.int64]:
    """Return where each of several lists begins that stand one after another, and where the last ends, ``(L + 1,)``."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def no_jobs() -> JobIntervals:
    """Return an empty table."""
    none = np.empty(0, np.int64)
    return _intervals([none] * (_WIDTH - 1), np.zeros(1, np.int64), np.empty(0, np.int32))


def _nodes_of(job_rows: JobIntervals, row_index: int) -> list[int]:
    return list(map(int, job_rows.nodes[job_rows.first_node[row_index] : job_rows.first_node[row_index + 1]]))


def _join(sorted_parts: list[JobIntervals]) -> JobIntervals:
    sorted_parts = [part for part in sorted_parts if len(part)] or [no_jobs()]
    if len(sorted_parts) == 1:
        return sorted_parts[0]
    columns = (np.concatenate(column) for column in zip(*(part.columns for part in sorted_parts), strict=True))
    lengths = np.concatenate([np.diff(part.first_node) for part in sorted_parts])
    return _intervals(columns, first_of_each(lengths), np.concatenate([part.nodes for part in sorted_parts]))


def _merge(sorted_parts: list[JobIntervals]) -> JobIntervals:
    joined_rows = _join(sorted_parts)
    return joined_rows if len(sorted_parts) == 1 else _in_order(joined_rows)


def _in_order(job_rows: JobIntervals) -> JobIntervals:
    return job_rows.take(np.lexsort((job_rows.end_us, job_rows.job_key, job_rows.start_us)))


def _intervals(
    columns: Iterable[NDArray[np.int64]], first_node: NDArray[np.int64], nodes: NDArray[np.int32]
) -> JobIntervals:
    start_us, end_us, limit_end_us, job_key, count, eligible_us, kind = columns
    return JobIntervals(start_us, end_us, limit_end_us, job_key, count, eligible_us, kind, first_node, nodes)
