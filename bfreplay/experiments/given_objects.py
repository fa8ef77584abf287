"""Objects given in Python where options name files: their text and digest in records, and their way to workers."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.event_tables import LogHeader
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.errors import InputError
from bfreplay.experiments.option_checks import is_object
from bfreplay.result_folders.tuning import InputFile
from bfreplay.workload import JobSet


def kind_text(given: object) -> str:
    """Return the text that stands for an object where a record names a file: ``"<JobSet>"``."""
    return f"<{type(given).__name__}>"


def input_text(given: Any) -> Any:
    """Return a log or jobs as records and tables show them: a file as it is, an object with part of its digest."""
    return f"<{type(given).__name__} {digest_of(given)[:8]}>" if is_object(given) else given


def input_files(given: object, sources: Iterable[tuple[str, str]]) -> list[InputFile]:
    """Return what was given, for a record: an object with its digest, and the files that it was read from."""
    own = [(kind_text(given), digest_of(given))] if is_object(given) else []
    return [InputFile(name=name, sha256=sha256) for name, sha256 in (*own, *sources)]


def digest_of(given: Any) -> str:
    """Return a SHA-256 of the content of a log, a job set or a job source.

    A log counts by its rows, or the file that it reads, its window and its nodes; jobs by their values, and rates up to
    their ``max_nodes``; a source by its class, files and description.
    """
    if isinstance(given, NodeEvents) and given.file is not None:
        return _sha256(LogHeader.of(given).to_text(), SourceFile.of(given.file).sha256)
    if isinstance(given, NodeEvents | JobSet):
        return _digest_of_content(Same(given))
    kind = type(given)
    return _sha256(kind.__module__, kind.__qualname__, *map(str, given.sources), json.dumps(given.describe()))


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """An object as a key: equal to itself only, and never changed."""

    given: Any

    def __hash__(self) -> int:
        return id(self.given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.given is self.given


@lru_cache(maxsize=4)  # each run of a sweep asks
def _digest_of_content(same: Same) -> str:
    if isinstance(same.given, NodeEvents):
        columns = (column.tobytes() for batch in same.given.batches() for column in batch.columns)
        return _sha256(LogHeader.of(same.given).to_text(), *columns)
    jobs = [_plain([job, job.max_nodes], job.max_nodes) for job in same.given]
    others = [same.given.submit_is_relative, _plain(same.given.colocation, 0)]
    return _sha256(json.dumps([jobs, others], default=repr))


def _sha256(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return digest.hexdigest()


def _plain(part: Any, max_nodes: int) -> Any:
    """Return a part of a job as lists of plain values; of a curve, the values up to ``max_nodes``."""
    if hasattr(part, "table"):
        return part.table(max_nodes).tolist()
    if isinstance(part, Mapping):
        return [[_plain(key, max_nodes), _plain(value, max_nodes)] for key, value in part.items()]
    if isinstance(part, tuple | list):
        return [_plain(item, max_nodes) for item in part]
    names = getattr(type(part), "__slots__", ())
    return {name: _plain(getattr(part, name), max_nodes) for name in names} if names else part


def check_sent(given: object) -> None:
    """Raise ``InputError`` for an object that cannot be sent to worker processes."""
    try:
        pickle.dumps(given)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InputError(
            f"{kind_text(given)} cannot be sent to worker processes: {error}",
            value=given,
            expected="an object that pickle can copy",
            fix="give its file or its name; or keep functions, modules and open files out of its attributes",
        ) from error
