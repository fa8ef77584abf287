"""The log of a followed cluster as it grows: a CSV of final events, and its metadata beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from bfreplay.datasets import NodeEvents, load_events
from bfreplay.datasets.log.event_files import WRITTEN_COLUMNS, csv_rows
from bfreplay.datasets.log.event_tables import LogHeader, sidecar_path
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.datasets.log.states import EventBatch
from bfreplay.errors import InputError
from bfreplay.outputs import write_whole
from bfreplay.result_folders.live import Followed

LOG_FILE = "log.csv"
_HEAD = (",".join(WRITTEN_COLUMNS) + "\n").encode()


class Journal:
    """Log that is extended while it can be read: rows are appended first, then the metadata say up to when it is whole.

    A process that is killed in between leaves rows beyond that time, which readers ignore and ``open`` removes.

    Attributes
    ----------
    until_us
        End of the window of the log: all events before it are in it.
    followed
        What a follower before this one noted.
    """

    def __init__(self, file: Path, header: LogHeader, n_bytes: int, followed: Followed | None = None) -> None:
        self.file = file
        self.followed = followed or Followed(bytes=n_bytes)
        self._header = header
        self._n_bytes = n_bytes
        self._stream = file.open("ab")
        self._is_empty = header.window_end_us == header.window_start_us + 1

    @classmethod
    def create(cls, folder: Path, nodes: Sequence[str], start_us: int, metadata: EventsMetadata) -> Self:
        """Begin a log in an empty folder."""
        file = folder / LOG_FILE
        file.write_bytes(_HEAD)
        # no window is empty
        return cls(file, LogHeader(tuple(nodes), start_us, start_us + 1, metadata, is_growing=True), len(_HEAD))

    @classmethod
    def check_is_whole(cls, folder: Path) -> None:
        """Raise ``InputError`` for a log with rows whose metadata are gone: nobody may begin another one over it."""
        file = folder / LOG_FILE
        if file.exists() and file.stat().st_size > len(_HEAD) and not cls.exists(folder):
            raise InputError(
                "this log has rows, but its metadata are missing",
                file=file,
                expected=f"{sidecar_path(file).name} beside it",
                fix="follow into another folder, or move the log away",
            )

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether a folder has a log with rows."""
        return sidecar_path(folder / LOG_FILE).exists()

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Go on with the log in a folder; ``InputError`` for one that was cut or is of no follower."""
        file = folder / LOG_FILE
        sidecar = sidecar_path(file)
        header = LogHeader.from_text(sidecar.read_bytes(), sidecar)
        try:
            followed = msgspec.convert(header.metadata.notes.get("followed"), Followed)
        except msgspec.ValidationError as error:
            problem, fix = f"this log was not written by follow: {error}", "follow into another folder"
            raise InputError(problem, file=sidecar, column="notes.followed", fix=fix) from error
        n_bytes = followed.bytes
        with file.open("rb") as stream:
            stream.seek(max(min(n_bytes, file.stat().st_size + 1) - 1, 0))
            if stream.read(1) != b"\n":
                raise InputError(
                    "this log cannot be extended: it is shorter than its metadata say, or was changed",
                    file=file,
                    value=file.stat().st_size,
                    expected=f"{n_bytes} bytes or more, the last of them the end of a line",
                    fix="follow into another folder",
                )
        os.truncate(file, n_bytes)
        return cls(file, replace(header, is_growing=True), n_bytes, followed)

    @property
    def until_us(self) -> int:
        """End of the window so far."""
        return self._header.window_end_us

    @property
    def metadata(self) -> EventsMetadata:
        """Metadata so far."""
        return self._header.metadata

    def load(self) -> NodeEvents:
        """Return the log so far."""
        return load_events(self.file)

    def append(self, events: EventBatch, log: NodeEvents, until_us: int, notes: Mapping[str, Any]) -> None:
        """Append the events of ``log`` that became final, and say that it is whole up to ``until_us``."""
        if self._is_empty and not len(events):
            return  # not even the first states are final
        if len(events):
            # the snapshot is the first of all portions, alone or with events after it
            n_first = int(np.searchsorted(events.time_us, self._header.window_start_us, side="right"))
            names = np.array(log.nodes, dtype=object)
            text = b"".join(
                csv_rows(events.take(part), names, is_snapshot=is_snapshot)
                for part, is_snapshot in ((slice(0, n_first), True), (slice(n_first, None), False))
            )
            self._stream.write(text)
            self._stream.flush()
            self._n_bytes += len(text)
            self._is_empty = False
        more = log.metadata
        metadata = replace(
            self._header.metadata, node_types=more.node_types, n_nodes_at_start=more.n_nodes_at_start, notes=notes
        )
        self._write_header(log.nodes, until_us, metadata, is_growing=True)

    def sync(self) -> None:
        """Wait until the rows are on the disk."""
        if not self._stream.closed:
            os.fsync(self._stream.fileno())

    def close(self, notes: Mapping[str, Any]) -> None:
        """End the log at ``until_us``."""
        self.sync()
        self._stream.close()
        metadata = replace(self._header.metadata, notes=notes)
        self._write_header(self._header.nodes, self.until_us, metadata, is_growing=False)

    def _write_header(self, nodes: Sequence[str], until_us: int, metadata: EventsMetadata, *, is_growing: bool) -> None:
        notes = metadata.notes
        followed = {**notes.get("followed", {}), "bytes": self._n_bytes}
        metadata = replace(metadata, notes={**notes, "followed": followed})
        start_us = self._header.window_start_us
        self._header = LogHeader(tuple(nodes), start_us, max(until_us, start_us + 1), metadata, is_growing)
        write_whole(sidecar_path(self.file), self._header.to_text() + "\n")
