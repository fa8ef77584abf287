"""Rows of the lab's tables; docs/formulation-lab.md explains each column."""

from __future__ import annotations

from bfreplay.experiments.formulation_lab.answers import Answer
from bfreplay.result_folders.lab import SummaryRow
from bfreplay.result_folders.records import Part, TimeUs


class DecisionRow(Part, frozen=True, kw_only=True):
    """One sampled decision."""

    index: int
    time: TimeUs
    n_idle: int
    n_jobs: int
    n_held: int
    optimum: float | None
    published_optimum: float | None
    stratum: str


class ProfileStep(Part, frozen=True, kw_only=True):
    """From ``tau`` on, up to the pair's next row, ``share`` of the decisions."""

    field: str
    pair: str
    tau: float
    share: float


class SizeBin(Part, frozen=True, kw_only=True):
    """One pair on decisions of ``size_from`` (included) to ``size_to`` (not included) jobs x idle nodes."""

    pair: str
    size_from: int
    size_to: int
    decisions: int
    proven: int
    n_jobs_median: float
    n_idle_median: float
    columns_median: float | None
    total_median_s: float | None


ROWS: dict[str, type] = {
    "decisions": DecisionRow,
    "answers": Answer,
    "summary": SummaryRow,
    "profile": ProfileStep,
    "time_by_size": SizeBin,
}
"""By name of the table."""
