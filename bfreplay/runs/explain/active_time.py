"""When a job of a run was active: admitted, not paused, and not yet gone."""

from __future__ import annotations

from typing import Unpack

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.replay.engine import ProgressCallback
from bfreplay.runs.explain.saved_tables import jobs_frame, microseconds, relative_origin_us, reports_frame
from bfreplay.runs.rerun import Rerun
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.saved_inputs import GivenInputs
from bfreplay.wording import count

_MOST_SHOWN = 3
"""Pauses that are told one by one."""


def time_words(time_us: int, origin_us: int | None) -> str:
    """A time in UTC; ``+407.5`` seconds from ``origin_us`` where the log has no calendar, as ``--at`` takes them."""
    return iso_utc(time_us) if origin_us is None else f"+{(time_us - origin_us) / 1e6:.6f}".rstrip("0").rstrip(".")


class Life:
    """What the tables of a run say of one of its jobs.

    Parameters
    ----------
    run
        The run.
    name
        Of the job, which the run has.
    """

    def __init__(self, run: RunResult, name: str) -> None:
        self._origin_us = relative_origin_us(run)
        frame = jobs_frame(run)
        self.number = int((frame["job"] == name).to_numpy().argmax())
        row = frame.iloc[self.number]
        self.status = str(row["status"])
        self.submitted_us, self.admitted_us, self.ended_us = (
            microseconds(row[column]) for column in ("submitted", "admitted", "ended")
        )
        self._reports: list[tuple[int, bool]] = []  # time, is a pause; ascending
        reports = reports_frame(run)
        if reports is not None:
            mine = reports[reports["job"] == name]
            times_us = (int(time.value // 1000) for time in mine["time"])
            self._reports = [*zip(times_us, (mine["verdict"].astype(str) == "paused").tolist(), strict=True)]
        self.paused_us = tuple(time_us for time_us, is_pause in self._reports if is_pause)

    def paused_before(self, time_us: int) -> int | None:
        """When it paused, if that was the last that was heard of it at ``time_us``; it may have been resumed since."""
        heard = [report for report in self._reports if report[0] <= time_us]
        return heard[-1][0] if heard and heard[-1][1] else None

    def refuse_outside(self, time_us: int) -> None:
        """Raise ``InputError`` for a time before it was admitted, or at which it had left."""
        is_gone = self.ended_us is not None and time_us >= self.ended_us
        if self.admitted_us is None or time_us < self.admitted_us or is_gone:
            raise self._refusal(time_us, self._when_active())

    def not_active(self, time_us: int) -> InputError:
        """The error for a time between its admission and its end at which it was not active: it was paused."""
        paused_us, why = self.paused_before(time_us), self._when_active()
        if paused_us is not None:
            since, now = self._words(paused_us), self._words(time_us)
            why = f"it was paused at {since}, and not admitted again before {now} ({why})"
        return self._refusal(time_us, why)

    def _words(self, time_us: int) -> str:
        return time_words(time_us, self._origin_us)

    def _refusal(self, time_us: int, why: str) -> InputError:
        return InputError(
            f"the job was not active at this time: {why}", column="time", value=self._words(time_us),
            expected="a time at which it was admitted, not paused, and had not left",
        )  # fmt: skip

    def _when_active(self) -> str:
        status = self.status.replace("_", " ")
        if self.admitted_us is None:
            planned = "" if self.submitted_us is None else f"to be submitted at {self._words(self.submitted_us)} and "
            return f"it was {planned}never admitted ({status})"
        until = "the end of the window" if self.ended_us is None else f"{self._words(self.ended_us)} ({status})"
        paused = [self._words(time_us) for time_us in self.paused_us]
        if not paused:
            return f"admitted at {self._words(self.admitted_us)}, active until {until}"
        more = len(paused) - _MOST_SHOWN
        told = ", ".join(paused[:_MOST_SHOWN]) + (f" and {count(more, 'time')} more" if more > 0 else "")
        return f"admitted at {self._words(self.admitted_us)}, paused at {told}, there until {until}"


def is_active_after(
    run: RunResult,
    job: str,
    index: int,
    progress: ProgressCallback | None = None,
    **inputs: Unpack[GivenInputs],
) -> bool:
    """Whether ``job`` is active after decision ``index``, by going through the run again.

    Tables do not tell when a paused job was admitted again, as it may have had no nodes for long. Arguments and errors
    as ``recorded_decisions``.
    """
    rerun = Rerun(run, index, progress, **inputs)
    rerun.run(lambda moment: None)  # it is the end that counts
    return rerun.is_active([each.name for each in rerun.jobs].index(job))
