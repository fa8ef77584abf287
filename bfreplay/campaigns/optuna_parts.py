"""Optuna's samplers and pruners by name, with options that are checked before anything runs."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bfreplay.campaigns.search_space import Choice, SearchSpace, Whole
from bfreplay.checks import known_keys, truth
from bfreplay.datasets.located import locate_errors
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.milp.backends.backend import unmet
from bfreplay.options import Number, OneOf
from bfreplay.options import Whole as AtLeast
from bfreplay.registry import import_code, make_from_code, one_line, unknown_name

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


Option = tuple[Any, Callable[[str, Any], Any]]
"""Default, and check: called with the option's name and a value, it returns the value, or raises ``InputError``."""


@dataclass(frozen=True, slots=True)
class Part:
    """A sampler or pruner of Optuna: its class, and every option that may be set.

    All options are handed over, so that a default that differs between releases of Optuna changes nothing; ``fixed``
    are handed over too and cannot be set.
    """

    class_name: str
    options: Mapping[str, Option]
    fixed: Mapping[str, object] = field(default_factory=dict)


SAMPLERS: Mapping[str, Part] = {
    "tpe": Part(
        "TPESampler",
        {
            "n_startup_trials": (10, AtLeast(0)),
            "n_ei_candidates": (24, AtLeast(1)),
            "multivariate": (True, truth),
            "constant_liar": (True, truth),
        },
    ),
    "random": Part("RandomSampler", {}),
    "qmc": Part(
        "QMCSampler",
        {"qmc_type": ("sobol", OneOf(("sobol", "halton"))), "scramble": (True, truth)},
        # Optuna 4 draws choices at random beside the sequence, and would say so for every one
        {"warn_independent_sampling": False},
    ),
}
"""Samplers that need only Optuna and can be seeded. Others: ``package.module:factory``."""

_PERCENTILE: Mapping[str, Option] = {
    "n_startup_trials": (5, AtLeast(0)),
    "n_warmup_steps": (0, AtLeast(0)),
    "interval_steps": (1, AtLeast(1)),
    "n_min_trials": (1, AtLeast(1)),
}
_HALVING: Mapping[str, Option] = {
    "min_resource": (1, AtLeast(1)),
    "reduction_factor": (4, AtLeast(2)),
    "min_early_stopping_rate": (0, AtLeast(0)),
    "bootstrap_count": (0, AtLeast(0)),
}

PRUNERS: Mapping[str, Part] = {
    "median": Part("MedianPruner", _PERCENTILE),
    "percentile": Part("PercentilePruner", {"percentile": (25.0, Number(least=0, most=100)), **_PERCENTILE}),
    "asha": Part("SuccessiveHalvingPruner", _HALVING),
    "successive-halving": Part("SuccessiveHalvingPruner", _HALVING),
    "hyperband": Part(
        "HyperbandPruner",
        {
            "min_resource": (1, AtLeast(1)),
            "max_resource": (1, AtLeast(1)),  # the epochs of a trial, unless it is given
            "reduction_factor": (3, AtLeast(2)),
            "bootstrap_count": (0, AtLeast(0)),
        },
    ),
    "none": Part("NopPruner", {}),
}
"""Resources and steps are epochs."""


def load_optuna(file: Path) -> ModuleType:
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
    raise InputError(f"this campaign asks Optuna, and {problem}", file=file, row="[optuna]", fix=fix)


def options_of(
    kind: str, name: str, known: Mapping[str, Part], given: Mapping[str, Cell], file: Path
) -> dict[str, object]:
    """Return every option of a sampler or pruner with its value; for ``package.module:factory`` those that are given.

    Raises
    ------
    InputError
        Nothing has this name, or an option is unknown or out of range.
    """
    if name not in known:
        if ":" in name:
            return dict(given)
        error = unknown_name(f"{kind} of Optuna", name, list(known))
        raise InputError(
            error.problem,
            file=file,
            row="[optuna]",
            column=kind,
            value=name,
            expected=f"one of {', '.join(known)}; or package.module:factory",
            fix=error.fix,
        )
    options = known[name].options
    with locate_errors(file, f"[optuna.{kind}_options]"):
        known_keys(given, tuple(options), f"the {kind} {name!r}")
        return {key: check(key, given.get(key, default)) for key, (default, check) in options.items()}


def make(
    kind: str, name: str, known: Mapping[str, Part], options: Mapping[str, object], base: type[Any], file: Path
) -> Any:
    """Make a sampler or pruner anew. ``base`` is the class of Optuna that it must be an instance of.

    Raises
    ------
    InputError
        A factory of the user's cannot be imported, fails, or makes something else.
    """
    where: dict[str, Any] = {"file": file, "row": "[optuna]", "column": kind, "value": name}
    with warnings.catch_warnings():
        # who names a sampler has chosen it, experimental or not
        warnings.simplefilter("ignore", importlib.import_module("optuna.exceptions").ExperimentalWarning)
        if name in known:
            home = importlib.import_module(f"optuna.{kind}s")
            return getattr(home, known[name].class_name)(**options, **known[name].fixed)
        with locate_errors(file, "[optuna]"):
            factory = import_code(name, f"the {kind} {name!r}", "package.module:factory", kind, allow_code=True)
        part = make_from_code(
            lambda: factory(**options),
            f"the {kind} {name!r}",
            **where,
            expected=f"a function or class that is called with {', '.join(options) or 'nothing'}",
            fix=f"correct the keys of [optuna.{kind}_options], or the function",
        )
    if not isinstance(part, base):
        raise InputError(f"{name} makes no {kind} of Optuna", **where, expected=f"an optuna.{kind}s.{base.__name__}")
    return part


def distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return Optuna's distributions of a search space, in its order."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    found: dict[str, BaseDistribution] = {}
    for name, dimension in space.dimensions.items():
        if isinstance(dimension, Choice):
            found[name] = CategoricalDistribution(dimension.choices)
        elif isinstance(dimension, Whole):
            found[name] = IntDistribution(dimension.low, dimension.high, log=dimension.log, step=dimension.step)
        else:
            found[name] = FloatDistribution(dimension.low, dimension.high, log=dimension.log)
    return found
