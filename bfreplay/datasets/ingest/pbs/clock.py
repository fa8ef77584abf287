"""UTC times of the text stamps of a PBS server: by a given zone, or by records with both kinds of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bfreplay.datasets.ingest.clock import TIMES_MOVE, Clock
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.pbs.records import Line
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.times import US, iso_utc
from bfreplay.errors import InputError

_QUARTER_US = 900 * US  # zones differ from UTC by multiples of 15 minutes
_AGREE_US = 10 * US  # a record is written at once: times further apart are of different moments
_SLACK_US = 60 * US
FARTHEST_US = 15 * 3600 * US
"""Largest offset from UTC: +14:00, and an hour to spare."""

_MOST_CHANGES = 24
_IMPOSSIBLE = "a text stamp that contradicts the records around it or does not exist in the time zone"
_IMPOSSIBLE_WARNING = (
    "text stamps do not exist in the time zone, or contradict the records around them: check --tz;"
    " their runs were skipped"
)
_OTHER_ZONE_WARNING = "the text stamps are not in the given time zone: check --tz"
_FOLD_WARNING = "text stamps in the hour that is repeated when summer time ends were resolved by --dst-fold"


@dataclass(slots=True)
class _Waiting:
    """Text stamp to resolve: not before ``floor_us``; the clock's offset and the latest time known before it."""

    line: Line
    floor_us: int
    offset_us: int | None
    before_us: int | None
    then: Callable[[int], None]


class StampClock(Clock):
    """Clock that converts text stamps to UTC.

    A record with a text stamp and an epoch time of the same moment shows the offset of the server's clock. Without a
    zone from ``options``, a stamp takes the offset shown before and after it: if they differ, the clock was changed in
    between (summer time), and the offset that keeps the records in order is right.
    """

    folded_warning = _FOLD_WARNING

    def __init__(self, options: ReadOptions, report: ImportReport) -> None:
        super().__init__(options.timezone, options.dst_fold, report)
        self._waiting: list[_Waiting] = []
        self._offset_us: int | None = None
        self.latest_us: int | None = None  # latest epoch time that the log's stamps confirm
        self._changes: list[tuple[int, int]] = []
        self._agreed = self._disagreed = 0

    def witness(self, stamp_us: int, epoch_us: int) -> bool:
        """Process a record with both kinds of time; return whether they can be of one moment."""
        apart = stamp_us - epoch_us
        offset = (apart + _QUARTER_US // 2) // _QUARTER_US * _QUARTER_US
        if abs(apart - offset) > _AGREE_US or abs(offset) > FARTHEST_US:
            return False
        if self._local is not None:
            agrees = any(abs(moment - epoch_us) <= _AGREE_US for moment in self._local.utc_us(stamp_us))
            self._agreed += agrees
            self._disagreed += not agrees
        if offset != self._offset_us:
            self._changes.append((epoch_us, offset))
            del self._changes[_MOST_CHANGES + 1 : -1]
        self._settle(offset, epoch_us)
        self._offset_us = offset
        self.latest_us = epoch_us if self.latest_us is None else max(epoch_us, self.latest_us)
        return True

    def resolve(self, line: Line, floor_us: int, then: Callable[[int], None]) -> None:
        """Call ``then`` with the UTC time of a record's text stamp, now or as soon as later records resolve it."""
        if self._local is not None:
            fits = [moment for moment in self._local.utc_us(line.stamp_us) if moment >= floor_us]
            if len(fits) == 1:
                self.counts["settled"] += 1
                then(fits[0])
                return
        self._waiting.append(_Waiting(line, floor_us, self._offset_us, self.latest_us, then))

    def finish(self) -> None:
        """Resolve the remaining stamps, and report the offsets."""
        self._settle(None, None)
        if self._disagreed > self._agreed:
            self._report.warn(_OTHER_ZONE_WARNING, value=f"{self.zone}; {self._offsets_text()}", why=TIMES_MOVE)
        self._report.facts["time zone"] = self._sentence()

    def moment(self, stamp_us: int) -> int | None:
        """Return the UTC time of a stamp if it is clear without its neighbours."""
        if self._local is not None:
            found = self._local.utc_us(stamp_us)
            return found[0] if len(found) == 1 else None
        return None if self._offset_us is None else stamp_us - self._offset_us

    def _settle(self, offset_us: int | None, after_us: int | None) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            moment = self._settled_moment(one, offset_us, after_us)
            if moment is None:
                self._report.skip_with_warning(
                    _IMPOSSIBLE, one.line.file, one.line.number, one.line.job, warning=_IMPOSSIBLE_WARNING
                )
            else:
                self.counts["settled"] += 1
                one.then(moment)

    def _settled_moment(self, one: _Waiting, offset_us: int | None, after_us: int | None) -> int | None:
        stamp = one.line.stamp_us
        if self._local is not None:
            moments = self._local.utc_us(stamp)
        else:
            offsets = {offset for offset in (one.offset_us, offset_us) if offset is not None}
            if not offsets:
                raise _no_zone(one.line)
            moments = tuple(sorted(stamp - offset for offset in offsets))
        moments = tuple(moment for moment in moments if moment >= one.floor_us)
        after = one.before_us is None or after_us is None or one.before_us <= after_us
        ordered = [
            moment
            for moment in moments
            if (one.before_us is None or not after or moment >= one.before_us - _SLACK_US)
            and (after_us is None or not after or moment <= after_us + _SLACK_US)
        ]
        fits = ordered or list(moments)
        if len(fits) < 2:
            return fits[0] if fits else None
        if self._fold == "reject":
            raise _ambiguous(one.line, fits, self.zone)
        return self.by_fold(fits, (one.line.file, one.line.number, one.line.job))

    def _sentence(self) -> str:
        parts = ["start and end are epoch seconds: no zone needed"]
        if self.zone is not None:
            parts.append(f"given as {self.zone} for text stamps")
            parts.append(f"{self._agreed:,} text stamps agree with it, {self._disagreed:,} do not")
        if self._changes:
            parts.append(self._offsets_text())
        if self.counts["settled"]:
            parts.append(f"{self.counts['settled']:,} ends come from text stamps")
        return "; ".join(parts)

    def _offsets_text(self) -> str:
        """Return ``text stamps are -04:00 of UTC until 2017-11-05T05:59:12Z, -05:00 after``."""
        words = ", ".join(
            f"{_offset_text(offset)} of UTC until {iso_utc(following)}"
            for (_, offset), (following, _) in zip(self._changes, self._changes[1:], strict=False)
        )
        last = f"{_offset_text(self._changes[-1][1])} " + ("after" if words else "of UTC")
        return "text stamps are " + (f"{words}, {last}" if words else last)


def _offset_text(offset_us: int) -> str:
    minutes = abs(offset_us) // (60 * US)
    return f"{'-' if offset_us < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _no_zone(line: Line) -> InputError:
    return InputError(
        "a run ends by a record that has only a text stamp, and no record in this log shows the zone of the stamps",
        file=line.file,
        row=f"line {line.number}",
        value=f"{line.kind};{line.job}",
        expected="the zone of the server that wrote the log",
        fix="give it: --tz America/Chicago (`timedatectl` on the server shows it)",
    )


def _ambiguous(line: Line, moments: list[int], zone: str | None) -> InputError:
    return InputError(
        "a text stamp lies in the hour that the clock shows twice, and nothing in the log resolves it",
        file=line.file,
        row=f"line {line.number}",
        value=f"{line.kind};{line.job}: " + " or ".join(iso_utc(moment) for moment in moments),
        expected="a time that occurred once",
        fix="choose: --dst-fold earlier or --dst-fold later" + (f"; or --tz {zone} is wrong" if zone else ""),
    )
