"""First come, first served, where jobs of the queue may join running ones."""

from __future__ import annotations

import numpy as np

from bfreplay.policies.gavel.shares.fifo import first_come
from bfreplay.policies.gavel.shares.pair_rows import PairRows, relative_rates
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares


class FifoPacked:
    """``fifo_packed`` of Gavel: ``fifo_perf``, then each waiting job joins a placed one if together they gain enough.

    A waiting job joins the job, placed and not yet in a pair, for which the sum of both rates together, each as a
    fraction of the rate alone on that type, is largest (the earlier one if equal) and above ``threshold``. The first
    that finds none ends the pass. The job that found no room in the first pass joins no one, see ``first_come``.

    Parameters
    ----------
    threshold
        Of the sum; 1 is what two jobs that take turns would get.
    """

    uses_pairs = True
    runs_only_its_own = True
    looks_at_work = False
    shuffles_types = False

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

    def forget(self) -> None:
        """Nothing is remembered."""
