"""Parts of a campaign file that can be swapped (scores, proposer, pruner, Optuna study), and random search.

A new proposer is one class, and an entry point or ``package.module:Class``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from msgspec import structs

from bfreplay import checks
from bfreplay.campaigns.campaign import Campaign
from bfreplay.campaigns.campaign_file import CampaignFile
from bfreplay.campaigns.optuna_study import OptunaStudy, OptunaTable
from bfreplay.campaigns.parts import Params, Proposer, Pruner, Purpose, ScoreModel, TrialState, stream
from bfreplay.campaigns.pruners import PRUNERS, pruner_of
from bfreplay.campaigns.scores import LearningCurves, ResponseSurface, ScoreFunction, ScoreRange
from bfreplay.campaigns.search_space import SearchSpace
from bfreplay.checks import nearest
from bfreplay.datasets.located import locate_errors
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
    proposer_class = PROPOSERS.load(name, allow_code=allow_code)
    proposer: Proposer = make_from_code(
        lambda: proposer_class.from_campaign(setting, options),
        f"the proposer {name!r}",
        value=dict(options),
        expected="a class with from_campaign(setting, options)",
        fix="correct the keys of [proposer], or the class",
    )
    return proposer


RANDOM, OPTUNA = "random", "optuna"
_CHOOSE_OPTUNA = f'write proposer = "{OPTUNA}", or '


def proposer_name(tables: CampaignFile, campaign_file: Path) -> str:
    """Return the name of the proposer, which is Optuna in a file with ``[optuna]``; InputError for another there."""
    part_name = tables.campaign.proposer
    if part_name is None:
        return RANDOM if tables.optuna is None else OPTUNA
    with locate_errors(campaign_file, "[campaign]"):
        checks.text("proposer", part_name)
        if tables.optuna is not None and part_name != OPTUNA:
            problem, fix = "[optuna] has no effect with another proposer", _CHOOSE_OPTUNA + "drop [optuna]"
            raise InputError(problem, column="proposer", value=part_name, expected=repr(OPTUNA), fix=fix)
    return part_name


@dataclass(frozen=True, slots=True)
class PartsOfFile:
    """Makes the parts of ``campaign`` from the tables of its file.

    Parts that are code to import are refused without ``allow_code``.
    """

    file: Path
    tables: CampaignFile
    campaign: Campaign
    space: SearchSpace | None
    allow_code: bool

    def scores(self) -> ScoreModel:
        """Return the model of the scores; InputError if ``[scores]`` cannot be used."""
        table, higher_is_better = self.tables.scores, self.campaign.higher_is_better
        curve_keys = table.curve_keys()
        with locate_errors(self.file, "[scores]"):
            if table.function is not None:
                for table_key, option_value in curve_keys.items():
                    raise InputError(
                        f"{table_key} has no effect beside a function",
                        column=table_key,
                        value=option_value,
                        expected="function, or made-up learning curves",
                        fix="drop one of the two",
                    )
                return ScoreFunction(table.function, allow_code=self.allow_code)
            scores = replace(ScoreRange.usual(higher_is_better), **curve_keys)
            if scores.best != scores.worst and (scores.best > scores.worst) != higher_is_better:
                raise InputError(
                    f"best is worse than worst where higher_is_better is {str(higher_is_better).lower()}",
                    column="best",
                    value=table.best,
                    expected=f"{'above' if higher_is_better else 'below'} worst ({scores.worst:g})",
                    fix="correct start, worst and best, or higher_is_better in [campaign]",
                )
        surface = None if self.space is None else ResponseSurface(self.space, self.campaign.seed)
        return LearningCurves(scores, self.campaign.seed, surface)

    def proposer(self) -> Proposer:
        """Return the proposer; InputError if there is none of its name, or its options cannot be used."""
        part_name, options, campaign = proposer_name(self.tables, self.file), self.tables.proposer, self.campaign
        if part_name == OPTUNA:
            return self._study()
        with locate_errors(self.file, "[campaign]"):
            self._check_name("proposer", part_name, PROPOSERS)
        setting = ProposerSetting(
            self.space, campaign.seed, campaign.trials, campaign.epochs, campaign.higher_is_better
        )
        with locate_errors(self.file, "[proposer]"):
            return proposer_of(part_name, setting, options, allow_code=self.allow_code)

    def pruner(self, proposer: Proposer) -> Pruner:
        """Return the pruner, ``proposer`` itself for Optuna's; InputError if ``[pruner]`` cannot be used."""
        kind = self._pruner_kind
        options = {key: option_value for key, option_value in self.tables.pruner.items() if key != "kind"}
        with locate_errors(self.file, "[pruner]"):
            if kind == OPTUNA:
                checks.known_keys(self.tables.pruner, ("kind",), "[pruner]")
                if not isinstance(proposer, OptunaStudy):
                    raise InputError(
                        "Optuna prunes trials of its own study only",
                        column="kind",
                        value=kind,
                        expected=f'proposer = "{OPTUNA}" in [campaign]',
                        fix=f"{_CHOOSE_OPTUNA}choose another pruner",
                    )
                return proposer
            if self.tables.optuna is not None and self.tables.optuna.pruner is not None:
                raise InputError(
                    "the pruner of [optuna] has no effect beside another pruner",
                    column="kind",
                    value=kind,
                    expected=repr(OPTUNA),
                    fix=f'write kind = "{OPTUNA}" in [pruner], or drop pruner from [optuna]',
                )
            self._check_name("kind", kind, PRUNERS)
            pruner = pruner_of(kind, options, allow_code=self.allow_code)
            pruner.report_epochs(self.campaign.epochs)
        return pruner

    @property
    def _pruner_kind(self) -> str:
        """Kind of the pruner: Optuna's if it is named and no other is."""
        optuna = self.tables.optuna
        default = "none" if optuna is None or optuna.pruner is None else OPTUNA
        with locate_errors(self.file, "[pruner]"):
            return checks.text("kind", self.tables.pruner.get("kind", default))

    def _study(self) -> OptunaStudy:
        table = self.tables.optuna or OptunaTable()
        with locate_errors(self.file, "[proposer]"):
            for table_key, option_value in self.tables.proposer.items():
                problem, fix = "[proposer] has no effect with Optuna", "move its keys to [optuna], or drop it"
                raise InputError(problem, column=table_key, value=option_value, expected="options in [optuna]", fix=fix)
        if self.space is None:
            raise InputError(
                "Optuna has nothing to choose: there is no [search]",
                file=self.file,
                row="[campaign]",
                column="proposer",
                value=self.tables.campaign.proposer,
                expected="a table [search.NAME] for each hyper-parameter",
                fix=f'add one, or write proposer = "{RANDOM}"',
            )
        with locate_errors(self.file, "[optuna]"):
            for table_key, part_name in (("sampler", table.sampler), ("pruner", table.pruner or "")):
                if ":" in part_name and not self.allow_code:
                    raise code_refusal(f"the {table_key} {part_name!r}", part_name, table_key)
        if self._pruner_kind != OPTUNA:
            table = structs.replace(table, pruner="none")
        return OptunaStudy(self.space, table, self.campaign, self.file)

    def _check_name(self, table_key: str, part_name: str, registry: Registry) -> None:
        names = [*registry.names(), OPTUNA]
        if part_name not in names and ":" not in part_name:
            raise InputError(
                f"unknown {registry.kind} {part_name!r}",
                column=table_key,
                value=part_name,
                expected="one of " + ", ".join(map(repr, names)) + "; or package.module:Class",
                fix=nearest(part_name, names, "write one of these words, in quotes"),
            )
        if not self.allow_code:
            registry.refuse_code(part_name, table_key)
