"""Outages of ALCF machines: machine status, maintenance periods, reservations."""

from __future__ import annotations

from collections.abc import Mapping

from bfreplay.datasets.ingest.cobalt.clock import CobaltClock
from bfreplay.datasets.ingest.cobalt.job_rows import NOT_OURS, location_of
from bfreplay.datasets.ingest.delimited import Place
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.table.cells import count_in
from bfreplay.datasets.ingest.table.clock import SKIPPED
from bfreplay.datasets.ingest.table.outages import OUTAGE_UNKNOWN, OUTAGES_UNREADABLE
from bfreplay.datasets.log.states import NodeState

PART_UNKNOWN = "reservations for repairs on blocks of unknown nodes were skipped: those nodes look idle"
PART_DOWN = "outages of parts of the machine were skipped, because the log does not name them: those nodes look idle"
OTHER_MACHINE = "outages of another machine are in the log; only one machine is read"
END_UNKNOWN = "outages of the whole machine without an end end where the next job starts"

_YES = frozenset({"1", "1.0", "true", "t", "yes", "y"})
_NO = frozenset({"0", "0.0", "false", "f", "no", "n"})
_USED = frozenset({"complete", "completed", "active", "running"})
_REPAIR_WORDS = ("hw", "maint", "pm", "repair", "outage")


class CobaltOutages:
    """Converter of machine status, maintenance periods and reservations to outages.

    Attributes
    ----------
    open_ended
        Outages of the whole machine without an end: start in UTC microseconds, file and line.
    left_out_us
        Node-microseconds of repairs on unknown nodes.
    """

    def __init__(
        self, record: ScheduleRecord, clock: CobaltClock, machine: str | None, size: int | None, policy: str
    ) -> None:
        self._record, self._report, self._clock = record, record.report, clock
        self._machine, self._size, self._policy = machine, size, policy
        self.open_ended: list[tuple[int, Place]] = []
        self.left_out_us = 0

    def add_status(self, cells: Mapping[str, str], at: Place) -> None:
        """Add a row of a MACHINESTATUS file."""
        word = cells["IS_ALL_MACHINE_DOWN"].strip().lower()
        if self._is_of_another(cells, at):
            return
        if word not in _YES | _NO:
            return self._unreadable(f"{word!r} is neither yes nor no", at)
        times = self._times(cells["START_TIMESTAMP"], cells.get("END_TIMESTAMP", ""), at)
        if times is None:
            return
        if word in _NO:
            start = cells["START_TIMESTAMP"]
            why = "the log does not tell how many nodes were down"
            self._report.skip_with_warning("an outage of a part of the machine", *at, start, warning=PART_DOWN, why=why)
        else:
            self._add_down(times, at)

    def add_maintenance(self, cells: Mapping[str, str], at: Place) -> None:
        """Add a maintenance period of the whole machine."""
        times = self._times(cells["START"], cells["END"], at, is_maintenance=True)
        if times is not None:
            self._add_down(times, at)

    def _add_down(self, times: tuple[int, int | None], at: Place) -> None:
        """Add an outage of the whole machine; one without an end waits for ``close``."""
        if times[1] is None:
            self.open_ended.append((times[0], at))
        else:
            self._record.add_outage(NodeState.DOWN, *times, None, *at)

    def add_reservation(self, cells: Mapping[str, str], at: Place) -> None:
        """Add a reservation. Only one of the whole machine has known nodes."""
        if self._is_of_another(cells, at):
            return
        name = cells["RESERVATION"].removeprefix("R.").lower()
        if cells["STATUS"].lower() not in _USED:
            return self._report.skip("a reservation that was not used", *at, cells["STATUS"])
        is_repair = name.replace("_", ".").replace("-", ".").split(".")[0] in _REPAIR_WORDS
        is_kept_idle = not is_repair and self._policy != "reserved"
        if is_kept_idle:
            self._report.skip("a reservation that is not for repairs", *at, cells["RESERVATION"])
        times = self._times(cells["START"], cells["END"], at)
        if times is None:
            return
        try:
            count = count_in(cells["NODES"])
            blocks = [location_of(block, None).block_size or 0 for block in cells["BLOCKS"].split(",")]
        except ValueError as error:
            return self._unreadable(str(error), at)
        if self._size is not None and max(count, *blocks) >= self._size:
            if is_kept_idle:
                return self._record.add_reservation(*times, None)
            state = NodeState.DOWN if is_repair else NodeState.RESERVED
            self._record.add_outage(state, *times, None, *at)
            return
        if is_kept_idle:
            return
        self._report.skip("a reservation on unknown nodes", *at, cells["BLOCKS"])
        if is_repair:
            self._report.warn(PART_UNKNOWN, *at, f"{count} nodes: {cells['BLOCKS']}")
            self._report.hold(count, *times)
        if times[1] is not None and times[1] > times[0]:
            self.left_out_us += count * (times[1] - times[0])

    def close(self, next_start: list[int | None]) -> None:
        """End the outages without an end where the next job starts (``next_start``, in order of their starts)."""
        for (start_us, at), end_us in zip(sorted(self.open_ended), next_start, strict=True):
            self._report.read(0)
            self._report.warn(END_UNKNOWN, *at)
            self._record.add_outage(NodeState.DOWN, start_us, end_us, None, *at)

    def _times(self, start: str, end: str, at: Place, *, is_maintenance: bool = False) -> tuple[int, int | None] | None:
        try:
            first, last = self._clock.read(start), self._clock.read(end)
            if first is None:
                raise ValueError("no start")
        except ValueError:
            self._unreadable(f"{start} to {end}", at)
            return None
        interval = self._clock.interval(first, last, None, at)
        if interval is None:
            self._report.skip(SKIPPED, *at, f"{start} to {end}")
            return None
        if is_maintenance:
            self._clock.saw_maintenance(first)
        return interval

    def _is_of_another(self, cells: Mapping[str, str], at: Place) -> bool:
        machine = cells.get("MACHINE_NAME", "").strip().lower()
        if self._machine is None or not machine or machine == self._machine:
            return False
        self._report.skip("an outage of another machine", *at, machine)
        self._report.warn(OTHER_MACHINE, *at, machine, aside=NOT_OURS)
        return True

    def _unreadable(self, value: str, at: Place) -> None:
        self._report.skip_with_warning(
            "an outage that cannot be read", *at, value, warning=OUTAGES_UNREADABLE, why=OUTAGE_UNKNOWN
        )
