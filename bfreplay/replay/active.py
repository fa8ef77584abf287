"""The active jobs as one table of records: admitted, not finished, first come first served."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import is_not
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.log.node_types import ANY_TYPE
from bfreplay.milp.charge_rule import DOWN, RECLAIM, START, UP, preemption_pause_s
from bfreplay.policies.state import LONG_AGO_US, NEVER_US, ChangeCosts
from bfreplay.workload import Adaptation, Colocation, ElasticJob, Restart, Saves
from bfreplay.workload.change_costs import cost_table, highest

ACTIVE_JOB = np.dtype(
    [
        ("job", np.int64),  # its number, in order of submission
        ("count", np.int64),  # nodes held
        ("rate", np.float64),  # samples/s on them, 0 below min_nodes
        ("pace", np.float64),  # its rate, also while it waits with all nodes that it needs
        ("progress", np.float64),  # samples done
        ("work", np.float64),  # samples to do
        ("target", np.float64),  # progress at which something is due: a report, or the end of the work
        ("halt", np.float64),  # progress at which it waits for the next decision, inf for no such point
        ("preempt_debt", np.float64),  # samples to make up for a preemption before progress goes on
        ("rescale_debt", np.float64),  # the same for a rescale
        ("rescale_cost", np.float64),  # published accounting: samples to subtract at the next event
        ("restart_s", np.float64),  # what the decision just made costs besides
        ("pauses", np.int64),  # 1 where a change pauses it, else it owes samples
        ("pause_until_us", np.int64),  # LONG_AGO_US for no pause
        ("pause_is_preemption", np.int64),  # 1 where a reclaim began the pause
        ("hit_us", np.int64),  # time of its last reclaim, LONG_AGO_US for none
        ("save_every_us", np.int64),  # 0: no work is ever at risk
        ("saves_on_reclaim", np.int64),
        ("saves_on_resize", np.int64),
        ("run_since_us", np.int64),  # its last start or restart, from which checkpoints are counted
        ("saved", np.float64),  # progress at its last checkpoint, where work is at risk
        ("at_risk", np.int64),  # useful node time since then, node-microseconds
        ("loss_samples", np.float64),  # lost at this instant
        ("loss", np.int64),  # useful node time of them
        ("finish_us", np.int64),  # when it reaches its target if nothing changes
        ("not_before_us", np.int64),  # and holds its nodes at least until then, LONG_AGO_US for no such time
        ("min_nodes", np.int64),
        ("max_nodes", np.int64),
        ("scale_up_cost_s", np.float64),
        ("scale_down_cost_s", np.float64),
        ("requested_nodes", np.int64),
        ("weight", np.float64),
        ("submit_us", np.int64),
        ("deadline_us", np.int64),
        ("batch_size", np.int64),  # samples a step, 1 for a job without an adaptation
        ("first_batch_size", np.int64),
        ("change_at", np.float64),  # progress at which the batch size changes next, inf for no such point
        ("model", np.int64),  # number of its model's name, -1 for none
        ("lost", np.int64),  # nodes reclaimed at the last instant at which the pool changed
        ("lost_nodes", np.int64),  # nodes reclaimed since the policy last decided
        ("node_type", np.int64),  # of its nodes, or of those that it held last
        ("partner", np.int64),  # number of the job that shares its nodes, -1 for none
        ("sharing", np.int64),  # ALONE, or which of the two it is
        ("span_count", np.int64),  # nodes held during the last interval
        ("span_rate", np.float64),  # its rate
        # what the ledger says of this job so far; node time in node-microseconds
        ("useful", np.int64),
        ("rescaling", np.int64),
        ("preempted", np.int64),
        ("repeated", np.int64),  # its work was lost
        ("stalled", np.int64),  # held, but too few to run, or finished unnoticed
        ("rescale_paid", np.float64),  # samples
        ("preempt_paid", np.float64),  # samples
        ("repeated_samples", np.float64),
        ("n_starts", np.int64),
        ("n_scale_ups", np.int64),
        ("n_scale_downs", np.int64),
        ("n_preemptions", np.int64),
        ("admitted_us", np.int64),
        ("paused_us", np.int64),  # from pauses to admissions, all together
        ("paused_at_us", np.int64),
        ("first_start_us", np.int64),  # NEVER_US until it runs
        # allocation interval that is open now
        ("open_count", np.int64),
        ("open_type", np.int64),
        ("open_sharing", np.int64),
        ("open_since_us", np.int64),
    ],
    align=True,
)


ALONE, FIRST, SECOND = 0, 1, 2
"""Of a job's nodes: nobody else's, or shared by two, who are charged half of the time each (``node_charge_us``)."""

_FIRST_ROWS = 64
_FIXED = (
    "job",
    "min_nodes",
    "max_nodes",
    "scale_up_cost_s",
    "scale_down_cost_s",
    "work",
    "weight",
    "submit_us",
    "deadline_us",
    "model",
    "first_batch_size",
    "requested_nodes",
)
"""Fields of a record that a policy sees under the same name, and that stay as they were when the job was admitted."""

_CHANGING = "progress", "batch_size", "change_at", "lost_nodes"
"""Those that do not."""


@compiled
def node_charge_us(sharing: int, since_us: int, until_us: int) -> int:
    """Return the part of a span of time that a job is charged for each of its nodes.

    Of two that share, the first is charged the even microseconds and the second the odd ones: exact in whole numbers,
    and the same however a span is cut.
    """
    if sharing == FIRST:
        return until_us // 2 - since_us // 2
    if sharing == SECOND:
        return (until_us + 1) // 2 - (since_us + 1) // 2
    return until_us - since_us


class ActiveJobs:
    """At most ``limit`` active jobs.

    ``records[:n]`` are the active jobs in order of admission; ``throughput`` and ``objective`` ``(rows, K + 1)``
    hold their curves at every count, where they are now; ``by_type (rows, T, K + 1)`` on each node type alone, where
    it matters; ``costs_s (rows, 4, 1 or K + 1)`` the seconds of a start, a scale-up, a scale-down and a reclaim by the
    new count; ``allowed (rows, 1 or K + 1)`` the counts that each can use; ``held[j, :count]`` the nodes of job j, last
    gained last. The arrays grow with what is admitted: take them from here each time.

    Parameters
    ----------
    limit
        Most jobs at once.
    n_nodes
        Of the log.
    type_names
        T node types.
    may_share
        Two jobs may share nodes.
    keeps_batch_sizes
        Jobs do not change their batch sizes on their own: the policy does that.
    notice_s
        Seconds before which they are told of a reclaim; ``None``: they are not told.
    """

    not_saved = ("_policy_arrays",)

    def __init__(
        self,
        limit: int,
        n_nodes: int,
        type_names: tuple[str, ...] = (ANY_TYPE,),
        *,
        may_share: bool = False,
        keeps_batch_sizes: bool = False,
        notice_s: float | None = None,
    ) -> None:
        self.limit = limit
        self._is_told = notice_s is not None
        self._notice_s = notice_s or 0.0
        self.type_names = type_names
        self.is_placed = may_share or self.has_types  # what a job makes depends on where it is
        self._keeps_batch_sizes = keeps_batch_sizes
        self.n = 0
        self._n_nodes = n_nodes
        n_rows = min(limit, _FIRST_ROWS)
        self.records: NDArray[np.void] = np.zeros(n_rows, dtype=ACTIVE_JOB)
        self.throughput = np.zeros((n_rows, 1))
        self.objective = np.zeros((n_rows, 1))
        self.by_type = np.zeros((n_rows if self.is_placed else 0, len(self.type_names), 1))
        self.costs_s = np.zeros((n_rows, 4, 1))
        self.has_risk = False  # of losing work, for a job admitted so far
        self.has_published_costs = True  # every job admitted so far, and may use all counts
        self.allowed = np.ones((n_rows, 1), dtype=np.bool_)  # (rows, 1 or K + 1), counts that a job can use
        self.held = np.full((n_rows, 1), -1, dtype=np.int32)
        self.row_of_job = np.full(_FIRST_ROWS, -1, dtype=np.int32)
        self._policy_arrays: tuple[tuple[NDArray[Any], ...], dict[str, NDArray[Any] | None]] = (), {}

    def policy_arrays(self) -> dict[str, NDArray[Any] | None]:
        """Return read-only arrays that a policy sees, by their names in a ``PolicyState``: all but those of ``now``."""
        tables_then, arrays = self._policy_arrays
        tables = self.records, self.throughput, self.objective, self.by_type
        if not tables_then or any(map(is_not, tables_then, tables)):
            records = self.records[: self.n]
            columns = {name: records[name].copy() for name in _FIXED} | {name: records[name] for name in _CHANGING}
            columns["admitted_us"] = records["admitted_us"] + records["paused_us"]
            names = "throughput", "objective", "throughput_by_type"
            columns |= {name: table[: self.n] for name, table in zip(names, tables[1:], strict=True)}
            for array in columns.values():
                _read_only(array)
            arrays = {**columns, **({} if self.is_placed else {"throughput_by_type": None})}
            self._policy_arrays = tables, arrays
        return arrays

    def counts_and_debts(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return (nodes that each job holds, samples that it owes), ``(n,)``, read-only and its own."""
        current, debts = np.empty(self.n, np.int64), np.empty(self.n)
        _write_now(self.records, current, debts)
        current.setflags(write=False)
        debts.setflags(write=False)
        return current, debts

    def risks(self, now_us: int) -> dict[str, Any]:
        """Return what a policy sees of restarts and work at risk, by the names in a ``PolicyState``."""
        records = self.records[: self.n]
        started_us = records["run_since_us"].copy()
        started_us.setflags(write=False)
        if self.has_published_costs:
            return {"started_us": started_us, "at_risk_samples": None, "next_save_us": None, "costs": None}
        every_us, begun_us = records["save_every_us"], records["run_since_us"]
        at_risk = np.where(every_us > 0, records["progress"] - records["saved"], 0.0)
        is_on = (every_us > 0) & (records["count"] >= records["min_nodes"])
        since_us = np.where(is_on, now_us - begun_us, 0)
        next_us = now_us + every_us - since_us % np.maximum(every_us, 1)
        begins_s = self.costs_s[: self.n, START].max(axis=1)
        pauses_s = np.where(records["pauses"] > 0, self.costs_s[: self.n].max(axis=(1, 2)), begins_s)
        costs = ChangeCosts(
            seconds=_read_only(self.costs_s[: self.n]),
            pauses=_read_only(records["pauses"].copy()),
            pause_left_s=_read_only((np.maximum(records["pause_until_us"], now_us) - now_us) / 1e6),
            unsaved_samples=_read_only(np.where(records["saves_on_resize"] > 0, 0.0, at_risk)),
            allowed=_read_only(self.allowed[: self.n]),
            save_every_s=_read_only(every_us / 1e6),
            longest_s=float(pauses_s.max(initial=0.0)),
        )
        next_save_us = _read_only(np.where(is_on, next_us, NEVER_US))
        at_risk = _read_only(at_risk)
        return {"started_us": started_us, "at_risk_samples": at_risk, "next_save_us": next_save_us, "costs": costs}

    @property
    def has_types(self) -> bool:
        """True if nodes are of several types."""
        return len(self.type_names) > 1

    @property
    def is_full(self) -> bool:
        """True if no further job may be admitted."""
        return self.n >= self.limit

    def row_of(self, number: int) -> int:
        """Row of job ``number``; -1 for one that is not active."""
        return int(self.row_of_job[number]) if number < self.row_of_job.size else -1

    def admit(self, number: int, job: ElasticJob, model: int, now_us: int, old_record: np.void | None = None) -> None:
        """Add job ``number``, without nodes; one that was paused goes on from its record."""
        # no job can use more nodes than there are; what lies above is neither stored nor searched
        max_nodes = max(job.min_nodes, min(job.max_nodes, self._n_nodes))
        job_row = self.n
        self._reserve(job_row + 1, max_nodes + 1, number + 1)
        if old_record is None:
            self.records[job_row] = _new_record(number, job, max_nodes, model, now_us)
            self.records[job_row]["saves_on_reclaim"] = job.saves != Saves.NEVER and self._is_told
            self.records[job_row]["target"] = self.next_target(job, 0.0)
        else:
            self.records[job_row] = old_record
            self.records[job_row]["paused_us"] += now_us - old_record["paused_at_us"]
        self.records[job_row]["open_since_us"] = now_us
        adaptation, progress = self._adaptation(job), float(self.records[job_row]["progress"])
        self.records[job_row]["change_at"] = np.inf if adaptation is None else adaptation.next_change(progress)
        self._write_curves(job_row, job)
        self._write_costs(job_row, job)
        self.row_of_job[number] = job_row
        self.n += 1
        self._policy_arrays = (), {}

    def update(self, job_row: int, job: ElasticJob) -> None:
        """Let the job in ``job_row`` have the curves and costs of ``job`` from now on."""
        for field_name in ("scale_up_cost_s", "scale_down_cost_s"):
            self.records[job_row][field_name] = highest(getattr(job, field_name))
        self._write_curves(job_row, job)
        self._write_costs(job_row, job)
        self._policy_arrays = (), {}

    def _write_curves(self, job_row: int, job: ElasticJob) -> None:
        """Tabulate what the job makes with the batch size of its record."""
        max_nodes = int(self.records[job_row]["max_nodes"])
        curves = [job.throughput_on(name) for name in self.type_names]
        if job.adaptation is not None:
            curve_now = job.adaptation.throughput[int(self.records[job_row]["batch_size"])]
            curves = [None if curve is None else curve_now for curve in curves]
        for table, curve, weight in (
            (self.throughput[job_row], curves[0], 1.0),
            (self.objective[job_row], job.objective or curves[0], job.weight),
            *((self.by_type[job_row, kind], curve, 1.0) for kind, curve in enumerate(curves) if self.is_placed),
        ):
            table[:] = 0.0
            if curve is not None:  # it makes nothing on a type that it cannot run on
                table[: max_nodes + 1] = weight * curve.table(max_nodes)

    def _write_costs(self, job_row: int, job: ElasticJob) -> None:
        self.has_risk |= job.work_saved_every_s > 0
        self.has_published_costs &= job.has_published_costs and not job.counts
        costs = {START: job.start_cost_s, UP: job.scale_up_cost_s, DOWN: job.scale_down_cost_s}
        is_by_count = not all(isinstance(cost, float) for cost in costs.values())
        width = self.throughput.shape[1] if is_by_count else 1
        if width > self.costs_s.shape[2]:
            self.costs_s = _widen(self.costs_s, width)
        # it never has more
        counts = np.minimum(np.arange(self.costs_s.shape[2]), self.records[job_row]["max_nodes"])
        for change, cost in costs.items():
            self.costs_s[job_row, change] = cost_table(cost, self.costs_s.shape[2])[counts]
        if job.counts and self.allowed.shape[1] < self.throughput.shape[1]:
            self.allowed = _widen(self.allowed, self.throughput.shape[1])
        self.allowed[job_row] = not job.counts or np.isin(np.arange(self.allowed.shape[1]), (0, *job.counts))
        self.costs_s[job_row, RECLAIM] = preemption_pause_s(self.costs_s[job_row, DOWN], self._notice_s)

    def _adaptation(self, job: ElasticJob) -> Adaptation | None:
        """Return the changes of its batch size that the job makes on its own."""
        return None if self._keeps_batch_sizes else job.adaptation

    def reach_batch_size(self, job_row: int, job: ElasticJob, samples: float) -> bool:
        """Let the job in ``job_row`` train with the batch size at this progress, and return whether that changes it."""
        adaptation = self._adaptation(job)
        if adaptation is None:
            return False
        self.records[job_row]["change_at"] = adaptation.next_change(samples)
        return self.set_batch_size(job_row, job, adaptation.batch_size_at(samples))

    def set_batch_size(self, job_row: int, job: ElasticJob, batch_size: int) -> bool:
        """Let the job in ``job_row`` train with this batch size from now on, and return whether that changes it."""
        if batch_size == self.records[job_row]["batch_size"]:
            return False
        self.records[job_row]["batch_size"] = batch_size
        self._write_curves(job_row, job)
        return True

    def next_target(self, job: ElasticJob, after_samples: float) -> float:
        """Progress above ``after_samples`` at which something is due: a report, a batch size, or the end of the work.

        It is the whole work where nothing else comes first.
        """
        position = bisect_right(job.report_at_samples, after_samples)
        next_report = job.report_at_samples[position] if position < len(job.report_at_samples) else job.work_samples
        adaptation = self._adaptation(job)
        return next_report if adaptation is None else min(next_report, adaptation.next_change(after_samples))

    def _reserve(self, n_rows: int, width: int, n_jobs: int) -> None:
        """Make room; doubling keeps the copying small, and a set of jobs with one maximum is copied once."""
        have_rows, have_width = self.held.shape
        if n_rows > have_rows or width > have_width:
            n_rows = have_rows if n_rows <= have_rows else min(self.limit, 2 * have_rows)
            width = max(width, have_width)
            self.records = _enlarge(self.records, (n_rows,), 0)
            self.throughput = _enlarge(self.throughput, (n_rows, width), 0.0)
            self.objective = _enlarge(self.objective, (n_rows, width), 0.0)
            if self.is_placed:
                self.by_type = _enlarge(self.by_type, (n_rows, len(self.type_names), width), 0.0)
            self.held = _enlarge(self.held, (n_rows, width), -1)
            self.costs_s = _enlarge(self.costs_s, (n_rows, *self.costs_s.shape[1:]), 0.0)
            self.allowed = _enlarge(self.allowed, (n_rows, self.allowed.shape[1]), 1)
            if self.costs_s.shape[2] > 1:
                self.costs_s = _widen(self.costs_s, width)
            if self.allowed.shape[1] > 1:
                self.allowed = _widen(self.allowed, width)
        if n_jobs > self.row_of_job.size:
            self.row_of_job = _enlarge(self.row_of_job, (max(n_jobs, 2 * self.row_of_job.size),), -1)

    def remove(self, job_row: int) -> None:
        """Remove the job in ``job_row``; later rows move up. Its nodes must have been freed before."""
        self.row_of_job[self.records[job_row]["job"]] = -1
        tables = self.records, self.throughput, self.objective, self.held, self.by_type, self.costs_s, self.allowed
        for array in tables:
            array[job_row : self.n - 1] = array[job_row + 1 : self.n]
        self.n -= 1
        self.row_of_job[self.records[job_row : self.n]["job"]] -= 1
        self._policy_arrays = (), {}


@compiled
def _write_now(records: NDArray[np.void], current: NDArray[np.int64], debts: NDArray[np.float64]) -> None:
    """Write what each job holds, and what it owes for rescales and preemptions together."""
    for job_row in range(debts.shape[0]):
        current[job_row] = records[job_row]["count"]
        debts[job_row] = records[job_row]["preempt_debt"] + records[job_row]["rescale_debt"]


def _new_record(job_index: int, job: ElasticJob, max_nodes: int, model: int, now_us: int) -> np.void:
    record: np.void = np.zeros(1, dtype=ACTIVE_JOB)[0]
    record["job"] = job_index
    record["work"] = job.work_samples
    record["first_batch_size"] = record["batch_size"] = 1 if job.adaptation is None else job.adaptation.changes[0][1]
    record["halt"] = np.inf
    record["partner"] = -1
    record["finish_us"] = NEVER_US
    for field_name in ("min_nodes", "weight", "submit_us"):
        record[field_name] = getattr(job, field_name)
    for field_name in ("scale_up_cost_s", "scale_down_cost_s"):
        record[field_name] = highest(getattr(job, field_name))
    record["pauses"] = job.restart == Restart.PAUSE
    record["save_every_us"] = round(job.work_saved_every_s * 1e6)
    record["saves_on_resize"] = job.saves == Saves.ON_RESIZE
    record["pause_until_us"] = record["hit_us"] = record["run_since_us"] = LONG_AGO_US
    record["max_nodes"] = max_nodes
    record["requested_nodes"] = max_nodes if job.requested_nodes is None else min(job.requested_nodes, max_nodes)
    record["deadline_us"] = NEVER_US if job.deadline_us is None else job.deadline_us
    record["model"] = model
    record["admitted_us"] = now_us
    record["first_start_us"] = NEVER_US
    record["not_before_us"] = LONG_AGO_US
    return record


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    # a policy that writes here would corrupt the ledger
    array.flags.writeable = False
    return array


def _widen(table: NDArray[Any], width: int) -> NDArray[Any]:
    """Return a table at more counts: the last one stands for all above it."""
    return np.concatenate((table, np.repeat(table[..., -1:], width - table.shape[-1], axis=-1)), axis=-1)


def _enlarge(array: NDArray[Any], shape: tuple[int, ...], fill: float) -> NDArray[Any]:
    larger = np.full(shape, fill, dtype=array.dtype) if array.dtype.names is None else np.zeros(shape, array.dtype)
    larger[tuple(slice(0, old_size) for old_size in array.shape)] = array
    return larger


def update_placed_curves(active: ActiveJobs, model_names: Sequence[str], colocation: Colocation | None) -> None:
    """Write into ``active.throughput`` what each job makes at each count on nodes of the type that it holds.

    Of a job that shares its nodes only the count that it has can be looked up: it makes what it makes there.
    """
    records = active.records[: active.n]
    active.throughput[: active.n] = active.by_type[np.arange(active.n), records["node_type"]]
    if colocation is None:
        return
    type_names = active.type_names
    for job_row in np.flatnonzero(records["sharing"]).tolist():
        record = records[job_row]
        partner = records[active.row_of_job[record["partner"]]]
        count = int(record["count"])
        names = [None if job["model"] < 0 else model_names[job["model"]] for job in (record, partner)]
        rate = 0.0
        if names[0] is not None and names[1] is not None:
            rate = colocation.rates(names[0], names[1], count, type_names[record["node_type"]])[0]
        active.throughput[job_row] = 0.0
        active.throughput[job_row, count] = rate
