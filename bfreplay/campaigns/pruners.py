"""Pruners. A new one is one class, and one line here (or an entry point elsewhere)."""

from __future__ import annotations

import inspect
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from statistics import median
from typing import ClassVar

from bfreplay import checks
from bfreplay.campaigns.parts import Advice, Pruner, Released, TrialState
from bfreplay.documents import Cell, pick
from bfreplay.errors import InputError
from bfreplay.registry import Registry, make_from_code
from bfreplay.wording import count


class NoPruner:
    """Pruner that lets every trial continue; base of the others."""

    def begin(self, higher_is_better: bool) -> None:
        """Do nothing."""

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Return no epochs."""
        return ()

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Return ``CONTINUE``."""
        return Advice.CONTINUE

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Do nothing."""

    def released(self, n_under_way: int) -> Released:
        """Return nothing: no trial waits."""
        return Released()

    def describe(self) -> dict[str, object]:
        """Return its kind."""
        return {"kind": "none"}


class Rungs(NoPruner):
    """Parameters of a pruner that compares trials at rungs.

    Parameters
    ----------
    eta
        Reduction factor, a whole number >= 2.
    first_epochs
        Epochs of the first rung, >= 1; the others are at ``first_epochs * eta**k``, below the end of a trial.

    Raises
    ------
    InputError
        A parameter is not such a number.
    """

    kind: ClassVar[str]

    def __init__(self, eta: int = 3, first_epochs: int = 1) -> None:
        self.eta = checks.whole("eta", eta, 2)
        self.first_epochs = checks.whole("first_epochs", first_epochs, 1)
        self.begin(higher_is_better=True)

    def begin(self, higher_is_better: bool) -> None:
        """Note the direction of better scores; a pruner also forgets all scores."""
        self._sign = -1.0 if higher_is_better else 1.0

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Return ``first_epochs * eta**k`` for k = 0, 1, ... below ``epochs``, the end of a trial.

        Raises
        ------
        InputError
            There is none, so that no trial would be compared.
        """
        if self.first_epochs >= epochs:
            raise InputError(
                f"a trial has {count(epochs, 'epoch')}, and its first rung is not before: no trial would ever be "
                "compared",
                column="first_epochs",
                value=self.first_epochs,
                expected=f"below the epochs of a trial ({epochs})",
                fix="lower first_epochs, raise the epochs of a trial, or use the pruner 'none'",
            )
        rungs = [self.first_epochs]
        while rungs[-1] * self.eta < epochs:
            rungs.append(rungs[-1] * self.eta)
        return rungs

    def describe(self) -> dict[str, object]:
        """Its parameters."""
        return {"kind": self.kind, "eta": self.eta, "first_epochs": self.first_epochs}


def n_best(n_trials: int, eta: int) -> int:
    """Return how many of ``n_trials`` are the best ``1 / eta``: rounded down, and never none."""
    return max(1, n_trials // eta)


class Asha(Rungs):
    """A trial that reaches a rung goes on if it is among the best ``1 / eta`` of those that have reached it so far.

    No trial waits: early trials are compared with few others, so more of them go on than in the synchronous form. Of
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
        return Advice.CONTINUE if n_better < n_best(len(costs), self.eta) else Advice.PRUNE


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
        """Return ``WAIT``: the rung is decided when all have reported."""
        self._waiting[number] = score
        return Advice.WAIT

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Remove the trial from the comparison."""
        self._waiting.pop(number, None)

    def released(self, n_under_way: int) -> Released:
        """Decide the rung if no trial is under way. All that wait then wait at the same rung."""
        if n_under_way or not self._waiting:
            return Released()
        order = sorted(self._waiting, key=lambda number: (self._sign * self._waiting[number], number))
        n_survivors = n_best(len(order), self.eta)
        self._waiting.clear()
        return Released(promoted=tuple(order[:n_survivors]), pruned=tuple(order[n_survivors:]))


BEST, LAST = "best", "last"


class Median(NoPruner):
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
        Number of epochs before which no trial is pruned, >= 0.
    every_epochs
        Number of epochs from one report to the next, >= 1.
    compare
        ``"best"``: every trial counts with its best score up to that epoch; ``"last"``: with the one at that epoch.

    Raises
    ------
    InputError
        A parameter is invalid.
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
        """Return every ``every_epochs``-th epoch before the last."""
        return range(self.every_epochs, epochs, self.every_epochs)

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Compare it with the trials that have reported at this epoch before."""
        cost = self._sign * score
        if self.compare == BEST:
            cost = self._best[number] = min(cost, self._best.get(number, cost))
        others = self._costs.setdefault(epoch, [])
        is_worse = len(others) >= self.warmup_trials and epoch >= self.warmup_epochs and cost > median(others)
        insort(others, cost)
        return Advice.PRUNE if is_worse else Advice.CONTINUE

    def describe(self) -> dict[str, object]:
        """Its parameters."""
        return {"kind": "median", **pick(self, "warmup_trials", "warmup_epochs", "every_epochs", "compare")}


PRUNERS = Registry(
    kind="pruner",
    group="bfreplay.pruners",
    needs=("begin", "report_epochs", "advise", "ended", "released", "describe"),
    built_in={
        "none": "bfreplay.campaigns.pruners:NoPruner",
        "asha": "bfreplay.campaigns.pruners:Asha",
        "successive-halving": "bfreplay.campaigns.pruners:SuccessiveHalving",
        "median": "bfreplay.campaigns.pruners:Median",
    },
)


def pruner_of(kind: str, options: Mapping[str, Cell] | None = None, *, allow_code: bool = True) -> Pruner:
    """Make the pruner called ``kind``, or at ``package.module:Class``.

    Parameters
    ----------
    kind
        Name of the pruner.
    options
        Keyword arguments of its class.
    allow_code
        True if ``kind`` may be code to import; false for a name from a file.

    Raises
    ------
    InputError
        There is no such pruner, it may not be imported, or an argument is unknown or invalid.
    """
    pruner_class = PRUNERS.load(kind, allow_code=allow_code)
    arguments = dict(options or {})
    parameters = inspect.signature(pruner_class).parameters.values()
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        checks.known_keys(arguments, [parameter.name for parameter in parameters], f"the pruner {kind!r}")
    pruner: Pruner = make_from_code(
        lambda: pruner_class(**arguments),
        f"the pruner {kind!r}",
        value=arguments,
        expected=f"keyword arguments of {PRUNERS.location(kind)}",
        fix="correct the keys of [pruner], or the class",
    )
    return pruner
