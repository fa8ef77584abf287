"""RunResult: what a replay leaves behind, in memory or as a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from bfreplay.replay.run_warnings import run_warnings
from bfreplay.result_folders import RUN, ResultKind, ResultTables, read_documents

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class RunResult(ResultTables):
    """One finished replay.

    A run folder holds ``run.json`` (configuration with every default, versions, inputs with SHA-256, summary),
    ``decisions.parquet``, ``jobs.parquet``, ``allocations.parquet``, ``pool.parquet``, ``holes.parquet``, perhaps
    ``nodes.parquet``: the same inputs give the same bytes. Apart from them ``timings.parquet`` and ``session.json``
    hold what was measured and how the run was called, which differ from run to run.

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

    kind: ClassVar[ResultKind] = RUN

    record: dict[str, Any]
    session: dict[str, Any]
    folder: Path | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        summary = self.summary
        u = "" if self.u is None else f", U {self.u:.3f}"
        return f"<RunResult: {summary['n_decisions']:,} decisions{u}, {self.folder or 'in memory'}>"

    def _repr_html_(self) -> str:
        """Its key numbers, in a notebook."""
        text: str = _notebook().run_html(self)
        return text

    @property
    def plot(self) -> Any:
        """Pictures of the run: ``plot.timeline()``, ``plot("timeline")``, ...; ``dir(run.plot)`` lists them.

        See ``bfreplay.report.notebook.RunPlots``.
        """
        return _notebook().RunPlots(self)

    @classmethod
    def load(cls, folder: str | Path) -> RunResult:
        """Read a run folder.

        Raises
        ------
        InputError
            It is no run folder, or one of another schema version.
        """
        path = Path(folder)
        record, session = read_documents(path, RUN)
        return cls(record, session, path)

    @property
    def summary(self) -> dict[str, Any]:
        """Totals of the run, JSON-ready."""
        summary: dict[str, Any] = self.record["summary"]
        return summary

    @property
    def warnings(self) -> list[str]:
        """What could make the numbers mislead, as sentences: about the log, and about jobs and deadlines."""
        return run_warnings(self.record)

    @property
    def u(self) -> float | None:
        """Efficiency against dedicated nodes; ``None`` when it was not asked for."""
        efficiency = self.summary.get("efficiency")
        return None if efficiency is None else efficiency["u"]

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """One row a decision."""
        return self.frame("decisions")

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row a job of the set."""
        return self.frame("jobs")

    @cached_property
    def allocations(self) -> pd.DataFrame:
        """One row for each interval in which a job held a constant number of nodes."""
        return self.frame("allocations")

    @cached_property
    def timings(self) -> pd.DataFrame:
        """Measured seconds of each decision."""
        return self.frame("timings")


def _notebook() -> Any:
    """By name, as the report stands a floor above and reads what is here: nothing here needs it to work."""
    return import_module("bfreplay.report.notebook")
