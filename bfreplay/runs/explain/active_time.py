"""Time in which a job of a run was active: admitted, not paused, not yet ended."""

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
"""Largest number of pauses that are listed."""


def time_words(time_us: int, origin_us: int | None) -> str:
    """Return a time in UTC; in a relative log seconds from ``origin_us``, such as ``+407.5``, as for ``--at``."""
    return iso_utc(time_us) if origin_us is None else f"+{(time_us - origin_us) / 1e6:.6f}".rstrip("0").rstrip(".")


class Life:
    """Life of one job, read from the tables of its run.

    Parameters
    ----------
    run
        The run.
    name
        Name of a job of the run.
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
            of_job = reports[reports["job"] == name]
            times_us = (int(time.value // 1000) for time in of_job["time"])
            self._reports = [*zip(times_us, (of_job["verdict"].astype(str) == "paused").tolist(), strict=True)]
        self.paused_us = tuple(time_us for time_us, is_pause in self._reports if is_pause)

    def paused_before(self, time_us: int) -> int | None:
        """Return the time of its last report by ``time_us`` if that was a pause; it may have been resumed since."""
        reports = [report for report in self._reports if report[0] <= time_us]
        return reports[-1][0] if reports and reports[-1][1] else None

    def refuse_outside(self, time_us: int) -> None:
        """Raise ``InputError`` for a time before its admission or after its end."""
        has_ended = self.ended_us is not None and time_us >= self.ended_us
        if self.admitted_us is None or time_us < self.admitted_us or has_ended:
            raise self._refusal(time_us, self._when_active())

    def not_active(self, time_us: int) -> InputError:
        """Return the error for a time between its admission and its end at which it was paused."""
        paused_us, why = self.paused_before(time_us), self._when_active()
        if paused_us is not None:
            since, now = self._words(paused_us), self._words(time_us)
            why = f"it was paused at {since}, and not admitted again before {now} ({why})"
        return self._refusal(time_us, why)

    def _words(self, time_us: int) -> str:
        return time_words(time_us, self._origin_us)

    def _refusal(self, time_us: int, why: str) -> InputError:
        return InputError(
            f"the job was not active at this time: {why}",
            column="time",
            value=self._words(time_us),
            expected="a time at which it was admitted, not paused, and not yet ended",
        )

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
        shown = ", ".join(paused[:_MOST_SHOWN]) + (f" and {count(more, 'time')} more" if more > 0 else "")
        return f"admitted at {self._words(self.admitted_us)}, paused at {shown}, active until {until}"


def is_active_after(
    run: RunResult, job: str, index: int, progress: ProgressCallback | None = None, **inputs: Unpack[GivenInputs]
) -> bool:
    """Return whether ``job`` is active after decision ``index``, by a rerun.

    The tables do not show when a paused job was admitted again, as it may have had no nodes for long. Arguments and
    errors as for ``recorded_decisions``.
    """
    rerun = Rerun(run, index, progress, **inputs)
    rerun.run(lambda moment: None)  # only the state at the end counts
    return rerun.is_active([job.name for job in rerun.jobs].index(job))
