"""The parts of a campaign file that can be swapped: ``[scores]``, ``[proposer]``, ``[pruner]``, ``[optuna]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

from bfreplay import checks
from bfreplay.campaigns.campaign import Campaign
from bfreplay.campaigns.parts import Params, Proposer, Pruner, Purpose, ScoreModel, TrialState, stream
from bfreplay.campaigns.pruners import PRUNERS, pruner_of
from bfreplay.campaigns.scores import LearningCurves, ResponseSurface, ScoreFunction, ScoreRange
from bfreplay.campaigns.search_space import SearchSpace
from bfreplay.campaigns.toml_table import TomlTable, with_place
from bfreplay.checks import nearest
from bfreplay.datasets.located import with_location
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.registry import Registry, code_refusal, make_from_code


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
    built_in={"random": "bfreplay.campaigns.parts_of_file:RandomSearch"},
)


def proposer_of(name: str, setting: ProposerSetting, options: Mapping[str, Cell], *, allow_code: bool) -> Proposer:
    """Make the proposer called ``name``, or at ``package.module:Class``, by its ``from_campaign(setting, options)``.

    Raises
    ------
    InputError
        There is no such proposer, it may not be imported, or it cannot be made.
    """
    found = PROPOSERS.load(name, allow_code=allow_code)
    proposer: Proposer = make_from_code(
        lambda: found.from_campaign(setting, options),
        f"the proposer {name!r}",
        value=dict(options),
        expected="a class with from_campaign(setting, options)",
        fix="correct the keys of [proposer], or the class",
    )
    return proposer


_CURVE_KEYS = ("start", "worst", "best", "pace", "noise")
SCORE_KEYS = (*_CURVE_KEYS, "function", "report_every_epochs")
RANDOM, OPTUNA = "random", "optuna"


@dataclass(frozen=True, slots=True)
class PartsOfFile:
    """Makes the parts of ``campaign``; ``table`` gives a table of its file by name, with the keys it may have.

    Parts that are code to import are refused without ``allow_code``.
    """

    _table: Callable[..., TomlTable]
    _campaign: Campaign
    _space: SearchSpace | None
    _allow_code: bool

    def scores(self) -> ScoreModel:
        """Return the model of the scores; InputError if ``[scores]`` cannot be used."""
        campaign = self._campaign
        table = self._table("scores", SCORE_KEYS)
        if table.has("function"):
            for key in table.arguments(*_CURVE_KEYS):
                raise table.error(
                    f"{key} has no effect beside a function",
                    key,
                    "function, or made-up learning curves",
                    "drop one of the two",
                )
            return with_place(table, lambda: ScoreFunction(table.text("function"), allow_code=self._allow_code))
        usual = ScoreRange.usual(campaign.higher_is_better)
        scores = with_place(table, lambda: replace(usual, **table.arguments(*_CURVE_KEYS)))
        if scores.best != scores.worst and (scores.best > scores.worst) != campaign.higher_is_better:
            raise table.error(
                f"best is worse than worst where higher_is_better is {str(campaign.higher_is_better).lower()}",
                "best",
                f"{'above' if campaign.higher_is_better else 'below'} worst ({scores.worst:g})",
                "correct start, worst and best, or higher_is_better in [campaign]",
            )
        surface = None if self._space is None else ResponseSurface(self._space, campaign.seed)
        return LearningCurves(scores, campaign.seed, surface)

    def proposer(self, name: str) -> Proposer:
        """Return the proposer; InputError if there is none of this name, or its options cannot be used."""
        table = self._table("campaign")
        options = self._table("proposer").cells
        campaign, space = self._campaign, self._space
        setting = ProposerSetting(space, campaign.seed, campaign.trials, campaign.epochs, campaign.higher_is_better)
        if name != OPTUNA:
            if name not in PROPOSERS.names() and ":" not in name:
                raise self._unknown(table, "proposer", name, [*PROPOSERS.names(), OPTUNA])
            place = TomlTable(table.file, "[proposer]", options)
            self._refuse_code(table, PROPOSERS, name, "proposer")
            return with_place(place, lambda: proposer_of(name, setting, options, allow_code=self._allow_code))
        if options:
            raise self._table("proposer").error(
                "[proposer] has no effect with Optuna",
                next(iter(options)),
                "options in [optuna]",
                "move its keys to [optuna], or drop it",
            )
        if space is None:
            raise table.error(
                "Optuna has nothing to choose: there is no [search]",
                "proposer",
                "a table [search.NAME] for each hyper-parameter",
                'add one, or write proposer = "random"',
            )
        from bfreplay.campaigns.optuna_study import OptunaStudy

        prunes = self._pruner_kind == OPTUNA
        cells = self._table("optuna").cells
        for key in ("sampler", "pruner"):
            named = cells.get(key)
            if isinstance(named, str) and ":" in named and not self._allow_code:
                raise with_location(code_refusal(f"the {key} {named!r}", named, key), table.file, "[optuna]")
        return OptunaStudy(
            space,
            cells if prunes else {**cells, "pruner": "none"},
            seed=campaign.seed,
            higher_is_better=campaign.higher_is_better,
            epochs=campaign.epochs,
            file=table.file,
        )

    @property
    def _pruner_kind(self) -> str:
        """Kind of the pruner: Optuna's if it is named and no other is."""
        usual = OPTUNA if "pruner" in self._table("optuna").cells else "none"
        return self._table("pruner").text("kind", usual)

    def pruner(self, proposer: Proposer, proposer_name: str) -> Pruner:
        """Return the pruner, ``proposer`` itself for Optuna's; InputError if ``[pruner]`` cannot be used."""
        table = self._table("pruner")
        kind = self._pruner_kind
        options = {key: value for key, value in table.cells.items() if key != "kind"}
        if kind == OPTUNA:
            return self._pruner_of_optuna(table, proposer, proposer_name)
        if "pruner" in self._table("optuna").cells:
            raise table.error(
                "the pruner of [optuna] has no effect beside another pruner",
                "kind",
                repr(OPTUNA),
                f'write kind = "{OPTUNA}" in [pruner], or drop pruner from [optuna]',
            )
        if kind not in PRUNERS.names() and ":" not in kind:
            raise self._unknown(table, "kind", kind, [*PRUNERS.names(), OPTUNA])
        self._refuse_code(table, PRUNERS, kind, "kind")
        pruner = with_place(table, lambda: pruner_of(kind, options, allow_code=self._allow_code))
        with_place(table, lambda: pruner.report_epochs(self._campaign.epochs))
        return pruner

    def _pruner_of_optuna(self, table: TomlTable, proposer: Proposer, proposer_name: str) -> Pruner:
        TomlTable.of(table.file, table.label, table.cells, ("kind",))
        if proposer_name != OPTUNA:
            raise table.error(
                "Optuna prunes trials of its own study only",
                "kind",
                f'proposer = "{OPTUNA}" in [campaign]',
                f'write proposer = "{OPTUNA}", or choose another pruner',
            )
        return cast(Pruner, proposer)

    def _refuse_code(self, table: TomlTable, registry: Registry, name: str, key: str) -> None:
        if not self._allow_code:
            with_place(table, lambda: registry.refuse_code(name, key))

    def _unknown(self, table: TomlTable, key: str, name: str, names: Sequence[str]) -> InputError:
        return table.error(
            f"unknown {'pruner' if key == 'kind' else key} {name!r}",
            key,
            "one of " + ", ".join(repr(each) for each in names) + "; or package.module:Class",
            nearest(name, names, "write one of these words, in quotes"),
        )
