"""``SweepResult``: the result of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import msgspec
import pyarrow.compute as pc

from bfreplay.errors import InputError
from bfreplay.experiments.sweep.placeholders import Cell
from bfreplay.experiments.sweep.spec import PictureSpec, PictureTable, picture_of
from bfreplay.result_folders.reading import Result, frame_of
from bfreplay.result_folders.records import RUN, SWEEP, JsonObject, RecordPart, ResultKind, ResultRecord, TimeUs
from bfreplay.runs import RunResult
from bfreplay.runs.headline_metrics import COLUMNS, headline_texts
from bfreplay.runs.run_warnings import distinct_warnings
from bfreplay.typed_tables import typed_table
from bfreplay.wording import count

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


_MOST_ERRORS = 5
_ENDS_WITH_JOBS = ("cluster", "measure", "until-done")
FAILED = "failed"
"""Status of a row whose run failed."""


class SweepPoint(RecordPart, frozen=True, kw_only=True):
    """The run of a point of the spec, and the values that vary."""

    id: str
    cells: dict[str, Cell] = msgspec.field(default_factory=dict)


class SweptRun(RecordPart, frozen=True, kw_only=True):
    """Paths of the inputs of a run, and everything that its result depends on (``identity.content_of``)."""

    paths: dict[str, str]
    bfreplay: str
    schema_version: int
    options: JsonObject
    window_us: list[TimeUs] | None
    events: list[str]
    jobs: list[str]
    batch_jobs: str | None = None
    job_source: str | None
    code: dict[str, str | None]
    solver: str | None
    highspy: str | None
    scipy: str | None
    optuna: str | None
    log_warnings: JsonObject


class SweepRecord(ResultRecord, frozen=True, kw_only=True):
    """``sweep.json``: the spec, its points in order, and the runs by id."""

    bfreplay: str
    versions: dict[str, str]
    spec: JsonObject
    columns: list[str]
    points: list[SweepPoint]
    runs: dict[str, SweptRun]


@dataclass(frozen=True, repr=False)
class SweepResult(Result[SweepRecord]):
    """One complete sweep, in its folder.

    Parameters
    ----------
    record, folder, tables
        As for ``Result``; ``record`` is the content of ``sweep.json``.
    n_reused
        Number of runs that existed before.
    """

    kind: ClassVar[ResultKind] = SWEEP
    record_type: ClassVar[type[SweepRecord]] = SweepRecord

    folder: Path
    n_reused: int = field(default=0, kw_only=True)

    def __repr__(self) -> str:
        return f"<SweepResult: {len(self.record.points)} points, {len(self.record.runs)} runs, {self.folder}>"

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read the folder of a complete sweep.

        Raises
        ------
        InputError
            It is not a sweep, has another schema version, or is unfinished.
        """
        result = super().load(folder)
        if not result.has_table("results"):
            raise InputError(
                "the sweep is unfinished: it has no table of results",
                file=result.folder / "results.parquet",
                fix="repeat the same 'bfreplay sweep' to resume it",
            )
        return replace(result, n_reused=len(result.record.runs))

    @property
    def results(self) -> pa.Table:
        """One row per point of the spec, in its order; docs/sweeps.md has the columns."""
        return self._read("results")

    @cached_property
    def table(self) -> pd.DataFrame:  # type: ignore[override]  # a sweep has one table of results: this is its name
        """``results`` as a data frame."""
        return self.frame("results")

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of ``table``."""
        return self.table.copy()

    timings = frame_of("timings", "Measurements of each finished run.")

    @property
    def warnings(self) -> list[str]:
        """Distinct warnings of the finished runs; one that not all share has the number of runs."""
        rows = {row["id"]: row["warnings"] for row in self.results.select(["id", "warnings"]).to_pylist()}
        return distinct_warnings(
            [(run_id, run_warnings) for run_id, run_warnings in rows.items() if run_warnings is not None], most_named=0
        )

    @property
    def errors(self) -> list[str]:
        """Sentences on the most frequent errors of failed rows."""
        errors = Counter(error for error in self.results.column("error").to_pylist() if error is not None)
        lines = [f"Error of {count(n_rows, 'row')}: {error}" for error, n_rows in errors.most_common(_MOST_ERRORS)]
        n_more = len(errors) - len(lines)
        return [*lines, f"{n_more:,} more errors"] if n_more else lines

    @property
    def picture(self) -> PictureSpec | None:
        """Picture that the spec asks for; ``None`` for none."""
        table = self.record.spec.get("picture")
        return None if table is None else picture_of(typed_table(table, PictureTable, self.folder, "[picture]"))

    @cached_property
    def runs(self) -> Mapping[str, RunResult]:
        """Finished runs by id, in the order of the spec."""
        folders = {run_id: self.folder / "runs" / run_id for run_id in self.ids}
        return {
            run_id: RunResult.load(folder) for run_id, folder in folders.items() if (folder / RUN.record_file).exists()
        }

    def headline(self) -> dict[str, list[str]]:
        """Return the metrics that tables of many runs have, by column: texts of the rows of finished runs."""
        results = self.results
        ends = [any(run.options.get(name) for name in _ENDS_WITH_JOBS) for run in self.record.runs.values()]
        finished_rows = results.filter(pc.not_equal(results.column("status"), FAILED))
        values = {name: finished_rows.column(name).to_pylist() for name in COLUMNS}
        return headline_texts(values, log=not all(ends), cluster=any(ends))

    @property
    def ids(self) -> list[str]:
        """Ids of all distinct runs, finished or failed, in the order of the spec."""
        return list(dict.fromkeys(point.id for point in self.record.points))

    @property
    def n_failed(self) -> int:
        """Number of failed runs."""
        status, ids = self.results.column("status").to_pylist(), self.results.column("id").to_pylist()
        return len({run_id for run_id, run_status in zip(ids, status, strict=True) if run_status == FAILED})
