"""Scheduling metrics of a run, and their text: completion times, makespan, utilisation, cost, fairness."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT
from bfreplay.datasets.times import iso_utc
from bfreplay.policies import Policy
from bfreplay.replay.job_outcomes import JobOutcomes
from bfreplay.replay.ledger import US_PER_NODE_HOUR, Ledger
from bfreplay.replay.settings import ReplaySettings
from bfreplay.runs.run_record import ContentionFairness, Fairness, Ideal, RunRecord, Scheduling
from bfreplay.wording import amount, count, duration, percent

ISOLATED_POLICY = "gavel.isolated"
"""Baseline of finish-time fairness: every job gets an equal part of the nodes."""


def scheduling_summary(
    outcomes: JobOutcomes,
    ledger: Ledger,
    node_us_by_type: Mapping[str, int],
    settings: ReplaySettings,
    window_start_us: int,
    isolated_jct_s: Mapping[int, float] | None,
    policy: Policy,
    n_nodes: float,
) -> Scheduling:
    """Compute the scheduling metrics of a replay.

    Parameters
    ----------
    outcomes
        Outcomes of a finished replay.
    ledger
        Its ledger.
    node_us_by_type
        Allocated node time of every node type of the log; nodes that two jobs share count once.
    settings
        Settings with the prices.
    window_start_us
        Start of the makespan.
    isolated_jct_s
        Completion times under the isolated policy by job number, of the jobs that finished; ``None`` where not
        requested.
    policy
        Policy that knows how long jobs take alone.
    n_nodes
        Mean number of idle nodes.
    """
    jobs = list(outcomes.measured)
    completions = {index: job for index, job in jobs if index in outcomes.jct_s}
    by_weight: dict[str, list[float]] = {}
    for index, job in sorted(completions.items(), key=lambda entry: entry[1].weight):
        by_weight.setdefault(weight_text(job.weight), []).append(outcomes.jct_s[index])
    last_us = max(
        (job.submit_us + round(outcomes.jct_s[index] * 1e6) for index, job in completions.items()), default=None
    )
    has_all = last_us is not None and len(completions) == len(jobs)
    ran_us = ledger.useful_node_us + ledger.rescaling_node_us + ledger.preempted_node_us
    hours = {name: node_us / US_PER_NODE_HOUR for name, node_us in node_us_by_type.items()}
    jcts_s = [max(outcomes.jct_s[index], 1e-6) for index in completions]
    alone = {index: jct_s for index, jct_s in (isolated_jct_s or {}).items() if jct_s > 0}
    rhos = [outcomes.jct_s[index] / alone[index] for index in completions if index in alone]
    return Scheduling(
        n_jobs=len(jobs),
        n_completed=len(completions),
        average_jct_s=mean(outcomes.jct_s[index] for index in completions),
        average_jct_s_by_weight={weight: math.fsum(jct_s) / len(jct_s) for weight, jct_s in by_weight.items()},
        makespan_s=(last_us - window_start_us) / 1e6 if has_all and last_us is not None else None,
        utilisation=ran_us / ledger.idle_node_us if ledger.idle_node_us else None,
        node_hours_by_type=hours,
        cost=cost_of(hours, {name: settings.price_of(name) for name in hours}),
        finish_time_fairness=None if isolated_jct_s is None else fairness_of(rhos),
        geometric_mean_jct_s=statistics.geometric_mean(jcts_s) if jcts_s else None,
        harmonic_mean_jct_s=statistics.harmonic_mean(jcts_s) if jcts_s else None,
        contention_fairness=contention_fairness_of(outcomes, policy, n_nodes),
    )


UNFAIR_RHO = 1.05
"""A job whose finish-time fairness is above this counts as treated unfairly (Shockwave, NSDI'23)."""


def contention_fairness_of(outcomes: JobOutcomes, policy: Policy, n_nodes: float) -> ContentionFairness | None:
    """Compute finish-time fairness by time alone and contention; ``None`` for jobs without end, or no idle node.

    Parameters
    ----------
    outcomes
        Outcomes of a finished replay.
    policy
        Policy that knows how long jobs take alone.
    n_nodes
        Mean number of nodes.
    """
    jobs = list(outcomes.measured)
    if not n_nodes or any(math.isinf(job.work_samples) for _, job in jobs):
        return None
    alone_s = {
        index: policy.seconds_alone(job, max(job.min_nodes, min(job.max_nodes, math.ceil(n_nodes))))
        for index, job in jobs
        if index in outcomes.jct_s
    }
    completions = [(index, job) for index, job in jobs if math.isfinite(alone_s.get(index, math.inf))]
    contention = len(jobs) / n_nodes
    jct_s = np.array([outcomes.jct_s[index] for index, _ in completions])
    alone = np.maximum(np.array([alone_s[index] for index, _ in completions]), 1e-6)  # the clock has whole microseconds
    submit_s = np.array([job.submit_us / 1e6 for _, job in completions])
    rho_of_jobs = jct_s / (alone * max(1.0, contention))
    rho_by_presence = jct_s / (alone * np.maximum(1.0, _present(submit_s, submit_s + jct_s) / n_nodes))
    has_any = bool(completions)
    return ContentionFairness(
        contention=contention,
        average_rho=float(rho_of_jobs.mean()) if has_any else None,
        largest_rho=float(rho_of_jobs.max()) if has_any else None,
        unfair_share=float((rho_of_jobs > UNFAIR_RHO).mean()) if has_any else None,
        largest_rho_by_presence=float(rho_by_presence.max()) if has_any else None,
        unfair_share_by_presence=float((rho_by_presence > UNFAIR_RHO).mean()) if has_any else None,
    )


def _present(submit_s: NDArray[np.float64], finish_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean number of jobs present during each job, itself included: shape (J,)."""
    time_s = np.unique(np.concatenate([submit_s, finish_s]))
    change = np.zeros(time_s.size)
    np.add.at(change, np.searchsorted(time_s, submit_s), 1.0)
    np.add.at(change, np.searchsorted(time_s, finish_s), -1.0)
    job_s = np.concatenate([[0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(time_s))])
    until, since = (job_s[np.searchsorted(time_s, time_of_jobs_s)] for time_of_jobs_s in (finish_s, submit_s))
    lasts_s = finish_s - submit_s
    present: NDArray[np.float64] = np.divide(until - since, lasts_s, out=np.ones(lasts_s.size), where=lasts_s > 0)
    return present


def weight_text(weight: float) -> str:
    """Return a weight as text: ``5``, ``0.25``."""
    return f"{weight:g}"


def mean(values: Iterable[float]) -> float | None:
    """Return the mean, summed exactly so that the order does not matter; ``None`` for no values."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else None


def cost_of(hours: Mapping[str, float], price: Mapping[str, float | None]) -> float | None:
    """Return the cost of node-hours by type; ``None`` where a type has no price."""
    parts = [None if (rate := price.get(name)) is None else node_hours * rate for name, node_hours in hours.items()]
    return None if None in parts else math.fsum(filter(None, parts))


def fairness_of(rhos: Sequence[float]) -> Fairness:
    """Sum up finish-time fairness from the ``rho`` of each job."""
    return Fairness(
        average_rho=mean(rhos),
        largest_rho=max(rhos, default=None),
        share_above_1=sum(rho > 1 for rho in rhos) / len(rhos) if rhos else None,
        policy=ISOLATED_POLICY,
    )


_COUNTED = ("n_rounds", "n_recomputations", "lease_extensions", "lease_opportunities")
"""Counts of a policy that decides in rounds."""


def cluster_of(record: RunRecord) -> str | None:
    """Return the cluster of a run, such as ``v100=36,k80=36``; ``None`` for a run on a log."""
    metadata = record.inputs.events.metadata
    return str(metadata.notes.get("cluster", "")) if metadata.source_format == SOURCE_FORMAT else None


def is_about_scheduling(record: RunRecord) -> bool:
    """Return whether scheduling metrics come first in a run, rather than the use of idle nodes.

    True for a run on a cluster, with several node types, with measured jobs or rounds, or one that ends with its jobs.
    """
    config = record.config
    return bool(
        cluster_of(record) is not None
        or record.inputs.events.metadata.node_types
        or config.until_done
        or config.measured
        or rounds_of(record)
    )


def rounds_of(record: RunRecord) -> dict[str, int] | None:
    """Return counts of rounds and leases; ``None`` where the policy has none."""
    policy_summary = record.summary.policy or {}
    counts = {name: policy_summary[name] for name in _COUNTED if isinstance(policy_summary.get(name), int)}
    return counts if len(counts) == len(_COUNTED) else None


def plans_of(record: RunRecord) -> tuple[int, int] | None:
    """Return the number of plans, and of solves stopped early; ``None`` for a policy that does not plan ahead."""
    policy_summary = record.summary.policy or {}
    n_plans, *stop_counts = (policy_summary.get(name) for name in ("plans", "stopped_by_time_limit", "without_answer"))
    if not isinstance(n_plans, int):
        return None
    return n_plans, sum(count_of_stops for count_of_stops in stop_counts if isinstance(count_of_stops, int))


def window_words(record: RunRecord) -> str:
    """Return the window as text: ``2021-02-10T00:48:48Z to ...``, or time after the start of a relative log."""
    start_us, end_us = record.config.window_start_us, record.config.window_end_us
    if record.inputs.events.metadata.time_origin != "relative":
        return f"{iso_utc(start_us)} to {iso_utc(end_us)}"
    return f"{duration(start_us / 1e6) if start_us else '0'} to {duration(end_us / 1e6)} after the start of the log"


def instant_words(record: RunRecord, time_us: int) -> str:
    """Return a time as text; for a relative log, the time after its start."""
    if record.inputs.events.metadata.time_origin != "relative":
        return iso_utc(time_us)
    return f"{duration(time_us / 1e6)} after the start of the log"


def scheduling_lines(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield the label and text of each line; fairness alone for a run that is not about scheduling."""
    scheduling = record.summary.scheduling
    if not is_about_scheduling(record):
        yield from _fairness(scheduling.finish_time_fairness)
        return
    yield from _completion(scheduling)
    yield from _ideal(scheduling.average_jct_s, record.summary.ideal)
    if scheduling.makespan_s is not None:
        yield "Makespan", duration(scheduling.makespan_s)
    if scheduling.utilisation is not None:
        yield "Utilisation", f"{percent(scheduling.utilisation)} of the node-hours"
    yield from _job_hours(scheduling, record.config.prices)
    yield from _fairness(scheduling.finish_time_fairness)
    yield from _contention_fairness(scheduling.contention_fairness)
    plans = plans_of(record)
    if plans is not None:
        n_plans, n_stops = plans
        limit_words = "every solve came to its end"
        if n_stops:
            limit_words = (
                f"{count(n_stops, 'solve')} ended at the time limit, or without an answer: another machine may plan "
                "otherwise"
            )
        yield "Plans", f"{n_plans:,}; {limit_words}"
    rounds = rounds_of(record)
    if rounds is not None:
        yield "Rounds", f"{rounds['n_rounds']:,}; shares computed {count(rounds['n_recomputations'], 'time')}"
        if rounds["lease_opportunities"]:
            n_extensions, n_opportunities = rounds["lease_extensions"], rounds["lease_opportunities"]
            lease_words = f"{n_extensions:,} times of {n_opportunities:,} ({percent(n_extensions / n_opportunities)})"
            yield "Leases", f"a job kept its nodes for another round {lease_words}"


def _completion(scheduling: Scheduling) -> Iterator[tuple[str, str]]:
    done_words = count(scheduling.n_jobs, "job")
    if scheduling.n_completed < scheduling.n_jobs:
        done_words = f"{scheduling.n_completed:,} of {done_words}"
    if scheduling.average_jct_s is None:
        yield "JCT", f"{done_words} completed"
        return
    yield "JCT", f"{duration(scheduling.average_jct_s)} on average, submit to finish, {done_words} completed"
    if len(scheduling.average_jct_s_by_weight) > 1:
        by_weight = sorted(scheduling.average_jct_s_by_weight.items(), key=lambda entry: float(entry[0]))
        yield "", ", ".join(f"{duration(jct_s)} of weight {weight}" for weight, jct_s in by_weight)


def _job_hours(scheduling: Scheduling, prices: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    hours = scheduling.node_hours_by_type
    if len(hours) > 1:
        yield (
            "Node-hours",
            "held: " + ", ".join(f"{amount(node_hours)} of {name}" for name, node_hours in hours.items()),
        )
    if scheduling.cost is not None:
        price_words = ", ".join(f"{prices[name]:g} for {name}" for name in hours if name in prices)
        yield "Cost", f"{amount(scheduling.cost)} dollars of the held node-hours ({price_words})"


def _ideal(jct_s: float | None, ideal: Ideal | None) -> Iterator[tuple[str, str]]:
    if ideal is not None and ideal.average_jct_s:
        addition = "" if jct_s is None else f"; with rounds {jct_s / ideal.average_jct_s - 1:+.1%}"
        n_words = count(ideal.n_completed, "job")
        yield (
            "Ideal",
            f"{duration(ideal.average_jct_s)} on average if shares were applied without rounds, {n_words}{addition}",
        )


def _contention_fairness(fairness: ContentionFairness | None) -> Iterator[tuple[str, str]]:
    if fairness is None or fairness.largest_rho is None or fairness.unfair_share is None:
        return
    yield (
        "Contention",
        f"{fairness.contention:.3g} jobs for each node; at most {fairness.largest_rho:.3g} times as long as alone with "
        f"that contention, {percent(fairness.unfair_share)} of the jobs above {UNFAIR_RHO:g} times",
    )


def _fairness(fairness: Fairness | None) -> Iterator[tuple[str, str]]:
    if fairness is None:
        return
    if fairness.average_rho is None:
        yield "Fairness", f"no job was done both here and under {fairness.policy}"
        return
    yield (
        "Fairness",
        f"a job took {fairness.average_rho:.3g} times as long as under {fairness.policy} on average, "
        f"{fairness.largest_rho:.3g} times at most, {percent(fairness.share_above_1 or 0.0)} of the jobs longer",
    )
