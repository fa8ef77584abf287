"""Advance reservations in PBS accounting: B begins one, F, K or k ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.scheduler_logs.pbs.lines import Line, attributes, epoch_us, vnode_hosts
from bfreplay.datasets.scheduler_logs.pbs.stamps import FARTHEST_US, StampClock

KINDS = "BFUYKk"
_REASON = "reservation"
_UNREADABLE = "a reservation that cannot be read"
_UNREADABLE_DOUBT = "reservations that cannot be read were left out: their nodes look usable"


@dataclass(frozen=True, slots=True)
class _Reservation:
    start_us: int
    end_us: int
    nodes: NDArray[np.int32]
    line: Line


class Reservations:
    """Makes ``RESERVED`` outages of reservations that have begun, if they are to take nodes away; drops them if not."""

    def __init__(self, record: ScheduleRecord, clock: StampClock, are_kept: bool) -> None:
        self._record = record
        self._clock = clock
        self._are_kept = are_kept
        self._open: dict[str, _Reservation] = {}

    def take(self, line: Line) -> None:
        """Read one of the records of ``KINDS``."""
        lint = self._record.lint
        if not self._are_kept:
            lint.drop(_REASON, line.file, line.number, line.job)
        elif line.kind == "B":
            self._begin(line)
        else:
            lint.drop(_REASON, line.file, line.number, line.job)
            reservation = self._open.pop(line.job, None) if line.kind in "FKk" else None
            if reservation is not None:
                self._clock.resolve(line, reservation.start_us, self._ending(reservation))

    def finish(self) -> None:
        """Those that were not ended early last as long as they were made for."""
        for reservation in self._open.values():
            self._add(reservation, reservation.end_us)
        self._open.clear()

    def _begin(self, line: Line) -> None:
        lint = self._record.lint
        try:
            found = attributes(line.text)
            start, end = epoch_us(found, "start"), epoch_us(found, "end")
            if start is None or end is None or abs(start - line.stamp_us) > FARTHEST_US:
                raise ValueError("no start and end")
            nodes = self._record.node_ids(vnode_hosts(found.get("nodes", "").strip("\"'")))
        except ValueError as error:
            lint.drop(_UNREADABLE, line.file, line.number, f"{line.job}: {error}")
            lint.doubt(_UNREADABLE_DOUBT, line.file, line.number, f"{line.job}: {error}")
            return
        known = self._open.get(line.job)
        if known is not None and known.start_us == start:
            lint.drop(_REASON, known.line.file, known.line.number, line.job)
        elif known is not None:
            self._add(known, known.end_us)
        self._open[line.job] = _Reservation(start, end, nodes, line)

    def _ending(self, reservation: _Reservation) -> Callable[[int], None]:
        return lambda moment_us: self._add(reservation, min(moment_us, reservation.end_us))

    def _add(self, one: _Reservation, end_us: int) -> None:
        self._record.add_outage(
            NodeState.RESERVED, one.start_us, end_us, one.nodes, file=one.line.file, line=one.line.number
        )
