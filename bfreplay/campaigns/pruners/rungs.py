"""Rungs: the epochs at which successive halving, in both its forms, compares trials."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.wording import count


def checked_rungs(eta: object, first_epochs: object) -> tuple[int, int]:
    """Return both as whole numbers, ``eta >= 2`` and ``first_epochs >= 1``; InputError for anything else."""
    return checks.whole("eta", eta, 2), checks.whole("first_epochs", first_epochs, 1)


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
