"""Policies whose jobs keep slots on nodes of one type: first come, first served, and AlloX."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from bfreplay import checks
from bfreplay.systems.gavel.job_checks import require_single_nodes
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


_NEARLY_NO_RATE = 1e-10
"""Steps/s that the original assumes where a job cannot run."""


class AlloX(SharePolicy):
    """``allox`` of Gavel: jobs in the order with the least mean completion time; a running job runs to its end.

    A job that waits may become the k-th from the end on a node that is free: then its processing time there counts
    k times in the sum of completion times. The assignment of all such jobs to positions on nodes with the smallest
    sum gives the first job on each node; these get all their time there, and keep the node until they leave. The others
    are reassigned next time. See ``keep_slots`` for nodes that go away.

    A job is never put where its rate is 0, unless ``counts_zero_rates``.

    Parameters
    ----------
    alpha
        Fraction of the waiting jobs, the oldest first, that is considered, but at least as many as free nodes. Small
        values bound the wait of old jobs, and the run time, which grows about with the cube of the jobs considered.
    counts_zero_rates
        Do as the original does: a rate of 0 counts as 1e-10 steps/s, so that a job may be put, for good, where it
        cannot run.

    Raises
    ------
    InputError
        If ``alpha`` is not above 0 and at most 1.
    """

    looks_at_work = True
    takes_single_nodes = True

    def __init__(self, *, alpha: float = 1.0, counts_zero_rates: bool = False) -> None:
        self.alpha = checks.number("alpha", alpha, above=0, most=1)
        self.counts_zero_rates = counts_zero_rates
        self.forget()

    def forget(self) -> None:
        """Empty all nodes."""
        self._held: dict[int, int] = {}

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return shares of 1.

        Raises
        ------
        InputError
            If a job needs more than one node at once.
        """
        require_single_nodes(problem.job.tolist(), problem.gang)
        if self.counts_zero_rates:
            problem = replace(problem, rate=np.maximum(problem.rate, _NEARLY_NO_RATE))
        self._held, free = keep_slots(self._held, problem)
        waiting = self._candidates(problem, free)
        if len(waiting):
            first, type_of = first_on_each_node(
                _processing_time(problem, waiting, free), problem.age_s[waiting], free, self.counts_zero_rates
            )
            for i, j in zip(waiting[first].tolist(), type_of.tolist(), strict=True):
                self._held[int(problem.job[i])] = j
        return TimeShares(shares_of_slots(self._held, problem), np.zeros((problem.n_pairs, problem.n_types)))

    def _candidates(self, problem: ShareProblem, free: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of jobs that could run on a free node, oldest first."""
        holds = np.isin(problem.job, np.array(list(self._held), dtype=np.int64))
        could_run = (problem.rate[:, free > 0] > 0).any(axis=1)
        waiting = np.flatnonzero(~holds & could_run)
        oldest = waiting[np.argsort(-problem.age_s[waiting], kind="stable")]
        return oldest[: max(int(self.alpha * len(oldest)), int(free.sum()))]


def first_on_each_node(
    processing_time: NDArray[np.float64],
    constant: NDArray[np.float64],
    free: NDArray[np.int64],
    every_position: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first job on each node in the assignment with the smallest sum of completion times.

    Position k from the end exists on a type of c nodes only while k <= ceil(m / c): in an optimal assignment no node
    has two jobs more than another of its type, or the first of them would better be the last of the other. So there
    are fewer than m + c columns for a type, not m c, and the optimum is the same.

    Parameters
    ----------
    processing_time : (m, n) float64
        Seconds of each job on each type, inf where it cannot run; each job can run on some type with a free node.
    constant : (m,) float64
        Added to all costs of a job. It only decides between equal optima (nodes of a type are alike): with the age of
        jobs the choice is that of the original.
    free : (n,) int64
        Nodes of each type.
    every_position
        Consider all m positions of each node: gives the original's choice among answers that rounding makes equal.

    Returns
    -------
    job, type_of : (r,) int64
        In the order of nodes, type by type, without nodes that stay empty.
    """
    n_jobs = len(processing_time)
    node_type = np.repeat(np.arange(len(free)), free)
    last_position = -(-n_jobs // np.maximum(free, 1))[node_type]
    if every_position:
        last_position = np.full_like(last_position, n_jobs)
    position = np.concatenate([np.full((last_position >= k).sum(), k) for k in range(1, last_position.max() + 1)])
    node = np.concatenate([np.flatnonzero(last_position >= k) for k in range(1, last_position.max() + 1)])
    cost = position * processing_time[:, node_type[node]] + constant[:, None]
    job, column = linear_sum_assignment(cost)
    # largest position of each node: sorted by node, then by position from the first on
    order = np.lexsort((-position[column], node[column]))
    taken, first = np.unique(node[column][order], return_index=True)
    return job[order][first].astype(np.int64), node_type[taken].astype(np.int64)


def _processing_time(problem: ShareProblem, waiting: NDArray[np.int64], free: NDArray[np.int64]) -> NDArray[np.float64]:
    rate = problem.rate[waiting]
    seconds = np.full(rate.shape, np.inf)
    np.divide(problem.steps_left[waiting][:, None], rate, out=seconds, where=(rate > 0) & (free > 0))
    return seconds
