"""RunResult: what a replay leaves behind, in memory or as a folder."""

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

SCHEMA_VERSION = 1
RECORD_FILE = "run.json"
SESSION_FILE = "session.json"


@dataclass(frozen=True, repr=False)
class RunResult:
    """One finished replay.

    A run folder holds ``run.json`` (configuration with every default, versions, inputs with SHA-256, summary),
    ``decisions.parquet``, ``jobs.parquet``, ``allocations.parquet``, perhaps ``nodes.parquet``: the same inputs
    give the same bytes. Apart from them ``timings.parquet`` and ``session.json`` hold what was measured and how
    the run was called, which differ from run to run.

    Parameters
    ----------
    record
        Contents of ``run.json``.
    session
        Contents of ``session.json``.
    folder
        Where it lies, ``None`` for a run in memory.
    tables
        Tables in memory by name; read from the folder when needed otherwise.
    """

    record: dict[str, Any]
    session: dict[str, Any]
    folder: Path | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        summary = self.summary
        u = "" if self.u is None else f", U {self.u:.3f}"
        return f"<RunResult: {summary['n_decisions']:,} decisions{u}, {self.folder or 'in memory'}>"

    @classmethod
    def load(cls, folder: str | Path) -> RunResult:
        """Read a run folder.

        Raises
        ------
        InputError
            It is no run folder, or one of another schema version.
        """
        path = Path(folder)
        try:
            record = json.loads((path / RECORD_FILE).read_text(encoding="utf-8"))
            session = json.loads((path / SESSION_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                "this is not a run folder",
                file=path,
                value=str(error),
                expected=f"a folder with {RECORD_FILE} and {SESSION_FILE}",
                fix="give the folder that 'bfreplay replay --out' wrote",
            ) from error
        if record.get("schema_version") != SCHEMA_VERSION:
            raise InputError(
                "the run folder has another schema version",
                file=path / RECORD_FILE,
                column="schema_version",
                value=record.get("schema_version"),
                expected=str(SCHEMA_VERSION),
                fix="replay again with this version of bfreplay",
            )
        return cls(record, session, path)

    @property
    def summary(self) -> dict[str, Any]:
        """Totals of the run, JSON-ready."""
        summary: dict[str, Any] = self.record["summary"]
        return summary

    @property
    def u(self) -> float | None:
        """Efficiency against dedicated nodes; ``None`` when it was not asked for."""
        efficiency = self.summary["efficiency"]
        return None if efficiency is None else efficiency["u"]

    def table(self, name: str) -> pa.Table:
        """Table ``decisions``, ``jobs``, ``allocations``, ``timings`` or (if recorded) ``nodes``.

        Raises
        ------
        InputError
            The run has no such table.
        """
        if name not in self.tables:
            path = None if self.folder is None else self.folder / f"{name}.parquet"
            if path is None or not path.exists():
                raise InputError(
                    f"the run has no table {name!r}",
                    file=path,
                    fix="nodes are recorded only with record_nodes=True (--record-nodes)" if name == "nodes" else None,
                )
            self.tables[name] = pq.read_table(path)
        return self.tables[name]

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """One row a decision."""
        frame: pd.DataFrame = self.table("decisions").to_pandas()
        return frame

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row a job of the set."""
        frame: pd.DataFrame = self.table("jobs").to_pandas()
        return frame

    @cached_property
    def allocations(self) -> pd.DataFrame:
        """One row for each interval in which a job held a constant number of nodes."""
        frame: pd.DataFrame = self.table("allocations").to_pandas()
        return frame

    @cached_property
    def timings(self) -> pd.DataFrame:
        """Measured seconds of each decision."""
        frame: pd.DataFrame = self.table("timings").to_pandas()
        return frame
