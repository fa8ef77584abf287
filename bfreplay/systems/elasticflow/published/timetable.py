"""Events of the published simulator: arrivals, ends, and times at which plans change."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Generic

from bfreplay.systems.elasticflow.published.slots import Event, JobT, merge_within_slot


class Timetable(Generic[JobT]):
    """Events by their times.

    Parameters
    ----------
    arrivals
        Submit time and job; jobs of one time are handled in this order.
    slot_s
        Events within a slot of one another are handled together.
    """

    def __init__(self, arrivals: Iterable[tuple[float, JobT]], slot_s: float) -> None:
        self._slot_s = slot_s
        self._events: dict[float, Event[JobT]] = {}
        for time_s, job in arrivals:
            self.at(time_s).arrivals.append(job)

    def __len__(self) -> int:
        return len(self._events)

    @property
    def next_s(self) -> float:
        """Time of the first event; inf for none."""
        return min(self._events, default=math.inf)

    def at(self, time_s: float) -> Event[JobT]:
        """Return the event at a time, a new one if there is none."""
        return self._events.setdefault(time_s, Event(time_s))

    def pop(self, time_s: float) -> Event[JobT]:
        """Remove and return the event at a time; an empty one if there is none."""
        return self._events.pop(time_s, Event(time_s))

    def add_end(self, job: JobT, time_s: float) -> None:
        """Add the end of a job."""
        event = self.at(time_s)
        if job not in event.ends:
            event.ends.append(job)

    def move_end(self, job: JobT, before_s: float, time_s: float) -> None:
        """Move the end of a job to another time."""
        if before_s == time_s:
            return
        event = self._events.get(before_s)
        if event is not None:
            if job in event.ends:
                event.ends.remove(job)
            if not event.ends and not event.arrivals:
                del self._events[before_s]
        self.add_end(job, time_s)

    def next_after(self, now_s: float) -> float:
        """Merge all events within a slot from now into one at its end, and return the time of the next event.

        The last event of all stays where it is.
        """
        events = list(self._events.values())
        merge_within_slot(events, now_s, self._slot_s)
        self._events = {event.time_s: event for event in events}
        return self.next_s
