"""Times in Slurm's texts: without a zone, with one, or epoch seconds; and the resolution of ambiguous times."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.local_times import Candidates, IntervalClock, RowPlace, offset_us, wall_clock_us
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.slurm_cells import ABSENT_TIMES, HOW, duration_us, short
from bfreplay.datasets.times import US
from bfreplay.errors import InputError

SKIPPED = "a local time that the zone skips"
ZONE_WARNING = "local times that do not exist in the given zone: the zone is wrong"
FOLD_WARNING = "local times in the hour that occurs twice were resolved by --dst-fold"
RELATIVE = "a relative time (SLURM_TIME_FORMAT=relative), without a known day"
OWN_FORMAT = "a time in another form than Slurm's own (SLURM_TIME_FORMAT was set: unset it and export again)"
UNSET = "SLURM_TIME_FORMAT changes how Slurm writes times: unset it where the log is written, and run the command again"
"""Fix for logs written under it."""

_EPOCH_DIGITS = re.compile(r"[1-9]\d{8,10}", re.ASCII)
_ZONED = re.compile(r"(.{19})(Z|[+-]\d\d:?\d\d)", re.ASCII)
_RELATIVE = re.compile(
    r"\d\d:\d\d(:\d\d)?|(Ystday|Tomorr|Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d:\d\d|\d{1,2} [A-Z][a-z]{2} [\d:]{4,5}",
    re.ASCII,
)
_OF_ANOTHER_FORM = re.compile(
    r"(?!\d{4}-\d\d-\d\dT)(?=.*\d.*\d:\d\d)(?=(.*\b\d+){3}).*|\d{4}[-/.]?\d\d[-/.]?\d\d(T\d\d:?\d\d(\d\d)?)?"
    r"|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}",
    re.ASCII,
)
_LONGEST_TIME = 64
_MOST_CACHED = 65_536


class TimeFormatError(ValueError):
    """``SLURM_TIME_FORMAT`` was set when the log was written; the text is ``RELATIVE`` or ``OWN_FORMAT``."""


class ZoneEvidence:
    """Evidence of time zones in all files, for the report."""

    def __init__(self, report: ImportReport) -> None:
        self.report = report
        self.counts: Counter[str] = Counter()
        self.zone: str | None = None

    def sentence(self) -> str | None:
        """Describe how the times were read, ``None`` without times."""
        parts = []
        for key, kind_text in (
            ("epoch", "epoch seconds: no zone needed"),
            ("zoned", "times with their zone"),
            ("xdmod", "UTC, in which XDMoD has sites export this layout"),
            ("local", f"given as {self.zone}"),
        ):
            if self.counts[key]:
                parts.append(kind_text)
        for key, resolution in (("settled", "resolved by their running time"), ("folded", "resolved by --dst-fold")):
            if n_rows := self.counts[key]:
                parts.append(f"{n_rows} {'row' if n_rows == 1 else 'rows'} around the end of summer time {resolution}")
        return "; ".join(parts) or None


class SlurmClock(IntervalClock):
    """Clock for the times of one file.

    Parameters
    ----------
    file_name
        Its name, for messages.
    options
        ``timezone`` and ``dst_fold``.
    evidence
        Evidence of zones, of all files.
    export
        Command that gives the same in UTC, for messages.
    utc_by_layout
        True if files of this layout are known to be in UTC.
    """

    skipped_warning, folded_warning = ZONE_WARNING, FOLD_WARNING

    def __init__(
        self, file_name: str, options: ReadOptions, evidence: ZoneEvidence, export: str, utc_by_layout: bool = False
    ) -> None:
        super().__init__(options, evidence.report, export, options.timezone or ("UTC" if utc_by_layout else None))
        self._file, self._evidence = file_name, evidence
        self.counts = evidence.counts
        self._basis = "xdmod" if utc_by_layout and options.timezone is None else "local"
        self.read = lru_cache(_MOST_CACHED)(self._read)

    def _read(self, cell_text: str) -> Candidates | None:
        """Return the possible UTC microseconds of a cell: one, two, none (skipped by the zone); ``None``: no time.

        Raises
        ------
        ValueError
            Unreadable (``TimeFormatError``: a time in another form).
        InputError
            A local time of unknown zone.
        """
        if cell_text.lower() in ABSENT_TIMES:
            return None
        if _EPOCH_DIGITS.fullmatch(cell_text):
            self.counts["epoch"] += 1
            return (int(cell_text) * US,)
        wall_us = wall_clock_us(cell_text)
        if wall_us is not None:
            possible_us = self.utc_us(wall_us, self._file)
            self.note_local()
            return possible_us
        zone_match = _ZONED.fullmatch(cell_text)
        wall_us = None if zone_match is None else wall_clock_us(zone_match[1])
        if zone_match is not None and wall_us is not None:
            time_us = wall_us - offset_us(zone_match[2])
            self.counts["zoned"] += 1
            return (time_us,)
        if _RELATIVE.fullmatch(cell_text):
            raise TimeFormatError(RELATIVE)
        # a running time from another column is none
        if len(cell_text) <= _LONGEST_TIME and _OF_ANOTHER_FORM.fullmatch(cell_text) and duration_us(cell_text) is None:
            raise TimeFormatError(OWN_FORMAT)
        raise ValueError("no time")

    def plain_us(self, wall_us: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return UTC microseconds of local times, ``(J,)``; right are those in hours without a clock change."""
        if self._local is None:
            return wall_us, np.zeros(len(wall_us), np.bool_)
        return self._local.plain_utc_us(wall_us)

    def note_local(self) -> None:
        """Note for the report that the log has local times."""
        self.counts[self._basis] += 1
        if self._basis == "local":
            self._evidence.zone = self.zone

    def ambiguous(self, row_place: RowPlace) -> InputError:
        """Return the error for a time that occurs twice."""
        file_name, line_number, value_text = row_place
        n_clear = self.counts["settled"]
        return InputError(
            "a local time occurs twice, in the hour that is repeated when summer time ends, and nothing resolves it"
            + (f"; {n_clear} before it were resolved by their running time" if n_clear else ""),
            file=file_name,
            row=None if line_number is None else f"line {line_number}",
            value=short(value_text),
            expected="times in UTC, or a running time that resolves it",
            fix=f"pass --dst-fold earlier or --dst-fold later, or --tz {self.zone} is wrong; "
            f"better, export in UTC: {HOW}",
        )
