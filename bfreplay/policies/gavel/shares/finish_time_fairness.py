"""Finish-time fairness: nobody ends much later than with a part of the cluster for itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags_array

from bfreplay.policies.gavel.shares.best_rate import best_throughput
from bfreplay.policies.gavel.shares.fairest_paces import Finish, fairest_paces
from bfreplay.policies.gavel.shares.feasible_set import feasible_set, throughput_matrix
from bfreplay.policies.gavel.shares.normalised import isolated_throughput
from bfreplay.policies.gavel.shares.pooled_types import pooled, spread
from bfreplay.policies.gavel.shares.share_problem import ShareProblem
from bfreplay.policies.gavel.shares.time_shares import TimeShares
from bfreplay.policies.gavel.shares.variants import Variant, knowledge, reference_rate


@dataclass(frozen=True, slots=True)
class _Before:
    """A job at the last recomputation: seconds that its work so far takes in isolation, and what is to come."""

    isolated_s: float
    steps_left: float
    isolated_rate: float

    def until(self, steps_left: float) -> float:
        """``D_i`` when so many steps are left."""
        if self.isolated_rate == 0:
            return self.isolated_s
        return self.isolated_s + (self.steps_left - steps_left) / self.isolated_rate


class FinishTimeFairness:
    """Minimise ``max_i rho_i``, ``rho_i = (t_i + N_i / th_i(X)) / (D_i + N_i / iso_i)`` (Gavel, OSDI'20, section 4.2).

    Above, when job i ends if shares stay as they are; below, when it would end with an m-th of the cluster for itself.
    ``D_i``, the time in isolation that its work so far takes, is kept from one recomputation to the next, of the jobs
    that are still there.

    Many shares have the least maximum, all the more where one job is late already. Of these, those are given for which
    the second largest rho is least as well, then the third, and so on. (Gavel gives those to which its interior-point
    solver comes.)

    A job that has no steps left, or can run nowhere, does not count in the maximum. The objective is NaN where no job
    counts.

    Parameters
    ----------
    variant
        ``agnostic``, ``perf`` or ``packed``.
    counts_weights
        Divide ``th_i`` by the weight of the job, but not ``iso_i``. By default only where packed, as in Gavel.
    reference_type
        Whose rates the agnostic variant takes for all types, see ``reference_rate``.
    """

    runs_only_its_own = False
    looks_at_work = True

    def __init__(
        self, variant: Variant = "perf", *, counts_weights: bool | None = None, reference_type: str | None = None
    ) -> None:
        known = knowledge(variant)
        self.uses_pairs = known.uses_pairs
        self.shuffles_types = known.shuffles_types
        self._counts_weights = self.uses_pairs if counts_weights is None else counts_weights
        self._reference_type = reference_type
        self._before: dict[int, _Before] = {}

    def shares(self, problem: ShareProblem) -> TimeShares:
        """Shares with the least maximum of rho, which is the objective."""
        if self.shuffles_types:
            rate = reference_rate(problem, self._reference_type)[:, 0]
            return spread(self._shares(pooled(problem, rate)), problem)
        return self._shares(problem)

    def forget(self) -> None:
        """Work in isolation starts at 0 again."""
        self._before = {}

    def isolated_s(self) -> dict[int, float]:
        """``D_i`` at the last recomputation, by number of job."""
        return {job: before.isolated_s for job, before in self._before.items()}

    def _shares(self, problem: ShareProblem) -> TimeShares:
        isolated = isolated_throughput(problem)
        so_far_s = self._remember(problem, isolated)
        counts = (problem.steps_left > 0) & (isolated > 0)
        to_end_s = np.divide(problem.steps_left, isolated, out=np.zeros_like(isolated), where=counts)
        weight = problem.weight if self._counts_weights else np.ones(problem.n_jobs)
        best = np.where(counts, best_throughput(problem, with_pairs=self.uses_pairs), 1.0)
        feasible = feasible_set(problem, with_pairs=self.uses_pairs)
        throughput = throughput_matrix(problem, with_pairs=self.uses_pairs)
        finish = Finish(
            age_s=problem.age_s[counts],
            left_s=(problem.steps_left * weight / best)[counts],
            isolated_s=(so_far_s + to_end_s)[counts],
        )
        speed = (diags_array(1 / best[counts]) @ throughput[counts]).tocsr()
        x = fairest_paces(feasible, speed, finish)
        return feasible.time_shares(x, float(finish.rho(speed @ x).max()) if counts.any() else float("nan"))

    def _remember(self, problem: ShareProblem, isolated: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep what the next recomputation needs, and return ``D_i`` (m,)."""
        new = {}
        for job, left, rate in zip(problem.job.tolist(), problem.steps_left.tolist(), isolated.tolist(), strict=True):
            before = self._before.get(job)
            new[job] = _Before(before.until(left) if before else 0.0, left, rate)
        self._before = new
        return np.array([new[job].isolated_s for job in problem.job.tolist()])
