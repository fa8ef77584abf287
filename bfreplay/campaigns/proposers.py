"""Proposers. Random search is built in; a new one is one class, and an entry point or ``package.module:Class``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from bfreplay import checks
from bfreplay.campaigns.parts import Params, Proposer, Purpose, TrialState, stream
from bfreplay.campaigns.search_space import SearchSpace
from bfreplay.documents import Cell
from bfreplay.registry import Registry, make_from_code


@dataclass(frozen=True, slots=True)
class ProposerSetting:
    """Data that a campaign gives its proposer at construction.

    Parameters
    ----------
    space
        Hyper-parameters to choose; ``None`` for a campaign without ``[search]``.
    seed
        Seed of the campaign.
    trials, epochs
        Maximum number of trials, and epochs of each.
    higher_is_better
        True if a larger score is better.
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
        Hyper-parameters to draw; ``None``: trials have none.
    seed
        The same seed gives the same trials.
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
        """Do nothing: draws depend on the seed and the number alone."""

    def propose(self, number: int) -> Params:
        """Draw them from the stream of this trial."""
        return {} if self._space is None else self._space.sample(stream(self._seed, Purpose.PARAMS, number))

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Do nothing: random search does not learn."""

    def describe(self) -> dict[str, object]:
        """Return its parameters."""
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
        There is no such proposer, it may not be imported, or it cannot be made.
    """
    proposer_class = PROPOSERS.load(name, allow_code=allow_code)
    proposer: Proposer = make_from_code(
        lambda: proposer_class.from_campaign(setting, options),
        f"the proposer {name!r}",
        value=dict(options),
        expected="a class with from_campaign(setting, options)",
        fix="correct the keys of [proposer], or the class",
    )
    return proposer
