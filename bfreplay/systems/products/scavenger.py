"""Slurm's preemptible partition: jobs of a fixed size, requeued whole when they lose a node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bfreplay import checks
from bfreplay.options import Number, Whole, option
from bfreplay.policies.state import NEVER_US, PolicyState
from bfreplay.systems.products.rule import MOST_S, US_PER_S, RuleJobs, RuleOptions, RulePolicy, Shares
from bfreplay.wording import count


@dataclass(frozen=True)
class ScavengerOptions(RuleOptions):
    """Options of ``products.scavenger``.

    Parameters
    ----------
    size
        Nodes of every job, within its bounds. ``None``: its ``requested_nodes``, or else its ``max_nodes``.
    backfill
        Any job that fits starts, also before one that waits; false: none starts before the head of the queue.
    requeue_s
        Seconds that a preempted job waits before it may start again. About 120 on real machines; not in the manual.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    size: int | None = option(None, Whole(1))
    backfill: bool = option(True, checks.truth)
    requeue_s: float = option(0.0, Number(least=0, most=MOST_S))


class Scavenger(RulePolicy):
    """A job runs on its size or not at all; one that loses a node gives up the others, and queues at its old place.

    Slurm manual (slurm.conf, ``PreemptMode=REQUEUE``): every start is one of the whole size, by priority, ties by
    submission. The size is clamped to the bounds of the job.
    """

    name = "products.scavenger"
    options_type = ScavengerOptions
    options: ScavengerOptions
    product = "Slurm 22.05.8, preemptible partition with PreemptMode=REQUEUE"
    readings = (
        "a job's size is its requested nodes, else its maximum, clamped to its bounds",
        "whoever holds a reclaimed node is preempted; idle nodes of unknown duration never delay a backfill",
        "a requeued job may start at once (requeue_s)",
    )

    def forget(self) -> None:
        """Forget who was preempted when."""
        self._ready_us: dict[int, int] = {}
        self._waits: dict[int, str] = {}

    def jobs_of(self, state: PolicyState) -> RuleJobs:
        """Return the jobs with one size each."""
        jobs = super().jobs_of(state)
        requested = state.max_nodes if state.requested_nodes is None else state.requested_nodes
        sizes = requested if self.options.size is None else np.full(state.n_jobs, self.options.size)
        jobs.most = [
            jobs.fit(row, max(least, min(size, jobs.most[row])))
            for row, (least, size) in enumerate(zip(jobs.least, sizes.tolist(), strict=True))
        ]
        return jobs

    def shares(self, jobs: RuleJobs) -> Shares:
        """Return the size of each job that runs, and 0 of the others."""
        counts, until_us = [0] * jobs.n_jobs, NEVER_US
        self._waits = {}
        for row in jobs:
            if jobs.count[row] and not jobs.hit[row]:
                counts[row] = jobs.count[row]
            elif jobs.hit[row]:
                self._ready_us[jobs.number[row]] = jobs.now_us + round(self.options.requeue_s * US_PER_S)
        n_free, head_waits = jobs.n_free(counts), False
        for row in jobs.by_priority():
            ready_us = self._ready_us.get(jobs.number[row], jobs.now_us)
            if counts[row]:
                continue
            if ready_us > jobs.now_us:
                until_us = min(until_us, ready_us)
                self._waits[row] = f"it was preempted, and may start again in {(ready_us - jobs.now_us) / US_PER_S:g} s"
            elif head_waits:
                self._waits[row] = "the queue waits with a job before it (no backfill)"
            elif jobs.most[row] <= n_free:
                counts[row] = jobs.most[row]
                n_free -= jobs.most[row]
            else:
                self._waits[row] = f"its size is {count(jobs.most[row], 'node')}, with {n_free} free at its turn"
                head_waits = not self.options.backfill
        return Shares(counts, until_us)

    def why(self, state: PolicyState, job_row: int) -> str:
        """Return why a job waits, or its size."""
        size = self.jobs_of(state).most[job_row]
        return self._waits.get(job_row, f"it runs on its fixed size, {count(size, 'node')}, or not at all")
