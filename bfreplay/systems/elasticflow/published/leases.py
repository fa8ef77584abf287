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
that its solver returns. Here counts are spread by the rule of ``_spread``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.formulations.entries import Columns, Rows
from bfreplay.milp.isolation import ModelSolver
from bfreplay.milp.model import LinearModel

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


def pack(requests: Sequence[LeaseRequest], free: NDArray[np.int64], n_gpus: int) -> list[Plan | None]:
    """Pack requests from the back: each takes the latest leases in which its GPUs are free.

    Parameters
    ----------
    requests
        Ties of ``packing_order`` keep their order.
    free : (H,)
        Free GPUs of the first leases; in later ones all are free.
    n_gpus
        GPUs of the cluster.

    Returns
    -------
    list
        A plan for each request, ``None`` with too few leases left: such a request takes nothing.
    """
    left = np.full(max((0, *(each.available for each in requests))), n_gpus, dtype=np.int64)
    left[: free.size] = free[: left.size]
    plans: list[Plan | None] = [None] * len(requests)
    for k in sorted(range(len(requests)), key=lambda each: requests[each].packing_order):
        request = requests[k]
        wide_enough = np.flatnonzero(left[: max(request.available, 0)] >= request.gpus)
        if wide_enough.size < request.needed:
            continue
        taken = wide_enough[wide_enough.size - request.needed :]
        left[taken] -= request.gpus
        plan = np.zeros(request.available, dtype=np.bool_)
        plan[taken] = True
        plans[k] = plan
    return plans


def fits(requests: Sequence[LeaseRequest], free: NDArray[np.int64], n_gpus: int) -> bool:
    """Return whether the greedy rule packs all requests, which a better rule might where it does not."""
    return all(plan is not None for plan in pack(requests, free, n_gpus))


def postpone(requests: Sequence[LeaseRequest], free: NDArray[np.int64], n_gpus: int) -> LeaseRequest:
    """Return the last request with a deadline late enough for the greedy rule to pack all requests.

    The published program bisects between the requested deadline and one that is surely late enough. Greedy packing is
    not monotone in the deadline, so the result need not be the earliest.
    """
    *others, request = requests
    low = max(request.available, request.needed)
    high = max([low, free.size, *(each.available for each in others)]) + request.needed + 1
    while low < high:
        middle = (low + high) // 2
        if fits([*others, replace(request, available=middle)], free, n_gpus):
            high = middle
        else:
            low = middle + 1
    return replace(request, available=high)


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
        rows = [(each.gpus, each.needed, each.available) for each in requests]
        gpus, needed, available = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return cls(gpus, needed, available, n_gpus, fill_first)

    def deadlines(self) -> NDArray[np.int64]:
        """Return the cuts of later leases: 1, then the distinct deadlines, ascending."""
        return np.union1d([1], self.available)

    def allows(self, plan: NDArray[np.bool_]) -> bool:
        """Return whether a plan (N, L) gives each job its leases before its deadline, and no lease too many GPUs."""
        is_late = np.arange(plan.shape[1]) >= self.available[:, None]
        has_all = (plan.sum(axis=1) == self.needed).all()
        return bool(has_all and not plan[is_late].any() and (self.gpus @ plan <= self.n_gpus).all())


def interval_model(
    problem: LeaseProblem, cuts: NDArray[np.int64]
) -> tuple[LinearModel, NDArray[np.int64], NDArray[np.int64]]:
    """Return the model whose interval k is the leases from ``cuts[k]`` up to ``cuts[k + 1]``.

    Its first N columns are the jobs in the first lease. The arrays, (C - N,), are job and interval of each further
    column.

    Parameters
    ----------
    cuts : (K + 1,) int64
        Ascending from 1; every deadline is among them.
    """
    n_jobs, length = problem.gpus.size, np.diff(cuts)
    columns, rows = Columns(), Rows()
    job = np.arange(n_jobs)
    owner, interval = np.nonzero(cuts[1:] <= problem.available[:, None])
    sign = 1 if problem.fill_first else -1
    first = columns.add("first", job, objective=sign * problem.gpus)
    later = columns.add("later", owner, interval, upper=length[interval])
    needed = rows.add("needed", n_jobs, problem.needed, problem.needed)
    rows.put(needed + job, first, 1.0)
    rows.put(needed + owner, later, 1.0)
    rows.put(rows.add("first_gpus", 1, -np.inf, float(problem.n_gpus)), first, problem.gpus)
    gpus = rows.add("gpus", length.size, -np.inf, problem.n_gpus * length)
    rows.put(gpus + interval, later, problem.gpus[owner])
    return rows.model_of(columns), owner, interval


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
        if any(each.needed > each.available for each in requests):
            return None
        problem = LeaseProblem.of(requests, n_gpus, fill_first=fill_first)
        started = time.perf_counter()
        cuts = problem.deadlines()
        while (left_s := self._time_limit_s - (time.perf_counter() - started)) > 0:
            model, owner, interval = interval_model(problem, cuts)
            answer = self._models.solve(model, SolveOptions(left_s))
            if answer.x is None:
                return None
            first, of_columns = np.split(np.rint(answer.x).astype(np.int64), [len(requests)])
            later = np.zeros((len(requests), cuts.size - 1), dtype=np.int64)
            later[owner, interval] = of_columns
            plan, finer = _single_leases(problem, cuts, first > 0, later)
            if finer.size == cuts.size:
                if not problem.allows(plan):  # the answer breaks a rule
                    return None
                return [row[: each.available].copy() for row, each in zip(plan, requests, strict=True)]
            cuts = finer
        return None


def _single_leases(
    problem: LeaseProblem, cuts: NDArray[np.int64], first: NDArray[np.bool_], later: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Spread counts over single leases; return a plan (N, L), and ``cuts``, finer where spreading failed."""
    plan = np.zeros((first.size, int(cuts[-1])), dtype=np.bool_)
    plan[:, 0] = first
    more: list[int] = []
    for k, (begin, end) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)):
        if not _spread(plan[:, begin:end], later[:, k], problem):
            more.append((begin + end) // 2)
    return plan, np.union1d(cuts, np.array(more, dtype=np.int64)) if more else cuts


def _spread(plan: NDArray[np.bool_], count: NDArray[np.int64], problem: LeaseProblem) -> bool:
    """Fill ``plan`` (N, n) with ``count`` leases of each job; return whether all had a place.

    Wide jobs come first, then those with many leases, each into the leases with most free GPUs, late ones first. (For
    jobs of equal width this finds a place if one exists: Gale and Ryser.)
    """
    free = np.full(plan.shape[1], problem.n_gpus)
    for j in np.lexsort((-count, -problem.gpus)).tolist():
        if count[j] == 0:
            continue
        chosen = np.argsort(free, kind="stable")[free.size - int(count[j]) :]
        if free[chosen[0]] < problem.gpus[j]:
            return False
        free[chosen] -= problem.gpus[j]
        plan[j, chosen] = True
    return True
