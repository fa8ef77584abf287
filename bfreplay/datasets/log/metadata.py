"""EventsMetadata: origin of a log, and the changes made on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from bfreplay import checks
from bfreplay.datasets.log.log_warnings import LogWarnings, assignment_words
from bfreplay.documents import Json, printable_json
from bfreplay.errors import InputError, printable

SCHEMA_VERSION = 1
UNITS = {"node": "node", "gpu": "GPU", "core": "core"}
"""Units that a log may have as its nodes, and their words in sentences."""

PARTITIONS_BY_JOBS = "partitions_by_jobs"
"""Key of the notes of an import: true if the nodes of a partition are those on which its jobs ran."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Source file: its name without the folder, in printable characters, and the SHA-256 of its bytes."""

    name: str
    sha256: str

    @classmethod
    def of(cls, path: Path) -> SourceFile:
        """Return name and digest of the file at ``path``; it is read once, in blocks."""
        with path.open("rb") as stream:
            return cls(printable(path.name), hashlib.file_digest(stream, "sha256").hexdigest())


@dataclass(frozen=True, slots=True)
class EventsMetadata:
    """Metadata of a log.

    Parameters
    ----------
    cluster
        Name of the machine, ``None`` if not known.
    source_format
        Format of the source, e.g. ``"slurm sacct"``, ``"node-state matrix"``.
    source_files
        The original files.
    source_timezone
        Zone in which the source wrote its times; all times here are UTC.
    time_origin
        ``"epoch"``, or ``"relative"`` for a log without a calendar (it then starts at 1970-01-01).
    node_inventory
        ``"metadata"`` if the list of nodes is known, ``"seen"`` if only nodes with rows are in it.
    allocator
        Name and seed of the allocator that chose the nodes if the source gave only counts.
    skipped
        Rows of the source that were skipped: reason -> count.
    notes
        Anything else, e.g. the generator of a synthetic log and its parameters (JSON values only).
    node_types
        Names of the nodes of each type, if the log has types; each node once.
    hardware_types
        The same for descriptions only: replays treat these nodes alike.
    partitions
        Names of the nodes of each partition, if the log has partitions; a node may be in several, or in none.
    n_nodes_at_start
        Of a log that was followed: so many of its nodes were known at its start, and are sorted by name. Those after
        them are in order of appearance. ``None`` for any other log, all of whose nodes are sorted.
    unit
        What the nodes of the log are: ``"node"``; ``"gpu"`` or ``"core"`` for units of shared nodes, ``cn01/gpu0``.
    schema_version
        Version of the neutral schema; this code writes and reads 1.
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
    hardware_types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    partitions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    n_nodes_at_start: int | None = None
    unit: str = "node"
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
        checks.one_of("unit", self.unit, tuple(UNITS))
        if self.n_nodes_at_start is not None:
            checks.whole("n_nodes_at_start", self.n_nodes_at_start, 1)

    @property
    def assignment(self) -> str | None:
        """Rule that chose nodes, such as ``"random, seed 3"``; ``None`` if the source names them all."""
        return assignment_words(self.allocator)

    @property
    def log_warnings(self) -> LogWarnings:
        """Warnings about the log; InputError if the report of its import is damaged."""
        return LogWarnings.of_metadata({"notes": self.notes, "allocator": self.allocator})

    def to_json(self) -> dict[str, Json]:
        """Return plain dicts, lists, strings and numbers, ready for ``json.dumps``."""
        document = asdict(self)
        document["source_files"] = [asdict(source) for source in self.source_files]
        for groups in ("node_types", "hardware_types", "partitions"):
            if not document[groups]:
                del document[groups]  # most logs have none
        if self.n_nodes_at_start is None:
            del document["n_nodes_at_start"]
        if self.unit == "node":
            del document["unit"]
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Json], file: Path | None = None) -> EventsMetadata:
        """Inverse of :meth:`to_json`; unknown keys are ignored, unprintable characters are escaped.

        Raises
        ------
        InputError
            Another schema version, or invalid values.
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
        field_names = {metadata_field.name for metadata_field in fields(cls)}
        # checked below
        values: dict[str, Any] = {name: field_value for name, field_value in document.items() if name in field_names}
        LogWarnings.of_metadata(document, file)  # refuse damage now rather than after a replay
        try:
            values["source_files"] = tuple(
                SourceFile(str(source["name"]), str(source["sha256"])) for source in values.get("source_files", ())
            )
            _check_groups("node_types", values.get("node_types", {}), file)
            for groups in ("hardware_types", "partitions"):
                _check_groups(groups, values.get(groups, {}), file)
            return cls(**values)
        except (TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f"the metadata of the log cannot be understood: {error}",
                file=file,
                expected="metadata as write_events writes it",
                fix="write the log again",
            ) from error


def _check_groups(field_name: str, groups: Any, file: Path | None) -> None:
    """Raise ``InputError`` unless ``groups`` maps names to lists of nodes."""
    is_mapping = isinstance(groups, Mapping)
    for members in groups.values() if is_mapping else ():
        is_mapping &= isinstance(members, list) and all(isinstance(node, str) for node in members)
    if not is_mapping:
        raise InputError(
            f"the {field_name.replace('_', ' ')} of the log are not lists of nodes",
            file=file,
            column=field_name,
            value=groups,
            expected='each name with the names of its nodes: {"v100": ["n0", "n1"]}',
            fix="write the log again",
        )
