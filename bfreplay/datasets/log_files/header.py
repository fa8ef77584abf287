"""What a file of our own says about its log before the first row: nodes, window, metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bfreplay.datasets.log.events import NodeEvents, check_nodes
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.datasets.times import iso_utc, parse_time_us
from bfreplay.documents import Json, parse_json
from bfreplay.errors import InputError

PARQUET_KEY = b"bfreplay"
SIDECAR_SUFFIX = ".meta.json"


@dataclass(frozen=True, slots=True)
class LogHeader:
    """Sorted node names, window in microseconds UTC, and metadata of a log."""

    nodes: tuple[str, ...]
    window_start_us: int
    window_end_us: int
    metadata: EventsMetadata

    @classmethod
    def of(cls, events: NodeEvents) -> LogHeader:
        """Return the header of a log."""
        return cls(events.nodes, events.window_start_us, events.window_end_us, events.metadata)

    def to_text(self, indent: int | None = None) -> str:
        """JSON: the metadata plus ``window_start``, ``window_end``, ``n_nodes`` and ``nodes``."""
        document = self.metadata.to_json() | {
            "window_start": iso_utc(self.window_start_us),
            "window_end": iso_utc(self.window_end_us),
            "n_nodes": len(self.nodes),
            "nodes": list(self.nodes),
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
            The text is no JSON, or lacks the window or the nodes.
        """
        try:
            document = parse_json(text)
        except ValueError as error:
            raise InputError(
                f"the metadata of the log are no JSON: {error}", file=file, fix="write the log again"
            ) from error
        if not isinstance(document, Mapping):
            raise InputError("the metadata of the log are no JSON object", file=file, fix="write the log again")
        metadata = EventsMetadata.from_json(document, file)
        start_us, end_us = (_window_time(document, key, file) for key in ("window_start", "window_end"))
        nodes = document.get("nodes")
        if not isinstance(nodes, list):
            raise InputError(
                "the metadata of the log do not list its nodes",
                file=file,
                column="nodes",
                value=nodes,
                expected="a list of names",
                fix="write the log again",
            )
        check_nodes(nodes, file)
        return cls(tuple(nodes), start_us, end_us, metadata)


def sidecar_path(path: Path) -> Path:
    """Where the metadata of a CSV log stand: ``log.csv`` -> ``log.csv.meta.json``."""
    return path.with_name(path.name + SIDECAR_SUFFIX)


def _window_time(document: Mapping[str, Json], key: str, file: Path) -> int:
    try:
        return parse_time_us(document[key])
    except (KeyError, ValueError) as error:
        raise InputError(
            f"the metadata of the log lack a readable {key}",
            file=file,
            column=key,
            value=document.get(key),
            expected="an ISO-8601 time",
            fix="write the log again",
        ) from error
