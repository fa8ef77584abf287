"""Whether a run folder is whole: what its record says and what its tables add up to must be the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bfreplay.answers.saved import allocations_of
from bfreplay.errors import InputError
from bfreplay.replay.result import RunResult

_NEEDED: Mapping[str, type | tuple[type, ...]] = {
    "versions": dict,
    "config.policy.name": str,
    "config.window_start_us": int,
    "config.window_end_us": int,
    "config.max_parallel": int,
    "config.semantics": str,
    "inputs.events.files": list,
    "inputs.events.n_nodes": int,
    "inputs.events.metadata.node_inventory": str,
    "inputs.jobs.files": list,
    "summary.duration_s": (int, float),
    "summary.n_decisions": int,
    "summary.n_pool_events": int,
    "summary.n_preemptions": int,
    "summary.n_grown": int,
    "summary.n_shrunk": int,
    "summary.equivalent_nodes": (int, float),
    "summary.decisions": dict,
    "summary.fallbacks": dict,
    "summary.jobs": dict,
    "summary.ledger.node_hours": dict,
    "summary.ledger.idle_node_us": int,
    "summary.ledger.free_node_us": int,
    "summary.ledger.samples": (int, float),
    "summary.ledger.gross_samples": (int, float),
    "summary.ledger.rescale_samples": (int, float),
    "summary.ledger.preempt_samples": (int, float),
}
"""Entries of ``run.json`` that every version has written."""
_NODE_TIME = {
    "useful_node_us": "useful_node_us",
    "rescaling_node_us": "rescaling_node_us",
    "lost_to_preemption_node_us": "preempted_node_us",
    "stalled_node_us": "stalled_node_us",
}
"""Column of the table of jobs, and the ledger's name of its sum."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What a table adds up to, and what the record says; whole numbers."""

    table: str
    what: str
    in_table: int
    in_record: int


def check_run(run: RunResult) -> list[Sum]:
    """Return the sums that have been compared.

    Raises
    ------
    InputError
        An entry of the record is missing or of another type; a table is missing or damaged; or a table does not add up
        to what the record says.
    """
    for path, kind in _NEEDED.items():
        _check_entry(run, path, kind)
    sums = list(_sums(run))
    for each in sums:
        if each.in_table != each.in_record:
            raise InputError(
                f"the run folder contradicts itself: {each.what}",
                file=None if run.folder is None else run.folder / f"{each.table}.parquet",
                value=f"{each.in_table:,}",
                expected=f"{each.in_record:,}, as run.json says",
                fix="a file is missing, cut short or of another run: replay again",
            )
    return sums


def _check_entry(run: RunResult, path: str, kind: type | tuple[type, ...]) -> None:
    found: Any = run.record
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, kind) or isinstance(found, bool):
        words = kind.__name__ if isinstance(kind, type) else "number"
        raise InputError(
            "the record of the run is not complete",
            file=None if run.folder is None else run.folder / run.kind.record_file,
            column=path,
            value=found,
            expected=f"a {words}",
            fix=f"make the run again: '{run.kind.made_by}'",
        )


def _sums(run: RunResult) -> Iterator[Sum]:
    summary, ledger = run.summary, run.summary["ledger"]
    yield Sum("decisions", "rows of the table of decisions", run.table("decisions").num_rows, summary["n_decisions"])
    yield Sum("timings", "rows of the table of timings", run.table("timings").num_rows, summary["n_decisions"])
    jobs = run.table("jobs")
    yield Sum("jobs", "rows of the table of jobs", jobs.num_rows, sum(summary["jobs"].values()))
    for column, name in _NODE_TIME.items():
        yield Sum("jobs", f"node-microseconds of {column}", sum(jobs[column].to_pylist()), ledger[name])
    held = allocations_of(run)
    held_us = _node_us(held.count, held.to_us - held.from_us)
    yield Sum("allocations", "node-microseconds held by jobs", held_us, ledger["allocated_node_us"])
    if run.has_table("pool"):
        pool = run.table("pool")
        edges = np.append(_microseconds(pool["time"]), run.record["config"]["window_end_us"])
        idle_us = _node_us(np.asarray(pool["n_idle"], dtype=np.int64), np.diff(edges))
        yield Sum("pool", "idle node-microseconds", idle_us, ledger["idle_node_us"])
    if run.has_table("holes"):
        holes = run.table("holes")
        idle_us, held_us = (sum(holes[name].to_pylist()) for name in ("idle_node_us", "held_node_us"))
        yield Sum("holes", "idle node-microseconds", idle_us, ledger["idle_node_us"])
        yield Sum("holes", "node-microseconds held by jobs", held_us, ledger["allocated_node_us"])


def _node_us(count: np.ndarray[Any, Any], length_us: np.ndarray[Any, Any]) -> int:
    """Exact, whatever 64 bits hold: seconds and what is left of them apart."""
    whole, rest = np.divmod(length_us, 1_000_000)
    return int((count * whole).sum()) * 1_000_000 + int((count * rest).sum())


def _microseconds(column: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(column.cast("int64"), dtype=np.int64)
