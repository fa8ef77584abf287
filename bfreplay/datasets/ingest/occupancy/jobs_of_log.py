"""Batch jobs of a log, with the nodes on which they ran, and those that waited in vain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.batch_jobs import BatchJobs, Waited
from bfreplay.datasets.ingest.occupancy.machine import NEVER, RUNS
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, first_of_each
from bfreplay.datasets.ingest.occupancy.state_changes import Plan, Sweep
from bfreplay.datasets.ingest.occupancy.submissions import JobNames, WaitedJob
from bfreplay.datasets.times import DAY_US, NOT_KNOWN_US, US

_CLOCKS_US, _LONGEST_WAIT_US = 300 * US, 366 * DAY_US


def batch_jobs(record: ScheduleRecord, plan: Plan, names: JobNames) -> Iterator[BatchJobs]:
    """Yield the jobs that overlap the window, piece by piece, sorted by start and job.

    They are whole, from the start to the time at which their nodes are free. A job that never ends has the end of the
    log. Nodes outside the inventory are left out. A job that gets missing nodes later has a further row for these. A
    job that waited in the window, and did not start in it, has a row without nodes, of no length, when it gave up or
    at the end of the window.
    """
    kinds, waited = np.array(record.kinds.pairs), _waited(record, plan)
    for holdings in _holdings(record, plan):
        is_first = np.ones(len(holdings), np.bool_)
        is_first[1:] = (np.diff(holdings["start_us"]) != 0) | (np.diff(holdings["slot"]) != 0)
        first_rows = np.flatnonzero(is_first)
        jobs, n_nodes = holdings[first_rows], np.diff(first_rows, append=len(holdings))
        rows = {name: np.ascontiguousarray(jobs[name]) for name in ("job_key", "start_us", "kind")}
        rows["end_us"] = np.where(jobs["end_us"] == NEVER, plan.log_end_us, jobs["end_us"])
        eligible_us = np.maximum.reduceat(holdings["eligible_us"], first_rows)
        rows["eligible_us"] = _plausible_us(eligible_us, rows["start_us"])
        rows["wanted"], rows["n_nodes"] = np.where(eligible_us == RUNS, 0, n_nodes), n_nodes
        n_before = int(np.searchsorted(waited["start_us"], rows["start_us"][-1], side="right"))
        before = {name: column[:n_before] for name, column in waited.items()}
        waited = {name: column[n_before:] for name, column in waited.items()}
        yield _piece(rows, before, holdings["node"].astype(np.int32), names, kinds)
    if len(waited["start_us"]):
        nothing = {name: column[:0] for name, column in waited.items()}
        yield _piece(waited, nothing, np.empty(0, np.int32), names, kinds)


def _holdings(record: ScheduleRecord, plan: Plan) -> Iterator[NDArray[Any]]:
    """Yield the nodes of the inventory that jobs held in the window, by start and job."""
    begin_us, stop_us = plan.window_us
    for holdings in Sweep(record, plan, is_noted=True).taken():
        if len(holdings) and holdings["start_us"][0] > stop_us:
            return
        is_in_window = (holdings["end_us"] > begin_us) & (holdings["start_us"] <= stop_us)
        holdings = holdings[is_in_window & (holdings["node"] < plan.n_kept)]
        if len(holdings):
            order = (holdings["node"], holdings["slot"], holdings["job_key"], holdings["start_us"])
            yield holdings[np.lexsort(order)]


def _waited(record: ScheduleRecord, plan: Plan) -> dict[str, NDArray[np.int64]]:
    """Return the jobs that waited in the window and did not start in it, by the time at which they gave up."""
    begin_us, stop_us = plan.window_us
    pieces = [np.array(record.waited, np.int64).reshape(-1, len(WaitedJob._fields))]
    for jobs, _ in record.jobs.slices():
        is_later = (jobs.start_us > stop_us) & (jobs.eligible_us != NOT_KNOWN_US)
        columns = jobs.job_key, jobs.eligible_us, jobs.start_us, jobs.count, jobs.kind
        pieces.append(np.column_stack([column[is_later] for column in columns]))
    job_key, eligible_us, until_us, wanted, kind = np.concatenate(pieces).T
    eligible_us = np.where(until_us == OPEN_END, eligible_us, _plausible_us(eligible_us, until_us))
    start_us = np.minimum(until_us, stop_us)
    is_inside = np.flatnonzero((eligible_us < stop_us) & (start_us > begin_us))
    order = is_inside[np.lexsort((job_key[is_inside], start_us[is_inside]))]
    rows = {"job_key": job_key, "start_us": start_us, "kind": kind, "end_us": start_us, "eligible_us": eligible_us}
    rows |= {"wanted": wanted, "n_nodes": np.zeros_like(wanted)}
    return {name: column[order] for name, column in rows.items()}


def _plausible_us(eligible_us: NDArray[np.int64], start_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return eligible times up to the starts of jobs; not known where they are far from these: of another unit."""
    is_far = (eligible_us > start_us + _CLOCKS_US) | (eligible_us < start_us - _LONGEST_WAIT_US) | (eligible_us < 0)
    return np.where(is_far, NOT_KNOWN_US, np.minimum(eligible_us, start_us))


def _piece(
    rows: dict[str, NDArray[np.int64]],
    waited: dict[str, NDArray[np.int64]],
    nodes: NDArray[np.int32],
    names: JobNames,
    kinds: NDArray[np.str_],
) -> BatchJobs:
    """Return jobs and those that waited in vain, by start; both are sorted."""
    columns = {name: np.concatenate([column, waited[name]]) for name, column in rows.items()}
    order = np.argsort(columns["start_us"], kind="stable")  # so that the nodes stay in order
    job_key, start_us, kind, end_us, eligible_us, wanted, n_nodes = (column[order] for column in columns.values())
    partition, qos = kinds[kind].T.tolist()
    of_jobs = Waited(eligible_us, wanted, partition, qos)
    return BatchJobs(names.of(job_key), start_us, end_us, first_of_each(n_nodes), nodes, of_jobs)
