"""Sources of the rows of a log: one pass in file order, decoded but not yet checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.states import STATE_WORDS, EventBatch, NodeState
from bfreplay.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RowChunk(EventBatch):
    """Consecutive rows of a log in the order of the source.

    R rows: ``time_us (R,) int64`` (UTC), ``node (R,) int32`` (index into the sorted inventory),
    ``state (R,) int8``. The first of them is data row ``first_row`` of the source, counted from 1.
    """

    first_row: int

    def part(self, begin: int, end: int | None = None) -> RowChunk:
        """Return the rows from ``begin`` to ``end``, exclusive."""
        return RowChunk(*self.take(slice(begin, end)).columns, self.first_row + begin)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource(ABC):
    """Rows of a log, readable as often as wanted. A new file format implements this."""

    start: NDArray[np.int8]
    """State of each node before the first row, shape ``(N,)``; -1 if the first rows must give it."""
    file: Path | None = None
    """File that messages name; ``None`` for a log in memory."""
    metadata_file: Path | None = None
    """Metadata file that gave nodes and window, for messages; ``None`` without one."""
    alternating: bool = False
    """True if the form has two states only, so that a state cannot follow itself."""

    @property
    def other_log_hint(self) -> str:
        """Addition to the fix of a message, if a metadata file gave nodes and window."""
        return "" if self.metadata_file is None else f"; delete {self.metadata_file.name} if it belongs to another log"

    @abstractmethod
    def chunks(self, rows: int) -> Iterator[RowChunk]:
        """Yield the rows in pieces of about ``rows``, in one pass."""

    def state_text(self, state: int) -> object:
        """Return a state as the source writes it, for messages: whether it is idle, or the word of the schema."""
        return state == NodeState.IDLE if self.alternating else STATE_WORDS[state]


@dataclass(frozen=True, slots=True)
class MemorySource(EventSource):
    """A log held in arrays: states of the nodes at the start, and the rows after it."""

    rows: RowChunk

    def chunks(self, rows: int) -> Iterator[RowChunk]:
        """Yield everything at once: it is in memory anyway."""
        yield self.rows


@dataclass(frozen=True, slots=True)
class RowsToCome(EventSource):
    """Rows that come in portions: nobody can read them before. The states at the start are known."""

    def chunks(self, rows: int) -> Iterator[RowChunk]:
        """Raise ``InputError``: a policy that knows the log, say, cannot know this one."""
        raise InputError(
            "the events of this log are still to come",
            expected="a log that is there as a whole",
            fix="choose a policy that does not look at the log before its replay, or replay the whole log",
        )
