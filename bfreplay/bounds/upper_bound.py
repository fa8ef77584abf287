"""``upper_bound``: the limit of any policy on a log with a set of jobs, even of one that knows the future."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from bfreplay.bounds.fluid import admission_limit, best_rates, earliest_end_us, most_samples
from bfreplay.bounds.job_classes import Horizon, job_classes
from bfreplay.bounds.prices import SearchProgress, SimplePrices, better_prices, bound_at
from bfreplay.datasets import NodeEvents
from bfreplay.errors import InputError
from bfreplay.workload import JobSet, JobSource

_ROUNDING = 1e-9
"""Relative increase of every bound: more than the rounding error of sums of some 1e6 products."""

_SMALLEST = 1e-290
"""Rates and works below it lose their digits in products, so that rounding errors have no limit."""


class Effort(StrEnum):
    """Effort spent on a low bound."""

    QUICK = "quick"  # prices of the intervals' own optima
    THOROUGH = "thorough"  # prices improved by a search: a minute for a log of weeks


class Kind(StrEnum):
    """Constraints that a bound respects beside nodes, job bounds and curves."""

    FREE_RESCALING = "free_rescaling"  # nothing
    WORK = "work"  # work of the jobs, submit times, and the number of active jobs
    PRICED = "priced"  # rescale costs, with a known future


@dataclass(frozen=True, slots=True)
class UpperBound:
    """Samples that no policy can exceed.

    Parameters
    ----------
    samples
        Most samples in the window.
    kind
        Constraints that ``samples`` respects.
    free_rescaling_samples
        The same with every interval at its optimum, free rescaling, and all jobs present from the start with endless
        work; ``None`` if not all of them may be active at once.
    earliest_finish_us
        Earliest end of all work; ``None`` if it cannot be done in the window, or was not requested.
    """

    samples: float
    kind: Kind
    free_rescaling_samples: float | None
    earliest_finish_us: int | None


def reason_without_bound(events: NodeEvents, jobs: JobSet | JobSource) -> str | None:
    """Return the reason that ``upper_bound`` gives no bound; ``None`` if it does. Of a source only nodes are checked.

    The proofs assume nodes of one type with at most one job each.
    """
    if len(events.node_types.names) > 1:
        return "nodes are of several types"
    if not isinstance(jobs, JobSet):
        return None
    if jobs.colocation:
        return "jobs may share nodes: two on one node can process more than either alone"
    jobs_on_type = jobs.on_type(events.node_types.names[0]) if events.node_types.has_type_names else jobs
    # many jobs have the same few curves
    by_curve = {
        (id(job.throughput), id(job.adaptation), job.max_nodes, job.work_samples < _SMALLEST): job
        for job in jobs_on_type
    }
    for job in by_curve.values():
        job_rates = job.fastest.table(job.max_nodes)
        if min(job_rates[job_rates > 0].min(initial=math.inf), job.work_samples) < _SMALLEST:
            return f"the job {job.name!r} has a rate or work below {_SMALLEST:g}, too small to calculate with"
    return None


def upper_bound(
    events: NodeEvents,
    jobs: JobSet,
    max_parallel: int,
    *,
    decides_in_rounds: bool = False,
    gives_jobs_up: bool = False,
    effort: Effort = Effort.QUICK,
    with_finish: bool = False,
    finished_us: int | None = None,
    most_idle: int | None = None,
    evaluations: int = 350,
    progress: SearchProgress | None = None,
) -> UpperBound:
    """Bound the samples that any policy can make of ``jobs`` on the idle nodes of ``events``.

    The bound holds for every policy of this replay, under both semantics, whatever counts and nodes it chooses, even if
    it knows the log. Policies that decide in rounds or give jobs up have more freedom, and a bound of their own.
    docs/design/bounds.md has the proofs.

    Parameters
    ----------
    events
        The log, of one node type.
    jobs
        Jobs with submit times since the epoch (``JobSet.anchored_at``), or endless (``JobSet.endless``).
    max_parallel
        Most jobs active at once.
    decides_in_rounds
        Also bound policies that decide between pool events (``Trigger.ROUND``): with decisions a moment apart a job can
        stop and start again for less than the scale-up cost, so rescaling counts as free.
    gives_jobs_up
        Also bound policies that end jobs before their work is done (``Round.failed``): the jobs behind them are
        admitted earlier, at decisions of their own. The end of all work then has no bound.
    effort
        Effort spent on a low bound.
    with_finish
        Also compute the earliest end of all work.
    finished_us
        When a replay of these jobs had done all their work, if it had. The bound is the same without; finding it takes
        longer.
    most_idle
        Most idle nodes at any time, if known. The bound is the same without; with it a quick bound of jobs that are
        there from the start and never end reads the log in parts, so that memory does not grow with the log.
    evaluations
        Most evaluations of a thorough search.
    progress
        Called by a thorough search with (evaluations so far, most evaluations).

    Raises
    ------
    InputError
        No bound exists: see ``reason_without_bound``.
    """
    reason = reason_without_bound(events, jobs)
    if reason is not None:
        raise InputError(
            f"no upper bound: {reason}",
            expected="nodes of one type, each with at most one job",
            fix="compare samples and completion times: bfreplay compare runs, or a sweep",
        )
    if events.node_types.has_type_names:
        jobs = jobs.on_type(events.node_types.names[0])
    only_pool_events = _never_change(jobs, events.window_start_us) and not (decides_in_rounds or gives_jobs_up)
    horizon = None
    in_parts = only_pool_events and len(jobs) <= max_parallel and effort is Effort.QUICK
    if most_idle is None or not in_parts:
        horizon = Horizon.of(events)
        most_idle = horizon.most_idle
    classes = job_classes(jobs, most_idle)
    if not classes:
        return UpperBound(0.0, Kind.FREE_RESCALING, 0.0, None)
    n_in_classes = sum(job_class.n_jobs for job_class in classes)
    best_rate = best_rates(classes, most_idle) if n_in_classes <= max_parallel else None
    if best_rate is not None and only_pool_events:
        simple = SimplePrices(classes, best_rate)
        if horizon is None:
            Horizon.read(events, simple.advance)
        else:
            simple.advance(horizon)
        lowest_bound, price = simple.lowest
        if horizon is not None and effort is Effort.THOROUGH:
            prices = better_prices(price[horizon.idle], classes, horizon, evaluations, progress)
            lowest_bound = bound_at(prices, classes, horizon)
        kind = Kind.PRICED if _round_up(lowest_bound) < simple.free else Kind.FREE_RESCALING  # not by rounding alone
        return UpperBound(_round_up(min(simple.free, lowest_bound)), kind, _round_up(simple.free), None)
    assert horizon is not None
    free_samples = None if best_rate is None else float((best_rate[horizon.idle] * horizon.seconds).sum())
    n_known = 0 if finished_us is None else len(jobs)
    n_admitted = len(jobs) if gives_jobs_up else admission_limit(jobs, max_parallel, horizon, n_known=n_known)
    admissible = jobs.jobs[:n_admitted]
    samples = most_samples(job_classes(admissible, horizon.most_idle), max_parallel, horizon)
    can_all_end = len(admissible) == len(jobs) == n_in_classes and not gives_jobs_up
    finish_us = None
    if with_finish and can_all_end:
        finish_us = earliest_end_us(classes, max_parallel, horizon, samples, known_us=finished_us)
    kind = Kind.WORK
    if free_samples is not None and free_samples < samples:
        samples, kind = free_samples, Kind.FREE_RESCALING
    return UpperBound(_round_up(samples), kind, None if free_samples is None else _round_up(free_samples), finish_us)


def _round_up(samples: float) -> float:
    return samples * (1 + _ROUNDING)


def _never_change(jobs: JobSet, start_us: int) -> bool:
    """Return whether all jobs are present from the start and never end, so that only pool events cause decisions.

    A job that can never run counts too, since its arrival causes a decision. So does a change of the batch size.
    """
    return all(job.submit_us <= start_us and math.isinf(job.work_samples) and job.adaptation is None for job in jobs)
