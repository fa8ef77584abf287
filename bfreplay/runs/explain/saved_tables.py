"""Tables of a saved run in the form that explanations read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.checks import near_name
from bfreplay.errors import InputError
from bfreplay.replay.active import SECOND
from bfreplay.replay.intervals import charged_spans_us
from bfreplay.runs.run_result import RunResult

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

NODE_US_PER_HOUR = 3_600_000_000
NODE_TIME = ("useful", "rescaling", "preempted", "stalled")
"""Labels of the node time that a job held, in the order of the ledger."""
NO_MODEL = "(no model)"


def jobs_frame(run: RunResult) -> pd.DataFrame:
    """Return the table of jobs, with statuses as text."""
    frame = run.jobs.copy()
    frame["status"] = frame["status"].astype(str)
    return frame


def reports_frame(run: RunResult) -> pd.DataFrame | None:
    """Return the reports of jobs to their source, in order of time; ``None`` for a run of a plain job set."""
    return run.frame("reports") if run.record.inputs.jobs.of_source else None


def higher_is_better(run: RunResult) -> bool | None:
    """Return whether a larger score is better; ``None`` for a run of a plain job set."""
    jobs = run.record.inputs.jobs
    return jobs.higher_is_better if jobs.of_source else None


def microseconds(time: Any) -> int | None:
    """Return a time of a data frame in microseconds since the epoch; ``None`` for a null."""
    if time is None or time != time:
        return None
    return int(time.to_datetime64().astype("datetime64[us]").astype(np.int64))  # in ns, as time.value, 2262 is the end


def model_label(model: object) -> str:
    """Return the name of a model, or ``NO_MODEL``."""
    return model if isinstance(model, str) and model else NO_MODEL


def refuse_unknown_job(run: RunResult, job: str) -> None:
    """Raise ``InputError`` unless the run has this job; the message has the nearest name."""
    names = run.table("jobs")["job"].to_pylist()
    if job in names:
        return
    lower = {name.lower(): name for name in reversed(names)}
    near = near_name(job, lower)
    some = ", ".join(names[:3]) + (f", ... ({len(names):,} jobs)" if len(names) > 3 else "")
    raise InputError(
        "the run has no such job", file=run.folder, column="job", value=job,
        expected=f"one of {some}" if names else "a run with jobs",
        fix=None if near is None else f"did you mean {lower[near]!r}?",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Allocations:
    """Intervals in which a job held a constant number of nodes.

    Parameters
    ----------
    names
        Names of jobs.
    job : (A,) int64
        Position in ``names``.
    count, from_us, to_us : (A,) int64
        Nodes, start and end, in microseconds since the epoch.
    type_names
        Node types; one name for all nodes in a log without types.
    node_type : (A,) int64
        Position in ``type_names``.
    sharing : (A,) int64
        0 for nodes of one job, 1 and 2 for the two jobs that share nodes.
    """

    names: tuple[str, ...]
    job: NDArray[np.int64]
    count: NDArray[np.int64]
    from_us: NDArray[np.int64]
    to_us: NDArray[np.int64]
    type_names: tuple[str, ...]
    node_type: NDArray[np.int64]
    sharing: NDArray[np.int64]

    @property
    def charged_us(self) -> NDArray[np.int64]:
        """(A,) microseconds charged to the job for each interval; half for shared nodes."""
        return charged_spans_us(self.sharing, self.from_us, self.to_us)

    @property
    def of_nodes(self) -> Allocations:
        """Intervals without the second of two jobs on the same nodes, so that sums count every node once."""
        return self.where(self.sharing != SECOND)

    def where(self, kept: NDArray[np.bool_]) -> Allocations:
        """Return the intervals selected by ``kept (A,)``."""
        arrays = ("job", "count", "from_us", "to_us", "node_type", "sharing")
        return replace(self, **{name: getattr(self, name)[kept] for name in arrays})


def relative_origin_us(run: RunResult) -> int | None:
    """Return the origin of the times shown in a relative log: the start of the window; ``None`` with a calendar."""
    return run.record.config.window_start_us if run.record.inputs.is_relative else None


def allocations_of(run: RunResult) -> Allocations:
    """Return the table of allocations as arrays."""
    table = run.table("allocations").unify_dictionaries()
    count, since, until = (np.asarray(table[name].cast("int64"), dtype=np.int64) for name in ("count", "from", "to"))
    names, job = _words(table["job"])
    type_names, node_type = _words(table["node_type"])
    is_shared = "sharing" in table.column_names  # only where jobs may share nodes
    sharing = np.asarray(table["sharing"], dtype=np.int64) if is_shared else np.zeros(count.size, np.int64)
    return Allocations(names, job, count, since, until, type_names, node_type, sharing)


def _words(column: pa.ChunkedArray) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the words of a dictionary column, and the index of each row's word."""
    if not len(column):
        return (), np.zeros(0, np.int64)
    words = column.combine_chunks()
    return tuple(words.dictionary.to_pylist()), np.asarray(words.indices, dtype=np.int64)
