"""The folder of ``bfreplay finish``: its record, declared once, and the result in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bfreplay.result_folders.comparison import Estimate
from bfreplay.result_folders.reading import AnswerResult
from bfreplay.result_folders.records import FINISH, Amount, AnswerRecord, Count, JsonObject, RecordPart, TimeUs
from bfreplay.result_folders.tuning import InputFile

if TYPE_CHECKING:
    import pandas as pd


class FinishConfig(RecordPart, frozen=True, kw_only=True):
    """Options of the runs, and of the command; ``time_zone`` is ``None`` for a log without a calendar."""

    options: JsonObject
    dedicated: Count | None
    starts: Count
    seed: Count
    time_zone: str | None


class FinishInputs(RecordPart, frozen=True, kw_only=True):
    """Files, window and number of nodes of the log; files of the jobs, and ``True`` for a search that makes them."""

    events: list[InputFile]
    window_us: tuple[TimeUs, TimeUs]
    n_nodes: Count
    jobs: list[InputFile]
    is_search: bool


class Start(RecordPart, frozen=True, kw_only=True):
    """A run from one start: the time until all was done; or, censored, until the log ended before that."""

    time: str
    time_us: TimeUs
    duration_s: Amount
    is_done: bool
    run: str


class Quantiles(RecordPart, frozen=True, kw_only=True):
    """Kaplan-Meier quantiles of the time until all is done; ``None`` for one beyond ``observed_s``, the longest time.

    Parameters
    ----------
    quarter_s, median_s, three_quarters_s
        Time within which a quarter, a half and three quarters of the starts are done.
    observed_s
        Longest time of a start, done or censored.
    """

    quarter_s: Amount | None
    median_s: Amount | None
    three_quarters_s: Amount | None
    observed_s: Amount

    @property
    def median_or_bound_s(self) -> float:
        """Median; if it is unknown ``observed_s``, which it exceeds. All times are shown in the unit of this one."""
        return self.observed_s if self.median_s is None else self.median_s


class Dedicated(RecordPart, frozen=True, kw_only=True):
    """A run on dedicated nodes; ``duration_s`` is ``None`` where the jobs never end."""

    nodes: Count
    duration_s: Amount | None


class Against(RecordPart, frozen=True, kw_only=True):
    """Other jobs from the same starts, and the paired difference, other minus first.

    Parameters
    ----------
    jobs
        Their files.
    starts, quantiles
        Their runs, and quantiles of the times.
    later_s
        Mean difference of the times, in seconds, of ``n`` starts that one of the two finished at least; where the other
        did not, with the time that it had. ``None`` without such starts.
    """

    jobs: list[InputFile]
    starts: list[Start]
    quantiles: Quantiles
    later_s: Estimate | None


EXACT, AT_MOST, MORE = "exactly", "at most", "more than"
"""How ``Worth.nodes`` is meant."""


class Worth(RecordPart, frozen=True, kw_only=True):
    """Dedicated nodes that the idle nodes are worth.

    Parameters
    ----------
    meaning
        ``"exactly"`` these nodes; ``"at most"``, where the median is unknown; or ``"more than"``, where even the
        largest cluster takes longer.
    nodes
        Smallest number whose time is no longer than the median; or the largest number that was tried.
    """

    meaning: str
    nodes: Count


class FinishRecord(AnswerRecord, frozen=True, kw_only=True):
    """``finish.json``.

    Parameters
    ----------
    starts
        Runs on the log, by start.
    quantiles
        Quantiles of their durations.
    dedicated
        Every run on dedicated nodes, by number of nodes.
    worth
        Dedicated nodes that the idle nodes are worth.
    against
        Other jobs that were compared with.
    """

    config: FinishConfig
    inputs: FinishInputs
    starts: list[Start]
    quantiles: Quantiles
    dedicated: list[Dedicated]
    worth: Worth
    against: Against | None = None

    @property
    def names(self) -> tuple[str, str]:
        """Names of the jobs and of the other ones: their files, if these have different names."""
        of_jobs = [self.inputs.jobs, [] if self.against is None else self.against.jobs]
        first, other = (files[0].name if files else "" for files in of_jobs)
        return (first, other) if first and other and first != other else ("the first", "the other")

    @property
    def n_done(self) -> int:
        """Number of starts from which all was done before the log ended."""
        return sum(start.is_done for start in self.starts)

    def dedicated_s(self, nodes: int | None) -> float | None:
        """Seconds on so many dedicated nodes; ``None`` if not tried, or if the jobs never end there."""
        return next((entry.duration_s for entry in self.dedicated if entry.nodes == nodes), None)


@dataclass(frozen=True, repr=False)
class Finish(AnswerResult[FinishRecord]):
    """Times until all jobs are done; the runs behind them are in the subfolders ``starts`` and ``dedicated``."""

    kind = FINISH
    record_type = FinishRecord

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Times on the idle nodes, and on dedicated ones."""
        times = [("median on the idle nodes", self.record.quantiles.median_s)]
        times += [(f"on {entry.nodes:,} dedicated nodes", entry.duration_s) for entry in self.record.dedicated]
        return [(words, "–" if seconds is None else f"{seconds / 3600:,.2f} h") for words, seconds in times]

    @property
    def table(self) -> pd.DataFrame:  # type: ignore[override]  # there is no other table
        """One row per start: ``time``, ``duration_s``, ``is_done``, ``run``."""
        import pandas as pd

        names = ("time", "duration_s", "is_done", "run")
        return pd.DataFrame([{name: start[name] for name in names} for start in self.record.starts])
