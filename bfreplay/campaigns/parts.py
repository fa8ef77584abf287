"""Interfaces of the exchangeable parts of a campaign: proposer, pruner and score model.

One object may be proposer and pruner at once, like a study of Optuna; ``begin`` and ``ended`` are then called once.
Random numbers come in streams: one for each purpose and trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Protocol

import numpy as np

from bfreplay.documents import Json
from bfreplay.workload import Ending


class Purpose(IntEnum):
    """Purpose of a random stream. The numbers are part of every saved result: never change one."""

    ARRIVAL = 0
    MODEL = 1
    QUALITY = 2
    PACE = 3
    NOISE = 4
    FAILURE = 5
    PARAMS = 6
    MADE_UP = 7


def stream(seed: int, purpose: Purpose, *keys: int) -> np.random.Generator:
    """Return a new generator for ``(seed, purpose, *keys)``: the same for the same numbers, independent otherwise."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, *keys))))


Params = Mapping[str, Json]
"""Hyper-parameters of a trial by name, JSON-ready."""


class CampaignPart(Protocol):
    """Base of proposers and pruners."""

    def begin(self, higher_is_better: bool) -> None:
        """Restart from nothing: a replay begins."""

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Take note of the end of a trial, by advice or otherwise, and of its last score (``None`` without any)."""

    def describe(self) -> dict[str, object]:
        """Every parameter with its value, JSON-ready."""


class Proposer(CampaignPart, Protocol):
    """Chooses the hyper-parameters of trials."""

    def propose(self, number: int) -> Params | None:
        """Return the hyper-parameters of trial ``number`` (0, 1, ...) when there is room for it; ``None``: no more."""


class TrialState(StrEnum):
    """State of a trial at its end: finished, or the reason for ending early."""

    FINISHED = "finished"
    PRUNED = Ending.PRUNED.value
    FAILED = Ending.FAILED.value
    STOPPED = Ending.STOPPED.value


class Advice(StrEnum):
    """A pruner's answer for a trial that has reported."""

    CONTINUE = "continue"
    PRUNE = "prune"
    WAIT = "wait"  # give up the nodes until the pruner promotes or prunes it


@dataclass(frozen=True, slots=True)
class Released:
    """Waiting trials that a pruner resumes or ends."""

    promoted: Sequence[int] = ()
    pruned: Sequence[int] = ()


class Pruner(CampaignPart, Protocol):
    """Ends trials that are not good enough; ``higher_is_better`` says which scores are better.

    A trial that crashed and was retried does not repeat its reports.
    """

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Return the epochs after which a trial reports: strictly increasing, from 1 to ``epochs - 1``."""

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Return the advice for a trial that has reported after ``epoch`` epochs."""

    def released(self, n_under_way: int) -> Released:
        """Return the waiting trials that continue or end now.

        Parameters
        ----------
        n_under_way
            Trials that have neither ended nor wait: running or queued ones, and those that are still to be proposed.
        """


class ScoreModel(Protocol):
    """Replaces training: gives the score of a trial. The same arguments give the same score."""

    def score(self, number: int, params: Params, epoch: float) -> float | None:
        """Return the score of trial ``number`` with ``params`` after ``epoch`` epochs, which may be a fraction.

        ``None``: it has none there.
        """

    def describe(self) -> dict[str, object]:
        """Every parameter with its value, JSON-ready."""
