"""The folder of one comparison of formulations: its record, declared once, and the result in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from bfreplay.result_folders.reading import Result, frame_of
from bfreplay.result_folders.records import LAB, Amount, Count, JsonObject, RecordPart, ResultRecord, TimeUs

if TYPE_CHECKING:
    import pandas as pd


class LabConfig(RecordPart, frozen=True, kw_only=True):
    """Options of the comparison (``LabSettings``), what was compared, and the window of the log."""

    sample: Count
    seed: Count
    t_fwd_s: float | str
    max_parallel: Count
    unlimited_work: bool
    time_limit_s: Amount
    relative_gap: Amount
    threads: Count
    solver_seed: int
    warm_start: bool
    reformulate_sets: bool
    memory_limit_bytes: Count | None
    grace_s: Amount
    formulations: list[str]
    backends: list[str]
    window_start_us: TimeUs
    window_end_us: TimeUs


class Stratum(RecordPart, frozen=True):
    """Number of decisions in a stratum, and in the sample of it."""

    label: str
    available: Count
    taken: Count


class Sampling(RecordPart, frozen=True, kw_only=True):
    """Number of decisions requested, of those that need a solver, and of the sample, also by stratum."""

    asked: Count
    available: Count
    taken: Count
    strata: list[Stratum]


class LabPair(RecordPart, frozen=True, kw_only=True):
    """A formulation on a back end. ``change_limited``: it limits changes, so its optimum may be below the true one."""

    pair: str
    formulation: str
    backend: str
    change_limited: bool


class LabBackend(RecordPart, frozen=True, kw_only=True):
    """A back end and its class."""

    backend: str
    location: str = msgspec.field(name="class")
    version: str | None
    licence: str


class NotCompared(RecordPart, frozen=True):
    """A skipped pair; with an empty name a whole formulation or back end."""

    formulation: str
    backend: str
    reason: str


class SummaryRow(RecordPart, frozen=True, kw_only=True):
    """One pair: answers by outcome, seconds, sizes of models; docs/formulation-lab.md explains each column."""

    pair: str
    formulation: str
    backend: str
    decisions: Count
    solved: Count
    proven: Count
    feasible: Count
    wrong: Count
    crashed: Count
    timed_out: Count
    refused: Count
    error: Count
    no_answer: Count
    fastest: Count
    build_median_s: float | None
    build_p95_s: float | None
    solve_median_s: float | None
    solve_p95_s: float | None
    total_median_s: float | None
    total_p95_s: float | None
    sgm_s: float
    times_exact: float | None
    columns_median: float | None
    rows_median: float | None
    entries_median: float | None
    gap_median: float | None
    gap_worst: float | None
    loss_median: float | None
    loss_worst: float | None
    loss_proven_worst: float | None
    better_than_exact: Count
    workers_lost: Count


class Winner(RecordPart, frozen=True, kw_only=True):
    """The pair with most of the fastest proofs, and its median time over that of the exact solver."""

    pair: str
    fastest: Count
    decisions: Count
    times_exact: float | None


class LabRecord(ResultRecord, frozen=True, kw_only=True):
    """``lab.json``.

    Parameters
    ----------
    inputs
        Inputs, as in ``run.json``.
    warnings
        Warnings about the log, as sentences.
    winner
        Fastest pair; ``None`` where no pair proved anything.
    session
        Time, command, and measurements.
    """

    versions: dict[str, str]
    config: LabConfig
    inputs: JsonObject
    warnings: list[str]
    sampling: Sampling
    pairs: list[LabPair]
    backends: list[LabBackend]
    left_out: list[NotCompared]
    summary: list[SummaryRow]
    winner: Winner | None
    session: JsonObject


@dataclass(frozen=True, repr=False)
class LabResult(Result[LabRecord]):
    """One finished comparison of formulations.

    Its folder holds ``lab.json`` and the tables as Parquet. ``decisions`` and the pairs are the same for the same
    inputs and seed; the other tables hold measurements.
    """

    kind = LAB
    record_type = LabRecord

    def __repr__(self) -> str:
        n_taken, pairs = self.record.sampling.taken, len(self.record.pairs)
        return f"<LabResult: {n_taken} decisions, {pairs} pairs, {self.folder or 'in memory'}>"

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of ``summary``: one row per pair of formulation and back end."""
        return self.summary.copy()

    decisions = frame_of("decisions", "One row per sampled decision.")
    answers = frame_of("answers", "One row per decision and pair.")
    summary = frame_of("summary", "One row per pair, the exact solver first.")
    profile = frame_of("profile", "Steps of the performance profiles.")
    time_by_size = frame_of("time_by_size", "One row per pair and size of decisions.")
