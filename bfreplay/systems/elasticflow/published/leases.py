"""Leases of Chronus's jobs on a cluster of GPUs: requests, the greedy rule that packs them, and a linear model.

A lease is a fixed time on a fixed number of GPUs. Leases are numbered from the next one that starts; a job must get a
given number of them, any ones, before its deadline. The greedy rule packs leases from the back. The model plans those
of accepted jobs: most or fewest GPUs in the first lease, all deadlines kept.

The published model has a binary ``x[j, l]`` for each job and lease: job j runs in lease l. With g_j the GPUs of a lease
of job j, n_j the number of leases that it needs, d_j that of leases before its deadline, and G GPUs::

    maximise (or minimise)  sum_j g_j x[j, 0]
    where                   sum_{l < d_j} x[j, l] = n_j   for each job,   x[j, l] = 0  from d_j on
                            sum_j g_j x[j, l] <= G        for each lease

It has tens of thousands of binaries. (It also has binaries for a choice of deadlines with values; a job of these traces
has one deadline, which makes its binary 1.)

Here later leases are grouped: deadlines cut them into intervals, and an integer ``later[j, k]`` is the number of leases
of interval k in which job j runs. Every answer of the published model gives one of this model with the same first
lease, by counting. So this model is a relaxation: its optimum is at least as good. Where its counts can be spread over
single leases, the result is an answer of the published model, hence an optimum of both. Counts cannot always be spread:
two leases of 4 GPUs hold one lease of 2 GPUs and six of 1, but not if these are two for each of three jobs. An interval
that cannot be spread is cut in two and the model solved again; cut into single leases it is the published model, so the
answer is always an optimum of that, unless time runs out.

Optima differ in later leases, and so in the GPUs that are free for later admissions; the published program takes any
that its solver returns. Here counts are spread by the rule of ``_leases_of_counts``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.isolation import ModelSolver
from bfreplay.milp.model import Columns, LinearModel, Rows

Plan = NDArray[np.bool_]
"""Whether a job holds each of the L leases that start before its deadline, (L,)."""


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Request of one job for leases.

    Parameters
    ----------
    gpus
        GPUs of each lease.
    needed
        Number of leases, at least 1.
    available
        Leases before its deadline; feasible only with ``needed <= available``.
    """

    gpus: int
    needed: int
    available: int

    @property
    def packing_order(self) -> tuple[int, int, int]:
        """Sort key of the greedy rule: many GPUs first, then little slack, then late deadlines."""
        return -self.gpus, self.available - self.needed, -self.available


def pack(requests: Sequence[LeaseRequest], free_gpus: NDArray[np.int64], n_gpus: int) -> list[Plan | None]:
    """Pack requests from the back: each takes the latest leases in which its GPUs are free.

    Parameters
    ----------
    requests
        Ties of ``packing_order`` keep their order.
    free_gpus : (H,)
        Free GPUs of the first leases; in later ones all are free.
    n_gpus
        GPUs of the cluster.

    Returns
    -------
    list
        A plan for each request, ``None`` with too few leases left: such a request takes nothing.
    """
    remaining_gpus = np.full(max((0, *(request_index.available for request_index in requests))), n_gpus, dtype=np.int64)
    remaining_gpus[: free_gpus.size] = free_gpus[: remaining_gpus.size]
    plans: list[Plan | None] = [None] * len(requests)
    for index in sorted(range(len(requests)), key=lambda request_index: requests[request_index].packing_order):
        request = requests[index]
        wide_enough = np.flatnonzero(remaining_gpus[: max(request.available, 0)] >= request.gpus)
        if wide_enough.size < request.needed:
            continue
        lease_numbers = wide_enough[wide_enough.size - request.needed :]
        remaining_gpus[lease_numbers] -= request.gpus
        plan = np.zeros(request.available, dtype=np.bool_)
        plan[lease_numbers] = True
        plans[index] = plan
    return plans


def fits(requests: Sequence[LeaseRequest], free_gpus: NDArray[np.int64], n_gpus: int) -> bool:
    """Return whether the greedy rule packs all requests, which a better rule might where it does not."""
    return all(plan is not None for plan in pack(requests, free_gpus, n_gpus))


def postpone(requests: Sequence[LeaseRequest], free_gpus: NDArray[np.int64], n_gpus: int) -> LeaseRequest:
    """Return the last request with a deadline late enough for the greedy rule to pack all requests.

    The published program bisects between the requested deadline and one that is surely late enough. Greedy packing is
    not monotone in the deadline, so the result need not be the earliest.
    """
    *others, request = requests
    earliest = max(request.available, request.needed)
    latest = max([earliest, free_gpus.size, *(other.available for other in others)]) + request.needed + 1
    while earliest < latest:
        middle = (earliest + latest) // 2
        if fits([*others, replace(request, available=middle)], free_gpus, n_gpus):
            latest = middle
        else:
            earliest = middle + 1
    return replace(request, available=latest)


@dataclass(frozen=True, slots=True, eq=False)
class LeaseProblem:
    """Requests of N jobs as arrays.

    Parameters
    ----------
    gpus, needed, available : (N,) int64
        As in ``LeaseRequest``; ``1 <= needed <= available``.
    n_gpus
        GPUs of the cluster.
    fill_first
        Whether the first lease uses as many GPUs as possible, or as few.
    """

    gpus: NDArray[np.int64]
    needed: NDArray[np.int64]
    available: NDArray[np.int64]
    n_gpus: int
    fill_first: bool

    @classmethod
    def of(cls, requests: Sequence[LeaseRequest], n_gpus: int, *, fill_first: bool) -> LeaseProblem:
        """Return the problem of these requests."""
        rows = [(request.gpus, request.needed, request.available) for request in requests]
        gpus, n_leases, available = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return cls(gpus, n_leases, available, n_gpus, fill_first)

    def deadlines(self) -> NDArray[np.int64]:
        """Return the cuts of later leases: 1, then the distinct deadlines, ascending."""
        return np.union1d([1], self.available)

    def allows(self, plan: NDArray[np.bool_]) -> bool:
        """Return whether a plan (N, L) gives each job its leases before its deadline, and no lease too many GPUs."""
        is_late = np.arange(plan.shape[1]) >= self.available[:, None]
        has_all = (plan.sum(axis=1) == self.needed).all()
        return bool(has_all and not plan[is_late].any() and (self.gpus @ plan <= self.n_gpus).all())


def interval_model(
    problem: LeaseProblem, boundaries: NDArray[np.int64]
) -> tuple[LinearModel, NDArray[np.int64], NDArray[np.int64]]:
    """Return the model whose interval k is the leases from ``boundaries[k]`` up to ``boundaries[k + 1]``.

    Its first N columns are the jobs in the first lease. The arrays, (C - N,), are job and interval of each further
    column.

    Parameters
    ----------
    boundaries : (K + 1,) int64
        Ascending from 1; every deadline is among them.
    """
    n_jobs, lengths = problem.gpus.size, np.diff(boundaries)
    columns, rows = Columns(), Rows()
    job = np.arange(n_jobs)
    owner_job, interval = np.nonzero(boundaries[1:] <= problem.available[:, None])
    direction = 1 if problem.fill_first else -1
    first_columns = columns.add("first", job, objective=direction * problem.gpus)
    later_columns = columns.add("later", owner_job, interval, upper=lengths[interval])
    first_row = rows.add("needed", n_jobs, problem.needed, problem.needed)
    rows.put(first_row + job, first_columns, 1.0)
    rows.put(first_row + owner_job, later_columns, 1.0)
    rows.put(rows.add("first_gpus", 1, -np.inf, float(problem.n_gpus)), first_columns, problem.gpus)
    gpus = rows.add("gpus", lengths.size, -np.inf, problem.n_gpus * lengths)
    rows.put(gpus + interval, later_columns, problem.gpus[owner_job])
    return rows.model_of(columns), owner_job, interval


class LeaseMilp:
    """Planner of leases with a back end of ``bfreplay.milp``.

    The same problem gives the same plan, unless the time limit ends a solve.

    Parameters
    ----------
    backend
        Name of a registered back end, or ``package.module:Class``.
    time_limit_s
        Limit of each plan.

    Raises
    ------
    SolverUnavailableError
        The back end does not work here.
    """

    def __init__(self, backend: str = "highs", time_limit_s: float = 5.0) -> None:
        self._models = ModelSolver(backend, "Chronus's plans")
        self._time_limit_s = time_limit_s

    def close(self) -> None:
        """End the worker process, if any."""
        self._models.close()

    def plans(self, requests: Sequence[LeaseRequest], n_gpus: int, *, fill_first: bool) -> list[Plan] | None:
        """Plan the leases of all requests, as many GPUs as possible in the first one or as few.

        Returns
        -------
        list or None
            A plan for each request. ``None`` if none exists, or none was found in time.
        """
        if any(request.needed > request.available for request in requests):
            return None
        problem = LeaseProblem.of(requests, n_gpus, fill_first=fill_first)
        start_time_s = time.perf_counter()
        boundaries = problem.deadlines()
        while (remaining_s := self._time_limit_s - (time.perf_counter() - start_time_s)) > 0:
            model, owner_job, interval = interval_model(problem, boundaries)
            answer = self._models.solve(model, SolveOptions(remaining_s))
            if answer.x is None:
                return None
            first_counts, later_counts = np.split(np.rint(answer.x).astype(np.int64), [len(requests)])
            later = np.zeros((len(requests), boundaries.size - 1), dtype=np.int64)
            later[owner_job, interval] = later_counts
            plan, finer_boundaries = _single_leases(problem, boundaries, first_counts > 0, later)
            if finer_boundaries.size == boundaries.size:
                if not problem.allows(plan):  # the answer breaks a rule
                    return None
                return [row[: request.available].copy() for row, request in zip(plan, requests, strict=True)]
            boundaries = finer_boundaries
        return None


def _single_leases(
    problem: LeaseProblem, boundaries: NDArray[np.int64], runs_first: NDArray[np.bool_], later: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Spread counts over single leases; return a plan (N, L), and ``boundaries``, finer where spreading failed."""
    plan = np.zeros((runs_first.size, int(boundaries[-1])), dtype=np.bool_)
    plan[:, 0] = runs_first
    new_boundaries: list[int] = []
    for interval, (begin, end) in enumerate(zip(boundaries[:-1].tolist(), boundaries[1:].tolist(), strict=True)):
        if not _leases_of_counts(plan[:, begin:end], later[:, interval], problem):
            new_boundaries.append((begin + end) // 2)
    return plan, np.union1d(boundaries, np.array(new_boundaries, dtype=np.int64)) if new_boundaries else boundaries


def _leases_of_counts(plan: NDArray[np.bool_], counts: NDArray[np.int64], problem: LeaseProblem) -> bool:
    """Fill ``plan`` (N, n) with ``counts`` leases of each job; return whether all had a place.

    Wide jobs come first, then those with many leases, each into the leases with most free GPUs, late ones first. (For
    jobs of equal width this finds a place if one exists: Gale and Ryser.)
    """
    free_gpus = np.full(plan.shape[1], problem.n_gpus)
    for job in np.lexsort((-counts, -problem.gpus)).tolist():
        if counts[job] == 0:
            continue
        freest_leases = np.argsort(free_gpus, kind="stable")[free_gpus.size - int(counts[job]) :]
        if free_gpus[freest_leases[0]] < problem.gpus[job]:
            return False
        free_gpus[freest_leases] -= problem.gpus[job]
        plan[job, freest_leases] = True
    return True
