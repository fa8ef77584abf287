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


def keep_slots(slot_of: Mapping[int, int], problem: ShareProblem) -> tuple[dict[int, int], NDArray[np.int64]]:
    """Return the slots that remain of those held before, and the nodes that no slot takes.

    Where a type has fewer nodes than its slots take (idle nodes join and leave), the latest arrivals lose theirs, one
    by one until the rest fits. On a cluster of constant size no slot is lost.

    Parameters
    ----------
    slot_of
        Position of the node type in ``problem.type_names``, by the job's number. Jobs may have left since.

    Returns
    -------
    remaining
        As ``slot_of``, in order of arrival.
    n_free : (n,) int64
        Nodes of each type that are not in ``remaining``.
    """
    n_free = problem.n_nodes.astype(np.int64)
    too_small = np.zeros(problem.n_types, dtype=np.bool_)
    remaining: dict[int, int] = {}
    for number, gang in zip(problem.job.tolist(), problem.gang.tolist(), strict=True):
        node_type = slot_of.get(number)
        if node_type is None:
            continue
        too_small[node_type] |= gang > n_free[node_type]
        if not too_small[node_type]:
            remaining[number] = node_type
            n_free[node_type] -= gang
    return remaining, n_free


def shares_of_slots(slot_of: Mapping[int, int], problem: ShareProblem) -> NDArray[np.float64]:
    """Return shares with all of a job's time on the type of its slot, (m, n)."""
    share = np.zeros((problem.n_jobs, problem.n_types))
    for job_row, number in enumerate(problem.job.tolist()):
        node_type = slot_of.get(number)
        if node_type is not None:
            share[job_row, node_type] = 1.0
    return share


def first_come(problem: ShareProblem) -> tuple[dict[int, int], list[int]]:
    """Give each job the fastest type that has room for its gang, until one finds no room.

    A job that can run on none of the types with room is skipped, and does not hold up the next.

    Returns
    -------
    type_at
        Position of the type by position of the job, in order of arrival.
    waiting
        Positions of the jobs behind the last one considered. The one that found no room is in neither, as in the
        original, so it joins no pair.
    """
    n_free = problem.n_nodes.copy()
    type_at: dict[int, int] = {}
    for job_row in range(problem.n_jobs):
        if not n_free.any():
            return type_at, list(range(job_row, problem.n_jobs))
        has_room = n_free >= problem.gang[job_row]
        if not has_room.any():
            return type_at, list(range(job_row + 1, problem.n_jobs))
        node_type = int(np.argmax(np.where(has_room, problem.rate[job_row], -1.0)))
        if problem.rate[job_row, node_type] > 0:
            type_at[job_row] = node_type
            n_free[node_type] -= problem.gang[job_row]
    return type_at, []


class FifoPerf(SharePolicy):
    """``fifo_perf`` of Gavel: at each recomputation jobs take the fastest type with room, in order of arrival."""

    runs_only_its_own = True

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Return shares of 1; see ``first_come``."""
        type_at, _ = first_come(problem)
        share = np.zeros((problem.n_jobs, problem.n_types))
        share[list(type_at), list(type_at.values())] = 1.0
        return TimeShares(share)


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
        fill_slots = _over_allocate if self.over_allocates else _fill
        self._held = fill_slots(problem, self._held, self._random)
        return TimeShares(shares_of_slots(self._held, problem))


def _fill(problem: ShareProblem, slot_of: dict[int, int], draws: random.Random) -> dict[int, int]:
    present = set(problem.job.tolist())
    vacant = [slot_of[number] for number in sorted(slot_of) if number not in present]
    slots, n_free = keep_slots(slot_of, problem)
    queue = [job_row for job_row, number in enumerate(problem.job.tolist()) if number not in slots]

    def take(job_row: int, node_type: int) -> None:
        slots[int(problem.job[job_row])] = node_type
        n_free[node_type] -= problem.gang[job_row]

    for node_type in vacant:
        if queue and _fits(problem, n_free, queue[0])[node_type]:
            take(queue.pop(0), node_type)
    for job_row in queue:
        if not (n_free >= problem.gang[job_row]).any():
            break
        types = np.flatnonzero(_fits(problem, n_free, job_row))
        if len(types):
            take(job_row, int(types[draws.randrange(len(types))]))
    return slots


def _fits(problem: ShareProblem, n_free: NDArray[np.int64], job_row: int) -> NDArray[np.bool_]:
    fits_on: NDArray[np.bool_] = (n_free >= problem.gang[job_row]) & (problem.rate[job_row] > 0)
    return fits_on


def _over_allocate(problem: ShareProblem, slot_of: dict[int, int], draws: random.Random) -> dict[int, int]:
    position = {number: job_row for job_row, number in enumerate(problem.job.tolist())}
    n_free = problem.n_nodes.copy()
    queue = [job_row for number, job_row in position.items() if number not in slot_of]
    slots = dict(slot_of)

    def take(job_row: int, node_type: int) -> None:
        slots[int(problem.job[job_row])] = node_type
        n_free[node_type] -= problem.gang[job_row]

    # only slots of earlier arrivals count when one is passed on, as in the original
    for number in sorted(slot_of):
        node_type = slot_of[number]
        if number in position:
            n_free[node_type] -= problem.gang[position[number]]
            continue
        del slots[number]
        if queue and _fits(problem, n_free, queue[0])[node_type]:
            take(queue.pop(0), node_type)
    open_types = np.flatnonzero(n_free > 0).tolist()
    for job_row in queue:
        with_room = [index for index, node_type in enumerate(open_types) if n_free[node_type] >= problem.gang[job_row]]
        if not with_room:
            break
        random_index = with_room[draws.randrange(len(with_room))]
        last_type = open_types[-1]
        if problem.rate[job_row, last_type] > 0:
            take(job_row, last_type)
            if n_free[last_type] == 0:
                del open_types[random_index]
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
        type_at, waiting = first_come(problem)
        alone = np.array(list(type_at), dtype=np.int64)
        type_of = np.array(list(type_at.values()), dtype=np.int64)
        share = np.zeros((problem.n_jobs, problem.n_types))
        pair_share = np.zeros((problem.n_pairs, problem.n_types))
        share[alone, type_of] = 1.0
        pair_rows = PairRows(problem)
        for waiting_job in waiting:
            job_row = pair_rows.of(alone, waiting_job)
            has_row = job_row >= 0
            total = np.zeros(len(alone))
            total[has_row] = relative_rates(problem, job_row[has_row])[np.arange(has_row.sum()), type_of[has_row]].sum(
                axis=1
            )
            best_index = int(np.argmax(total)) if len(total) else -1
            if best_index < 0 or not total[best_index] > self.threshold:
                break
            share[alone[best_index]] = 0.0
            pair_share[job_row[best_index], type_of[best_index]] = 1.0
            alone, type_of = np.delete(alone, best_index), np.delete(type_of, best_index)
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
        self._held, n_free = keep_slots(self._held, problem)
        waiting = self._candidates(problem, n_free)
        if len(waiting):
            first_jobs, type_of = first_on_each_node(
                _processing_time(problem, waiting, n_free), problem.age_s[waiting], n_free, self.counts_zero_rates
            )
            for job_row, node_type in zip(waiting[first_jobs].tolist(), type_of.tolist(), strict=True):
                self._held[int(problem.job[job_row])] = node_type
        return TimeShares(shares_of_slots(self._held, problem))

    def _candidates(self, problem: ShareProblem, n_free: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of jobs that could run on a free node, oldest first."""
        holds = np.isin(problem.job, np.array(list(self._held), dtype=np.int64))
        could_run = (problem.rate[:, n_free > 0] > 0).any(axis=1)
        waiting = np.flatnonzero(~holds & could_run)
        oldest = waiting[np.argsort(-problem.age_s[waiting], kind="stable")]
        return oldest[: max(int(self.alpha * len(oldest)), int(n_free.sum()))]


def first_on_each_node(
    processing_time: NDArray[np.float64],
    constant: NDArray[np.float64],
    n_free: NDArray[np.int64],
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
    n_free : (n,) int64
        Nodes of each type.
    every_position
        Consider all m positions of each node: gives the original's choice among answers that rounding makes equal.

    Returns
    -------
    job, type_of : (r,) int64
        In the order of nodes, type by type, without nodes that stay empty.
    """
    n_jobs = len(processing_time)
    node_type = np.repeat(np.arange(len(n_free)), n_free)
    last_position = -(-n_jobs // np.maximum(n_free, 1))[node_type]
    if every_position:
        last_position = np.full_like(last_position, n_jobs)
    from_end, node = np.nonzero(np.arange(last_position.max())[:, None] < last_position)
    position = from_end + 1
    cost = position * processing_time[:, node_type[node]] + constant[:, None]
    job, column = linear_sum_assignment(cost)
    # largest position of each node: sorted by node, then by position from the first on
    order = np.lexsort((-position[column], node[column]))
    used_nodes, first_jobs = np.unique(node[column][order], return_index=True)
    return job[order][first_jobs].astype(np.int64), node_type[used_nodes].astype(np.int64)


def _processing_time(problem: ShareProblem, waiting: NDArray[np.int64], free: NDArray[np.int64]) -> NDArray[np.float64]:
    rate = problem.rate[waiting]
    seconds = np.full(rate.shape, np.inf)
    np.divide(problem.steps_left[waiting][:, None], rate, out=seconds, where=(rate > 0) & (free > 0))
    return seconds
