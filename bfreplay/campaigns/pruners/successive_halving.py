"""Synchronous successive halving: a rung is decided when everybody is there."""

from __future__ import annotations

from bfreplay.campaigns.parts import Advice, Released, TrialState
from bfreplay.campaigns.pruners.rungs import Rungs, n_best


class SuccessiveHalving(Rungs):
    """A trial that reaches a rung gives up its nodes and waits; when no trial is under way, the best ``1 / eta`` go on.

    Trials still to be proposed are under way too, so all of a campaign's trials meet at the first rung. A trial that
    failed or was stopped is not waited for, and does not count.

    Source: K. Jamieson and A. Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization,
    AISTATS 2016 (arXiv:1502.07943), which halves; L. Li et al., Hyperband, JMLR 18 (2018), algorithm 1, which keeps
    ``floor(n / eta)`` of the n trials at a rung.

    Ties: of equal scores, the trial with the lower number goes first. At least one trial goes on from a rung.
    """

    kind = "successive-halving"

    def begin(self, higher_is_better: bool) -> None:
        """Forget all scores."""
        super().begin(higher_is_better)
        self._waiting: dict[int, float] = {}

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Wait for the others."""
        self._waiting[number] = score
        return Advice.WAIT

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """It is not compared any more."""
        self._waiting.pop(number, None)

    def released(self, n_under_way: int) -> Released:
        """Decide the rung if no trial is under way. All that wait then wait at the same rung."""
        if n_under_way or not self._waiting:
            return Released()
        order = sorted(self._waiting, key=lambda number: (self._sign * self._waiting[number], number))
        keep = n_best(len(order), self.eta)
        self._waiting.clear()
        return Released(promoted=tuple(order[:keep]), pruned=tuple(order[keep:]))
