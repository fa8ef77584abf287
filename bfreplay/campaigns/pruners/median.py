"""The median rule: a trial that is worse than half of the others at the same epoch ends."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from bfreplay import checks
from bfreplay.campaigns.parts import Advice, Released, TrialState
from bfreplay.documents import picked

BEST, LAST = "best", "last"


class Median:
    """Prune a trial whose score is worse than the median of the others' at the same epoch.

    Source: D. Golovin et al., Google Vizier: A Service for Black-Box Optimization, KDD 2017, section 3.2.2, which
    compares a trial's best value so far with the median of the running averages of finished trials. Here, as in
    Optuna's ``MedianPruner``, it is compared with what the others had reported after the same epoch; all trials that
    have reported there count, finished or not.

    Ties: a trial at the median goes on; it has to be strictly worse to end. The median of an even number of scores is
    the mean of the middle two.

    Parameters
    ----------
    warmup_trials
        Other trials that must have reported at an epoch before one is pruned there, >= 1.
    warmup_epochs
        No trial is pruned before it has done so many epochs, >= 0.
    every_epochs
        Trials report after each so many epochs, >= 1.
    compare
        ``"best"``: every trial counts with its best score up to that epoch; ``"last"``: with the one at that epoch.

    Raises
    ------
    InputError
        A parameter that is none of these.
    """

    def __init__(
        self, warmup_trials: int = 5, warmup_epochs: int = 0, every_epochs: int = 1, compare: str = BEST
    ) -> None:
        self.warmup_trials = checks.whole("warmup_trials", warmup_trials, 1)
        self.warmup_epochs = checks.whole("warmup_epochs", warmup_epochs, 0)
        self.every_epochs = checks.whole("every_epochs", every_epochs, 1)
        self.compare = checks.one_of("compare", compare, (BEST, LAST))
        self.begin(higher_is_better=True)

    def begin(self, higher_is_better: bool) -> None:
        """Forget all scores."""
        self._sign = -1.0 if higher_is_better else 1.0
        self._best: dict[int, float] = {}  # of each trial
        self._costs: dict[int, list[float]] = {}  # at each epoch, in ascending order: the smaller, the better

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Each ``every_epochs``, from the first on that counts."""
        return range(self.every_epochs, epochs, self.every_epochs)

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Compare it with the trials that have reported at this epoch before."""
        cost = self._sign * score
        if self.compare == BEST:
            cost = self._best[number] = min(cost, self._best.get(number, cost))
        others = self._costs.setdefault(epoch, [])
        is_worse = len(others) >= self.warmup_trials and epoch >= self.warmup_epochs and cost > _median(others)
        insort(others, cost)
        return Advice.PRUNE if is_worse else Advice.GO_ON

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Its scores stay: later trials are compared with them."""

    def released(self, n_under_way: int) -> Released:
        """No trial ever waits."""
        return Released()

    def describe(self) -> dict[str, object]:
        """Its parameters."""
        return {"kind": "median", **picked(self, "warmup_trials", "warmup_epochs", "every_epochs", "compare")}


def _median(ascending: Sequence[float]) -> float:
    middle = len(ascending) // 2
    return ascending[middle] if len(ascending) % 2 else (ascending[middle - 1] + ascending[middle]) / 2
