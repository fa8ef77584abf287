"""Schedules of the published simulator in the replay: allocations from event to event, and ends of jobs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bfreplay.errors import InputError
from bfreplay.policies.policy import Decision, Placement, Round
from bfreplay.policies.state import LONG_AGO_US, PolicyState
from bfreplay.systems.elasticflow.published.program import NO_DEADLINE_S, PublishedRun, Running, Servers, TraceJob
from bfreplay.systems.elasticflow.trace import model_and_batch_size
from bfreplay.workload import ElasticJob

Program = Callable[[Sequence[TraceJob], Servers, int], PublishedRun]

_PUBLISHED_MOST = {("bert", 384): 16, ("ncf", 32768): 1, ("resnet50_cifar10", 64): 64,
                   ("resnet50_cifar10", 128): 64, ("resnet50_cifar10", 256): 64}  # fmt: skip
"""Most GPUs that the published ElasticFlow gives a model, if not its fastest number."""

_US_PER_S = 1_000_000
_NEARLY = 1.0 - 1e-9
_UNDONE = 1e-6  # fraction of a job's work that is kept back until it ends
NEVER_ENDS_US = 2**62
_NO_GPUS = np.zeros(0, np.int64)


def most_gpus(model: str, batch_size: int, rates: Mapping[int, float]) -> int:
    """Return the most GPUs that the published ElasticFlow gives a job: usually its fastest number."""
    return _PUBLISHED_MOST.get((model, batch_size), max(rates, key=rates.__getitem__))


def trace_jobs(jobs: Sequence[ElasticJob]) -> list[TraceJob]:
    """Return the jobs of a trace as the published program reads them.

    Raises
    ------
    InputError
        Jobs that are not of a trace of ElasticFlow.
    """
    trace_rows = []
    for moment_index, job in enumerate(jobs):
        model, batch_size = model_and_batch_size(job)
        table = job.throughput.table(job.max_nodes).tolist()
        rates = {gpus: rate for gpus, rate in enumerate(table) if rate > 0}
        gpus = job.requested_nodes or job.max_nodes
        deadline_s = NO_DEADLINE_S if job.deadline_us is None else job.deadline_us // _US_PER_S
        duration_s = job.seconds_alone(gpus) if job.expected_s is None else job.expected_s
        trace_rows.append(
            TraceJob(
                moment_index,
                job.submit_us // _US_PER_S,
                deadline_s,
                gpus,
                int(duration_s),
                int(job.work_samples),
                rates,
                most_gpus(model, batch_size, rates),
            )
        )
    return trace_rows


class PlayedBack:
    """Decisions from a run of a published scheduler.

    Jobs progress by their throughputs, and stand still as in the published run. The effect of its whole seconds and
    slots on a job's end is credited, or waited for, in the last interval: each job completes at its published end.

    Parameters
    ----------
    program
        The scheduler.
    jobs
        All jobs of the replay, by number.
    servers
        The cluster.
    slot_s
        Length of a slot.
    """

    not_saved = ("run", "_moments", "_times_us", "_end_us", "_refused")

    def __init__(self, program: Program, jobs: Sequence[ElasticJob], servers: Servers, slot_s: int) -> None:
        self.run = program(trace_jobs(jobs), servers, slot_s)
        self._moments = [moment for moment in self.run.moments if moment.time_s < NO_DEADLINE_S]
        self._times_us = [round(moment.time_s * _US_PER_S) for moment in self._moments]
        self._end_us = {end.index: round(end.end_s * _US_PER_S) for end in self.run.ends}
        self._refused = set(self.run.refused) - self._end_us.keys()
        self._begun = -1

    def decide(self, state: PolicyState) -> Decision:
        """Return the decision of the published run at this time."""
        now_us = state.time_us - state.window_start_us
        moment_index = bisect_right(self._times_us, now_us) - 1
        is_new = moment_index > self._begun
        self._begun = moment_index
        running = self._moments[moment_index].running if moment_index >= 0 else {}
        until_us = self._times_us[moment_index + 1] if moment_index + 1 < len(self._times_us) else None
        n_jobs = state.n_jobs
        nodes_of_row = [_NO_GPUS] * n_jobs
        restart_s, credit_samples = np.zeros(n_jobs), np.zeros(n_jobs)
        most_samples, not_before_us = np.full(n_jobs, np.inf), np.full(n_jobs, LONG_AGO_US)
        reason_of_declined: dict[int, str] = {}
        for job_row, job in enumerate(state.job.tolist()):
            if job in self._refused:
                reason_of_declined[job_row] = "its deadline, or that of another job, would be missed"
                continue
            end_us = self._end_us.get(job, NEVER_ENDS_US)
            is_last = until_us is None or end_us <= until_us
            if is_last:
                not_before_us[job_row] = state.window_start_us + end_us
            if job in running:
                nodes_of_row[job_row] = np.array(running[job].gpus, np.int64)
                if is_new:  # none is left over for an interval without GPUs
                    most_s = math.inf if until_us is None else (until_us - now_us) / _US_PER_S * _NEARLY
                    restart_s[job_row] = min(running[job].overhead_s, most_s)
                if is_last:
                    restart_s[job_row], credit_samples[job_row] = _last_interval(
                        state, job_row, running[job], restart_s[job_row], end_us - now_us
                    )
                else:
                    remaining = float(state.work[job_row] - state.progress[job_row])
                    is_owing = state.owed is not None and state.owed[job_row] > 0.0  # paid with work
                    most_samples[job_row] = max(
                        remaining - _UNDONE * float(state.work[job_row]), 0.5 * remaining * is_owing
                    )
            elif is_last and end_us < NEVER_ENDS_US:
                credit_samples[job_row] = _all_that_is_left(state, job_row)  # Gandiva counts work of jobs without GPUs
        counts = np.array([gpus.size for gpus in nodes_of_row], np.int64)
        until = None if until_us is None else state.window_start_us + until_us
        return Decision(
            counts,
            placement=Placement(tuple(nodes_of_row), None, restart_s, charges_rescales=False),
            round=Round(until, most_samples, not_before_us, credit=credit_samples, declined=reason_of_declined),
        )

    def summary(self) -> dict[str, object]:
        """Return the counts of the published program by its own rules."""
        return {"accepted": self.run.accepted, "declined": self.run.declined}


def _last_interval(
    state: PolicyState, job_row: int, running: Running, overhead_s: float, remaining_us: int
) -> tuple[float, float]:
    """Return the seconds that a job stands still before its end, and the samples to credit so that it ends then."""
    samples_per_s = float(state.throughput[job_row, len(running.gpus)])
    debt_samples = 0.0 if state.owed is None else float(state.owed[job_row])
    remaining_s = remaining_us / _US_PER_S
    overhead_s = min(overhead_s, max(remaining_s - debt_samples / samples_per_s, 0.0) * 0.5)
    samples_done = max(samples_per_s * (remaining_s - overhead_s) - debt_samples, 0.0) * _NEARLY
    return overhead_s, max(float(state.work[job_row] - state.progress[job_row]) - samples_done, 0.0)


def _all_that_is_left(state: PolicyState, job_row: int) -> float:
    """Return the samples that make the progress of a job its whole work, including rounding."""
    progress, work = float(state.progress[job_row]), float(state.work[job_row])
    credit = work - progress
    while progress + credit < work:
        credit = math.nextafter(credit, math.inf)
    return credit


def servers_of(state_nodes: int, gpus_each: int) -> Servers:
    """Return servers with this number of GPUs.

    Raises
    ------
    InputError
        Not a whole number of servers.
    """
    if state_nodes % gpus_each:
        raise InputError(
            "the cluster is not a whole number of servers",
            column="gpus_each",
            value=gpus_each,
            expected=f"a divisor of its {state_nodes} GPUs",
            fix="set gpus_each to the GPUs of a server",
        )
    return Servers(state_nodes // gpus_each, gpus_each)
