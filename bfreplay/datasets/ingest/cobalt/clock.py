"""Times in ALCF tables: stamps without a zone, UTC unless an option says otherwise."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from bfreplay.datasets.ingest.clock import TIMES_MOVE, LocalClock
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.table.cells import is_missing
from bfreplay.datasets.ingest.table.clock import TableClock, Wall
from bfreplay.datasets.times import HOUR_US, US

ZONE_UNLIKELY = "the hours at which maintenance begins speak for another zone than the one in which stamps were read"
_FEWEST = 20
_CLEARER = 1.1

MACHINE_SIZES = {"mira": 49_152, "theta": 4_392, "cooley": 126, "thetagpu": 24, "polaris": 560, "aurora": 10_624}
"""Nodes of each machine according to ALCF, by its name in the tables in lower case."""

SITE_ZONE = "America/Chicago"
"""Time zone of ALCF, in which maintenance begins at the same hour all year."""


class CobaltClock(TableClock):
    """Clock for stamps in one zone: that of ``--tz``, else UTC."""

    def __init__(self, options: ReadOptions, report: ImportReport, export: str) -> None:
        in_zone = ReadOptions(timezone=options.timezone or "UTC", dst_fold=options.dst_fold)
        super().__init__(in_zone, report, export)
        self._is_given = options.timezone is not None
        self._maintenance: Counter[int] = Counter()  # starts by the quarter of an hour, as written

    def read(self, value: Any, unit: str | None = None) -> Wall | None:
        """Read a stamp as written; ``None`` for an empty one.

        Raises
        ------
        ValueError
            Not a stamp.
        """
        if is_missing(value):
            return None
        time = super().read(value, unit)
        if not isinstance(time, Wall):
            raise ValueError("no stamp such as 2014-12-31 23:26:29")
        return time

    def saw_maintenance(self, start: Wall) -> None:
        """Remember the start of a maintenance period, as evidence."""
        self._maintenance[start.us // (HOUR_US // 4)] += 1

    def evidence(self) -> str:
        """Describe the zone of the stamps and its reason. Warns if the starts of maintenance contradict it."""
        zone_text = f"the stamps have no zone; read as {self.zone}, " + (
            "as given" if self._is_given else "the zone of ALCF's tables (--tz for another zone)"
        )
        n = sum(self._maintenance.values())
        if n < _FEWEST:
            return zone_text
        zone = str(self.zone)
        zones = dict.fromkeys([zone, "UTC", SITE_ZONE])
        hours = {zone: self._hour_of_most(zone) for zone in zones}
        readings = [
            f"as {zone}, {share:,} of {n:,} maintenance periods begin at {hour:02d}:00 to {hour:02d}:59 in Chicago"
            for zone, (hour, share) in hours.items()
        ]
        best = max(share for _, share in hours.values())
        if best > _CLEARER * hours[zone][1]:
            self._report.warn(ZONE_UNLIKELY, value="; ".join(readings), why=TIMES_MOVE)
        return "; ".join([zone_text, *readings])

    def _hour_of_most(self, zone: str) -> tuple[int, int]:
        """Return the hour in Chicago in which most maintenance begins if stamps are in ``zone``, and the count."""
        read, site = LocalClock(ZoneInfo(zone)), ZoneInfo(SITE_ZONE)
        by_hour: Counter[int] = Counter()
        for quarter, n in self._maintenance.items():
            times = read.utc_us(quarter * (HOUR_US // 4))
            if times:
                by_hour[datetime.fromtimestamp(times[0] // US, site).hour] += n
        return max(by_hour.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
