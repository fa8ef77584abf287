"""Logs and jobs given as objects where options name files: their digest, and their text in records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.event_tables import LogHeader
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.workload import JobSet, JobSource


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """An object as a key: equal to itself only."""

    given: Any

    def __hash__(self) -> int:
        return id(self.given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.given is self.given


def is_object(value: object) -> bool:
    """Return whether the value of an option is a log or jobs, and no name of a file."""
    return isinstance(value, NodeEvents | JobSet | JobSource)


def input_text(given: Any) -> Any:
    """Return the value of an option as records and tables show it: an object as its class and part of its digest."""
    return f"<{type(given).__name__} {digest_of(given)[:8]}>" if is_object(given) else given


def digest_of(given: Any) -> str:
    """Return a SHA-256 of the content of a log, a job set or a job source.

    A log counts by its rows, or the file that it reads, its window and its nodes; jobs by their values, and rates up to
    their ``max_nodes``; a source by its class, files and description.
    """
    if isinstance(given, NodeEvents | JobSet):
        return _digest(Same(given))
    kind = type(given)
    description = [kind.__module__, kind.__qualname__, given.sources, given.describe()]
    return hashlib.sha256(json.dumps(description).encode()).hexdigest()


@lru_cache(maxsize=4)  # each run of a sweep asks
def _digest(same: Same) -> str:
    digest = hashlib.sha256()
    for part in _log(same.given) if isinstance(same.given, NodeEvents) else _jobs(same.given):
        digest.update(part)
    return digest.hexdigest()


def _log(events: NodeEvents) -> Iterator[bytes]:
    yield LogHeader.of(events).to_text().encode()
    if events.file is not None:
        yield SourceFile.of(events.file).sha256.encode()
        return
    for batch in events.batches():
        yield from (column.tobytes() for column in batch.columns)


def _jobs(jobs: JobSet) -> Iterator[bytes]:
    yield json.dumps([jobs.submit_is_relative, jobs.colocation], default=partial(_plain, 0)).encode()
    for job in jobs:
        yield json.dumps(job, default=partial(_plain, job.max_nodes)).encode()


def _plain(max_nodes: int, part: Any) -> Any:
    """Return a part of a job set that JSON does not have; of a curve, the rates up to ``max_nodes``."""
    if hasattr(part, "table"):
        return part.table(max_nodes).tolist()
    values = [getattr(part, name) for name in getattr(type(part), "__slots__", ())]
    return [[*value.items()] if isinstance(value, Mapping) else value for value in values] or repr(part)
