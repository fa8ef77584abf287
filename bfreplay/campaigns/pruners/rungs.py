"""Rungs: the epochs at which successive halving, in both its forms, compares trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.wording import count


class Rungs:
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
        A parameter that is no such number.
    """

    kind: ClassVar[str]

    def __init__(self, eta: int = 3, first_epochs: int = 1) -> None:
        self.eta = checks.whole("eta", eta, 2)
        self.first_epochs = checks.whole("first_epochs", first_epochs, 1)
        self.begin(higher_is_better=True)

    def begin(self, higher_is_better: bool) -> None:
        """Note which scores are the better ones; a pruner also forgets what it has heard."""
        self._sign = -1.0 if higher_is_better else 1.0

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Epochs of the rungs; InputError if there is none."""
        return rung_epochs(self.eta, self.first_epochs, epochs)

    def describe(self) -> dict[str, object]:
        """Its parameters."""
        return {"kind": self.kind, "eta": self.eta, "first_epochs": self.first_epochs}


def rung_epochs(eta: int, first_epochs: int, epochs: int) -> Sequence[int]:
    """``first_epochs * eta**k`` for k = 0, 1, ... as far as they lie below ``epochs``, the end of a trial.

    Raises
    ------
    InputError
        There is none: no trial would ever be compared.
    """
    if first_epochs >= epochs:
        raise InputError(
            f"a trial has {count(epochs, 'epoch')}, and its first rung is not before: no trial would ever be compared",
            column="first_epochs",
            value=first_epochs,
            expected=f"below the epochs of a trial ({epochs})",
            fix="lower first_epochs, raise the epochs of a trial, or use the pruner 'none'",
        )
    rungs = []
    epoch = first_epochs
    while epoch < epochs:
        rungs.append(epoch)
        epoch *= eta
    return rungs


def n_best(n_trials: int, eta: int) -> int:
    """How many of ``n_trials`` are the best ``1 / eta``: rounded down, and never none."""
    return max(1, n_trials // eta)
