"""What one comparison of runs leaves behind, in memory or as a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from bfreplay.result_folders import COMPARISON, ResultKind, ResultTables, read_documents

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class RunComparison(ResultTables):
    """One finished comparison of runs with the first of them, the baseline A.

    Its folder holds ``comparison.json`` and the tables as Parquet. The same runs, options and seed give the same bytes,
    but for ``session`` in the record.

    Parameters
    ----------
    record
        Contents of ``comparison.json``.
    folder
        Where it lies, ``None`` for one in memory.
    tables
        Tables in memory by name; read from the folder when needed otherwise.
    """

    kind: ClassVar[ResultKind] = COMPARISON

    record: dict[str, Any]
    folder: Path | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"<RunComparison: {' '.join(self.answers)}>"

    @classmethod
    def load(cls, folder: str | Path) -> RunComparison:
        """Read a comparison folder.

        Raises
        ------
        InputError
            It is no comparison folder, or one of another schema version.
        """
        path = Path(folder)
        (record,) = read_documents(path, COMPARISON)
        return cls(record, path)

    @property
    def answers(self) -> list[str]:
        """A sentence for each run but the baseline."""
        return [pair["answer"] for pair in self.record["pairs"]]

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Of each run but the baseline: ``samples``, ``hours``, ``jobs``, ``causes``, ``campaign``."""
        pairs: list[dict[str, Any]] = self.record["pairs"]
        return pairs

    @cached_property
    def hours(self) -> pd.DataFrame:
        """One row a run and bin of time."""
        return self.frame("hours")

    @cached_property
    def cumulative(self) -> pd.DataFrame:
        """Difference of samples from the start of the window on, with its 95 % band."""
        return self.frame("cumulative")

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row a run (but the baseline) and job."""
        return self.frame("jobs")
