"""RunResult: the result of a replay, in memory or as a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pyarrow as pa

from bfreplay.errors import BfreplayError, InputError, LedgerError
from bfreplay.replay.intervals import ALLOCATIONS, NODES
from bfreplay.replay.pool_tables import IDLE_INTERVALS, POOL
from bfreplay.replay.tables import DECISIONS, JOBS, LOSSES, REPORTS, TIMINGS
from bfreplay.result_folders.reading import Result, check_digest, digest, frame_of, read_documents
from bfreplay.result_folders.records import RUN, parse_record
from bfreplay.result_folders.writing import record_json, write_record
from bfreplay.runs.batch_delays import BATCH_DELAYS
from bfreplay.runs.run_record import RunRecord, Session, Summary
from bfreplay.runs.run_warnings import run_warnings

_VIEWS = "bfreplay.run_views"
"""Entry points of modules with ``run_html`` and ``RunPlots``."""


@dataclass(frozen=True, repr=False)
class RunResult(Result[RunRecord]):
    """One finished replay.

    A run folder holds ``run.json`` (configuration with every default, versions, inputs and tables with SHA-256,
    summary), ``decisions.parquet``, ``jobs.parquet``, ``allocations.parquet``, ``pool.parquet``,
    ``idle_intervals.parquet``, and on request ``nodes.parquet``, ``reports.parquet``, ``losses.parquet`` and
    ``batch_delays.parquet``: the same inputs give the same bytes. ``timings.parquet`` and ``session.json`` hold
    measured times and the command.

    Parameters
    ----------
    record, folder, tables
        Content of ``run.json``, the folder (``None`` in memory), and the tables in memory, by name.
    session
        Content of ``session.json``.
    """

    kind = RUN
    record_type = RunRecord
    schemas: ClassVar[Mapping[str, pa.Schema]] = {
        "decisions": DECISIONS,
        "timings": TIMINGS,
        "jobs": JOBS,
        "reports": REPORTS.remove(REPORTS.get_field_index("epoch")),  # older folders have none
        "losses": LOSSES,
        "allocations": ALLOCATIONS,
        "pool": POOL,
        "idle_intervals": IDLE_INTERVALS,
        "nodes": NODES,
        "batch_delays": BATCH_DELAYS,
    }

    session: Session = field(kw_only=True)

    def __repr__(self) -> str:
        u_text, efficiency = "", self.summary.efficiency
        if efficiency is not None and efficiency.u is not None:
            is_done = None not in (efficiency.last_finish_us, efficiency.dedicated_last_finish_us)
            u_text = "" if is_done else f", U {efficiency.u:.3f}"  # where all is done, U is 1 by construction
        return f"<RunResult: {self.summary.n_decisions:,} decisions{u_text}, {self.folder or 'in memory'}>"

    def _repr_html_(self) -> str:
        """Return the key figures for a notebook."""
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
            It is no run folder, damaged, or of another schema version; or its ledger does not close.
        """
        document, session_document = read_documents(folder, RUN)
        path = Path(folder)
        record_file, session_file = path / RUN.record_file, path / RUN.more_documents[0]
        record = parse_record(document, RunRecord, RUN, record_file)
        session = parse_record(Session.nest_more(session_document), Session, RUN, session_file)
        check_digest(record_file, session.sha256.get(record_file.name), RUN)
        try:
            _ = record.inputs.events.metadata.log_warnings
            record.summary.ledger.close()
        except LedgerError as error:
            raise InputError(
                f"the ledger of the run does not close: {error}",
                file=record_file,
                column="summary.ledger",
                fix=f"the file was changed: make it again ('{RUN.made_by}')",
            ) from error
        return cls(record, path, session=session)

    def write(self, folder: Path) -> RunResult:
        """Write the documents into a folder that has the tables, and return the run with their digests."""
        timings = folder / "timings.parquet"
        record = write_record(folder, self.record, RUN, not_in=[timings.name])
        digests = {file.name: digest(file) for file in (folder / RUN.record_file, timings)}
        session = msgspec.structs.replace(self.session, sha256=digests)
        (folder / RUN.more_documents[0]).write_text(record_json(session, "the run"), encoding="utf-8")
        return replace(self, record=record, session=session)

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the tables by file name; empty in memory."""
        return self.record.sha256 and self.record.sha256 | self.session.sha256

    @property
    def summary(self) -> Summary:
        """Totals of the run."""
        return self.record.summary

    @property
    def warnings(self) -> list[str]:
        """Warnings about the log, the jobs and their deadlines, as sentences."""
        return run_warnings(self.record)

    @property
    def u(self) -> float | None:
        """Efficiency against dedicated nodes; ``None`` where it was not computed."""
        efficiency = self.summary.efficiency
        return None if efficiency is None else efficiency.u

    decisions = frame_of("decisions", "One row a decision.")
    jobs = frame_of("jobs", "One row a job of the set.")
    allocations = frame_of("allocations", "One row for each interval in which a job held a constant number of nodes.")
    reports = frame_of("reports", "One row a report of a job; only of runs with a job source.")
    losses = frame_of("losses", "One row a loss of work since a checkpoint; only of runs with work at risk.")
    timings = frame_of("timings", "Measured seconds of each decision.")


def _notebook() -> Any:
    """Return the module that shows runs in a notebook, found by its entry point as it is in a higher layer."""
    entry_points_of_views = entry_points(group=_VIEWS)
    if not entry_points_of_views:
        raise BfreplayError(
            f"bfreplay is installed without its entry points ({_VIEWS})\n  fix:      pip install it again"
        )
    return next(iter(entry_points_of_views)).load()
