"""What one comparison of formulations leaves behind, in memory or as a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from bfreplay.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "bfreplay formulation lab, version 1"
RECORD_FILE = "lab.json"
KIND = "lab"
"""Word for its folder in messages."""


@dataclass(frozen=True, repr=False)
class LabResult:
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
        try:
            record = json.loads((path / RECORD_FILE).read_text(encoding="utf-8"))
            found = record["schema"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                "this is not a lab folder",
                file=path,
                value=str(error),
                expected=f"a folder with {RECORD_FILE}",
                fix="give the folder that 'bfreplay compare formulations --out' wrote",
            ) from error
        if found != SCHEMA:
            raise InputError(
                "the lab folder has another schema version",
                file=path / RECORD_FILE,
                column="schema",
                value=found,
                expected=SCHEMA,
                fix="compare again with this version of bfreplay",
            )
        return cls(record, path)

    def table(self, name: str) -> pa.Table:
        """Table ``decisions``, ``answers``, ``summary``, ``profile`` or ``time_by_size``.

        Raises
        ------
        InputError
            There is no such table.
        """
        if name not in self.tables:
            path = None if self.folder is None else self.folder / f"{name}.parquet"
            if path is None or not path.exists():
                raise InputError(f"the comparison has no table {name!r}", file=path)
            self.tables[name] = pq.read_table(path)
        return self.tables[name]

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """One row a sampled decision."""
        return self._frame("decisions")

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row a decision and pair."""
        return self._frame("answers")

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row a pair, the exact solver first."""
        return self._frame("summary")

    @cached_property
    def profile(self) -> pd.DataFrame:
        """Steps of the performance profiles."""
        return self._frame("profile")

    @cached_property
    def time_by_size(self) -> pd.DataFrame:
        """One row a pair and size of decisions."""
        return self._frame("time_by_size")

    def _frame(self, name: str) -> pd.DataFrame:
        frame: pd.DataFrame = self.table(name).to_pandas()
        return frame
