"""Leases of jobs on a cluster of GPUs: requests, and the greedy rule that packs leases from the back.

A lease is a fixed time on a fixed number of GPUs. Leases are numbered from the next one that starts; a job must get a
given number of them, any ones, before its deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
