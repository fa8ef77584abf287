"""First come, first served: each job gets all its time on one node type, in order of arrival."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bfreplay.systems.gavel.shares.share_problem import PairRows, SharePolicy, ShareProblem, TimeShares, relative_rates


def keep_slots(held: Mapping[int, int], problem: ShareProblem) -> tuple[dict[int, int], NDArray[np.int64]]:
    """Return the slots that remain of those held before, and the nodes that no slot takes.

    Where a type has fewer nodes than its slots take (idle nodes join and leave), the latest arrivals lose theirs, one
    by one until the rest fits. On a cluster of constant size no slot is lost.

    Parameters
    ----------
    held
        Position of the node type in ``problem.type_names``, by the job's number. Jobs may have left since.

    Returns
    -------
    kept
        As ``held``, in order of arrival.
    free : (n,) int64
        Nodes of each type that are not in ``kept``.
    """
    free = problem.n_nodes.astype(np.int64)
    too_small = np.zeros(problem.n_types, dtype=np.bool_)
    kept: dict[int, int] = {}
    for number, gang in zip(problem.job.tolist(), problem.gang.tolist(), strict=True):
        j = held.get(number)
        if j is None:
            continue
        too_small[j] |= gang > free[j]
        if not too_small[j]:
            kept[number] = j
            free[j] -= gang
    return kept, free


def shares_of_slots(held: Mapping[int, int], problem: ShareProblem) -> NDArray[np.float64]:
    """Return shares with all of a job's time on the type of its slot, (m, n)."""
    share = np.zeros((problem.n_jobs, problem.n_types))
    for i, number in enumerate(problem.job.tolist()):
        j = held.get(number)
        if j is not None:
            share[i, j] = 1.0
    return share


def first_come(problem: ShareProblem) -> tuple[dict[int, int], list[int]]:
    """Give each job the fastest type that has room for its gang, until one finds no room.

    A job that can run on none of the types with room is skipped, and does not hold up the next.

    Returns
    -------
    placed
        Position of the type by position of the job, in order of arrival.
    waiting
        Positions of the jobs behind the last one considered. The one that found no room is in neither, as in the
        original, so it joins no pair.
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


class FifoPerf(SharePolicy):
    """``fifo_perf`` of Gavel: at each recomputation jobs take the fastest type with room, in order of arrival."""

    runs_only_its_own = True

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return shares of 1; see ``first_come``."""
        placed, _ = first_come(problem)
        share = np.zeros((problem.n_jobs, problem.n_types))
        share[list(placed), list(placed.values())] = 1.0
        return TimeShares(share, np.zeros((problem.n_pairs, problem.n_types)))


class Fifo(SharePolicy):
    """``fifo`` of Gavel: a job takes a random type with room and keeps it until it ends.

    The slot of a job that ended goes to the head of the queue, if the head's gang fits there and can run there. Then
    each job of the queue draws one of the types with room on which it can run; a job with room on other types only is
    skipped; one without any room ends the pass.

    Node types keep their order throughout a replay. See ``keep_slots`` for nodes that go away.

    Parameters
    ----------
    seed
        Seed of the draws.
    over_allocates
        Repeat a defect of the original (commit c4fa400): whatever type is drawn, the job goes to the last type, by
        name, that still counts as having room, and when that type is exactly full the drawn one stops counting. So
        more nodes than exist may be allocated, and none is taken back when nodes leave. Only for comparison with
        published figures.
    """

    runs_only_its_own = True
    shuffles_types = True

    def __init__(self, *, seed: int = 0, over_allocates: bool = False) -> None:
        self.seed = seed
        self.over_allocates = over_allocates
        self.forget()

    def forget(self) -> None:
        """Empty all slots and restart the draws."""
        self._held: dict[int, int] = {}
        self._random = random.Random(self.seed)

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares of 1."""
        fill = _over_allocate if self.over_allocates else _fill
        self._held = fill(problem, self._held, self._random)
        return TimeShares(shares_of_slots(self._held, problem), np.zeros((problem.n_pairs, problem.n_types)))


def _fill(problem: ShareProblem, held: dict[int, int], draws: random.Random) -> dict[int, int]:
    present = set(problem.job.tolist())
    vacated = [held[number] for number in sorted(held) if number not in present]
    slots, free = keep_slots(held, problem)
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


def _over_allocate(problem: ShareProblem, held: dict[int, int], draws: random.Random) -> dict[int, int]:
    position = {number: i for i, number in enumerate(problem.job.tolist())}
    free = problem.n_nodes.copy()
    queue = [i for number, i in position.items() if number not in held]
    slots = dict(held)

    def take(i: int, j: int) -> None:
        slots[int(problem.job[i])] = j
        free[j] -= problem.gang[i]

    # only slots of earlier arrivals count when one is passed on, as in the original
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


class FifoPacked(SharePolicy):
    """``fifo_packed`` of Gavel: ``fifo_perf``, then each waiting job joins a placed one if together they gain enough.

    A waiting job joins the placed job without a partner for which the sum of both rates together, each as a fraction
    of the rate alone on that type, is largest (the earlier one if equal) and above ``threshold``. The first that finds
    none ends the pass. The job that found no room in the first pass joins no other, see ``first_come``.

    Parameters
    ----------
    threshold
        Threshold of the sum; two jobs that take turns have 1.
    """

    uses_pairs = True
    runs_only_its_own = True

    def __init__(self, *, threshold: float = 1.5) -> None:
        self.threshold = threshold

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares of 1."""
        placed, waiting = first_come(problem)
        alone = np.array(list(placed), dtype=np.int64)
        type_of = np.array(list(placed.values()), dtype=np.int64)
        share = np.zeros((problem.n_jobs, problem.n_types))
        pair_share = np.zeros((problem.n_pairs, problem.n_types))
        share[alone, type_of] = 1.0
        pair_rows = PairRows(problem)
        for i in waiting:
            row = pair_rows.of(alone, i)
            known = row >= 0
            gain = np.zeros(len(alone))
            gain[known] = relative_rates(problem, row[known])[np.arange(known.sum()), type_of[known]].sum(axis=1)
            best = int(np.argmax(gain)) if len(gain) else -1
            if best < 0 or not gain[best] > self.threshold:
                break
            share[alone[best]] = 0.0
            pair_share[row[best], type_of[best]] = 1.0
            alone, type_of = np.delete(alone, best), np.delete(type_of, best)
        return TimeShares(share, pair_share)
