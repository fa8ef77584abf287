"""An Optuna study as the proposer, and the pruner, of a campaign; its samplers and pruners by name."""

from __future__ import annotations

import importlib
import logging
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, structs

from bfreplay.campaigns.campaign import Campaign
from bfreplay.campaigns.parts import Advice, Params, Released, TrialState
from bfreplay.campaigns.search_space import Choice, Real, SearchSpace, Whole
from bfreplay.checks import LARGEST, whole
from bfreplay.datasets.located import locate_errors
from bfreplay.documents import Cell
from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.backends.backend import unmet
from bfreplay.registry import import_code, make_from_code, one_line, unknown_name
from bfreplay.typed_tables import Count, TypedTable, typed_table
from bfreplay.typed_tables import Whole as NotNegative

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import Trial

_STUDY_NAME = "bfreplay"
"""Always the same: Hyperband sorts trials into brackets by a checksum of the study's name and the trial's number, and
Optuna gives a study without a name a random one."""
_LARGEST_SEED = 2**32 - 1
"""Of the generator that Optuna uses."""


class OptunaTable(TypedTable, frozen=True):
    """The table ``[optuna]`` of a campaign.

    Attributes
    ----------
    sampler, pruner
        A name of ``SAMPLERS`` or ``PRUNERS``; or ``package.module:factory`` of a stranger's, called with its options,
        for a sampler with ``seed`` as well. Without a ``pruner`` it is ``"median"``.
    report_every
        Epochs from one report of a trial to the next.
    sampler_options, pruner_options
        Tables of their options; the rest keep their defaults.
    """

    sampler: str = "tpe"
    pruner: str | None = None
    report_every: Count = 1
    sampler_options: dict[str, Any] = msgspec.field(default_factory=dict)
    pruner_options: dict[str, Any] = msgspec.field(default_factory=dict)


_FORM = "package.module:factory"
_Factor = Annotated[int, Meta(ge=2, le=LARGEST)]


class NoOptions(TypedTable, frozen=True):
    """Options of a part that has none."""


class TpeOptions(TypedTable, frozen=True):
    """Options of ``TPESampler``."""

    n_startup_trials: NotNegative = 10
    n_ei_candidates: Count = 24
    multivariate: bool = True
    constant_liar: bool = True


class QmcOptions(TypedTable, frozen=True):
    """Options of ``QMCSampler``."""

    qmc_type: Literal["sobol", "halton"] = "sobol"
    scramble: bool = True


class MedianOptions(TypedTable, frozen=True):
    """Options of ``MedianPruner``."""

    n_startup_trials: NotNegative = 5
    n_warmup_steps: NotNegative = 0
    interval_steps: Count = 1
    n_min_trials: Count = 1


class PercentileOptions(TypedTable, frozen=True):
    """Options of ``PercentilePruner``."""

    percentile: Annotated[float, Meta(ge=0, le=100)] = 25.0
    n_startup_trials: NotNegative = 5
    n_warmup_steps: NotNegative = 0
    interval_steps: Count = 1
    n_min_trials: Count = 1


class HalvingOptions(TypedTable, frozen=True):
    """Options of ``SuccessiveHalvingPruner``."""

    min_resource: Count = 1
    reduction_factor: _Factor = 4
    min_early_stopping_rate: NotNegative = 0
    bootstrap_count: NotNegative = 0


class HyperbandOptions(TypedTable, frozen=True):
    """Options of ``HyperbandPruner``; the largest resource is the epochs of a trial unless it is given."""

    min_resource: Count = 1
    max_resource: Count = 1
    reduction_factor: _Factor = 3
    bootstrap_count: NotNegative = 0


@dataclass(frozen=True, slots=True)
class OptunaComponent:
    """A sampler or pruner of Optuna: its class, and the type of its options.

    All options are handed over, so that a default that differs between releases of Optuna changes nothing; ``fixed``
    are handed over too and cannot be set.
    """

    class_name: str
    options: type[TypedTable]
    fixed: Mapping[str, object] = field(default_factory=dict)


SAMPLERS: Mapping[str, OptunaComponent] = {
    "tpe": OptunaComponent("TPESampler", TpeOptions),
    "random": OptunaComponent("RandomSampler", NoOptions),
    # Optuna 4 draws choices at random beside the sequence, and would say so for every one
    "qmc": OptunaComponent("QMCSampler", QmcOptions, {"warn_independent_sampling": False}),
}
"""Samplers that need only Optuna and can be seeded. Others: ``package.module:factory``."""

PRUNERS: Mapping[str, OptunaComponent] = {
    "median": OptunaComponent("MedianPruner", MedianOptions),
    "percentile": OptunaComponent("PercentilePruner", PercentileOptions),
    "asha": OptunaComponent("SuccessiveHalvingPruner", HalvingOptions),
    "successive-halving": OptunaComponent("SuccessiveHalvingPruner", HalvingOptions),
    "hyperband": OptunaComponent("HyperbandPruner", HyperbandOptions),
    "none": OptunaComponent("NopPruner", NoOptions),
}
"""Resources and steps are epochs."""

_COMPONENTS: Mapping[str, Mapping[str, OptunaComponent]] = {"sampler": SAMPLERS, "pruner": PRUNERS}


class OptunaStudy:
    """Asks Optuna which trial comes next, tells it every score, and lets it prune.

    The study lives in memory, and ``begin`` makes it, its sampler and its pruner anew: every replay starts from
    nothing but the seed. Trials in flight are known to the sampler; ``constant_liar`` of the sampler ``tpe`` (on unless
    it is set to false) takes them for bad ones, so that trials proposed at the same time differ.

    How a trial's end is told: finished with a score: complete. Pruned or stopped with a score: pruned, which for Optuna
    is any trial that ended early; its last score counts. Failed, or without a score that is a number: failed, which
    teaches nothing.

    As the proposer alone, beside a pruner that is not Optuna's, it hears of no score but the last. A pruned trial is
    then told with one report at step 1, and ranks among the other pruned ones by that score alone.

    Parameters
    ----------
    space
        The hyper-parameters.
    table
        Sampler and pruner, with their options.
    campaign
        Its seed is that of the sampler, from 0 to 2^32 - 1.
    campaign_file
        File of the campaign, for messages.

    Raises
    ------
    InputError
        Optuna is not installed, or a name, an option or the seed is invalid.
    """

    def __init__(self, space: SearchSpace, table: OptunaTable, campaign: Campaign, campaign_file: Path) -> None:
        self._file = campaign_file
        self._sampler, self._pruner = table.sampler, "median" if table.pruner is None else table.pruner
        self._report_every = table.report_every
        self._optuna = load_optuna(campaign_file, "[optuna]")
        with locate_errors(campaign_file, "[optuna]"):
            self._seed = whole("seed", campaign.seed, 0, _LARGEST_SEED)
        self._sampler_options = options_of("sampler", self._sampler, table.sampler_options, campaign_file)
        pruner_options = table.pruner_options
        if self._pruner == "hyperband":
            pruner_options = {"max_resource": campaign.epochs, **pruner_options}
        self._pruner_options = options_of("pruner", self._pruner, pruner_options, campaign_file)
        if self._pruner == "hyperband":
            least, largest = (self._pruner_options[resource_key] for resource_key in ("min_resource", "max_resource"))
            if largest < least:
                raise InputError(
                    "the least resource is above the largest",
                    file=campaign_file,
                    row="[optuna.pruner_options]",
                    column="min_resource",
                    value=least,
                    expected=f"at most max_resource, here {largest} epochs",
                )
        self._distributions = distributions(space)
        self.begin(campaign.higher_is_better)

    def begin(self, higher_is_better: bool) -> None:
        """Make study, sampler and pruner anew: a replay begins."""
        self._exhausted = False
        sampler = make_part("sampler", self._sampler, {**self._sampler_options, "seed": self._seed}, self._file)
        pruner = make_part("pruner", self._pruner, self._pruner_options, self._file)
        direction = "maximize" if higher_is_better else "minimize"
        with quiet():
            self._study: Study = self._optuna.create_study(
                study_name=_STUDY_NAME, sampler=sampler, pruner=pruner, direction=direction
            )
        # how a sampler says that it has tried everything; outside Study.optimize Optuna's own raises
        self._study.stop = partial(setattr, self, "_exhausted", True)
        self._trials: dict[int, Trial] = {}
        self._has_reported: set[int] = set()

    def propose(self, number: int) -> Params | None:
        """Return the hyper-parameters of trial ``number``; ``None`` when the sampler has tried everything.

        Raises
        ------
        BfreplayError
            The sampler fails.
        """
        if self._exhausted:
            return None
        try:
            trial = self._study.ask(self._distributions)
        except Exception as error:
            raise BfreplayError(f"the sampler {self._sampler!r} failed at trial {number}: {one_line(error)}") from error
        self._trials[number] = trial
        return {param_name: trial.params[param_name] for param_name in self._distributions}

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Return every ``report_every``-th epoch before the last."""
        return range(self._report_every, epochs, self._report_every)

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Report the score to the study, and ask its pruner. A trial never waits."""
        trial = self._trials[number]
        trial.report(score, step=epoch)
        self._has_reported.add(number)
        return Advice.PRUNE if trial.should_prune() else Advice.CONTINUE

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Tell the study how a trial ended."""
        trial = self._trials.pop(number)
        states = self._optuna.trial.TrialState
        if score is None or math.isnan(score) or state is TrialState.FAILED:
            self._study.tell(trial, state=states.FAIL)
        elif state is TrialState.FINISHED:
            self._study.tell(trial, score, state=states.COMPLETE)
        else:
            if number not in self._has_reported:
                trial.report(score, step=1)
            self._study.tell(trial, state=states.PRUNED)

    def released(self, n_under_way: int) -> Released:
        """Return nothing: no trial waits."""
        return Released()

    def describe(self) -> dict[str, object]:
        """Return sampler and pruner with every option, the seed, and the version of Optuna."""
        return {
            "kind": "optuna",
            "version": version("optuna"),
            "seed": self._seed,
            "sampler": self._sampler,
            "sampler_options": dict(self._sampler_options),
            "pruner": self._pruner,
            "pruner_options": dict(self._pruner_options),
            "report_every": self._report_every,
        }


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna from announcing a new study on stderr.

    That is the only message below a warning that asking and telling gives, so its logger is set for this moment alone:
    the program around may have its own studies, and its own wish of how much they say.
    """
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)


def load_optuna(campaign_file: Path, row: str) -> ModuleType:
    """Import Optuna, late: it takes a second, and it is an extra.

    Raises
    ------
    InputError
        It is not installed, or in a version that is not supported; the message says what to install.
    """
    fix = "pip install 'bfreplay[hpo]'"
    problem = unmet("optuna", ">=4.1,<6", why="others are untried", fix=fix)
    if not problem:
        try:
            return importlib.import_module("optuna")
        except ImportError as error:
            problem = f"optuna cannot be imported ({one_line(error)}); {fix}"
    raise InputError(f"this needs Optuna, and {problem}", file=campaign_file, row=row, fix=fix)


def options_of(kind: str, part_name: str, options: Mapping[str, Cell], campaign_file: Path) -> dict[str, Any]:
    """Return every option of a sampler or pruner with its value; for ``package.module:factory`` those that are given.

    Raises
    ------
    InputError
        Nothing has this name, or an option is unknown or out of range.
    """
    parts = _COMPONENTS[kind]
    if part_name not in parts:
        if ":" in part_name:
            return dict(options)
        refusal = unknown_name(f"{kind} of Optuna", part_name, list(parts), _FORM)
        raise refusal.with_changes(file=campaign_file, row="[optuna]", column=kind, value=part_name)
    return structs.asdict(typed_table(options, parts[part_name].options, campaign_file, f"[optuna.{kind}_options]"))


def make_part(kind: str, part_name: str, options: Mapping[str, object], campaign_file: Path) -> Any:
    """Make a sampler or pruner anew.

    Raises
    ------
    InputError
        A factory of the user's cannot be imported, fails, or makes something else.
    """
    title, module = f"the {kind} {part_name!r}", importlib.import_module(f"optuna.{kind}s")
    location: dict[str, Any] = {"file": campaign_file, "row": "[optuna]", "column": kind, "value": part_name}
    with warnings.catch_warnings():
        # who names a sampler has chosen it, experimental or not
        warnings.simplefilter("ignore", importlib.import_module("optuna.exceptions").ExperimentalWarning)
        if part_name in _COMPONENTS[kind]:
            built_in = _COMPONENTS[kind][part_name]
            return getattr(module, built_in.class_name)(**options, **built_in.fixed)
        with locate_errors(campaign_file, "[optuna]"):
            factory = import_code(part_name, title, _FORM, kind, allow_code=True)
        part = make_from_code(
            lambda: factory(**options),
            title,
            **location,
            expected=f"a function or class that is called with {', '.join(options) or 'nothing'}",
            fix=f"correct the keys of [optuna.{kind}_options], or the function",
        )
    base_name = f"Base{kind.capitalize()}"
    if not isinstance(part, getattr(module, base_name)):
        expected = f"an optuna.{kind}s.{base_name}"
        raise InputError(f"{part_name} makes no {kind} of Optuna", **location, expected=expected)
    return part


def distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return Optuna's distributions of a search space, in its order."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    kinds: Mapping[type, Any] = {Choice: CategoricalDistribution, Whole: IntDistribution, Real: FloatDistribution}
    return {name: kinds[type(dimension)](**asdict(dimension)) for name, dimension in space.dimensions.items()}
