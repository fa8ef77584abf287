"""Submissions of jobs: their names, since when they waited and for what, and those that never started."""

from __future__ import annotations

import hashlib
from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.units import NOT_TOLD, Held

MOST_KINDS = 4_096
NO_KINDS = "partitions or QOS of jobs that cannot be names, and are not kept"
MANY_KINDS = "pairs of partition and QOS: those of jobs beyond the first"


class JobNames:
    """Names of the jobs whose name is not their key as a number; those of others need no room."""

    def __init__(self) -> None:
        self._keys, self._ends, self._texts = array("q"), array("q"), bytearray()
        self._order = np.empty(0, np.int64)

    def add(self, job_key: int, job_name: str) -> None:
        """Note the name of a job."""
        if job_name != str(job_key):
            self._keys.append(job_key)
            self._texts += job_name.encode("utf-8", "surrogateescape")
            self._ends.append(len(self._texts))

    def of(self, job_keys: NDArray[np.int64]) -> list[str]:
        """Return the name of each job; of names with one key the first."""
        job_names = list(map(str, job_keys.tolist()))
        keys_with_name = np.array(self._keys, dtype=np.int64)
        if len(self._order) != len(keys_with_name):
            self._order = np.argsort(keys_with_name, kind="stable")
        sorted_place = np.searchsorted(keys_with_name, job_keys, sorter=self._order)
        for position in np.flatnonzero(sorted_place < len(keys_with_name)).tolist():
            name_number = int(self._order[sorted_place[position]])
            if keys_with_name[name_number] == job_keys[position]:
                text_begin = self._ends[name_number - 1] if name_number else 0
                job_names[position] = self._texts[text_begin : self._ends[name_number]].decode("utf-8", "replace")
        return job_names


def job_key(job_id: str | int) -> int:
    """Return an int64 key of a job's identity: itself if it is a number, else 63 bits of its SHA-256."""
    if isinstance(job_id, int) and -(2**63) <= job_id < 2**63:
        return job_id
    job_id = str(job_id)
    if job_id.isascii() and job_id.isdigit() and len(job_id) < 18:
        return int(job_id)
    digest = hashlib.sha256(job_id.encode("utf-8", "surrogateescape")).digest()
    return -int.from_bytes(digest[:8], "big") // 2


class Submission(NamedTuple):
    """Time from which a job could have started (its submit time, if the log has no other), and what it asked for.

    ``units`` are those that it holds, or wants as long as it waits.
    """

    eligible_us: int | None = None
    partition: str = ""
    qos: str = ""
    units: Held = NOT_TOLD


NO_SUBMISSION = Submission()

NO_WIDTH = -1
"""Nodes wanted by a job of which the log does not say how many."""


class WaitedJob(NamedTuple):
    """Job that waited and never started: its key, the number of nodes that it wanted, and until when (``OPEN_END``)."""

    job_key: int
    eligible_us: int
    until_us: int
    n_nodes: int
    kind: int


class Kinds:
    """Numbers of the pairs of partition and QOS that jobs have, in order of appearance; 0: neither is known."""

    def __init__(self, report: ImportReport) -> None:
        self._report = report
        self._number_of: dict[tuple[str, str], int] = {("", ""): 0}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Partition and QOS by number."""
        return list(self._number_of)

    def of(self, partition: str, qos: str) -> int:
        """Return the number of a pair; 0 for a new one beyond ``MOST_KINDS``.

        A text that cannot be a name counts as none, which the report says.
        """
        pair = partition, qos
        if pair in self._number_of:
            return self._number_of[pair]
        pair = partition.strip(), qos.strip()
        if strange := [text for text in pair if text and not checks.is_name(text)]:
            self._report.facts.setdefault(NO_KINDS, f"such as {strange[0][:40]!r}")
            pair = "", ""
        if pair not in self._number_of:
            if len(self._number_of) >= MOST_KINDS:
                self._report.facts[MANY_KINDS] = f"{MOST_KINDS - 1:,} are not kept"
                return 0
            self._number_of[pair] = len(self._number_of)
        return self._number_of[pair]
