"""Scheduling metrics of a run, and their tables: completion times, makespan, utilisation, cost, fairness."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT
from bfreplay.datasets.times import iso_utc
from bfreplay.policies import Policy
from bfreplay.replay.job_outcomes import JobOutcomes
from bfreplay.replay.ledger import HELD, US_PER_NODE_HOUR, Ledger
from bfreplay.replay.settings import ReplaySettings
from bfreplay.runs.run_record import ContentionFairness, Fairness, RunRecord, Scheduling
from bfreplay.wording import Column, ShownTable, duration

if TYPE_CHECKING:
    from bfreplay.runs.run_result import RunResult

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
    ran_us = sum(getattr(ledger, f"{label}_node_us") for label in HELD if label != "stalled")
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


_TYPES = (
    Column("node_type", "node type"),
    Column("nodes", "nodes", "count"),
    Column("held_node_hours", "node-hours held", "amount"),
    Column("price", "dollars a node-hour", "number"),
    Column("cost", "cost, dollars", "amount"),
)
_WEIGHTS = (
    Column("weight", "weight"),
    Column("n_jobs", "jobs", "count"),
    Column("n_completed", "completed", "count"),
    Column("average_jct_s", "submit to finish, mean", "seconds"),
)


def scheduling_tables(run_result: RunResult) -> Iterator[ShownTable]:
    """Tables of node types if the log has several, and of weights if jobs have several and their table was kept."""
    scheduling = run_result.summary.scheduling
    by_type = run_result.record.inputs.events.metadata.node_types
    if by_type:
        prices = run_result.record.config.prices
        rows = [
            [name, len(by_type[name]), hours, prices.get(name), cost_of({name: hours}, prices)]
            for name, hours in scheduling.node_hours_by_type.items()
        ]
        yield ShownTable("Node types", _TYPES, rows)
    if not run_result.has_table("jobs"):
        return
    jobs = run_result.table("jobs").select(["weight", "finished"])
    measured_slice = slice(*(run_result.record.config.measured or (None,)))
    weights = jobs["weight"].to_pylist()[measured_slice]
    if len(set(weights)) > 1:
        has_finish = jobs["finished"].is_valid().to_pylist()[measured_slice]
        n_jobs = Counter(map(weight_text, weights))
        finishes = Counter(weight_text(weight) for weight, ends in zip(weights, has_finish, strict=True) if ends)
        rows = [
            [weight, n_of_weight, finishes[weight], scheduling.average_jct_s_by_weight.get(weight)]
            for weight, n_of_weight in sorted(n_jobs.items(), key=lambda entry: float(entry[0]))
        ]
        yield ShownTable("Weights of jobs", _WEIGHTS, rows)
