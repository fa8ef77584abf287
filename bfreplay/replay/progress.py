"""Progress of jobs from node time: samples, rescale and preemption costs, completion.

Both semantics charge the same samples, by the rule in ``milp/charge_rule.py``. They differ in when: the continuous one
keeps the charge as a debt that the job works off before its progress goes on, so that every node-second has one label;
the published one subtracts it at the next event. Node time is labelled by the debts in both.

In continuous time a job may pay by pauses instead: time without progress, labelled by the change that began it. A
change during a pause begins a whole one. Where work is at risk, checkpoints are counted from each start and restart,
and a reclaim or a change takes the job back to the last one: the node time of the lost samples moves from ``useful`` to
``repeated``.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.errors import LedgerError
from bfreplay.milp.charge_rule import DOWN, RECLAIM, START, UP, charged_rate, preemption_cost, rescale_cost
from bfreplay.policies.state import LONG_AGO_US, NEVER_US
from bfreplay.replay.active import SECOND, node_charge_us


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
def _pass_pause(records: NDArray[np.void], job_row: int, now_us: int, dt_us: int) -> int:
    """Let the part of the last ``dt_us`` pass in which the job paused; return the microseconds after it."""
    since_us = now_us - dt_us
    paused_us = min(dt_us, records[job_row]["pause_until_us"] - since_us)
    samples = records[job_row]["rate"] * (paused_us * 1e-6)
    node_us = records[job_row]["count"] * node_charge_us(records[job_row]["sharing"], since_us, since_us + paused_us)
    if records[job_row]["pause_is_preemption"]:
        records[job_row]["preempted"] += node_us
        records[job_row]["preempt_paid"] += samples
    else:
        records[job_row]["rescaling"] += node_us
        records[job_row]["rescale_paid"] += samples
    left_us: int = dt_us - paused_us
    return left_us


@compiled
def _save_work(
    records: NDArray[np.void],
    job_row: int,
    made: float,
    rate: float,
    node_us: int,
    since_us: int,
    now_us: int,
    waited_s: float = 0.0,
) -> None:
    """Take the checkpoints after ``since_us``, up to now; the rest of what was made is at risk.

    ``made`` samples, part of the progress already, were made at ``rate`` on ``node_us`` of node time that ended
    ``waited_s`` before now.
    """
    run_since_us = records[job_row]["run_since_us"]
    every_us = records[job_row]["save_every_us"]
    saved_us = run_since_us + (now_us - run_since_us) // every_us * every_us
    if saved_us <= max(since_us, run_since_us):
        records[job_row]["at_risk"] += node_us
        return
    after_s = max((now_us - saved_us) * 1e-6 - waited_s, 0.0)
    records[job_row]["saved"] = records[job_row]["progress"] - min(made, rate * after_s)
    after_us = int(after_s * 1e6 + 0.5)
    charged_us = node_charge_us(records[job_row]["sharing"], saved_us, saved_us + after_us)
    records[job_row]["at_risk"] = min(node_us, records[job_row]["count"] * charged_us)


@compiled
def _lose_work(records: NDArray[np.void], job_row: int) -> None:
    """Take a job back to its last checkpoint."""
    samples = records[job_row]["progress"] - records[job_row]["saved"]
    node_us = records[job_row]["at_risk"]
    records[job_row]["progress"] = records[job_row]["saved"]
    records[job_row]["useful"] -= node_us
    records[job_row]["repeated"] += node_us
    records[job_row]["repeated_samples"] += samples
    records[job_row]["loss_samples"] += samples
    records[job_row]["loss"] += node_us
    records[job_row]["at_risk"] = 0


@compiled
def _restart(records: NDArray[np.void], job_row: int, now_us: int, is_saved: bool) -> None:
    """Begin a run of a job: what the one before made is saved, or goes back to its last checkpoint."""
    if records[job_row]["save_every_us"] > 0:
        if is_saved:
            records[job_row]["saved"] = records[job_row]["progress"]
            records[job_row]["at_risk"] = 0
        else:
            _lose_work(records, job_row)
    records[job_row]["run_since_us"] = now_us


@compiled
def _pause(records: NDArray[np.void], job_row: int, now_us: int, seconds: float, is_preemption: bool) -> None:
    """Begin a whole pause, in place of what is left of another."""
    records[job_row]["pause_until_us"] = now_us + int(seconds * 1e6 + 0.5)
    records[job_row]["pause_is_preemption"] = is_preemption


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
        is_at_risk = records[job_row]["save_every_us"] > 0
        cost = 0.0
        if is_published:
            cost = records[job_row]["rescale_cost"]
            records[job_row]["rescale_cost"] = 0.0
            records[job_row]["rescale_paid"] += cost
        if rate <= 0.0:
            records[job_row]["stalled"] += count * useful_us
            if is_at_risk and count >= records[job_row]["min_nodes"]:
                _save_work(records, job_row, 0.0, 0.0, 0, now_us - dt_us, now_us)
            records[job_row]["progress"] -= cost
            progress -= cost
            continue
        samples_made = rate * (dt_us * 1e-6)
        gross += samples_made
        useful = samples_made
        rate_of_charge = rate * dt_us / useful_us if 0 < useful_us < dt_us else rate
        if records[job_row]["pause_until_us"] > now_us - dt_us:
            left_us = _pass_pause(records, job_row, now_us, dt_us)
            useful = rate * (left_us * 1e-6)
            useful_us = node_charge_us(records[job_row]["sharing"], now_us - left_us, now_us)
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
            made = stop - records[job_row]["progress"]
            progress += made
            records[job_row]["useful"] += count * useful_us
            records[job_row]["progress"] = stop
            if is_at_risk:
                waited_s = max(beyond, 0.0) / rate
                _save_work(records, job_row, made, rate, count * useful_us, now_us - dt_us, now_us, waited_s)
            continue
        records[job_row]["useful"] += count * useful_us
        if is_published:
            useful = samples_made - cost
        records[job_row]["progress"] += useful
        progress += useful
        if is_at_risk:
            _save_work(records, job_row, useful, rate, count * useful_us, now_us - dt_us, now_us)
    return progress, gross, nodes


@compiled
def charge_preemption(
    records: NDArray[np.void],
    n_active: int,
    throughput: NDArray[np.float64],
    costs_s: NDArray[np.float64],
    now_us: int,
    burst_us: int,
    is_published: bool,
) -> tuple[int, float]:
    """Charge every job that lost nodes to a reclaim, once, and set its new rate. Returns (jobs, samples).

    Reclaims of a job that follow one another within ``burst_us`` are charged together.
    """
    n_jobs = 0
    samples = 0.0
    for job_row in range(n_active):
        if records[job_row]["lost"] == 0:
            continue
        count = records[job_row]["count"]
        seconds = costs_s[job_row, RECLAIM, min(count, costs_s.shape[2] - 1)]
        is_of_burst = burst_us > 0 and records[job_row]["hit_us"] >= now_us - burst_us
        records[job_row]["hit_us"] = now_us
        _restart(records, job_row, now_us, records[job_row]["saves_on_reclaim"] > 0)
        cost = 0.0
        if records[job_row]["pauses"] == 0:
            cost = 0.0 if is_of_burst else preemption_cost(records[job_row]["rate"], seconds)
        elif count < records[job_row]["min_nodes"]:
            records[job_row]["pause_until_us"] = LONG_AGO_US
        else:
            _pause(records, job_row, now_us, seconds, True)
            samples += throughput[job_row, count] * seconds
        records[job_row]["preempt_debt"] += cost
        if is_published:
            records[job_row]["progress"] -= cost
            records[job_row]["preempt_paid"] += cost
        records[job_row]["n_preemptions"] += 1
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
    costs_s: NDArray[np.float64],
    now_us: int,
    is_published: bool,
    charges_rescales: bool = True,
    lifts_limits: bool = False,
    waits_since_us: int = NEVER_US,
) -> tuple[tuple[float, float, int, int, int, int], int]:
    """Set the rates after a decision, and charge starts and rescales, if they cost anything; then ``predict_finish``.

    ``lifts_limits``: the limits of the decision before no longer hold, and this one sets none. ``waits_since_us``:
    since when changes have waited for this decision; ``NEVER_US``: they are of this instant.

    Returns (sum of rates, samples charged, jobs scaled_up, jobs scaled_down, jobs that run, nodes held), and the
    earliest finish.
    """
    total_rate = 0.0
    charges = 0.0
    n_scaled_up = 0
    n_scaled_down = 0
    n_running = 0
    nodes = 0
    for j in range(counts_before.shape[0]):
        if lifts_limits:
            records[j]["halt"] = np.inf
            records[j]["not_before_us"] = LONG_AGO_US
        count = records[j]["count"]
        # the decision may have moved it to nodes of another type: ``throughput`` is that of the new ones
        rate = throughput[j, counts_before[j]] if is_published else records[j]["pace"]
        rate_before = charged_rate(rate, counts_before[j], records[j]["min_nodes"], is_published)
        column = min(count, costs_s.shape[2] - 1)
        start_s = costs_s[j, START, column]
        up_s, down_s = costs_s[j, UP, column], costs_s[j, DOWN, column]
        pauses = records[j]["pauses"] > 0
        cost = rescale_cost(rate_before, counts_before[j], count, up_s, down_s)
        if pauses or not charges_rescales:
            cost = 0.0
        begins = counts_before[j] < records[j]["min_nodes"] <= count
        restart_s = records[j]["restart_s"]
        if restart_s > 0.0 or count != counts_before[j]:
            _restart(records, j, now_us, records[j]["saves_on_resize"] > 0)
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
        if charges_rescales and begins:
            restart_s += start_s
        elif charges_rescales and pauses and count != counts_before[j]:
            restart_s += up_s if count > counts_before[j] else down_s
        if restart_s > 0.0:
            records[j]["restart_s"] = 0.0
            if pauses:
                _pause(records, j, now_us, restart_s, records[j]["hit_us"] >= min(now_us, waits_since_us))
            else:
                records[j]["rescale_debt"] += rate * restart_s
            charges += rate * restart_s
        if pauses and (count < records[j]["min_nodes"] or (restart_s == 0.0 and count != counts_before[j])):
            records[j]["pause_until_us"] = LONG_AGO_US
        records[j]["rate"] = rate
        charges += cost
        total_rate += rate
        if records[j]["sharing"] != SECOND:
            nodes += count
        if rate > 0.0:
            n_running += 1
    effects = total_rate, charges, n_scaled_up, n_scaled_down, n_running, nodes
    return effects, predict_finish(records, counts_before.shape[0], now_us)


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
            begin_us = max(now_us, records[job_row]["pause_until_us"])
            remaining_us = remaining / rate * 1e6
            if remaining_us == 0.0 and remaining > 0.0:
                remaining_us = 1.0  # the quotient has underflowed: a microsecond is enough, no time is too little
            if remaining_us < 4e18 - begin_us:
                finish = begin_us + int(np.ceil(max(remaining_us, 0.0)))
                if records[job_row]["target"] >= records[job_row]["work"]:
                    finish = max(finish, records[job_row]["not_before_us"])
        records[job_row]["finish_us"] = finish
        earliest = min(earliest, finish)
    return earliest


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
