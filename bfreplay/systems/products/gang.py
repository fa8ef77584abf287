"""Gang schedulers of Kubernetes, Volcano and KAI: the minimum of a job at once, then one node after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import groupby

from bfreplay.options import Number, OneOf, option
from bfreplay.policies.state import NEVER_US, PolicyState
from bfreplay.systems.products.rule import MOST_S, US_PER_S, RuleJobs, RuleOptions, RulePolicy, Shares
from bfreplay.wording import count


@dataclass(frozen=True)
class GangOptions(RuleOptions):
    """Options of ``products.gang``.

    Parameters
    ----------
    order
        Who gets the next node above its minimum: ``volcano``: the job with the fewest nodes; ``kai``: one for each job
        that is exactly at its minimum, then the earliest job up to its maximum, then the next.
    preempt
        Whose nodes may be taken: ``never`` anyone's; ``lower-priority``: those of jobs of lower weight; ``any``: of
        equal weight too, for a job below its minimum. ``None``: ``never`` for Volcano, whose default actions do not
        include it; ``lower-priority`` for KAI, which besides reclaims between queues, of which there is one here.
    stale_s
        Seconds for which a job that fell below its minimum holds its nodes. ``None``: 60 for KAI, for ever for Volcano.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    order: str = option("volcano", OneOf(("volcano", "kai")))
    preempt: str | None = option(None, OneOf(("never", "lower-priority", "any")))
    stale_s: float | None = option(None, Number(least=0, most=MOST_S))


class Gang(RulePolicy):
    """All missing nodes of a job below its minimum or none; above it one at a time, until nothing fits.

    Next is the highest weight, then jobs below their minimum, then the order of the product, then who came first.
    Sources: Volcano's ``elastic-scheduler`` design with its plugins priority, gang and drf; KAI's ``elastic`` plugin
    and its actions preempt and stalegangeviction.
    """

    name = "products.gang"
    options_type = GangOptions
    options: GangOptions
    product = "Volcano (2026, ed72c7c8) and KAI Scheduler 0.17"
    readings = (
        "priority is the weight of a job, and all jobs are in one queue; a node that is given away starts at once",
        "a job with a list of counts gets all nodes up to its next count at a time, or none",
        "below its minimum a job makes nothing, and holds its nodes for stale_s or until the missing ones come",
        "Volcano takes nodes above a minimum, from the largest job first, for a job below its own; KAI takes whole jobs"
        " too, and lets a job above its minimum grow at the expense of lower weights",
        "preempt=any: a whole job gives way to one of its weight only if it came later, or both would take turns",
    )

    def forget(self) -> None:
        """Forget since when jobs have been below their minimum."""
        self._below_us: dict[int, int] = {}
        self._clauses: dict[int, str] = {}

    def __init__(self, options: GangOptions | None = None) -> None:
        super().__init__(options)
        self._is_kai = self.options.order == "kai"
        self._preempts = self.options.preempt or ("lower-priority" if self._is_kai else "never")
        default_s = 60.0 if self._is_kai else math.inf
        stale_s = default_s if self.options.stale_s is None else self.options.stale_s
        self._stale_us = int(min(NEVER_US, stale_s * US_PER_S))

    def shares(self, jobs: RuleJobs) -> Shares:
        """Return the nodes of each job after as many scheduling cycles as change anything."""
        counts = list(jobs.count)
        self._clauses = {}
        self._run_cycles(jobs, counts)
        below = [row for row in jobs if 0 < counts[row] < jobs.least[row]]
        end_us = {row: self._below_us.get(jobs.number[row], jobs.now_us) + self._stale_us for row in below}
        stale = [row for row in below if end_us[row] <= jobs.now_us]
        for row in stale:
            few = f"{count(counts[row], 'node')}, too few for its minimum of {jobs.least[row]}"
            self._clauses[row] = f"it gave up {few}"
            counts[row] = 0
        if stale:
            self._run_cycles(jobs, counts)
            below = [row for row in below if 0 < counts[row] < jobs.least[row]]
        self._below_us = {jobs.number[row]: end_us[row] - self._stale_us for row in below}
        for row in below:
            left = f"for {(end_us[row] - jobs.now_us) / US_PER_S:g} s more"
            left = left if end_us[row] < NEVER_US else "until the others come"
            few = f"{count(counts[row], 'node')}, below its minimum of {jobs.least[row]}"
            self._clauses[row] = f"it holds {few}, {left}"
        return Shares(counts, min([NEVER_US, *(end_us[row] for row in below)]))

    def _run_cycles(self, jobs: RuleJobs, counts: list[int]) -> None:
        """Allocate free nodes, then preempt, until neither changes anything."""
        self._allocate(jobs, counts)
        while self._preempts != "never" and self._preempt(jobs, counts):
            self._allocate(jobs, counts)

    def _order(self, jobs: RuleJobs, counts: list[int], row: int) -> tuple[float, int, int, int]:
        """Return the place of a job in the order of the product: weight, stage, size, number."""
        stage = int(counts[row] >= jobs.least[row])
        if self._is_kai:
            return -jobs.weight[row], stage + (counts[row] > jobs.least[row]), 0, jobs.number[row]
        return -jobs.weight[row], stage, counts[row], jobs.number[row]

    def _allocate(self, jobs: RuleJobs, counts: list[int]) -> None:
        """Give the free nodes away, and write why jobs below their minimum get none."""
        n_free = jobs.n_free(counts)
        in_order = sorted(jobs, key=lambda row: self._order(jobs, counts, row))
        for _, group in groupby(in_order, key=lambda row: jobs.weight[row]):
            growing = []
            for row in group:
                missing = max(0, jobs.least[row] - counts[row])
                if missing > n_free:
                    clause = f"it needs {count(missing, 'node')} to start, with {n_free} free at its turn"
                    self._clauses.setdefault(row, clause)
                    continue
                if missing:
                    self._clauses.pop(row, None)
                counts[row] += missing
                n_free -= missing
                if jobs.fit_from(row, counts[row] + 1):
                    growing.append(row)
            heap = [(self._order(jobs, counts, row), row) for row in growing]
            heapify(heap)
            while heap and n_free:
                (_, stage, _, _), row = heappop(heap)
                target = jobs.fit(row, counts[row] + n_free) if stage == 2 else jobs.fit_from(row, counts[row] + 1)
                if counts[row] < target <= counts[row] + n_free:
                    n_free -= target - counts[row]
                    counts[row] = target
                    heappush(heap, (self._order(jobs, counts, row), row))

    def _preempt(self, jobs: RuleJobs, counts: list[int]) -> bool:
        """Take nodes away for the first job that can get what it misses so; return whether there is one."""
        n_free = jobs.n_free(counts)
        holders = [row for row in jobs if counts[row]]
        for row in sorted(jobs, key=lambda row: self._order(jobs, counts, row)):
            target = jobs.fit_from(row, counts[row] + 1)
            n_at_hand = n_free + sum(self._to_give(jobs, counts, row, victim) for victim in holders)
            if n_at_hand == n_free or not 0 < target - counts[row] <= n_at_hand:
                continue
            if counts[row] > jobs.least[row]:
                while target - counts[row] < n_at_hand and jobs.fit_from(row, target + 1) == target + 1:
                    target += 1
            while (missing := target - counts[row] - jobs.n_free(counts)) > 0:
                victims = [victim for victim in holders if self._to_give(jobs, counts, row, victim)]
                victim = max(victims, key=lambda victim: self._order(jobs, counts, victim))
                least, kept = jobs.least[victim], jobs.fit(victim, counts[victim] - (missing if self._is_kai else 1))
                counts[victim] = max(kept, least) if counts[victim] > least else 0
                self._clauses[victim] = f"it gave way to a job of weight {jobs.weight[row]:g}"
            counts[row] = target
            self._clauses.pop(row, None)
            return True
        return False

    def _to_give(self, jobs: RuleJobs, counts: list[int], row: int, victim: int) -> int:
        """Return how many nodes ``victim`` has to give up for the job in ``row``, at most."""
        is_below = counts[row] < jobs.least[row]
        is_lower = jobs.weight[victim] < jobs.weight[row] and (is_below or self._is_kai)
        is_equal = jobs.weight[victim] == jobs.weight[row] and is_below and self._preempts == "any" and victim != row
        if self._is_kai and (is_lower or (is_equal and jobs.number[victim] > jobs.number[row])):
            return counts[victim]
        return max(0, counts[victim] - jobs.least[victim]) if is_lower or is_equal else 0

    def why(self, state: PolicyState, job_row: int) -> str:
        """Return why a job waits or holds too few nodes, or who gets those above the minimum."""
        turn = "one for each job, then the earliest first" if self._is_kai else "the smallest job first"
        return self._clauses.get(job_row, f"nodes above its minimum come one at a time, {turn}, up to its maximum")
