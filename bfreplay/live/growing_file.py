"""GrowingFile: the feed of a log that another program extends."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from os import SEEK_END
from pathlib import Path

from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.times import parse_time_us
from bfreplay.errors import InputError
from bfreplay.live.feed import Beginning, Feed, Portion, Row

_MOST_BYTES = 1 << 24
"""Bytes read at one poll: a long log is caught up with over several."""


class GrowingFile(Feed):
    """Feed of a CSV of events (time, node, state) that another program extends, line by line.

    Time is that of the rows: the log is known up to its last row. A line that is not complete yet waits.
    """

    name = "file"

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._offset = 0
        self._row = 0
        self._columns: list[int] = []
        self._after_us: int | None = None  # rows up to there are known already
        self._states: dict[str, NodeState] = {}

    @property
    def states(self) -> Mapping[str, NodeState]:
        """State of each node after the last row."""
        return self._states

    def begin(self) -> Beginning:
        """Return the rows of the first time: the states of all nodes then."""
        rows = self._new_rows()
        if not rows:
            raise InputError(
                "the log has no rows yet", file=self._file, expected="the states of all nodes, first of all"
            )
        start_us = rows[0][0]
        first = {node: state for time_us, node, state in rows if time_us == start_us}
        nodes = tuple(sorted(first))
        self._offset, self._row, self._after_us = 0, 0, start_us
        self.last_us, self._states = start_us, first
        return Beginning(nodes, tuple(first[node] for node in nodes), start_us)

    def resume(self, states: Mapping[str, NodeState], until_us: int) -> None:
        """Skip the rows of a log that is there already."""
        self._after_us, self.last_us = until_us - 1, until_us
        self._states = dict(states)

    def poll(self) -> Portion | None:
        """Return the rows that are new."""
        self.n_polls += 1
        rows = self._new_rows()
        after_us = self._after_us
        # a node that is new at a time that is over was not written yet when that was read
        rows = [row for row in rows if after_us is None or row[0] > after_us or row[1] not in self._states]
        if not rows:
            return None
        self._states |= {node: state for _, node, state in rows}
        self.last_us = max(self.last_us, *(time_us for time_us, _, _ in rows))
        return Portion(rows, self.last_us)

    def _new_rows(self) -> list[Row]:
        try:
            with self._file.open("rb") as stream:
                n_bytes = stream.seek(0, SEEK_END)
                stream.seek(self._offset)
                text = stream.read(_MOST_BYTES)
        except OSError as error:
            raise InputError(f"the log cannot be read: {error.strerror}", file=self._file) from error
        if n_bytes < self._offset:
            fix = "append only; follow a new log into another folder"
            raise InputError("the log has become shorter", file=self._file, value=f"{n_bytes} bytes", fix=fix)
        text = text[: text.rfind(b"\n") + 1]
        try:
            lines = list(csv.reader(text.decode("utf-8").splitlines()))
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError("the log is not CSV in UTF-8", file=self._file, row=self._row + 1) from error
        if lines and self._offset == 0:
            self._columns = self._columns_of(lines.pop(0))
        rows = [self._event(self._row + number, line) for number, line in enumerate(lines, 1)]
        self._offset += len(text)
        self._row += len(lines)
        return rows

    def _columns_of(self, names: list[str]) -> list[int]:
        wanted = ["time", "node", "state"]
        if not set(wanted) <= set(names):
            raise InputError(
                "these are not the columns of a log", file=self._file, value=names, expected=", ".join(wanted)
            )
        return [names.index(name) for name in wanted]

    def _event(self, row: int, cells: list[str]) -> Row:
        try:
            time_text, node, word = (cells[column] for column in self._columns)
            return parse_time_us(time_text), node, NodeState(STATE_WORDS.index(word))
        except (ValueError, IndexError) as error:
            raise InputError(
                "a row is no event", file=self._file, row=row, value=",".join(cells), expected="time,node,state"
            ) from error
