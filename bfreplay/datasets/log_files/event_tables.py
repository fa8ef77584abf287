"""Logs that are tables of (time, node, state) or (time, node, idle), whatever the file format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.arrow_columns import Column
from bfreplay.datasets.log.events import DEFAULT_BATCH_ROWS, NodeEvents
from bfreplay.datasets.log.metadata import EventsMetadata, SourceFile
from bfreplay.datasets.log.sources import RowChunk
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.log.validation import UNSET, time_runs_backwards
from bfreplay.datasets.log_files.header import LogHeader
from bfreplay.errors import InputError

RecordBatches = Callable[[int], Iterator[Any]]  # rows -> iterator of pyarrow.RecordBatch

NEUTRAL_COLUMNS = ("time", "node", "state")
TWO_STATE_COLUMNS = ("time", "node", "idle")
OPTIONAL_COLUMNS = ("cause", "job_id", "quality")

_STATE_CODES: Mapping[str, int] = {word: code for code, word in enumerate(STATE_WORDS)}
_IDLE_CODES: Mapping[str, int] = {
    "true": NodeState.IDLE,
    "1": NodeState.IDLE,
    "false": NodeState.BUSY,
    "0": NodeState.BUSY,
}


@dataclass(frozen=True, slots=True)
class TableSource:
    """Rows of a table in a file.

    Parameters
    ----------
    file
        The file, for messages.
    is_two_state
        ``idle`` column instead of ``state``.
    has_snapshot
        The first rows give the state of every node; otherwise nodes are busy before their first row.
    nodes
        Sorted inventory.
    record_batches
        Opens the file and reads its columns in pieces of about so many rows.
    """

    file: Path
    is_two_state: bool
    has_snapshot: bool
    nodes: tuple[str, ...]
    record_batches: RecordBatches

    @property
    def alternating(self) -> bool:
        """A two-state log cannot repeat a state."""
        return self.is_two_state

    def initial_state(self, n_nodes: int) -> NDArray[np.int8]:
        """Shape ``(N,)``: to be given by the snapshot, or busy."""
        return np.full(n_nodes, UNSET if self.has_snapshot else NodeState.BUSY, dtype=np.int8)

    def written(self, state: int) -> object:
        """Return a state as the table writes it."""
        return state == NodeState.IDLE if self.is_two_state else STATE_WORDS[state]

    def chunks(self, rows: int) -> Iterator[RowChunk]:
        """One pass over the file."""
        index_of = {name: i for i, name in enumerate(self.nodes)}
        first_row = 1
        for batch in self.record_batches(rows):
            if batch.num_rows == 0:
                continue

            node = self._column(batch, "node", first_row).codes(
                index_of,
                f"one of the {len(self.nodes)} nodes of the log's inventory",
                "correct the name or the metadata",
            )
            if self.is_two_state:
                idle = self._column(batch, "idle", first_row)
                state = idle.codes(_IDLE_CODES, "true or false (1 or 0)", "correct the value", fold_case=True)
            else:
                word = self._column(batch, "state", first_row)
                state = word.codes(_STATE_CODES, "one of " + " ".join(STATE_WORDS), "use one of these words")
            yield RowChunk(self._column(batch, "time", first_row).times_us(), node, state.astype(np.int8), first_row)
            first_row += batch.num_rows

    def _column(self, batch: Any, name: str, first_row: int) -> Column:
        return Column(batch.column(name), name, self.file, first_row)


def is_two_state_table(columns: Sequence[str], file: Path) -> bool:
    """Which of the two forms a table has, from its column names.

    Raises
    ------
    InputError
        Columns are missing, unknown, twice there, or of both forms.
    """
    named = [name for name in columns if not name.startswith("__index_level_")]
    for form, is_two_state in ((NEUTRAL_COLUMNS, False), (TWO_STATE_COLUMNS, True)):
        if set(form) <= set(named) <= {*form, *OPTIONAL_COLUMNS} and len(set(named)) == len(named):
            return is_two_state
    wanted = TWO_STATE_COLUMNS if "idle" in named and "state" not in named else NEUTRAL_COLUMNS
    missing = [name for name in wanted if name not in named]
    unknown = [name for name in named if name not in (*wanted, *OPTIONAL_COLUMNS)]
    problem = "; ".join(
        text
        for text in (
            f"missing: {', '.join(missing)}" if missing else "",
            f"unknown: {', '.join(map(repr, unknown))}" if unknown else "",
            "a column is there twice" if len(set(named)) < len(named) else "",
        )
        if text
    )
    raise InputError(
        f"the columns are not those of a log ({problem})",
        file=file,
        column=(missing or unknown or named)[0],
        value=named,
        expected=f"{', '.join(NEUTRAL_COLUMNS)} (and optionally {', '.join(OPTIONAL_COLUMNS)}); "
        f"or the two-state form {', '.join(TWO_STATE_COLUMNS)}",
        fix="rename or drop columns",
    )


def table_events(
    file: Path, columns: Sequence[str], record_batches: RecordBatches, header: LogHeader | None, form_name: str
) -> NodeEvents:
    """Return a log over the table in ``file``; without a header, one pass finds its nodes and its window."""
    is_two_state = is_two_state_table(columns, file)
    sources = (SourceFile.of(file),)
    if header is None:
        header = _surveyed(file, record_batches, form_name + (", two-state" if is_two_state else ""), sources)
        has_snapshot = False
    else:
        has_snapshot = not is_two_state
    source = TableSource(file, is_two_state, has_snapshot, header.nodes, record_batches)
    return NodeEvents(
        header.nodes, source, header.window_start_us, header.window_end_us, header.metadata, sources=sources
    )


def _surveyed(file: Path, record_batches: RecordBatches, form_name: str, sources: tuple[SourceFile, ...]) -> LogHeader:
    """Nodes seen and first and last time, from one pass over two columns."""
    seen: set[str] = set()
    first_us: int | None = None
    last_us = 0
    row = 1
    for batch in record_batches(DEFAULT_BATCH_ROWS):
        if batch.num_rows == 0:
            continue
        time = Column(batch.column("time"), "time", file, row)
        node = Column(batch.column("node"), "node", file, row)
        times = time.times_us()
        node.refuse_nulls()
        seen.update(str(name) if name is not None else "" for name in batch.column("node").unique().to_pylist())
        if "" in seen:
            blank = [i for i, name in enumerate(batch.column("node").to_pylist()) if not name]
            raise node.missing_value(blank[0])
        before = times[:1] if first_us is None else np.array([last_us])
        backwards = np.flatnonzero(times < np.concatenate((before, times[:-1])))
        if backwards.size:
            i = int(backwards[0])
            raise time_runs_backwards(int(times[i]), int(times[i - 1]) if i else last_us, file, row + i)
        first_us = int(times[0]) if first_us is None else first_us
        last_us = int(times[-1])
        row += len(times)
    if first_us is None:
        raise empty_log(file)
    metadata = EventsMetadata(source_format=form_name, source_files=sources, node_inventory="seen")
    return LogHeader(tuple(sorted(seen)), first_us, last_us, metadata)


def empty_log(file: Path) -> InputError:
    """Return the error for a log without rows."""
    return InputError(
        "the log is empty",
        file=file,
        expected="at least two rows",
        fix="check the command that wrote the file",
    )
