"""``SweepResult``: what a sweep leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfreplay.errors import InputError
from bfreplay.replay import RunResult
from bfreplay.replay.run_warnings import distinct_warnings
from bfreplay.result_folders import RUN, SWEEP, ResultTables, read_documents

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class SweepResult:
    """One complete sweep, in its folder.

    Parameters
    ----------
    record
        Contents of ``sweep.json``.
    folder
        Where it lies.
    n_reused
        Runs that were there before.
    """

    record: dict[str, Any]
    folder: Path
    n_reused: int = 0

    def __repr__(self) -> str:
        return f"<SweepResult: {len(self.record['points'])} points, {len(self.record['runs'])} runs, {self.folder}>"

    @classmethod
    def load(cls, folder: str | Path) -> SweepResult:
        """Read the folder of a complete sweep.

        Raises
        ------
        InputError
            It is none, or of another schema version, or its sweep has not come to its end.
        """
        path = Path(folder)
        (record,) = read_documents(path, SWEEP)
        if not (path / "results.parquet").exists():
            raise InputError(
                "the sweep has not come to its end: there is no table of results", file=path / "results.parquet",
                fix="give the same 'bfreplay sweep' again: it goes on where it stopped",
            )  # fmt: skip
        return cls(record, path, len(record["runs"]))

    @cached_property
    def results(self) -> pa.Table:
        """One row a point of the spec, in its order; docs/sweeps.md has the columns."""
        return self._tables.table("results")

    @cached_property
    def table(self) -> pd.DataFrame:
        """``results`` as a data frame."""
        return self._tables.frame("results")

    @cached_property
    def timings(self) -> pd.DataFrame:
        """What was measured of each finished run."""
        return self._tables.frame("timings")

    @property
    def warnings(self) -> list[str]:
        """Warnings of the finished runs, each once; those that not all have with the number of runs that have it.

        None where an earlier version made the sweep, which noted no warnings.
        """
        if "warnings" not in self.results.column_names:
            return []
        rows = {row["id"]: row["warnings"] for row in self.results.select(["id", "warnings"]).to_pylist()}
        return distinct_warnings([(run_id, each) for run_id, each in rows.items() if each is not None], most_named=0)

    @cached_property
    def runs(self) -> Mapping[str, RunResult]:
        """Finished runs by id, in the order of the spec."""
        folders = {run_id: self.folder / "runs" / run_id for run_id in self.ids}
        return {
            run_id: RunResult.load(folder)
            for run_id, folder in folders.items()
            if (folder / RUN.record_file).exists()
        }  # fmt: skip

    @property
    def ids(self) -> list[str]:
        """Of every run, finished or failed, once each, in the order of the spec."""
        return list(dict.fromkeys(point["id"] for point in self.record["points"]))

    @property
    def n_failed(self) -> int:
        """Runs that failed."""
        status, ids = self.results.column("status").to_pylist(), self.results.column("id").to_pylist()
        return len({run_id for run_id, each in zip(ids, status, strict=True) if each == "failed"})

    @cached_property
    def _tables(self) -> _Tables:
        return _Tables(self.folder, {})


class _Tables(ResultTables):
    kind = SWEEP

    def __init__(self, folder: Path, tables: dict[str, pa.Table]) -> None:
        self.folder = folder
        self.tables = tables
