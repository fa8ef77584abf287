"""Who says which hyper-parameters come next. A new proposer is one class, and one line here (or an entry point)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from bfreplay import checks
from bfreplay.campaigns.parts import Params, Proposer, TrialState
from bfreplay.campaigns.search_space import SearchSpace
from bfreplay.campaigns.seeds import Purpose, stream
from bfreplay.documents import Cell
from bfreplay.registry import Registry, made


@dataclass(frozen=True, slots=True)
class ProposerSetting:
    """What a campaign tells its proposer when it makes it.

    Parameters
    ----------
    space
        Hyper-parameters to choose; ``None`` for a campaign without ``[search]``.
    seed
        Of the campaign.
    trials, epochs
        Trials of the campaign, at most, and epochs of each.
    higher_is_better
        Whether a larger score is a better one.
    """

    space: SearchSpace | None
    seed: int
    trials: int
    epochs: int
    higher_is_better: bool


class RandomSearch:
    """Hyper-parameters of a trial depend on the seed and its number alone.

    Source: J. Bergstra and Y. Bengio, Random Search for Hyper-Parameter Optimization, JMLR 13 (2012).

    Parameters
    ----------
    space
        What to draw from; ``None``: trials have no hyper-parameters.
    seed
        Same seed, same trials.
    """

    def __init__(self, space: SearchSpace | None, seed: int) -> None:
        self._space = space
        self._seed = seed

    @classmethod
    def from_campaign(cls, setting: ProposerSetting, options: Mapping[str, Cell]) -> Self:
        """Make one for a campaign; it has no options."""
        checks.known_keys(options, (), "the proposer 'random'")
        return cls(setting.space, setting.seed)

    def begin(self, higher_is_better: bool) -> None:
        """Nothing to forget."""

    def propose(self, number: int) -> Params:
        """Draw them from the stream of this trial."""
        return {} if self._space is None else self._space.sample(stream(self._seed, Purpose.PARAMS, number))

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """It learns nothing."""

    def describe(self) -> dict[str, object]:
        """Its parameters."""
        return {"kind": "random", "seed": self._seed}


PROPOSERS = Registry(
    kind="proposer",
    group="bfreplay.proposers",
    needs=("from_campaign", "begin", "propose", "ended", "describe"),
    built_in={"random": "bfreplay.campaigns.proposers:RandomSearch"},
)


def proposer_of(name: str, setting: ProposerSetting, options: Mapping[str, Cell], *, allow_code: bool) -> Proposer:
    """Make the proposer called ``name``, or at ``package.module:Class``, by its ``from_campaign(setting, options)``.

    Raises
    ------
    InputError
        No such proposer, or one that may not be imported or cannot be made.
    """
    found = PROPOSERS.load(name, allow_code=allow_code)
    proposer: Proposer = made(
        lambda: found.from_campaign(setting, options), f"the proposer {name!r}", value=dict(options),
        expected="a class with from_campaign(setting, options)", fix="correct the keys of [proposer], or the class",
    )  # fmt: skip
    return proposer
