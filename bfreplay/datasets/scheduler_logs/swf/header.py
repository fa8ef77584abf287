"""Header comments of a Standard Workload Format file: ``; Key: value``."""

from __future__ import annotations

import re

from bfreplay.errors import InputError

START, NODES, PROCESSORS, ZONE = "UnixStartTime", "MaxNodes", "MaxProcs", "TimeZoneString"
SHOWN = ("Computer", "Installation", "Acknowledge", "Conversion", "StartTime", "EndTime", "Preemption")
"""What says whose log it is and how it was made."""

KEYS = frozenset(
    f"{START} {NODES} {PROCESSORS} {ZONE} {' '.join(SHOWN)} Version Information MaxJobs MaxRecords TimeZone MaxRuntime "
    "MaxMemory AllowOveruse MaxQueues Queues Queue MaxPartitions Partitions Partition Note".split()
)
"""Keys of the standard, version 2.2."""

_DECIDING = (START, NODES, PROCESSORS)
_PAIR = re.compile(r"\s*;\s*([A-Za-z]+)\s*:\s*(.*?)\s*")
_NUMBER = re.compile(r"(-?\d{1,12})(?:[ \t(][ -~]*)?", re.ASCII)
_CLEANED = re.compile(r"\bcleaned version", re.IGNORECASE)
_REMOVED = re.compile(r"\((\d{1,12}) jobs? removed\)", re.ASCII)


def key_and_value(comment: str) -> tuple[str, str] | None:
    """Return the pair in a comment, ``None`` if the comment has none of the standard's keys."""
    match = _PAIR.fullmatch(comment)
    return (match[1], match[2]) if match is not None and match[1] in KEYS else None


class Header:
    """What the comments of a file say, gathered as they come.

    Parameters
    ----------
    file
        For messages.

    Attributes
    ----------
    values
        Key -> text; the first of several.
    is_cleaned, removed_jobs
        Whether the comments say that this is a cleaned version, and how many jobs its makers took out.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: dict[str, int] = {}
        self.values: dict[str, str] = {}
        self.is_cleaned = False
        self.removed_jobs = 0

    def add(self, line: int, comment: bytes, after_jobs: bool) -> None:
        """Take in a comment.

        Raises
        ------
        InputError
            One of the values that the times and nodes of jobs depend on comes, or changes, after the first job.
        """
        text = comment.decode("utf-8", "surrogateescape")
        for removed in _REMOVED.findall(text):
            self.removed_jobs += int(removed)
        self.is_cleaned |= _CLEANED.search(text) is not None
        pair = key_and_value(text)
        if pair is None:
            return
        key, value = pair
        if key in _DECIDING and after_jobs and self.values.get(key) != value:
            raise InputError(
                f"{key} comes after the first job and is not what it was before",
                file=self._file,
                row=f"line {line}",
                column=key,
                value=value,
                expected=f"one {key}, before the jobs"
                + (f" (line {self._lines[key]} has {self.values[key]!r})" if key in self.values else ""),
                fix="if two logs were joined, give them as two files; otherwise move the comment to the top",
            )
        if key not in self.values:
            self.values[key], self._lines[key] = value, line

    def number(self, key: str) -> int | None:
        """Return the number that a value begins with (``338 (batch partition; 512 total)``), ``None`` without the key.

        Raises
        ------
        InputError
            The value does not begin with a whole number.
        """
        value = self.values.get(key)
        if value is None:
            return None
        match = _NUMBER.fullmatch(value)
        if match is None:
            raise InputError(
                f"{key} is no whole number",
                file=self._file,
                row=f"line {self._lines[key]}",
                column=key,
                value=value,
                expected="a whole number, such as 144 or 338 (batch partition; 512 total)",
                fix="mend the comment, or delete it",
            )
        return int(match[1])
