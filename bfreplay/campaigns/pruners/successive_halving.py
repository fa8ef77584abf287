"""Synchronous successive halving: a rung is decided when everybody is there."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.campaigns.parts import Advice, Released, TrialState
from bfreplay.campaigns.pruners.rungs import checked_rungs, n_best, rung_epochs


class SuccessiveHalving:
    """A trial that reaches a rung gives up its nodes and waits; when no trial is under way, the best ``1 / eta`` go on.

    Trials still to be proposed are under way too, so all of a campaign's trials meet at the first rung. A trial that
    failed or was stopped is not waited for, and does not count.

    Source: K. Jamieson and A. Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization,
    AISTATS 2016 (arXiv:1502.07943), which halves; L. Li et al., Hyperband, JMLR 18 (2018), algorithm 1, which keeps
    ``floor(n / eta)`` of the n trials at a rung.

    Ties: of equal scores, the trial with the lower number goes first. At least one trial goes on from a rung.

    Parameters
    ----------
    eta
        Reduction factor, a whole number >= 2.
    first_epochs
        Epochs of the first rung, >= 1; the others are at ``first_epochs * eta**k``, below the end of a trial.

    Raises
    ------
    InputError
        A parameter that is no such number.
    """

    def __init__(self, eta: int = 3, first_epochs: int = 1) -> None:
        self.eta, self.first_epochs = checked_rungs(eta, first_epochs)
        self.begin(higher_is_better=True)

    def begin(self, higher_is_better: bool) -> None:
        """Forget all scores."""
        self._sign = -1.0 if higher_is_better else 1.0
        self._waiting: dict[int, float] = {}

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Epochs of the rungs; InputError if there is none."""
        return rung_epochs(self.eta, self.first_epochs, epochs)

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

    def describe(self) -> dict[str, object]:
        """Its parameters."""
        return {"kind": "successive-halving", "eta": self.eta, "first_epochs": self.first_epochs}
