"""Times in Slurm's texts: no zone, epoch seconds, or a zone of their own; and which of two times a wall clock meant."""

from __future__ import annotations

import re
from collections import Counter

from bfreplay.datasets.ingest.clock import LocalClock, named_zone, no_timezone, settled, wall_clock_us
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.cells import ABSENT_TIMES
from bfreplay.datasets.ingest.slurm.psv import HOW, short
from bfreplay.datasets.occupancy.lint import Lint
from bfreplay.errors import InputError

Candidates = tuple[int, ...]

SKIPPED = "a local time that the zone skips"
ZONE_DOUBT = "local times that the given zone does not have: the zone is wrong"
FOLD_DOUBT = "local times in the hour that occurs twice were taken as --dst-fold says"
RELATIVE = "a relative time (SLURM_TIME_FORMAT=relative): nobody can tell the day"

_US = 1_000_000
_EPOCH_DIGITS = re.compile(r"[1-9]\d{8,10}", re.ASCII)
_ZONED = re.compile(r"(.{19})(?:Z|([+-])(\d\d):?(\d\d))", re.ASCII)
_RELATIVE = re.compile(
    r"\d\d:\d\d(:\d\d)?|(Ystday|Tomorr|Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d:\d\d|\d{1,2} [A-Z][a-z]{2} [\d:]{4,5}",
    re.ASCII,
)
_MOST_CACHED = 65_536


class RelativeTimeError(ValueError):
    """``SLURM_TIME_FORMAT=relative`` was set when the log was written."""


class ZoneEvidence:
    """What was seen of zones over all files: for the report."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.zone: str | None = None

    def sentence(self) -> str | None:
        """How the times were understood, ``None`` if there were none."""
        parts = []
        for key, text in (
            ("epoch", "epoch seconds: no zone needed"),
            ("zoned", "times with their zone"),
            ("xdmod", "UTC, in which XDMoD has sites export this layout"),
            ("local", f"given as {self.zone}"),
        ):
            if self.counts[key]:
                parts.append(text)
        for key, how in (("settled", "settled by their running time"), ("folded", "taken as --dst-fold says")):
            if n := self.counts[key]:
                parts.append(f"{n} {'row' if n == 1 else 'rows'} around the end of summer time {how}")
        return "; ".join(parts) or None


class SlurmClock:
    """Reads the times of one file.

    Parameters
    ----------
    file
        For messages.
    options
        ``timezone`` and ``dst_fold``.
    export
        Command that gives the same in UTC, for messages.
    utc_by_layout
        The layout of the file is known to be written in UTC.
    """

    def __init__(
        self, file: LogFile, options: ReadOptions, evidence: ZoneEvidence, export: str, utc_by_layout: bool = False
    ) -> None:
        self._file, self._export, self._evidence, self._fold = file, export, evidence, options.dst_fold
        self._basis = "xdmod" if utc_by_layout and options.timezone is None else "local"
        name = options.timezone or ("UTC" if utc_by_layout else None)
        self._local = None if name is None else LocalClock(named_zone(name))
        self._name = name
        self._cache: dict[str, Candidates | None] = {}

    def read(self, text: str) -> Candidates | None:
        """UTC microseconds that ``text`` may mean: one, two, or none (skipped by the zone); ``None`` for no time.

        Raises
        ------
        ValueError
            It cannot be read (``RelativeTimeError``: it is relative).
        InputError
            It is a local time and nobody said of which zone.
        """
        try:
            return self._cache[text]
        except KeyError:
            pass
        found = self._read(text)
        if len(self._cache) >= _MOST_CACHED:
            self._cache.clear()
        self._cache[text] = found
        return found

    def _read(self, text: str) -> Candidates | None:
        if text.lower() in ABSENT_TIMES:
            return None
        if _EPOCH_DIGITS.fullmatch(text):
            self._evidence.counts["epoch"] += 1
            return (int(text) * _US,)
        wall_us = wall_clock_us(text)
        if wall_us is not None:
            if self._local is None:
                raise no_timezone(self._file.name, self._export)
            self._evidence.counts[self._basis] += 1
            if self._basis == "local":
                self._evidence.zone = self._name
            return self._local.utc_us(wall_us)
        zoned = _ZONED.fullmatch(text)
        wall_us = None if zoned is None else wall_clock_us(zoned[1])
        if zoned is not None and wall_us is not None and int(zoned[3] or 0) < 24 and int(zoned[4] or 0) < 60:
            self._evidence.counts["zoned"] += 1
            offset_us = (3600 * int(zoned[3] or 0) + 60 * int(zoned[4] or 0)) * _US
            return (wall_us + offset_us if zoned[2] == "-" else wall_us - offset_us,)
        if _RELATIVE.fullmatch(text):
            raise RelativeTimeError(text)
        raise ValueError("no time")

    def settle(
        self,
        start: Candidates,
        end: Candidates | None,
        elapsed_us: int | None,
        lint: Lint,
        line: int | None,
        shown: str,
    ) -> tuple[int, int | None] | None:
        """Which start and end are meant; ``end`` ``None`` stays so. ``None``: the row was dropped, and counted.

        Raises
        ------
        InputError
            Several are possible, and ``dst_fold`` is ``"reject"``.
        """
        if not start or (end is not None and not end):
            lint.leave_out(SKIPPED, self._file.name, line, shown, doubt=ZONE_DOUBT)
            return None
        if len(start) == 1 and (end is None or len(end) == 1):
            return start[0], None if end is None else end[0]
        pairs: list[tuple[int, int | None]]
        if end is None:
            pairs = [(s, None) for s in start]
        else:
            fitting = settled(start, end, elapsed_us) or settled(start, end, None)
            if not fitting:  # it ends before it starts, whatever was meant: the record says so
                return start[0], end[-1]
            pairs = list(fitting)
        if len(pairs) == 1:
            self._evidence.counts["settled"] += 1
            return pairs[0]
        if self._fold == "reject":
            raise InputError(
                "a local time occurs twice, in the hour that is repeated when summer time ends, and nothing settles it"
                + (
                    f"; {n} before it were settled by their running time"
                    if (n := self._evidence.counts["settled"])
                    else ""
                ),
                file=self._file.name,
                row=None if line is None else f"line {line}",
                value=short(shown),
                expected="times in UTC, or a running time that tells which was meant",
                fix=f"pass --dst-fold earlier or --dst-fold later, or --tz {self._name} is wrong; "
                f"better, export in UTC: {HOW}",
            )
        self._evidence.counts["folded"] += 1
        lint.doubt(FOLD_DOUBT, self._file.name, line, shown)
        return pairs[0] if self._fold == "earlier" else pairs[-1]
