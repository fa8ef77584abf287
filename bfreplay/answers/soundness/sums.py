"""What the tables of a run add up to, beside what its record says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bfreplay.answers.saved import allocations_of
from bfreplay.answers.soundness.damage import damaged
from bfreplay.replay.decision_log import kind_of
from bfreplay.replay.job_outcomes import STATUSES
from bfreplay.replay.result import RunResult

_NODE_TIME = {
    "useful_node_us": "useful_node_us",
    "rescaling_node_us": "rescaling_node_us",
    "lost_to_preemption_node_us": "preempted_node_us",
    "stalled_node_us": "stalled_node_us",
}
"""Column of the table of jobs, and the ledger's name of its sum."""
_SAMPLES = {
    "done_samples": "samples",
    "rescale_cost_samples": "rescale_samples",
    "preempt_cost_samples": "preempt_samples",
}
"""Likewise."""
_RESCALES = {
    "n_grown": ("n_grown", "n_jobs_grown"),
    "n_shrunk": ("n_shrunk", "n_jobs_shrunk"),
    "n_preemptions": ("n_preempted", "n_jobs_preempted"),
}
"""Name in the summary, and columns of the tables of jobs and of decisions."""
_ROUNDING = 1e-9
"""The ledger's: samples are sums of some 1e6 rounded products."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What a table adds up to, and what the record says: equal, but for the rounding of samples.

    Node time and numbers of things are whole numbers and have no ``rounding``. ``column`` is what is added up, or
    counted, if it is not whole rows.
    """

    table: str
    what: str
    in_table: int | float
    in_record: int | float
    column: str | None = None
    rounding: float = 0.0


def checked_sums(run: RunResult) -> list[Sum]:
    """Return all sums; ``InputError`` for one that is not what the record says."""
    sums = [*_of_decisions(run), *_of_jobs(run), *_of_reports(run), *_of_nodes(run)]
    for each in sums:
        if not abs(each.in_table - each.in_record) <= each.rounding:
            shown = "," if isinstance(each.in_table, int) else ".12g"
            raise damaged(
                run,
                f"the run contradicts itself: {each.what}",
                file=f"{each.table}.parquet",
                column=each.column,
                value=f"{each.in_table:{shown}}",
                expected=f"{each.in_record:{shown}}, as {run.kind.record_file} says",
            )
    return sums


def _of_decisions(run: RunResult) -> Iterator[Sum]:
    summary, table = run.summary, run.table("decisions")
    yield Sum("decisions", "rows of the table of decisions", table.num_rows, summary["n_decisions"])
    yield Sum("timings", "rows of the table of timings", run.table("timings").num_rows, summary["n_decisions"])
    kinds, fallbacks = _tally(table)
    if "proven_by_fallback" in kinds.keys() - summary["decisions"].keys():  # older versions did not tell them apart
        kinds["proven"] += kinds.pop("proven_by_fallback")
    for kind in sorted(kinds.keys() | summary["decisions"].keys()):
        told = summary["decisions"].get(kind, 0)
        yield Sum("decisions", f"decisions that are {kind!r}", kinds[kind], told, "quality")
    if "rejected_quality" not in table.column_names:  # of an older version: there is nothing to tell reasons by
        fallbacks = Counter({_ANY: fallbacks.total()})
        reasons = {_ANY: sum(summary["fallbacks"].values())}
    else:
        reasons = summary["fallbacks"]
    for reason in sorted(fallbacks.keys() | reasons.keys()):
        what = f"decisions that fell back, {reason!r}"
        yield Sum("decisions", what, fallbacks[reason], reasons.get(reason, 0), "fell_back_from")
    for name, (_, column) in _RESCALES.items():
        yield Sum("decisions", f"sum of {column}", _whole(table, column), summary[name], column)


_ANY = "for any reason"


def _tally(table: pa.Table) -> tuple[Counter[str], Counter[str]]:
    """Decisions by what stands behind them, and those that fell back by reason, as ``replay.decision_log`` counts."""
    names = [
        name
        for of_answer in ("", "rejected_")
        for part in ("process_status", "solver_status", "quality")
        if (name := of_answer + part) in table.column_names
    ]
    words = pa.table({name: table[name].cast("string") for name in (*names, "fell_back_from")})
    kinds: Counter[str] = Counter()
    fallbacks: Counter[str] = Counter()
    for row in words.group_by(words.column_names).aggregate([([], "count_all")]).to_pylist():
        n = row["count_all"]
        kinds[kind_of(row["process_status"], row["solver_status"], row["quality"], row["fell_back_from"])] += n
        if row["fell_back_from"] is not None:
            fallbacks[_reason(*(row.get(f"rejected_{name}") for name in names[:3]))] += n
        elif row["solver_status"] is not None and row["quality"] == "none":
            fallbacks[_reason(*(row[name] for name in names[:3]))] += n
    return kinds, fallbacks


def _reason(process: str | None, solver: str | None, quality: str | None) -> str:
    if process != "ok":
        return str(process)
    return {"wrong": "wrong", "feasible": "not_proven"}.get(str(quality), str(solver))


def _of_jobs(run: RunResult) -> Iterator[Sum]:
    summary, ledger, table = run.summary, run.summary["ledger"], run.table("jobs")
    yield Sum("jobs", "rows of the table of jobs", table.num_rows, sum(summary["jobs"].values()))
    by_status = Counter(table["status"].to_pylist())
    for status in (*STATUSES, *sorted(summary["jobs"].keys() - set(STATUSES))):
        told = summary["jobs"].get(status, 0)
        yield Sum("jobs", f"jobs {status.replace('_', ' ')}", by_status[status], told, "status")
    for column, name in _NODE_TIME.items():
        yield Sum("jobs", f"node-microseconds of {column}", _whole(table, column), ledger[name], column)
    for name, (column, _) in _RESCALES.items():
        yield Sum("jobs", f"sum of {column}", _whole(table, column), summary[name], column)
    costs = ledger["rescale_samples"] + ledger["preempt_samples"]
    rounding = _ROUNDING * max(ledger["gross_samples"], costs, abs(ledger["samples"]))
    for column, name in _SAMPLES.items():
        in_table = math.fsum(table[column].to_pylist())
        yield Sum("jobs", f"sum of {column}", in_table, ledger[name], column, rounding)
    yield from _of_deadlines(run)
    for name, column in (("submit_to_start", "first_start"), ("submit_to_finish", "finished")):
        told = (summary.get("job_times") or {}).get(name)
        if told is not None:
            n = table.num_rows - table[column].null_count
            yield Sum("jobs", f"jobs with a time of {column}", n, told["n_jobs"], column)


def _of_deadlines(run: RunResult) -> Iterator[Sum]:
    table, told = run.table("jobs"), run.summary.get("deadlines")
    if told is None or not {"deadline", "deadline_met"} <= set(table.column_names):
        return
    first, end = run.record["config"].get("measured") or (0, table.num_rows)
    table = table.slice(first, end - first)  # those that the run is about
    met = Counter(table["deadline_met"].to_pylist())
    undecided = table.num_rows - table["deadline"].null_count - met[True] - met[False]
    open_or_void = told.get("open", 0) + told.get("void", 0)
    yield Sum("jobs", "deadlines met", met[True], told.get("met", 0), "deadline_met")
    yield Sum("jobs", "deadlines missed", met[False], told.get("missed", 0), "deadline_met")
    yield Sum("jobs", "deadlines neither met nor missed", undecided, open_or_void, "deadline")


def _of_reports(run: RunResult) -> Iterator[Sum]:
    scores, table = run.summary.get("scores"), run.table("jobs")
    if scores is not None and "n_reports" in table.column_names:
        n = sum(filter(None, table["n_reports"].to_pylist()))
        yield Sum("jobs", "reports of jobs", n, scores["n_reports"], "n_reports")


def _of_nodes(run: RunResult) -> Iterator[Sum]:
    ledger = run.summary["ledger"]
    held = allocations_of(run)
    held_us = _node_us(held.count, held.charged_us)
    yield Sum("allocations", "node-microseconds held by jobs", held_us, ledger["allocated_node_us"], "count")
    if not run.has_table("pool"):
        return
    pool, holes = run.table("pool"), run.table("holes")
    edges = np.append(np.asarray(pool["time"].cast("int64")), run.record["config"]["window_end_us"])
    idle_us = _node_us(np.asarray(pool["n_idle"], dtype=np.int64), np.diff(edges))
    yield Sum("pool", "idle node-microseconds", idle_us, ledger["idle_node_us"], "n_idle")
    for column, what, name in (
        ("idle_node_us", "idle node-microseconds", "idle_node_us"),
        ("held_node_us", "node-microseconds held by jobs", "allocated_node_us"),
    ):
        yield Sum("holes", what, _whole(holes, column), ledger[name], column)


def _whole(table: pa.Table, column: str) -> int:
    """Exact, whatever 64 bits hold: thousands and what is left of them apart."""
    whole, rest = np.divmod(np.asarray(table[column], dtype=np.int64), 1_000)
    return int(whole.sum()) * 1_000 + int(rest.sum())


def _node_us(count: NDArray[np.int64], length_us: NDArray[np.int64]) -> int:
    """Exact likewise: seconds and what is left of them apart."""
    whole, rest = np.divmod(length_us, 1_000_000)
    return int((count * whole).sum()) * 1_000_000 + int((count * rest).sum())
