"""Servers write one accounting file a day: whether days between the first and the last have none."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from bfreplay.datasets.occupancy.lint import Lint
from bfreplay.datasets.scheduler_logs.pbs.lines import US
from bfreplay.datasets.times import EPOCH

MISSING_DAYS_DOUBT = (
    "days between the first and the last file have no file: jobs that started in them are missing, and those that ended"
    " in them look as if they went on"
)

_DAY_US = 86_400 * US
_LEAST_FILES = 3
_LONGEST_FILE = 400  # days
_MOST_SHOWN = 10


class FileDays:
    """Takes the first and the last text stamp of each file, on the server's clock."""

    def __init__(self) -> None:
        self._covered: set[int] = set()
        self._n_files = self._n_daily = 0

    def add(self, first_us: int, last_us: int) -> None:
        """Note the days of a file."""
        first, last = first_us // _DAY_US, last_us // _DAY_US
        self._n_files += 1
        self._n_daily += first == last
        self._covered.add(first)
        if last - first <= _LONGEST_FILE:  # a wrong stamp far away tells nothing of the days between
            self._covered.update(range(first, last + 1))

    def finish(self, lint: Lint) -> None:
        """Doubt the days that are missing, if the log has one file a day."""
        if self._n_files < _LEAST_FILES or 2 * self._n_daily <= self._n_files:
            return
        days = sorted(self._covered)
        gaps = [(before + 1, after) for before, after in pairwise(days) if after - before > 1]
        n_missing = sum(after - first for first, after in gaps)
        shown = ", ".join(_words(first, after - 1) for first, after in gaps[:_MOST_SHOWN])
        more = ", ..." if len(gaps) > _MOST_SHOWN else ""
        lint.doubt(MISSING_DAYS_DOUBT, value=shown + more, n=n_missing)


def _words(first: int, last: int) -> str:
    """``2024-10-20``, or ``2024-10-20 to 2024-10-22``."""
    days = [f"{EPOCH + timedelta(days=day):%Y-%m-%d}" for day in dict.fromkeys((first, last))]
    return " to ".join(days)
