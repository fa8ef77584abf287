"""EventsMetadata: where a log came from and what was done to it on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from bfreplay.datasets.log.log_warnings import LogWarnings, assignment_words
from bfreplay.documents import Json, printable_json
from bfreplay.errors import InputError, printable

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that was read: its name without the folder, in printable characters, and the SHA-256 of its bytes."""

    name: str
    sha256: str

    @classmethod
    def of(cls, path: Path) -> SourceFile:
        """Name and digest of the file at ``path``; it is read once, in blocks."""
        with path.open("rb") as stream:
            return cls(printable(path.name), hashlib.file_digest(stream, "sha256").hexdigest())


@dataclass(frozen=True, slots=True)
class EventsMetadata:
    """What travels with a log besides its rows.

    Parameters
    ----------
    cluster
        Name of the machine, ``None`` when nobody said.
    source_format
        What the log was made from, e.g. ``"slurm sacct"``, ``"node-state matrix"``.
    source_files
        The original files.
    source_timezone
        Zone in which the source wrote its times; all times here are UTC.
    time_origin
        ``"epoch"``, or ``"relative"`` for a log without a calendar (it then starts at 1970-01-01).
    node_inventory
        ``"metadata"`` when the list of nodes is known, ``"seen"`` when only nodes with rows are in it.
    allocator
        Name and seed of the allocator that chose the nodes where the source gave only counts.
    skipped
        Rows of the source that were left out: reason -> how many.
    notes
        Anything else, e.g. the generator of a synthetic log and its parameters (JSON values only).
    node_types
        Names of the nodes of each type, in a log that tells types apart; each node once.
    schema_version
        Of the neutral schema; this code writes and reads 1.
    """

    cluster: str | None = None
    source_format: str = "neutral"
    source_files: tuple[SourceFile, ...] = ()
    source_timezone: str = "UTC"
    time_origin: str = "epoch"
    node_inventory: str = "metadata"
    allocator: Mapping[str, Any] | None = None  # msgspec reads no recursive type
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    node_types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if self.node_inventory not in ("metadata", "seen"):
            raise InputError(
                "node_inventory is unknown",
                column="node_inventory",
                value=self.node_inventory,
                expected="'metadata' or 'seen'",
                fix="correct the value",
            )

    @property
    def assignment(self) -> str | None:
        """``"lowest-id"``, ``"random, seed 3"``: the rule that chose nodes; ``None`` where the source says them all."""
        return assignment_words(self.allocator)

    @property
    def log_warnings(self) -> LogWarnings:
        """Everything to bear in mind about the log; InputError where the report of its import is damaged."""
        return LogWarnings.of_metadata({"notes": self.notes, "allocator": self.allocator})

    def to_json(self) -> dict[str, Json]:
        """Plain dicts, lists, strings and numbers, ready for ``json.dumps``."""
        document = asdict(self)
        document["source_files"] = [asdict(source) for source in self.source_files]
        if not self.node_types:
            del document["node_types"]  # most logs tell no types apart
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Json], file: Path | None = None) -> EventsMetadata:
        """Inverse of :meth:`to_json`; keys it does not know are left alone, what no terminal shows is escaped.

        Raises
        ------
        InputError
            Another schema version, or values that are no metadata.
        """
        document = printable_json(dict(document))
        version = document.get("schema_version")
        if version != SCHEMA_VERSION:
            raise InputError(
                "the log is of another schema version",
                file=file,
                column="schema_version",
                value=version,
                expected=str(SCHEMA_VERSION),
                fix="read it with the bfreplay that wrote it and write it as CSV, or update bfreplay",
            )
        known = {item.name for item in fields(cls)}
        values: dict[str, Any] = {key: value for key, value in document.items() if key in known}  # checked below
        values.setdefault("skipped", document.get("dropped", {}))  # its name before 0.2
        LogWarnings.of_metadata(document, file)  # refuse damage now rather than after a replay
        try:
            values["source_files"] = tuple(
                SourceFile(str(source["name"]), str(source["sha256"])) for source in values.get("source_files", ())
            )
            _check_types(values.get("node_types", {}), file)
            return cls(**values)
        except (TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f"the metadata of the log cannot be understood: {error}",
                file=file,
                expected="metadata as write_events writes it",
                fix="write the log again",
            ) from error


def _check_types(node_types: Any, file: Path | None) -> None:
    """Raise ``InputError`` for what is no mapping of types to lists of nodes."""
    is_mapping = isinstance(node_types, Mapping)
    for members in node_types.values() if is_mapping else ():
        is_mapping &= isinstance(members, list) and all(isinstance(node, str) for node in members)
    if not is_mapping:
        raise InputError(
            "the node types of the log are no lists of nodes", file=file, column="node_types", value=node_types,
            expected='each type with the names of its nodes: {"v100": ["n0", "n1"]}', fix="write the log again",
        )  # fmt: skip
