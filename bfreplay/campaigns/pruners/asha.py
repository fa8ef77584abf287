"""Asynchronous successive halving (ASHA) in its stopping form."""

from __future__ import annotations

from bisect import bisect_left, insort

from bfreplay.campaigns.parts import Advice, Released, TrialState
from bfreplay.campaigns.pruners.rungs import Rungs, n_best


class Asha(Rungs):
    """A trial that reaches a rung goes on if it is among the best ``1 / eta`` of those that have reached it so far.

    Nobody waits: early trials are compared with few others, so more of them go on than in the synchronous form. Of
    the first ``eta - 1`` trials at a rung, one goes on if it is the best so far.

    Source: L. Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020 (arXiv:1810.05934), whose
    algorithm pauses and promotes trials. Here, as in the ASHA of Ray Tune and of Optuna, a trial is stopped at a rung
    instead of paused, and it is decided when it reports, once.

    Ties: a trial goes on if fewer than ``max(1, n // eta)`` of the n scores at the rung, its own among them, are
    strictly better; of equal scores all go on.
    """

    kind = "asha"

    def begin(self, higher_is_better: bool) -> None:
        """Forget all scores."""
        super().begin(higher_is_better)
        self._costs: dict[int, list[float]] = {}  # at each rung, in ascending order: the smaller, the better

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Compare it with all scores at this rung so far, its own included."""
        costs = self._costs.setdefault(epoch, [])
        cost = self._sign * score
        insort(costs, cost)
        n_better = bisect_left(costs, cost)
        return Advice.GO_ON if n_better < n_best(len(costs), self.eta) else Advice.PRUNE

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Nothing changes: its scores stay at the rungs that it has reached."""

    def released(self, n_under_way: int) -> Released:
        """No trial ever waits."""
        return Released()
