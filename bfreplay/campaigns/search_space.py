"""Hyper-parameters and the values that they may take: the ``[search]`` tables of a campaign."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta

from bfreplay import checks
from bfreplay.checks import LARGEST, whole
from bfreplay.datasets.located import locate_errors
from bfreplay.documents import Cell, Json
from bfreplay.errors import InputError
from bfreplay.typed_tables import Count, Finite, FiniteFloat, TypedTable, typed_table


@dataclass(frozen=True, slots=True)
class Real:
    """A real number, ``low <= value <= high``, on a linear or logarithmic scale."""

    low: float
    high: float
    log: bool = False

    def unit(self, param_value: Any) -> float:
        """Return the place of ``param_value`` in [0, 1] on the scale."""
        if self.log:
            # a difference of logarithms: the quotient may overflow
            return (math.log(param_value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return float((param_value - self.low) / (self.high - self.low))

    def at(self, unit: float) -> float:
        """Return the value at a place in [0, 1], the inverse of ``unit``."""
        nearest_value = self.low + (self.high - self.low) * unit
        if self.log:
            nearest_value = math.exp(math.log(self.low) + (math.log(self.high) - math.log(self.low)) * unit)
        return min(max(nearest_value, self.low), self.high)

    def sample(self, generator: np.random.Generator) -> float:
        """Draw a value, uniform on the scale."""
        return self.at(generator.random())


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number ``low``, ``low + step``, ... up to ``high``, on a linear or (``step`` 1) logarithmic scale.

    ``high`` is itself one of these values.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def unit(self, param_value: Any) -> float:
        """Return the place of ``param_value`` in [0, 1] on the scale."""
        if self.log:
            return math.log(param_value / self.low) / math.log(self.high / self.low)
        return float((param_value - self.low) / (self.high - self.low))

    def at(self, unit: float) -> int:
        """Return the value nearest to a place in [0, 1]."""
        nearest_value = self.low + self.step * round((self.high - self.low) * unit / self.step)
        if self.log:
            nearest_value = round(math.exp(math.log(self.low) + math.log(self.high / self.low) * unit))
        return min(max(nearest_value, self.low), self.high)

    def sample(self, generator: np.random.Generator) -> int:
        """Draw a value; on a logarithmic scale each has the width of scale that rounds to it."""
        if self.log:
            low, high = math.log(self.low - 0.5), math.log(self.high + 0.5)
            return min(max(round(math.exp(low + (high - low) * generator.random())), self.low), self.high)
        return self.low + self.step * int(generator.integers((self.high - self.low) // self.step + 1))


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice between values without an order."""

    choices: tuple[str | int | float | bool, ...]

    def sample(self, generator: np.random.Generator) -> str | int | float | bool:
        """Draw a value, all with equal probability."""
        return self.choices[int(generator.integers(len(self.choices)))]


Dimension = Real | Whole | Choice
_Int = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The hyper-parameters of a campaign, D of them, in the order of their tables."""

    dimensions: Mapping[str, Dimension]

    @classmethod
    def from_table(cls, tables: Mapping[str, Cell], campaign_file: Path) -> Self:
        """Read the ``[search.NAME]`` tables of a campaign.

        Parameters
        ----------
        tables
            Name of a hyper-parameter to its table: ``low`` and ``high``, with ``log = true`` for a logarithmic scale,
            with ``whole = true`` (and ``step``) for whole numbers; or ``choices``.
        campaign_file
            File of the tables, for messages.

        Raises
        ------
        InputError
            There is no hyper-parameter, a key is unknown, or bounds or choices are invalid.
        """
        if not tables:
            raise InputError(
                "the search space is empty",
                file=campaign_file,
                row="[search]",
                expected="a table for each hyper-parameter",
                fix="as in: [search.lr] / low = 1e-5 / high = 1e-1 / log = true",
            )
        dimensions = {}
        for param_name, cells in tables.items():
            with locate_errors(campaign_file, f"[search.{param_name}]"):
                checks.name("hyper-parameter", param_name, param_name)
                dimensions[param_name] = _dimension(cells, campaign_file, f"[search.{param_name}]")
        return cls(dimensions)

    def sample(self, generator: np.random.Generator) -> dict[str, Json]:
        """Draw hyper-parameters, each on its own scale; JSON-ready."""
        return {param_name: dimension.sample(generator) for param_name, dimension in self.dimensions.items()}


class _ChoiceTable(TypedTable, frozen=True):
    choices: Annotated[list[str | int | bool | FiniteFloat], Meta(min_length=1)]


class _NumberTable(TypedTable, frozen=True, kw_only=True):
    low: Finite
    high: Finite
    log: bool = False
    whole: bool = False
    step: Count | None = None


class _WholeTable(_NumberTable, frozen=True, kw_only=True):
    low: _Int
    high: _Int
    step: Count = 1


def _dimension(cells: Any, campaign_file: Path, label: str) -> Dimension:
    """Read one ``[search.NAME]`` table."""
    if isinstance(cells, Mapping) and "choices" in cells:
        choices = typed_table(cells, _ChoiceTable, campaign_file, label).choices
        for choice_index, choice in enumerate(choices):
            if choice in choices[:choice_index]:  # 1, 1.0 and true are one value to a sampler
                problem = f"the choice {choice!r} is there twice"
                raise InputError(problem, column="choices", value=choices, expected="once")
        return Choice(tuple(choices))
    if isinstance(cells, Mapping) and cells.get("whole") is True:
        return _whole(typed_table(cells, _WholeTable, campaign_file, label))
    numbers = typed_table(cells, _NumberTable, campaign_file, label)
    if numbers.step is not None:
        problem, expected = "only whole numbers have a step", "no step, or whole = true"
        raise InputError(problem, column="step", value=numbers.step, expected=expected)
    low, high = (float(bound) + 0.0 for bound in (numbers.low, numbers.high))  # -0.0 is 0
    _check_bounds(low, high, numbers.log, "low > 0", low > 0)
    if not math.isfinite(high - low):
        raise InputError("the range is too wide to calculate with", column="high", value=high, expected="less")
    return Real(low, high, numbers.log)


def _whole(table: _WholeTable) -> Whole:
    low, high = table.low, table.high
    _check_bounds(low, high, table.log, "low >= 1", low >= 1)
    step_size = whole("step", table.step, 1, high - low)
    if table.log and step_size != 1:
        problem, expected = "a logarithmic scale has no step", "no step, or log = false"
        raise InputError(problem, column="step", value=step_size, expected=expected)
    return Whole(low, low + (high - low) // step_size * step_size, table.log, step_size)


def _check_bounds(low: float, high: float, log: bool, expectation: str, is_positive: bool) -> None:
    if not low < high:
        problem, expectation = "low is not below high", f"low < high (here {high!r})"
        fix = "a fixed value is no hyper-parameter: leave its table out"
    elif log and not is_positive:
        problem, fix = "a logarithmic scale needs a positive low", "raise low, or drop log = true"
    else:
        return
    raise InputError(problem, column="low", value=low, expected=expectation, fix=fix)
