"""What one comparison of formulations leaves behind, in memory or as a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from bfreplay.result_folders import LAB, ResultKind, ResultTables, read_documents

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class LabResult(ResultTables):
    """One finished comparison.

    Its folder holds ``lab.json`` and the tables as Parquet. ``decisions`` and the pairs are the same for the same
    inputs and seed; the other tables hold what was measured.

    Parameters
    ----------
    record
        Contents of ``lab.json``.
    folder
        Where it lies, ``None`` for one in memory.
    tables
        Tables in memory by name; read from the folder when needed otherwise.
    """

    kind: ClassVar[ResultKind] = LAB

    record: dict[str, Any]
    folder: Path | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        taken, pairs = self.record["sampling"]["taken"], len(self.record["pairs"])
        return f"<LabResult: {taken} decisions, {pairs} pairs, {self.folder or 'in memory'}>"

    @classmethod
    def load(cls, folder: str | Path) -> LabResult:
        """Read a lab folder.

        Raises
        ------
        InputError
            It is no lab folder, or one of another schema version.
        """
        path = Path(folder)
        (record,) = read_documents(path, LAB)
        return cls(record, path)

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """One row a sampled decision."""
        return self.frame("decisions")

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row a decision and pair."""
        return self.frame("answers")

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row a pair, the exact solver first."""
        return self.frame("summary")

    @cached_property
    def profile(self) -> pd.DataFrame:
        """Steps of the performance profiles."""
        return self.frame("profile")

    @cached_property
    def time_by_size(self) -> pd.DataFrame:
        """One row a pair and size of decisions."""
        return self.frame("time_by_size")
