"""Logs that are tables of (time, node, state) or (time, node, idle), whatever the file format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.checks import is_name, near_name, unusable_name
from bfreplay.datasets.arrow_columns import Column
from bfreplay.datasets.hints import did_you_mean, kind_of_table, refuse_other_separators
from bfreplay.datasets.located import first_true
from bfreplay.datasets.log.events import DEFAULT_BATCH_ROWS, NodeEvents, check_nodes
from bfreplay.datasets.log.metadata import EventsMetadata, SourceFile
from bfreplay.datasets.log.passes import UNSET, time_runs_backwards
from bfreplay.datasets.log.sources import EventSource, RowChunk
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.times import iso_utc, parse_time_us
from bfreplay.documents import Json, parse_json
from bfreplay.errors import InputError

PARQUET_KEY = b"bfreplay"
SIDECAR_SUFFIX = ".meta.json"


@dataclass(frozen=True, slots=True)
class LogHeader:
    """Node names in the order of the log, window in microseconds UTC, and metadata of a log.

    A log that ``is_growing`` may have rows after the window, which are still being written: they are ignored.
    """

    nodes: tuple[str, ...]
    window_start_us: int
    window_end_us: int
    metadata: EventsMetadata
    is_growing: bool = False

    @classmethod
    def of(cls, events: NodeEvents) -> LogHeader:
        """Return the header of a log."""
        return cls(events.nodes, events.window_start_us, events.window_end_us, events.metadata)

    def to_text(self, indent: int | None = None) -> str:
        """Return JSON: the metadata plus ``window_start``, ``window_end``, ``n_nodes`` and ``nodes``."""
        document = self.metadata.to_json() | {
            "window_start": iso_utc(self.window_start_us),
            "window_end": iso_utc(self.window_end_us),
            "n_nodes": len(self.nodes),
            "nodes": list(self.nodes),
            **({"is_growing": True} if self.is_growing else {}),
        }
        plain = json.loads(json.dumps(document, sort_keys=True))
        if "node_types" in plain:
            plain["node_types"] = document["node_types"]  # as they were listed
        return json.dumps(plain, indent=indent, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str | bytes, file: Path) -> LogHeader:
        """Inverse of :meth:`to_text`.

        Raises
        ------
        InputError
            The text is not JSON, or lacks the window or the nodes.
        """
        try:
            document = parse_json(text)
        except ValueError as error:
            raise _metadata_error(file, f"the metadata of the log are not JSON: {error}") from error
        if not isinstance(document, Mapping):
            raise _metadata_error(file, "the metadata of the log are not a JSON object")
        metadata = EventsMetadata.from_json(document, file)
        start_us, end_us = (_window_time(document, window_key, file) for window_key in ("window_start", "window_end"))
        nodes = document.get("nodes")
        if not isinstance(nodes, list):
            problem = "the metadata of the log do not list its nodes"
            raise _metadata_error(file, problem, column="nodes", value=nodes, expected="a list of names")
        check_nodes(nodes, file, metadata.n_nodes_at_start)
        return cls(tuple(nodes), start_us, end_us, metadata, document.get("is_growing") is True)


def sidecar_path(path: Path) -> Path:
    """Return the path of the metadata of a CSV log: ``log.csv`` -> ``log.csv.meta.json``."""
    return path.with_name(path.name + SIDECAR_SUFFIX)


def _window_time(document: Mapping[str, Json], key: str, metadata_file: Path) -> int:
    try:
        return parse_time_us(document[key])
    except (KeyError, ValueError) as error:
        problem, value = f"the metadata of the log lack a readable {key}", document.get(key)
        raise _metadata_error(metadata_file, problem, column=key, value=value, expected="an ISO-8601 time") from error


def _metadata_error(metadata_file: Path, problem: str, **parts: Any) -> InputError:
    """Return the error for metadata that ``write_events`` did not write."""
    return InputError(problem, file=metadata_file, fix="write the log again", **parts)


RecordBatches = Callable[[int], Iterator[Any]]  # rows -> iterator of pyarrow.RecordBatch

NEUTRAL_COLUMNS = ("time", "node", "state")
TWO_STATE_COLUMNS = ("time", "node", "idle")
OPTIONAL_COLUMNS = ("cause", "job_id", "quality")

_SCHEDULER_LOG = "if this is a scheduler's log or a table of jobs: bfreplay ingest auto FILE -o events.parquet"

_STATE_CODES: Mapping[str, int] = {word: code for code, word in enumerate(STATE_WORDS)}
_IDLE_CODES: Mapping[str, int] = {
    "true": NodeState.IDLE,
    "1": NodeState.IDLE,
    "false": NodeState.BUSY,
    "0": NodeState.BUSY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource(EventSource):
    """Rows of a table in a file.

    Parameters
    ----------
    start, file, metadata_file, alternating
        As in ``EventSource``; an ``alternating`` table has a column ``idle`` instead of ``state``.
    nodes
        Sorted inventory.
    record_batches
        Opens the file and reads its columns in pieces of about the given number of rows.
    """

    file: Path
    nodes: tuple[str, ...]
    record_batches: RecordBatches

    def chunks(self, rows: int) -> Iterator[RowChunk]:
        """Yield the rows of the file, in one pass."""
        index_of = {node_name: node_index for node_index, node_name in enumerate(self.nodes)}
        first_row = 1
        for batch in self.record_batches(rows):
            if batch.num_rows == 0:
                continue

            node = self._column(batch, "node", first_row).codes(
                index_of,
                f"one of the {len(self.nodes)} nodes of the log's inventory",
                "correct the name or the metadata" + self.other_log_hint,
            )
            if self.alternating:
                idle = self._column(batch, "idle", first_row)
                state = idle.codes(_IDLE_CODES, "true or false (1 or 0)", "correct the value", fold_case=True)
            else:
                word = self._column(batch, "state", first_row)
                state = word.codes(_STATE_CODES, "one of " + " ".join(STATE_WORDS), "use one of these words")
            yield RowChunk(self._column(batch, "time", first_row).times_us(), node, state.astype(np.int8), first_row)
            first_row += batch.num_rows

    def _column(self, record_batch: Any, column_name: str, first_row: int) -> Column:
        return Column(record_batch.column(column_name), column_name, self.file, first_row)


def read_columns(columns: Sequence[str]) -> list[str]:
    """Return the columns of a table that are read."""
    return [column_name for column_name in (*NEUTRAL_COLUMNS, *TWO_STATE_COLUMNS[-1:]) if column_name in columns]


def is_two_state_table(columns: Sequence[str], file: Path) -> bool:
    """Return whether a table has the two-state form, from its column names.

    Raises
    ------
    InputError
        Columns are missing, unknown, duplicate, or of both forms.
    """
    names = [name for name in columns if not name.startswith("__index_level_")]
    for form, is_two_state in ((NEUTRAL_COLUMNS, False), (TWO_STATE_COLUMNS, True)):
        if set(form) <= set(names) <= {*form, *OPTIONAL_COLUMNS} and len(set(names)) == len(names):
            return is_two_state
    refuse_other_separators(names, file)
    _refuse_other_tables(names, file)
    unused = [name for name in names if name not in (*NEUTRAL_COLUMNS, *OPTIONAL_COLUMNS)]
    means_idle = "idle" in names or any(near_name(name, ("state", "idle")) == "idle" for name in unused)
    needed_columns = TWO_STATE_COLUMNS if means_idle and "state" not in names else NEUTRAL_COLUMNS
    missing = [name for name in needed_columns if name not in names]
    unknown = [name for name in names if name not in (*needed_columns, *OPTIONAL_COLUMNS)]
    faults = [f"missing: {', '.join(missing)}"] if missing else []
    faults += [f"unknown: {', '.join(map(repr, unknown))}"] if unknown else []
    faults += ["a column occurs twice"] if len(set(names)) < len(names) else []
    is_other = len(missing) == len(needed_columns) and not all(near_name(column, needed_columns) for column in unknown)
    raise InputError(
        f"these are not the columns of a log ({'; '.join(faults)})",
        file=file,
        column=(missing or unknown or names)[0],
        value=names,
        expected=f"{', '.join(NEUTRAL_COLUMNS)} (and optionally {', '.join(OPTIONAL_COLUMNS)}); "
        f"or the two-state form {', '.join(TWO_STATE_COLUMNS)}",
        fix=(_SCHEDULER_LOG if is_other else None)
        or did_you_mean(unknown, [*missing, *(name for name in OPTIONAL_COLUMNS if name not in names)])
        or ("add the missing columns" if not unknown else "rename or drop columns" if missing else "drop columns"),
    )


def _refuse_other_tables(columns: Sequence[str], log_file: Path) -> None:
    kind = kind_of_table(columns)
    if kind in ("a job set", "a table of curves"):
        raise InputError(
            f"this looks like {kind}, not like a log of nodes",
            file=log_file,
            value=list(columns),
            expected=f"{', '.join(NEUTRAL_COLUMNS)}; or {', '.join(TWO_STATE_COLUMNS)}",
            fix="give the log here (are the two files swapped?); job sets and curves are read by load_jobs",
        )
    with suppress(ValueError, IndexError):
        parse_time_us(columns[0])
        raise InputError(
            "the first line looks like a row, not like a header",
            file=log_file,
            value=list(columns),
            expected=f"a first line {','.join(NEUTRAL_COLUMNS)} or {','.join(TWO_STATE_COLUMNS)}",
            fix="add the header line",
        )


def table_events(
    file: Path,
    columns: Sequence[str],
    record_batches: RecordBatches,
    header: LogHeader | None,
    form_name: str,
    metadata_file: Path | None = None,
) -> NodeEvents:
    """Return a log over the table in ``file``; without a header, one pass finds its nodes and its window.

    ``metadata_file`` is the file that the header came from; it is then one of the log's sources.
    """
    is_two_state = is_two_state_table(columns, file)
    # the first rows are a snapshot of all nodes; without one, nodes are busy until their first row
    state_before = UNSET if header is not None and not is_two_state else NodeState.BUSY
    sources = tuple(SourceFile.of(path) for path in (file, metadata_file) if path is not None)
    if header is None:
        header = _survey(file, record_batches, form_name + (", two-state" if is_two_state else ""), sources)
    source = TableSource(
        file=file,
        metadata_file=metadata_file,
        alternating=is_two_state,
        start=_states_before(header, state_before),
        nodes=header.nodes,
        record_batches=record_batches,
    )
    window_us = header.window_start_us, header.window_end_us
    if window_us[0] == window_us[1]:
        # an error of a row is more useful than an empty window
        from bfreplay.datasets.log.passes import check_batches  # numba

        list(check_batches(header.nodes, source, window_us, window_us, DEFAULT_BATCH_ROWS))
    events = NodeEvents(header.nodes, source, *window_us, header.metadata, sources)
    return events.with_rows_to_come() if header.is_growing else events


def _states_before(header: LogHeader, state: int) -> NDArray[np.int8]:
    """Return the state of each node before the first row: unknown for nodes that appear later in a followed log."""
    states = np.full(len(header.nodes), state, dtype=np.int8)
    if header.metadata.n_nodes_at_start is not None:
        states[header.metadata.n_nodes_at_start :] = NodeState.UNKNOWN
    return states


def _survey(file: Path, record_batches: RecordBatches, form_name: str, sources: tuple[SourceFile, ...]) -> LogHeader:
    """Find the nodes and the first and last time, in one pass over two columns."""
    node_names: set[str] = set()
    first_us: int | None = None
    last_us = 0
    row = 1
    for batch in record_batches(DEFAULT_BATCH_ROWS):
        if batch.num_rows == 0:
            continue
        times = Column(batch.column("time"), "time", file, row).times_us()
        node = Column(batch.column("node"), "node", file, row)
        node.refuse_nulls()
        names = {"" if name is None else str(name) for name in node.values.unique().to_pylist()} - node_names
        node_names |= names
        if not all(map(is_name, names)):
            for row_index, name in enumerate(node.values.to_pylist()):
                if name in (None, ""):
                    raise node.missing_value(row_index)
                if not is_name(str(name)):
                    raise unusable_name("node", str(name), "node", file, row + row_index)
        before_us = np.append(times[:1] if first_us is None else last_us, times[:-1])
        backwards = first_true(times < before_us)
        if backwards is not None:
            raise time_runs_backwards(int(times[backwards]), int(before_us[backwards]), file, row + backwards)
        first_us = int(times[0]) if first_us is None else first_us
        last_us = int(times[-1])
        row += len(times)
    if first_us is None:
        raise empty_log(file)
    metadata = EventsMetadata(source_format=form_name, source_files=sources, node_inventory="seen")
    return LogHeader(tuple(sorted(node_names)), first_us, last_us, metadata)


def empty_log(file: Path) -> InputError:
    """Return the error for a log without rows."""
    return InputError(
        "the log is empty", file=file, expected="at least two rows", fix="check the command that wrote the file"
    )
