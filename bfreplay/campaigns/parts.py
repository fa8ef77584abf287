"""The parts of a campaign that can be swapped: who proposes trials, who ends them early, what they score.

One object may be proposer and pruner at once, as a study of Optuna is: it is then begun once, and told once of each
trial that has ended. Random numbers come in streams: one for each purpose and trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Protocol

import numpy as np

from bfreplay.documents import Json
from bfreplay.result_folders.former_names import note_former
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
        """Forget everything: a replay begins."""
        ...

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """A trial has ended, by a pruner's advice or otherwise, with its last score (``None`` if it never had one)."""
        ...

    def describe(self) -> dict[str, object]:
        """Every parameter with its value, JSON-ready."""
        ...


class Proposer(CampaignPart, Protocol):
    """Says which trial comes next."""

    def propose(self, number: int) -> Params | None:
        """Hyper-parameters of trial ``number`` (0, 1, ...), asked when there is room for it; ``None``: no more."""
        ...


class TrialState(StrEnum):
    """State of a trial at its end: its work is done, or why its last job left before."""

    FINISHED = "finished"
    PRUNED = Ending.PRUNED.value
    FAILED = Ending.FAILED.value
    STOPPED = Ending.STOPPED.value


class _FormerAdvice:
    """``Advice.GO_ON``: former name of ``Advice.CONTINUE``, accepted for one release."""

    def __get__(self, _: object, advice: type[Advice]) -> Advice:
        note_former("'Advice.GO_ON' is called 'Advice.CONTINUE' now")
        return advice.CONTINUE


class Advice(StrEnum):
    """A pruner's answer for a trial that has reported."""

    GO_ON = _FormerAdvice()
    CONTINUE = "continue"
    PRUNE = "prune"
    WAIT = "wait"  # give up the nodes until the pruner promotes or prunes it


@dataclass(frozen=True, slots=True)
class Released:
    """Waiting trials on which a pruner has made up its mind."""

    promoted: Sequence[int] = ()
    pruned: Sequence[int] = ()


class Pruner(CampaignPart, Protocol):
    """Ends trials that are not good enough. Scores are as the campaign has them: see ``higher_is_better``.

    A trial that crashed and goes on from a checkpoint, or from the start, does not report again what it has reported.
    """

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Epochs after which a trial of ``epochs`` epochs reports: strictly increasing, from 1 to ``epochs - 1``."""
        ...

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """A trial has reported after ``epoch`` epochs."""
        ...

    def released(self, n_under_way: int) -> Released:
        """Waiting trials that may go on or end now.

        Parameters
        ----------
        n_under_way
            Trials that have neither ended nor wait: running or queued ones, and those that are still to be proposed.
        """
        ...


class ScoreModel(Protocol):
    """Stands for the training itself: how good a trial is by then. Pure: the same question, the same answer."""

    def score(self, number: int, params: Params, epoch: float) -> float:
        """Score of trial ``number`` with ``params`` after ``epoch`` epochs (a fraction is allowed)."""
        ...

    def describe(self) -> dict[str, object]:
        """Every parameter with its value, JSON-ready."""
        ...
