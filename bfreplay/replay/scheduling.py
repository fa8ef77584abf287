"""Scheduling metrics of a run: completion times, makespan, utilisation, cost, finish-time fairness."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from bfreplay.replay.job_outcomes import JobOutcomes
from bfreplay.replay.ledger import US_PER_NODE_HOUR, Ledger
from bfreplay.replay.run_record import Fairness, Scheduling
from bfreplay.replay.settings import ReplaySettings

ISOLATED_POLICY = "gavel.isolated"
"""Gives every job an equal part of the nodes: what finish-time fairness is measured by."""


def scheduling_summary(
    outcomes: JobOutcomes,
    ledger: Ledger,
    node_us_by_type: Mapping[str, int],
    settings: ReplaySettings,
    window_start_us: int,
    isolated_jct_s: Mapping[int, float] | None,
) -> Scheduling:
    """Scheduling metrics of a replay.

    Parameters
    ----------
    outcomes
        Of a replay that is over.
    ledger
        Its books.
    node_us_by_type
        Node time held by jobs by node type, for all types of the log; of nodes that two jobs share once.
    settings
        For the prices.
    window_start_us
        From where the makespan counts.
    isolated_jct_s
        How long each job took under the isolated policy on the same nodes, by number, of those that finished;
        ``None`` where nobody asked.
    """
    jobs = list(outcomes.measured)
    done = {index: job for index, job in jobs if index in outcomes.jct_s}
    by_weight: dict[str, list[float]] = {}
    for index, job in sorted(done.items(), key=lambda each: each[1].weight):
        by_weight.setdefault(weight_text(job.weight), []).append(outcomes.jct_s[index])
    last_us = max((job.submit_us + round(outcomes.jct_s[index] * 1e6) for index, job in done.items()), default=None)
    is_done = last_us is not None and len(done) == len(jobs)
    ran_us = ledger.useful_node_us + ledger.rescaling_node_us + ledger.preempted_node_us
    hours = {name: node_us / US_PER_NODE_HOUR for name, node_us in node_us_by_type.items()}
    rhos = None
    if isolated_jct_s is not None:
        rhos = [outcomes.jct_s[index] / isolated_jct_s[index] for index in done if isolated_jct_s.get(index, 0.0) > 0]
    return Scheduling(
        n_jobs=len(jobs),
        n_completed=len(done),
        average_jct_s=mean(outcomes.jct_s[index] for index in done),
        average_jct_s_by_weight={weight: math.fsum(jct_s) / len(jct_s) for weight, jct_s in by_weight.items()},
        makespan_s=(last_us - window_start_us) / 1e6 if is_done and last_us is not None else None,
        utilisation=ran_us / ledger.idle_node_us if ledger.idle_node_us else None,
        node_hours_by_type=hours,
        cost=cost_of(hours, {name: settings.price_of(name) for name in hours}),
        finish_time_fairness=None if rhos is None else fairness_of(rhos),
    )


def weight_text(weight: float) -> str:
    """A weight as the summary names it: ``5``, ``0.25``."""
    return f"{weight:g}"


def mean(values: Iterable[float]) -> float | None:
    """The mean, summed exactly so that no order matters; ``None`` of nothing."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else None


def cost_of(hours: Mapping[str, float], price: Mapping[str, float | None]) -> float | None:
    """Node-hours by type at their prices; ``None`` where one of the types has none."""
    parts = []
    for name, held in hours.items():
        each = price.get(name)
        if each is None:
            return None
        parts.append(held * each)
    return math.fsum(parts)


def fairness_of(rhos: Sequence[float]) -> Fairness:
    """Finish-time fairness of all jobs together, from the ``rho`` of each."""
    return Fairness(
        average_rho=mean(rhos),
        largest_rho=max(rhos, default=None),
        share_above_1=sum(rho > 1 for rho in rhos) / len(rhos) if rhos else None,
        policy=ISOLATED_POLICY,
    )
