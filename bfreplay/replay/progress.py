"""Progress of jobs from node time: samples, rescale and preemption costs, completion.

Both semantics charge the same samples, by the rule in ``milp/charge_rule.py``. They differ in when: the continuous one
keeps the charge as a debt that the job works off before its progress goes on, so progress never falls and every
node-second has one label; the published one subtracts it at the next event. Node time is labelled by the debts in both.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.errors import LedgerError
from bfreplay.milp.charge_rule import charged_rate, preemption_cost, rescale_cost
from bfreplay.policies.state import LONG_AGO_US
from bfreplay.replay.active import NEVER_US, SECOND, node_charge_us


class Semantics(StrEnum):
    """Clock of a replay."""

    CONTINUOUS = "continuous"  # jobs complete at their exact instant; arrivals and completions are decision points
    PUBLISHED = "published"  # the published program's: everything is noticed at the next pool event


_ROUNDING = 1e-11
"""Of samples that were added up in several spans of time, relative."""


@compiled
def _work_off(samples_owed: float, samples: float, rate: float, most_us: int) -> tuple[float, int]:
    """Return the samples of ``samples`` that go into a debt, and the microseconds (of ``most_us``) that this takes.

    ``rate`` is per microsecond that is charged: two jobs on the same nodes are charged half of the time each.
    """
    payment = min(samples_owed, samples)
    return payment, min(most_us, int(payment / rate * 1e6 + 0.5))


@compiled
def advance(
    records: NDArray[np.void], n_active: int, now_us: int, dt_us: int, is_published: bool
) -> tuple[float, float, int]:
    """Let ``dt_us`` pass, until ``now_us``.

    Returns (samples of progress, samples that held nodes could have made, nodes held meanwhile).
    """
    progress = 0.0
    gross = 0.0
    nodes = 0
    for job_row in range(n_active):
        count = records[job_row]["count"]
        rate = records[job_row]["rate"]
        if records[job_row]["sharing"] != SECOND:
            nodes += count
        records[job_row]["span_count"] = count
        records[job_row]["span_rate"] = rate
        useful_us = node_charge_us(records[job_row]["sharing"], now_us - dt_us, now_us)
        if rate <= 0.0:
            records[job_row]["stalled"] += count * useful_us
            if is_published:
                cost = records[job_row]["rescale_cost"]
                records[job_row]["rescale_cost"] = 0.0
                records[job_row]["rescale_paid"] += cost
                records[job_row]["progress"] -= cost
                progress -= cost
            continue
        samples_made = rate * (dt_us * 1e-6)
        gross += samples_made
        useful = samples_made
        rate_of_charge = rate * dt_us / useful_us if 0 < useful_us < dt_us else rate
        if records[job_row]["preempt_debt"] > 0.0:
            payment, payment_us = _work_off(records[job_row]["preempt_debt"], useful, rate_of_charge, useful_us)
            records[job_row]["preempt_debt"] -= payment
            records[job_row]["preempt_paid"] += 0.0 if is_published else payment
            records[job_row]["preempted"] += count * payment_us
            useful -= payment
            useful_us -= payment_us
        if records[job_row]["rescale_debt"] > 0.0:
            payment, payment_us = _work_off(records[job_row]["rescale_debt"], useful, rate_of_charge, useful_us)
            records[job_row]["rescale_debt"] -= payment
            records[job_row]["rescale_paid"] += 0.0 if is_published else payment
            records[job_row]["rescaling"] += count * payment_us
            useful -= payment
            useful_us -= payment_us
        stop = records[job_row]["halt"]
        if records[job_row]["target"] <= stop:
            stop = records[job_row]["work"] if records[job_row]["not_before_us"] > LONG_AGO_US else np.inf
        beyond = records[job_row]["progress"] + useful - stop
        if stop < np.inf and beyond >= -_ROUNDING * stop:
            # it has processed what it may until the next decision, or all that there was, and waited since
            gross -= beyond
            wait_us = min(useful_us, int(max(beyond, 0.0) / rate_of_charge * 1e6 + 0.5))
            useful_us -= wait_us
            records[job_row]["stalled"] += count * wait_us
            records[job_row]["rate"] = 0.0
            progress += stop - records[job_row]["progress"]
            records[job_row]["useful"] += count * useful_us
            records[job_row]["progress"] = stop
            continue
        records[job_row]["useful"] += count * useful_us
        if is_published:
            cost = records[job_row]["rescale_cost"]
            useful = samples_made - cost
            records[job_row]["rescale_cost"] = 0.0
            records[job_row]["rescale_paid"] += cost
        records[job_row]["progress"] += useful
        progress += useful
    return progress, gross, nodes


@compiled
def charge_preemption(
    records: NDArray[np.void], n_active: int, throughput: NDArray[np.float64], is_published: bool
) -> tuple[int, float]:
    """Charge every job that lost nodes to a reclaim, once, and set its new rate. Returns (jobs, samples)."""
    n_jobs = 0
    samples = 0.0
    for job_row in range(n_active):
        if records[job_row]["lost"] == 0:
            continue
        cost = preemption_cost(records[job_row]["rate"], records[job_row]["preemption_cost_s"])
        records[job_row]["preempt_debt"] += cost
        if is_published:
            records[job_row]["progress"] -= cost
            records[job_row]["preempt_paid"] += cost
        records[job_row]["n_preemptions"] += 1
        count = records[job_row]["count"]
        records[job_row]["rate"] = throughput[job_row, count] if count >= records[job_row]["min_nodes"] else 0.0
        records[job_row]["pace"] = records[job_row]["rate"]
        n_jobs += 1
        samples += cost
    return n_jobs, samples


@compiled
def apply_decision(
    records: NDArray[np.void],
    counts_before: NDArray[np.int64],
    throughput: NDArray[np.float64],
    now_us: int,
    is_published: bool,
    charges_rescales: bool = True,
) -> tuple[float, float, int, int, int, int]:
    """Set the rates after a decision and charge the rescales, if they cost anything, by the rate before.

    Returns (sum of rates, samples charged, jobs scaled_up, jobs scaled_down, jobs that run, nodes held).
    """
    total_rate = 0.0
    charges = 0.0
    n_scaled_up = 0
    n_scaled_down = 0
    n_running = 0
    nodes = 0
    for j in range(counts_before.shape[0]):
        count = records[j]["count"]
        # the decision may have moved it to nodes of another type: ``throughput`` is that of the new ones
        rate = throughput[j, counts_before[j]] if is_published else records[j]["pace"]
        rate_before = charged_rate(rate, counts_before[j], records[j]["min_nodes"], is_published)
        cost = rescale_cost(
            rate_before, counts_before[j], count, records[j]["scale_up_cost_s"], records[j]["scale_down_cost_s"]
        )
        if not charges_rescales:
            cost = 0.0
        if count > counts_before[j]:
            records[j]["n_scale_ups"] += 1
            n_scaled_up += 1
            if counts_before[j] == 0:
                records[j]["n_starts"] += 1
                if records[j]["first_start_us"] == NEVER_US:
                    records[j]["first_start_us"] = now_us
        elif count < counts_before[j]:
            records[j]["n_scale_downs"] += 1
            n_scaled_down += 1
        records[j]["rescale_debt"] += cost
        records[j]["rescale_cost"] = cost
        rate = throughput[j, count] if count >= records[j]["min_nodes"] else 0.0
        records[j]["pace"] = rate
        if records[j]["progress"] >= records[j]["halt"] and records[j]["halt"] < records[j]["target"]:
            rate = 0.0
        debts = records[j]["preempt_debt"] + records[j]["rescale_debt"]
        if records[j]["progress"] >= records[j]["work"] and debts == 0.0 and not is_published:
            rate = 0.0  # it holds its nodes until it may go
        if records[j]["restart_s"] > 0.0:
            restart = rate * records[j]["restart_s"]
            records[j]["restart_s"] = 0.0
            records[j]["rescale_debt"] += restart
            charges += restart
        records[j]["rate"] = rate
        charges += cost
        total_rate += rate
        if records[j]["sharing"] != SECOND:
            nodes += count
        if rate > 0.0:
            n_running += 1
    return total_rate, charges, n_scaled_up, n_scaled_down, n_running, nodes


@compiled
def predict_finish(records: NDArray[np.void], n_active: int, now_us: int) -> int:
    """Write when each job reaches its target if nothing changes, in whole microseconds; returns the earliest."""
    earliest = NEVER_US
    for job_row in range(n_active):
        rate = records[job_row]["rate"]
        finish = NEVER_US
        debts = records[job_row]["preempt_debt"] + records[job_row]["rescale_debt"]
        if records[job_row]["progress"] >= records[job_row]["work"] and debts == 0.0:
            finish = max(now_us, records[job_row]["not_before_us"])
        elif rate > 0.0 and records[job_row]["target"] <= records[job_row]["halt"]:
            remaining = records[job_row]["target"] - records[job_row]["progress"] + debts
            remaining_us = remaining / rate * 1e6
            if remaining_us == 0.0 and remaining > 0.0:
                remaining_us = 1.0  # the quotient has underflowed: a microsecond is enough, no time is too little
            if remaining_us < 4e18 - now_us:
                finish = now_us + int(np.ceil(max(remaining_us, 0.0)))
                if records[job_row]["target"] >= records[job_row]["work"]:
                    finish = max(finish, records[job_row]["not_before_us"])
        records[job_row]["finish_us"] = finish
        earliest = min(earliest, finish)
    return earliest


@compiled
def apply_and_predict(
    records: NDArray[np.void],
    counts_before: NDArray[np.int64],
    throughput: NDArray[np.float64],
    now_us: int,
    is_published: bool,
    charges_rescales: bool,
    lifts_limits: bool,
) -> tuple[tuple[float, float, int, int, int, int], int]:
    """Return what ``apply_decision`` and then ``predict_finish`` do: one call of compiled code a decision.

    ``lifts_limits``: the limits of the decision before no longer hold, and this one sets none.
    """
    if lifts_limits:
        for job_row in range(counts_before.shape[0]):
            records[job_row]["halt"] = np.inf
            records[job_row]["not_before_us"] = LONG_AGO_US
    effects = apply_decision(records, counts_before, throughput, now_us, is_published, charges_rescales)
    return effects, predict_finish(records, counts_before.shape[0], now_us)


def trim_to_work(record: np.void, is_published: bool) -> float:
    """Cut the progress of a finished job down to its work, and return the samples cut.

    In continuous time a job completes on the microsecond at or after its last sample, so that less than a
    microsecond's samples are cut. Under the published clock it ended some time before it was noticed: that node time
    becomes ``stalled``.

    Raises
    ------
    LedgerError
        The job is not done: its work or its debts are left.
    """
    excess = float(record["progress"] - record["work"])
    rounding = 1e-9 * float(record["work"]) + 1e-6 * float(record["span_rate"])
    debts = 0.0 if is_published else float(record["preempt_debt"] + record["rescale_debt"])
    if excess < -rounding or debts > rounding:
        raise LedgerError(
            f"job {int(record['job'])} completes with {-excess!r} of {float(record['work'])!r} samples to do "
            f"and {debts!r} to make up for"
        )
    record["progress"] = record["work"]
    if is_published and excess > 0.0 and record["span_rate"] > 0.0:
        late_us = int(excess / record["span_rate"] * 1e6 + 0.5) * int(record["span_count"])
        late_us = min(late_us, int(record["useful"]))
        record["useful"] -= late_us
        record["stalled"] += late_us
    return excess
