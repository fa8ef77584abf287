"""Batch jobs beside a log of node states: which job held which nodes from when to when, as a Parquet file.

``bfreplay ingest --batch-jobs`` writes it. It is of one log: the nodes are indices into those of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bfreplay.datasets.arrow_columns import MOST_TEXT, Column, as_arrow, as_numpy
from bfreplay.datasets.located import first_true
from bfreplay.datasets.log.event_files import open_parquet, read_batches
from bfreplay.datasets.log.event_tables import PARQUET_KEY, LogHeader
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.datasets.times import NOT_KNOWN_US, iso_span, iso_utc
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole

VERSION_KEY, VERSION = b"bfreplay.batch_jobs", b"1"
BATCH_ROWS = 16_384
_NO_WIDTH = -1
GROUP_NODES = 1 << 20
"""Least number of nodes of all jobs in a row group, but the last."""

_TIME = pa.timestamp("us", tz="UTC")
_SCHEMA = pa.schema([("job", pa.string()), ("start", _TIME), ("end", _TIME), ("nodes", pa.list_(pa.int32()))])
_WAITED = pa.schema([("eligible", _TIME), ("wanted", pa.int32()), ("partition", pa.string()), ("qos", pa.string())])
_RULES = ("assignment", "seed", "oversubscription", "release_delay_s", "log_end_us", "limit_grace_s")
_FIX = "write the events and the batch jobs by one command: bfreplay ingest ... -o EVENTS --batch-jobs FILE"


@dataclass(frozen=True, slots=True)
class Waited:
    """Since when each of J jobs waited for its start, and for what.

    Parameters
    ----------
    eligible_us
        Time from which each could have started, ``(J,) int64``; ``NOT_KNOWN_US`` where the log does not tell.
    wanted
        Nodes that each wanted, ``(J,) int64``; 0 for a row with the missing nodes of a job that runs, below 0 where
        the log does not tell.
    partition, qos
        Of each, J texts; empty where the log does not tell.
    """

    eligible_us: NDArray[np.int64]
    wanted: NDArray[np.int64]
    partition: Sequence[str]
    qos: Sequence[str]


@dataclass(frozen=True, slots=True)
class BatchJobs:
    """Batch jobs (J) with nodes, sorted by start; jobs of one start are in the order of their rows.

    Parameters
    ----------
    job
        Name of each job, J texts (or the texts of an Arrow array); a name may occur more than once.
    start_us, end_us
        Interval of each job, [start, end), ``(J,) int64``.
    first, node
        Job j has the nodes ``node[first[j]:first[j + 1]]``, each once: ``(J + 1,) int64`` and ``int32`` indices into
        the sorted nodes of the log.
    waited
        Since when they waited; ``None`` in jobs that were loaded, see ``load_waited``.
    """

    job: Sequence[Any]
    start_us: NDArray[np.int64]
    end_us: NDArray[np.int64]
    first: NDArray[np.int64]
    node: NDArray[np.int32]
    waited: Waited | None = None

    def __len__(self) -> int:
        return len(self.start_us)

    @property
    def n_nodes(self) -> NDArray[np.int64]:
        """Number of nodes of each job, ``(J,)``."""
        return np.diff(self.first)

    def on_nodes(self, place: NDArray[np.int32]) -> BatchJobs:
        """Return the same jobs on some nodes only, with their numbers ``place (N,)`` there; -1 for the others."""
        is_kept = place[self.node] >= 0
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_kept)])[self.first]
        return replace(self, first=first, node=place[self.node][is_kept])

    def take(self, is_kept: NDArray[np.bool_]) -> BatchJobs:
        """Return the jobs marked in ``is_kept (J,)``; the names are those of an Arrow array."""
        if is_kept.all():
            return self
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.n_nodes[is_kept])])
        job_names: Any = self.job
        names = job_names.take(as_arrow(np.flatnonzero(is_kept), pa.int64()))
        node = self.node[np.repeat(is_kept, self.n_nodes)]
        return BatchJobs(names, self.start_us[is_kept], self.end_us[is_kept], first, node)


def write_batch_jobs(pieces: Iterable[BatchJobs], header: LogHeader, path: Path, overwrite: bool = False) -> None:
    """Write batch jobs, piece by piece in order of start, whole or not at all.

    Raises
    ------
    OutputExistsError
        The file exists and ``overwrite`` is false.
    InputError
        The name does not end in ``.parquet``, or the folder cannot be written to.
    """
    refuse_other_ending(path)
    schema = pa.schema([*_SCHEMA, *_WAITED], {VERSION_KEY: VERSION, PARQUET_KEY: header.to_text().encode()})
    encodings = dict.fromkeys(("start", "end", "nodes.list.element", "eligible", "wanted"), "DELTA_BINARY_PACKED")
    options = {"compression": "zstd", "use_dictionary": ["partition", "qos"], "column_encoding": encodings}
    with written_whole([path], overwrite) as (temporary,), pq.ParquetWriter(temporary, schema, **options) as writer:
        for table in _row_groups(pieces, schema):
            writer.write_table(table)


def refuse_other_ending(jobs_path: Path) -> None:
    """Raise ``InputError`` for a name that does not end in ``.parquet``."""
    if jobs_path.suffix.lower() != ".parquet":
        problem = "batch jobs cannot be written to this kind of file"
        raise InputError(problem, file=jobs_path, value=jobs_path.name, expected="a name ending in .parquet")


def _row_groups(pieces: Iterable[BatchJobs], schema: Any) -> Iterator[Any]:
    group, n_nodes = [], 0
    for piece in pieces:
        offsets, nodes = (as_arrow(column.astype(np.int32), pa.int32()) for column in (piece.first, piece.node))
        columns = [as_arrow(piece.job, pa.string()), as_arrow(piece.start_us, _TIME), as_arrow(piece.end_us, _TIME)]
        columns += [pa.ListArray.from_arrays(offsets, nodes), *_waited_columns(piece)]
        group.append(pa.Table.from_arrays(columns, schema=schema))
        n_nodes += len(piece.node)
        if n_nodes >= GROUP_NODES:
            yield pa.concat_tables(group)
            group, n_nodes = [], 0
    if group:
        yield pa.concat_tables(group)


def _waited_columns(jobs: BatchJobs) -> list[Any]:
    """Return the columns of ``_WAITED``: null where something is not known."""
    if jobs.waited is None:
        return [pa.nulls(len(jobs), field.type) for field in _WAITED]
    waited, eligible = jobs.waited, as_arrow(jobs.waited.eligible_us, _TIME)
    is_known = pa.array((waited.eligible_us != NOT_KNOWN_US).tolist(), pa.bool_())
    texts = (pa.array([text or None for text in column], pa.string()) for column in (waited.partition, waited.qos))
    wanted = pa.array([width if width >= 0 else None for width in waited.wanted.tolist()], pa.int32())
    return [pc.if_else(is_known, eligible, pa.scalar(None, _TIME)), wanted, *texts]


def load_batch_jobs(path: Path | str, log: NodeEvents) -> BatchJobs:
    """Read the batch jobs of a log that start in its window, or run at its start; those without nodes are left out.

    Parameters
    ----------
    path
        The file that ``bfreplay ingest --batch-jobs`` wrote.
    log
        The log that it wrote with it, or a part of that.

    Raises
    ------
    InputError
        Another kind of file, a damaged one, one of another log or of other rules, or an invalid row.
    """
    file = Path(path)
    schema, groups = _schema_of(file)
    texts = [groups.row_group(index).column(_SCHEMA.names.index("job")) for index in range(groups.num_row_groups)]
    if any(text.has_dictionary_page or text.total_uncompressed_size > MOST_TEXT for text in texts):
        # read as they are, without a dictionary, which would grow to all names
        problem, expected = "the names of jobs are too long or in a dictionary", f"plain texts, {MOST_TEXT:,} bytes"
        raise InputError(problem, file=file, column="job", expected=expected, fix=_FIX)
    _check_log(LogHeader.from_text(schema.metadata[PARQUET_KEY], file), log, file)
    pieces, row, before_us = [], 1, np.iinfo(np.int64).min
    for batch in read_batches(file, _SCHEMA.names, [], BATCH_ROWS):
        if batch.num_rows:
            piece = _checked(batch, len(log.log_nodes), file, row, before_us)
            row, before_us = row + len(piece), piece.start_us[-1]
            piece = piece if log.node_place is None else piece.on_nodes(log.node_place)
            is_early = piece.start_us < log.window_start_us
            is_inside = (~is_early | (piece.end_us > log.window_start_us)) & (piece.start_us <= log.window_end_us)
            pieces.append(piece.take(is_inside & (piece.n_nodes > 0)))
    ends = np.cumsum([0, *(len(piece.node) for piece in pieces)])
    return BatchJobs(
        pa.chunked_array([piece.job for piece in pieces], pa.string()),
        np.concatenate([np.empty(0, np.int64), *(piece.start_us for piece in pieces)]),
        np.concatenate([np.empty(0, np.int64), *(piece.end_us for piece in pieces)]),
        np.concatenate([ends[:1], *(piece.first[1:] + end for piece, end in zip(pieces, ends, strict=False))]),
        np.concatenate([np.empty(0, np.int32), *(piece.node for piece in pieces)]),
    )


@dataclass(frozen=True, slots=True)
class WaitingJobs:
    """Jobs (W) that waited in the window of a log.

    ``eligible_us`` and ``until_us``: from when to when each waited, ``(W,) int64``; ``wanted``: the nodes that it
    wanted, ``(W,)``; ``partition``: its place in ``partitions``, ``(W,)``, whose first name is empty (not known).
    ``n_known`` jobs of the whole file have an eligible time and a number of nodes; ``n_unknown`` of those that did not
    start before the window have not.
    """

    eligible_us: NDArray[np.int64]
    until_us: NDArray[np.int64]
    wanted: NDArray[np.int64]
    partition: NDArray[np.int64]
    partitions: tuple[str, ...]
    n_known: int
    n_unknown: int


def load_waiting_jobs(path: Path | str, log: NodeEvents) -> WaitingJobs:
    """Read since when the batch jobs of a log waited, those that never started included; errors as ``load_batch_jobs``.

    Raises
    ------
    InputError
        Besides: an older version wrote the file, without these times.
    """
    file = Path(path)
    schema, _ = _schema_of(file)
    for field in _WAITED:
        kinds = [other.type for other in schema if other.name == field.name]
        if kinds != [field.type]:
            problem = "the file does not say since when the batch jobs waited, as one of an older version"
            expected = f"{field.type}, once"
            raise InputError(
                problem, file=file, column=field.name, value=[*map(str, kinds)], expected=expected, fix=_FIX
            )
    _check_log(LogHeader.from_text(schema.metadata[PARQUET_KEY], file), log, file)
    number_of, n_known, n_unknown, row = {"": 0}, 0, 0, 1
    pieces = [np.zeros((4, 0), np.int64)]
    for batch in read_batches(file, ["start", *_WAITED.names[:-1]], ["partition"], BATCH_ROWS):
        until_us = Column(batch.column("start"), "start", file, row).times_us()
        eligible_us = as_numpy(batch.column("eligible").cast(pa.int64()).fill_null(NOT_KNOWN_US))
        wanted = as_numpy(batch.column("wanted").fill_null(_NO_WIDTH)).astype(np.int64)
        texts = batch.column("partition").fill_null("").dictionary_encode()
        numbers = [number_of.setdefault(text, len(number_of)) for text in texts.dictionary.to_pylist()]
        partition = np.array([*numbers, 0], np.int64)[as_numpy(texts.indices)]
        for is_bad, column, problem in (
            (eligible_us > until_us, "eligible", "the job started before it was eligible"),
            (wanted < _NO_WIDTH, "wanted", "the job wanted less than no node"),
        ):
            if (bad_index := first_true(is_bad)) is not None:
                value = str(batch.column(column)[bad_index].as_py())
                raise InputError(problem, file=file, row=row + bad_index, column=column, value=value, fix=_FIX)
        is_known = (eligible_us != NOT_KNOWN_US) & (wanted > 0)
        n_known += int(np.count_nonzero(is_known))
        n_unknown += int(np.count_nonzero(~is_known & (wanted != 0) & (until_us > log.window_start_us)))
        is_inside = is_known & (until_us > log.window_start_us) & (eligible_us < log.window_end_us)
        pieces.append(np.stack([eligible_us, until_us, wanted, partition])[:, is_inside])
        row += batch.num_rows
    eligible_us, until_us, wanted, partition = np.concatenate(pieces, axis=1)
    return WaitingJobs(eligible_us, until_us, wanted, partition, tuple(number_of), n_known, n_unknown)


def _schema_of(file: Path) -> tuple[Any, Any]:
    """Return the schema and the metadata of a file of batch jobs; ``InputError`` for another one."""
    check_is_file(file)
    with open_parquet(file) as parquet:
        schema, metadata = parquet.schema_arrow, parquet.metadata
    _check_kind(schema, file)
    return schema, metadata


def _check_kind(schema: Any, jobs_file: Path) -> None:
    metadata = schema.metadata or {}
    if VERSION_KEY not in metadata or PARQUET_KEY not in metadata:
        problem, expected = "this is not a file of batch jobs", "a file that ingest --batch-jobs wrote"
        raise InputError(problem, file=jobs_file, value=schema.names, expected=expected, fix=_FIX)
    if metadata[VERSION_KEY] != VERSION:
        problem, column = "the batch jobs are of another schema version", "schema_version"
        value, expected = metadata[VERSION_KEY].decode(errors="replace"), VERSION.decode()
        raise InputError(problem, file=jobs_file, column=column, value=value, expected=expected, fix=_FIX)
    for column_index, field in enumerate(_SCHEMA):
        kinds = [other.type for other in schema if other.name == field.name]
        if kinds != [field.type] or schema.names[column_index] != field.name:
            problem = f"the column {field.name} is missing, twice there, elsewhere, or of another type"
            value, expected = [*map(str, kinds)], str(field.type)
            raise InputError(problem, file=jobs_file, column=field.name, value=value, expected=expected, fix=_FIX)


def _check_log(header: LogHeader, node_events: NodeEvents, file: Path) -> None:
    """Refuse batch jobs that are not those by which the log was built."""
    expected = _origin(node_events.metadata)
    for metadata_key, value in _origin(header.metadata).items():
        if value != expected[metadata_key]:
            problem = "the batch jobs are not of this log: it was made of other files, or by other rules"
            expectation = f"{expected[metadata_key]}, as in the log"
            raise InputError(problem, file=file, column=metadata_key, value=value, expected=expectation, fix=_FIX)
    if header.nodes != node_events.log_nodes:
        node_name = sorted(set(header.nodes).symmetric_difference(node_events.log_nodes))[0]
        problem = "the batch jobs are not of this log: its nodes are others"
        raise InputError(problem, file=file, column="nodes", value=node_name, expected="the nodes of the log", fix=_FIX)
    if not header.window_start_us <= node_events.window_start_us < node_events.window_end_us <= header.window_end_us:
        problem = "the batch jobs do not cover the window of the log"
        value = iso_span(header.window_start_us, header.window_end_us)
        expectation = iso_span(node_events.window_start_us, node_events.window_end_us)
        raise InputError(problem, file=file, column="window", value=value, expected=expectation, fix=_FIX)


def _origin(metadata: EventsMetadata) -> dict[str, Any]:
    """Return what decides the intervals of batch jobs: source files, time zone, rules."""
    report = metadata.notes.get("ingest")
    rules = report.get("rules") if isinstance(report, Mapping) else None
    files = [f"{source.name}, sha256 {source.sha256}" for source in metadata.source_files]
    of_rules = {rule_name: rules.get(rule_name) if isinstance(rules, Mapping) else None for rule_name in _RULES}
    return {"source_files": files, "source_timezone": metadata.source_timezone, **of_rules}


def _checked(record_batch: Any, n_nodes: int, jobs_file: Path, row_number: int, before_us: int) -> BatchJobs:
    """Return the rows of a batch that begins with row ``row_number`` of the file, after a job that began before."""
    columns = {name: Column(record_batch.column(name), name, jobs_file, row_number) for name in _SCHEMA.names}
    for column in columns.values():
        column.refuse_nulls()
    start_us, end_us = columns["start"].times_us(), columns["end"].times_us()
    lists = columns["nodes"].values
    offsets = as_numpy(lists.offsets).astype(np.int64)
    first, inner = offsets - offsets[0], lists.flatten()
    owner = np.repeat(np.arange(len(start_us)), np.diff(first))

    def refuse(is_bad: NDArray[np.bool_], column: str, problem: str, expected: str, values: Any, of: Any) -> None:
        bad_index = first_true(is_bad)
        if bad_index is not None:
            at = row_number + int(bad_index if of is None else of[bad_index])
            value = iso_utc(int(values[bad_index])) if of is None else values[bad_index].item()
            raise InputError(problem, file=jobs_file, row=at, column=column, value=value, expected=expected, fix=_FIX)

    if inner.null_count:
        missing = as_numpy(inner.is_null().cast(pa.int8())) > 0
        refuse(missing, "nodes", "a node is missing", "an index in every place", np.zeros(len(inner)), owner)
    node = as_numpy(inner)
    previous = np.concatenate([[before_us], start_us[:-1]])
    refuse(start_us < previous, "start", "the jobs are not sorted by start", "no start before the last", start_us, None)
    refuse(end_us < start_us, "end", "the job ends before it starts", "an end from the start on", end_us, None)
    is_outside = (node < 0) | (node >= n_nodes)
    refuse(is_outside, "nodes", "the log has no such node", f"0 to {n_nodes - 1}", node, owner)
    order = np.lexsort((node, owner))
    is_again = np.zeros(len(node), np.bool_)
    is_again[order[1:]] = (np.diff(node[order]) == 0) & (np.diff(owner[order]) == 0)
    refuse(is_again, "nodes", "a node occurs twice in a job", "each node once", node, owner)
    return BatchJobs(columns["job"].values, start_us, end_us, first, node)
