"""The folder of one comparison of runs: its record, declared once, and the result in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from bfreplay.documents import html_table
from bfreplay.result_folders.reading import Result, frame_of
from bfreplay.result_folders.records import COMPARISON, Amount, Count, JsonObject, RecordPart, ResultRecord, TimeUs

if TYPE_CHECKING:
    import pandas as pd

_Figure = TypeVar("_Figure")


class ComparisonConfig(RecordPart, frozen=True, kw_only=True):
    """Options, constants of the bootstrap, and the window of the log."""

    bin_s: Amount
    seed: Count
    resamples: Count
    level: Amount
    least_bins: Count
    least_blocks: Count
    lengthen_blocks: Amount
    window_start_us: TimeUs
    window_end_us: TimeUs
    unlimited_work: bool


class ComparedRun(RecordPart, frozen=True, kw_only=True):
    """Label of a run, name of its folder (``None`` in memory), and its policy."""

    run: str
    name: str | None
    policy: str


class DifferingOption(RecordPart, frozen=True, kw_only=True):
    """An option in which the runs differ, with its value in each; ``None`` for a run that does not have it."""

    option: str
    values: list[Any]


class Estimate(RecordPart, frozen=True, kw_only=True):
    """A difference and its 95 % interval.

    Parameters
    ----------
    value
        ``None`` where it is not defined.
    low, high
        Ends of the interval; ``None`` without one.
    n
        Number of bins, or jobs.
    block_length
        Bins in a block; ``None`` without resampling, and for jobs.
    why_no_interval
        Reason without a full stop; ``None`` with an interval.
    """

    value: float | None
    low: float | None
    high: float | None
    n: Count
    block_length: Count | None
    why_no_interval: str | None

    @classmethod
    def interval(cls, value: float, low: float, high: float, n: int, block_length: int | None = None) -> Estimate:
        """Make an estimate with an interval."""
        return cls(value=value, low=low, high=high, n=n, block_length=block_length, why_no_interval=None)

    @classmethod
    def alone(cls, value: float | None, n: int, why_no_interval: str | None) -> Estimate:
        """Make an estimate without an interval."""
        return cls(value=value, low=None, high=None, n=n, block_length=None, why_no_interval=why_no_interval)

    def times(self, factor: float) -> Estimate:
        """Return the estimate of ``factor`` times the quantity, ``factor`` > 0."""
        value, low, high = (None if bound is None else bound * factor for bound in (self.value, self.low, self.high))
        return msgspec.structs.replace(self, value=value, low=low, high=high)


class Both(RecordPart, Generic[_Figure], frozen=True, kw_only=True):
    """A quantity of both runs."""

    baseline: _Figure
    other: _Figure


class SamplesDifference(Both[float], frozen=True, kw_only=True):
    """Samples of both runs; ``equal_by_construction`` where both did all the work."""

    difference: float
    relative: Estimate
    equal_by_construction: bool


class HourMeasure(Both[float], frozen=True, kw_only=True):
    """One measure summed over the bins: both runs, mean difference per bin, total difference."""

    measure: str
    mean: Estimate
    total: Estimate


class Causes(RecordPart, frozen=True, kw_only=True):
    """Parts of ``other - baseline`` in samples; they add up to it, to rounding.

    A run processes ``samples = hours * rate - rescale - preempt - repeated - trimmed``. ``hours`` are the used
    node-hours (the ledger's useful, rescaling, preempted and repeated), ``rate`` is the possible samples of allocated
    nodes per used node-hour.
    The difference of the product is split symmetrically:
    ``(h_B - h_A) * (r_A + r_B) / 2`` and ``(r_B - r_A) * (h_A + h_B) / 2``.

    Parameters
    ----------
    node_hours
        Effect of more or fewer used node-hours.
    samples_per_node_hour
        Effect of more or fewer samples per used node-hour, from other jobs or other widths.
    rescaling, preemption
        Effect of lower or higher costs of rescales and preemptions.
    repeated
        Effect of less or more work lost since checkpoints.
    trimmed
        Effect of samples made after a job's work was done; next to nothing in continuous time.
    """

    node_hours: float
    samples_per_node_hour: float
    rescaling: float
    preemption: float
    repeated: float = 0.0  # older comparisons have none
    trimmed: float


CAUSES = Causes.__struct_fields__
"""Causes of the difference in samples, in the order of tables and pictures."""


class Pair(Both[float | None], frozen=True, kw_only=True):
    """A number of both runs, and ``other - baseline``; ``None`` where it is unknown."""

    difference: float | None


class FinishedTrial(Pair, frozen=True, kw_only=True):
    """Finish of the k-th trial, in seconds from the start of the window; ``which`` names k in words."""

    which: str
    k: Count


class ReachedScore(Both[float], frozen=True, kw_only=True):
    """Time at which each run reached a score, in seconds from the start of the window."""

    score: float
    difference: float


class CampaignDifference(RecordPart, frozen=True, kw_only=True):
    """Milestones of two runs of a job source.

    Parameters
    ----------
    higher_is_better
        True if a larger score is better.
    n_finished, finished
        Number of finished trials, and finish times of some.
    over
        End of the last trial.
    reached
        Times of the best score of the worse run; ``None`` where a run has no score.
    best_score
        Best score of each run.
    """

    higher_is_better: bool
    n_finished: Both[Count]
    finished: list[FinishedTrial]
    over: Pair
    reached: ReachedScore | None
    best_score: Pair


class JobShares(RecordPart, frozen=True, kw_only=True):
    """One measure job by job: number of jobs with it, with less, more, better or worse, and the differences.

    ``n_better`` and ``n_worse`` are ``None`` for a measure without a better direction; the rest is ``None`` where no
    job has the measure in both runs.
    """

    measure: str
    n_both: Count
    only_in_baseline: Count
    only_in_other: Count
    n_less: Count
    n_equal: Count
    n_more: Count
    n_better: Count | None
    n_worse: Count | None
    median: float | None
    mean: float | None
    p2_5: float | None
    p97_5: float | None


class JobMeasure(JobShares, frozen=True, kw_only=True):
    """One measure of all jobs, with the 95 % interval of the median."""

    median_low: float | None
    median_high: float | None
    why_no_interval: str | None


class ModelMeasure(JobShares, frozen=True, kw_only=True):
    """One measure of the jobs of one model."""

    model: str


class StatusChange(Both[str], frozen=True, kw_only=True):
    """Number of jobs with one status in the baseline and another in the other run."""

    n_jobs: Count


class JobDifferences(RecordPart, frozen=True, kw_only=True):
    """Jobs of both runs by name; ``models`` is empty for a single model."""

    n_jobs: Count
    only_in_baseline: Count
    only_in_other: Count
    n_other_params: Count
    measures: list[JobMeasure]
    status_changes: list[StatusChange]
    models: list[ModelMeasure]


class RunDifference(RecordPart, frozen=True, kw_only=True):
    """One run against the baseline, both by their labels.

    Parameters
    ----------
    samples, hours, causes, jobs
        Differences, as in their classes.
    totals
        Metrics by name.
    over
        End of the last job, in seconds from the start of the window; ``None`` while some have not ended.
    campaign
        Milestones of a campaign; ``None`` for a plain job set.
    answer
        One or two sentences.
    """

    run: str
    baseline: str
    samples: SamplesDifference
    hours: list[HourMeasure]
    causes: Causes
    totals: Both[dict[str, int | float]]
    over: Both[float | None]
    campaign: CampaignDifference | None
    jobs: JobDifferences
    answer: str


class ComparisonRecord(ResultRecord, frozen=True, kw_only=True):
    """``comparison.json``.

    Parameters
    ----------
    inputs
        Inputs of the baseline, as in ``run.json``.
    runs
        Runs, the baseline first.
    warnings
        Warnings about the runs, as sentences.
    options
        Options in which the runs differ.
    pairs
        Every other run against the baseline.
    session
        Time, command, and paths of the runs.
    """

    versions: dict[str, str]
    config: ComparisonConfig
    inputs: JsonObject
    runs: list[ComparedRun]
    warnings: list[str]
    options: list[DifferingOption]
    pairs: list[RunDifference]
    session: JsonObject

    @property
    def is_relative(self) -> bool:
        """True if the log has no calendar: its times count from its start."""
        return bool(self.inputs["events"]["metadata"].get("time_origin") == "relative")


@dataclass(frozen=True, repr=False)
class RunComparison(Result[ComparisonRecord]):
    """One finished comparison of runs with the first of them, the baseline A.

    Its folder holds ``comparison.json`` and the tables as Parquet. The same runs, options and seed give the same bytes,
    but for ``session`` in the record.
    """

    kind = COMPARISON
    record_type = ComparisonRecord

    def __repr__(self) -> str:
        return f"<RunComparison: {' '.join(self.answers)}>"

    def _repr_html_(self) -> str:
        rows = [(f"{pair.run} against {pair.baseline}", pair.answer) for pair in self.pairs]
        notes = (f"Warning: {warning}" for warning in self.record.warnings)
        return html_table("Comparison of runs", rows, str(self.folder or ""), notes)

    @property
    def answers(self) -> list[str]:
        """One sentence for each run but the baseline."""
        return [pair.answer for pair in self.pairs]

    @property
    def pairs(self) -> list[RunDifference]:
        """Every other run against the baseline: ``samples``, ``hours``, ``jobs``, ``causes``, ``campaign``."""
        return self.record.pairs

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each run but the baseline: the samples of both, the difference and its 95 % interval."""
        import pandas as pd

        pair_rows = []
        for pair in self.pairs:
            samples, relative = pair.samples, pair.samples.relative
            sample_cells = {"run": pair.run, "samples": samples.other, "baseline_samples": samples.baseline}
            estimate = {"relative": relative.value, "low": relative.low, "high": relative.high}
            pair_rows.append(sample_cells | estimate | {"answer": pair.answer})
        return pd.DataFrame(pair_rows)

    hours = frame_of("hours", "One row per run and bin of time.")
    cumulative = frame_of("cumulative", "Difference of samples from the start of the window on, with its 95 % band.")
    jobs = frame_of("jobs", "One row per run (but the baseline) and job.")
