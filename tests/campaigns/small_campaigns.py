"""Campaigns small enough to follow by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bfreplay.campaigns.campaign import Campaign, TrialModel
from bfreplay.campaigns.parts_of_file import RandomSearch
from bfreplay.campaigns.pruners import NoPruner
from bfreplay.campaigns.source import CampaignSource
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob

SECOND, HOUR = 1_000_000, 3_600_000_000


class Scores:
    """Trial k ends with ``finals[k]``, after a straight line from 0."""

    def __init__(self, finals: Sequence[float], epochs: int) -> None:
        self.finals, self.epochs = finals, epochs

    def score(self, number: int, params: Mapping[str, Any], epoch: float) -> float:
        return self.finals[number] * epoch / self.epochs

    def describe(self) -> dict[str, object]:
        return {"finals": list(self.finals)}


def model(name: str = "m", samples_per_epoch: float = 100.0, rate: float = 1.0, deadline_s: float | None = None):
    """One that does ``rate`` samples/s on a node, up to four nodes."""
    curve = TabulatedCurve((0, 1, 4), (0.0, rate, 4.0 * rate), name)
    due_us = None if deadline_s is None else round(deadline_s * SECOND)
    job = ElasticJob(name, 0, 1, 4, 0.0, 0.0, math.inf, curve, deadline_us=due_us, model=name)
    return TrialModel(job, samples_per_epoch)


def campaign(trials: int = 4, epochs: int = 4, **given: Any) -> Campaign:
    """Four trials of four epochs of 100 s each on one node, unless told otherwise."""
    models = given.pop("models", (model(),))
    return Campaign(given.pop("name", "c"), models, epochs, trials, **given)


def source(
    made: Campaign | None = None, finals: Sequence[float] = (1, 2, 3, 4), pruner: Any = None, proposer: Any = None
) -> CampaignSource:
    """A campaign whose trial k ends with score ``finals[k]``; all go on unless a pruner is given."""
    made = made or campaign(len(finals))
    finals = [*finals, *[0.0] * (made.trials - len(finals))]
    return CampaignSource(
        made, proposer or RandomSearch(None, made.seed), pruner or NoPruner(), Scores(finals, made.epochs)
    )
