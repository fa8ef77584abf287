"""Whether the first starts, or the last ends, of a log look cut off at the edge of a window."""

from __future__ import annotations

from bfreplay.datasets.times import iso_utc

LEAST_AT_EDGE = 10


class Edge:
    """Counts the rows at the very first, or very last, time.

    Many rows there are a cut if they have nothing else in common: one job array starts at one time, but was submitted
    at one time too; jobs that ran when a window opened were submitted at many.

    Parameters
    ----------
    direction
        -1 for the first time, 1 for the last.
    """

    def __init__(self, direction: int) -> None:
        self._direction = direction
        self._time_us: int | None = None
        self._others: set[object] = set()
        self.count = 0

    def add(self, time_us: int, other: object) -> None:
        """Take a row's time, and what would be the same if the rows belonged together (``None``: not known)."""
        if self._time_us is None or (time_us - self._time_us) * self._direction > 0:
            self._time_us, self.count, self._others = time_us, 0, set()
        if time_us == self._time_us:
            self.count += 1
            if len(self._others) < LEAST_AT_EDGE:
                self._others.add(object() if other is None else other)

    @property
    def is_cut(self) -> bool:
        """Whether at least ten rows, ten of them different, are at the edge."""
        return len(self._others) >= LEAST_AT_EDGE

    @property
    def shown(self) -> str:
        """The time, for the report."""
        return "" if self._time_us is None else iso_utc(self._time_us)
