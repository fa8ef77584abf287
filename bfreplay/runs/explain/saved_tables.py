"""Tables of a saved run as explanations and pictures read them.

Allocations come as arrays, or part by part of the window, so that memory does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.checks import near_name
from bfreplay.errors import InputError
from bfreplay.replay.active import SECOND
from bfreplay.replay.intervals import node_charges_us
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.step_functions import StepSeries, sum_intervals

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


NODE_US_PER_HOUR = 3_600_000_000
NO_MODEL = "(no model)"


def jobs_frame(run: RunResult) -> pd.DataFrame:
    """Return the table of jobs, with statuses as text."""
    job_table = run.jobs.copy()
    job_table["status"] = job_table["status"].astype(str)
    return job_table


def reports_frame(run: RunResult) -> pd.DataFrame | None:
    """Return the reports of jobs to their source, in order of time; ``None`` for a run of a plain job set."""
    return run.frame("reports") if run.record.inputs.jobs.of_source else None


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
    job_names = run.table("jobs")["job"].to_pylist()
    if job in job_names:
        return
    name_of_key = {job_name.lower(): job_name for job_name in reversed(job_names)}
    near_key = near_name(job, name_of_key)
    some_names = ", ".join(job_names[:3]) + (f", ... ({len(job_names):,} jobs)" if len(job_names) > 3 else "")
    raise InputError(
        "the run has no such job",
        file=run.folder,
        column="job",
        value=job,
        expected=f"one of {some_names}" if job_names else "a run with jobs",
        fix=None if near_key is None else f"did you mean {name_of_key[near_key]!r}?",
    )


def relative_origin_us(run: RunResult) -> int | None:
    """Return the origin of the times shown in a relative log: the start of the window; ``None`` with a calendar."""
    return run.record.config.window_start_us if run.record.inputs.is_relative else None


_NUMBERS = ("count", "from", "to", "sharing")
_ARRAYS = ("job", "count", "from_us", "to_us", "node_type", "sharing")


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
    def charged_duration_us(self) -> NDArray[np.int64]:
        """(A,) microseconds charged to the job for each interval; half for shared nodes."""
        return node_charges_us(self.sharing, self.from_us, self.to_us)

    @property
    def of_nodes(self) -> Allocations:
        """Intervals without the second of two jobs on the same nodes, so that sums count every node once."""
        return self.where(self.sharing != SECOND)

    @property
    def is_shared(self) -> bool:
        """True if two jobs share nodes at some time."""
        return bool(self.sharing.any())

    def where(self, is_selected: NDArray[np.bool_]) -> Allocations:
        """Return the intervals selected by ``is_selected (A,)``."""
        return replace(self, **{array_name: getattr(self, array_name)[is_selected] for array_name in _ARRAYS})

    def between(self, start_us: int, end_us: int) -> Allocations:
        """Return the part between two times, with intervals cut there."""
        inside = self.where((self.from_us < end_us) & (self.to_us > start_us))
        return replace(inside, from_us=np.maximum(inside.from_us, start_us), to_us=np.minimum(inside.to_us, end_us))

    def and_of(self, others: list[Allocations]) -> Allocations:
        """Return its intervals, then those of others with the same names."""
        parts = (self, *others)
        columns: Any = {name: np.concatenate([getattr(allocations, name) for allocations in parts]) for name in _ARRAYS}
        return replace(self, **columns)

    def nodes_over_time(self, start_us: int, end_us: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the nodes of all intervals together: edges in microseconds, and the count between them."""
        return sum_intervals(self.count, self.from_us, self.to_us, start_us, end_us)

    def parts(self, start_us: int, end_us: int) -> Iterator[tuple[int, int, Allocations]]:
        """Yield the window as one part; see `SavedAllocations.parts`."""
        yield start_us, end_us, self.between(start_us, end_us)


@dataclass(frozen=True, slots=True, eq=False)
class SavedAllocations:
    """The allocations of a run, read anew each time; names, and whether any is shared, as in `Allocations`."""

    run: RunResult
    names: tuple[str, ...]
    type_names: tuple[str, ...]
    is_shared: bool

    @classmethod
    def of(cls, run: RunResult) -> SavedAllocations:
        """Read the names."""
        names: dict[str, None] = {}
        type_names: dict[str, None] = {}
        has_sharing = False
        for table_rows in run.batches("allocations", ("job", "node_type", "sharing")):
            names |= _numbers(table_rows["job"])
            type_names |= _numbers(table_rows["node_type"])
            # only where jobs may share nodes is there such a column
            has_sharing |= "sharing" in table_rows.column_names and bool(np.asarray(table_rows["sharing"]).any())
        return cls(run, tuple(names), tuple(type_names), has_sharing)

    def batches(self, *, backwards: bool = False) -> Iterator[Allocations]:
        """Yield all intervals, some at a time; ``backwards``: the last to end first."""
        for rows in self.run.batches("allocations", ("job", "node_type", *_NUMBERS), backwards=backwards):
            job, node_type = _positions(rows["job"], self.names), _positions(rows["node_type"], self.type_names)
            columns = {name: rows[name].cast("int64") for name in _NUMBERS if name in rows.column_names}
            zeros = np.zeros(job.size, np.int64)
            count, since, until, sharing = (np.asarray(columns.get(name, zeros), np.int64) for name in _NUMBERS)
            yield Allocations(self.names, job, count, since, until, self.type_names, node_type, sharing)

    def parts(self, start_us: int, end_us: int) -> Iterator[tuple[int, int, Allocations]]:
        """Yield the window part by part, the last first: start and end of each, and its allocations, cut there.

        The file has intervals in the order of their ends. When it is read from its end, all intervals that last
        beyond the first end read so far are known; those that began before it, one a job, are kept for the next part.

        Raises
        ------
        InputError
            The file has another order.
        """
        empty = np.zeros(0, np.int64)
        open_intervals = Allocations(self.names, empty, empty, empty, empty, self.type_names, empty, empty)
        first_end_us, until_us = np.iinfo(np.int64).max, end_us
        for rows in self.batches(backwards=True):
            if rows.to_us.max(initial=first_end_us) > first_end_us:
                raise InputError("the allocations are not in the order of their ends", file=self.run.folder)
            first_end_us = int(rows.to_us.min(initial=first_end_us))
            known_intervals, since_us = rows.and_of([open_intervals]), max(start_us, min(first_end_us, until_us))
            if since_us < until_us:
                yield since_us, until_us, known_intervals.between(since_us, until_us)
            open_intervals, until_us = known_intervals.where(known_intervals.from_us < since_us), since_us
        if start_us < until_us:
            yield start_us, until_us, open_intervals.between(start_us, until_us)

    def nodes_in_parts(self, start_us: int, end_us: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield edges and count of the nodes of all jobs, the last part first; shared nodes count once."""
        for since_us, until_us, rows in self.parts(start_us, end_us):
            yield rows.of_nodes.nodes_over_time(since_us, until_us)


def allocations_of(run: RunResult) -> Allocations:
    """Return the table of allocations as arrays, which grow with the log."""
    saved_allocations = SavedAllocations.of(run)
    first, *others = saved_allocations.batches()
    return first.and_of(others)


def nodes_over_time(run: RunResult, job: str) -> StepSeries:
    """Return the nodes of ``job`` over the window, its own and shared ones.

    Raises
    ------
    InputError
        The run has no such job.
    """
    refuse_unknown_job(run, job)
    saved_allocations = SavedAllocations.of(run)
    job_number = saved_allocations.names.index(job) if job in saved_allocations.names else -1
    first_batch, *other_batches = (rows.where(rows.job == job_number) for rows in saved_allocations.batches())
    return StepSeries.exact(*first_batch.and_of(other_batches).nodes_over_time(*_window(run)))


def nodes_over_time_by_model(run: RunResult) -> Mapping[str, StepSeries]:
    """Return the nodes of all jobs of each model, by the model's label in order of its first job.

    Nodes that two jobs share count once, for the model of the first of the two, so that the models add up to all
    allocated nodes.
    """
    jobs = run.table("jobs")
    label_of = dict(zip(jobs["job"].to_pylist(), map(model_label, jobs["model"].to_pylist()), strict=True))
    model_names = list(dict.fromkeys(label_of.values()))
    allocations = allocations_of(run).of_nodes
    model_of_job = np.array([model_names.index(label_of[job_name]) for job_name in allocations.names], dtype=np.int64)
    model_numbers = model_of_job[allocations.job] if allocations.names else allocations.job
    window = _window(run)
    return {
        model_name: StepSeries.exact(*allocations.where(model_numbers == model_number).nodes_over_time(*window))
        for model_number, model_name in enumerate(model_names)
    }


def _window(run: RunResult) -> tuple[int, int]:
    config = run.record.config
    return config.window_start_us, config.window_end_us


def _numbers(column: pa.ChunkedArray) -> dict[str, None]:
    """Return the words of a dictionary column, in order."""
    chunks = column.dictionary_encode().chunks
    return dict.fromkeys(column_word for chunk in chunks for column_word in chunk.dictionary.to_pylist())


def _positions(column: pa.ChunkedArray, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the position in ``names`` of each row's word."""
    number = {name: position for position, name in enumerate(names)}
    chunks = column.dictionary_encode().chunks
    of_words = (np.array([number[word] for word in chunk.dictionary.to_pylist()], np.int64) for chunk in chunks)
    position_chunks = [of_word[np.asarray(chunk.indices)] for of_word, chunk in zip(of_words, chunks, strict=True)]
    return np.concatenate([np.zeros(0, np.int64), *position_chunks])
