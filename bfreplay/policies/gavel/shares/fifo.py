"""First come, first served: each job gets all its time on one node type, in order of arrival."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.gavel.shares.held_slots import shares_of_slots, still_held
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares


def first_come(problem: ShareProblem) -> tuple[dict[int, int], list[int]]:
    """Give each job the fastest type that has room for its gang, until one finds no room.

    A job that can run on none of the types with room is passed over, and does not hold up the next.

    Returns
    -------
    placed
        Position of the type by position of the job, in order of arrival.
    waiting
        Positions of the jobs behind the last one that was looked at. The one that found no room is in neither:
        the original loses it there, so that it joins no pair.
    """
    free = problem.n_nodes.copy()
    placed: dict[int, int] = {}
    for i in range(problem.n_jobs):
        if not free.any():
            return placed, list(range(i, problem.n_jobs))
        room = free >= problem.gang[i]
        if not room.any():
            return placed, list(range(i + 1, problem.n_jobs))
        j = int(np.argmax(np.where(room, problem.rate[i], -1.0)))
        if problem.rate[i, j] > 0:
            placed[i] = j
            free[j] -= problem.gang[i]
    return placed, []


class FifoPerf:
    """``fifo_perf`` of Gavel: each time anew, each job in order of arrival takes the fastest type with room."""

    uses_pairs = False
    runs_only_its_own = True
    looks_at_work = False
    shuffles_types = False

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares of 1; see ``first_come``."""
        placed, _ = first_come(problem)
        share = np.zeros((problem.n_jobs, problem.n_types))
        share[list(placed), list(placed.values())] = 1.0
        return TimeShares(share, np.zeros((problem.n_pairs, problem.n_types)))

    def forget(self) -> None:
        """Nothing is remembered."""


class Fifo:
    """``fifo`` of Gavel: a job takes a random type with room and keeps it until it ends.

    The slot of a job that ended goes to the head of the queue, if the head's gang fits there and can run there. Then
    each job of the queue draws one of the types with room on which it can run; one for which there is room, but on
    none of its types, is passed over; one for which there is no room ends the pass.

    Node types keep their order throughout a replay. See ``still_held`` for nodes that go away.

    Parameters
    ----------
    seed
        Of the draws.
    over_allocates
        Do as the original does (commit c4fa400), which is a defect: whatever type is drawn, the job goes to the last
        type, by name, that still counts as having room, and when that type is exactly full the drawn one stops
        counting. So more nodes may be given away than there are, and none is taken back when nodes go away. Only for
        comparison with published figures.
    """

    uses_pairs = False
    runs_only_its_own = True
    looks_at_work = False
    shuffles_types = True

    def __init__(self, *, seed: int = 0, over_allocates: bool = False) -> None:
        self.seed = seed
        self.over_allocates = over_allocates
        self.forget()

    def forget(self) -> None:
        """Empty all slots and begin the draws anew."""
        self._held: dict[int, int] = {}
        self._random = random.Random(self.seed)

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares of 1."""
        fill = _over_allocated if self.over_allocates else _filled
        self._held = fill(problem, self._held, self._random)
        return TimeShares(shares_of_slots(self._held, problem), np.zeros((problem.n_pairs, problem.n_types)))


def _filled(problem: ShareProblem, held: dict[int, int], draws: random.Random) -> dict[int, int]:
    present = set(problem.job.tolist())
    vacated = [held[number] for number in sorted(held) if number not in present]
    slots, free = still_held(held, problem)
    queue = [i for i, number in enumerate(problem.job.tolist()) if number not in slots]

    def take(i: int, j: int) -> None:
        slots[int(problem.job[i])] = j
        free[j] -= problem.gang[i]

    for j in vacated:
        if queue and _fits(problem, free, queue[0])[j]:
            take(queue.pop(0), j)
    for i in queue:
        if not (free >= problem.gang[i]).any():
            break
        types = np.flatnonzero(_fits(problem, free, i))
        if len(types):
            take(i, int(types[draws.randrange(len(types))]))
    return slots


def _fits(problem: ShareProblem, free: NDArray[np.int64], i: int) -> NDArray[np.bool_]:
    fits: NDArray[np.bool_] = (free >= problem.gang[i]) & (problem.rate[i] > 0)
    return fits


def _over_allocated(problem: ShareProblem, held: dict[int, int], draws: random.Random) -> dict[int, int]:
    position = {number: i for i, number in enumerate(problem.job.tolist())}
    free = problem.n_nodes.copy()
    queue = [i for number, i in position.items() if number not in held]
    slots = dict(held)

    def take(i: int, j: int) -> None:
        slots[int(problem.job[i])] = j
        free[j] -= problem.gang[i]

    # only slots of earlier arrivals are counted when one is passed on: as in the original
    for number in sorted(held):
        j = held[number]
        if number in position:
            free[j] -= problem.gang[position[number]]
            continue
        del slots[number]
        if queue and _fits(problem, free, queue[0])[j]:
            take(queue.pop(0), j)
    open_types = np.flatnonzero(free > 0).tolist()
    for i in queue:
        roomy = [k for k, j in enumerate(open_types) if free[j] >= problem.gang[i]]
        if not roomy:
            break
        drawn = roomy[draws.randrange(len(roomy))]
        last = open_types[-1]
        if problem.rate[i, last] > 0:
            take(i, last)
            if free[last] == 0:
                del open_types[drawn]
    return slots
