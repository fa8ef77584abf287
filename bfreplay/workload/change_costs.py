"""Cost of a change by the new count, and the words for what else a change of nodes does to a job."""

from __future__ import annotations

import itertools
import operator
import sys
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.saved_state import restorable

_OUT_OF_RANGE = "a rescale cost is negative or not a number"
_EXPECTED = "seconds >= 0, or seconds by the new count: '0:20 4:29 8:95' (29 s on 4 to 7 nodes)"


class Restart(StrEnum):
    """Ways to pay for a change.

    ``charge``: a debt in samples, worked off at the new rate (BFTrainer's). ``pause``: no progress for that time; a
    change during a pause begins a whole one.
    """

    CHARGE = "charge"
    PAUSE = "pause"


class Saves(StrEnum):
    """Occasions on which the work at risk is saved, besides every ``work_saved_every_s``.

    ``on-notice``: at every reclaim of a replay with --notice. ``on-resize``: also before changes by decisions.
    """

    NEVER = "never"
    ON_NOTICE = "on-notice"
    ON_RESIZE = "on-resize"


@restorable
@dataclass(frozen=True, slots=True)
class CostByCount:
    """Seconds that a change costs, by the count of nodes after it.

    Parameters
    ----------
    steps
        ``(count, seconds)``: from this count on. The first count is 0; counts increase.

    Raises
    ------
    InputError
        Counts are out of order, or a cost is negative or not finite.
    """

    steps: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        try:
            steps = tuple((operator.index(count), seconds_of(seconds)) for count, seconds in self.steps)
        except (TypeError, ValueError):
            raise _error("the costs by count are no pairs of a whole number and seconds", self.steps) from None
        if not steps or steps[0][0] != 0:
            raise _error("the costs do not begin at count 0", self.steps)
        for (count, _), (next_count, _) in itertools.pairwise(steps):
            if not count < next_count <= checks.MOST_NODES:
                raise _error("the counts of the costs do not increase", f"{count}, {next_count}")
        object.__setattr__(self, "steps", steps)

    def __str__(self) -> str:
        return " ".join(f"{count}:{repr(seconds).removesuffix('.0')}" for count, seconds in self.steps)

    def __format__(self, spec: str) -> str:
        return str(self)

    def at(self, count: int) -> float:
        """Return the seconds of a change to ``count`` nodes."""
        return self.steps[bisect_right(self.steps, count, key=lambda step: step[0]) - 1][1]


Cost = float | CostByCount
"""Seconds that a change costs: the same at every count, or by count."""


def cost_of(value: object) -> Cost:
    """Return the cost that a number, a mapping of counts to seconds, or a text such as ``0:20 4:29`` stands for.

    The keys of a mapping may be text, as in TOML; a list of pairs, as of a map in Parquet, stands for a mapping.

    Raises
    ------
    InputError
        It is none of these; the column is left to the caller.
    """
    given = value
    try:
        if isinstance(value, str) and ":" not in value:
            value = checks.decimal(value)
        elif isinstance(value, str):
            pairs_of_text = (step.split(":") for step in value.split())
            value = [(_count_of(count), checks.decimal(seconds)) for count, seconds in pairs_of_text]
        elif isinstance(value, Mapping):
            value = list(value.items())
        if isinstance(value, list | tuple):
            steps = ((_count_of(count) if isinstance(count, str) else count, seconds) for count, seconds in value)
            value = CostByCount(tuple(sorted(steps)))
    except (TypeError, ValueError):
        raise _error("a cost cannot be read", given) from None
    if isinstance(value, CostByCount):
        return value.steps[0][1] if len({seconds for _, seconds in value.steps}) == 1 else value
    return seconds_of(value)


def seconds_of(value: object) -> float:
    """Return a number of seconds >= 0; InputError for anything else."""
    if isinstance(value, np.integer | np.floating):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _error("a cost is no number", value)
    if not 0 <= value <= sys.float_info.max:
        raise _error(_OUT_OF_RANGE, value)
    return float(value) + 0.0  # -0.0 is 0


def _count_of(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise _error("the count of a cost is no whole number", text)
    return int(text)


def seconds_at(cost: Cost, count: int) -> float:
    """Return the seconds of a change to ``count`` nodes."""
    return cost.at(count) if isinstance(cost, CostByCount) else cost


def highest(cost: Cost) -> float:
    """Return the largest seconds of any count."""
    return max(seconds for _, seconds in cost.steps) if isinstance(cost, CostByCount) else cost


def lowest(cost: Cost) -> float:
    """Return the smallest seconds of any count."""
    return min(seconds for _, seconds in cost.steps) if isinstance(cost, CostByCount) else cost


def cost_table(cost: Cost, width: int) -> NDArray[np.float64]:
    """Return the seconds at 0 to ``width - 1`` nodes, (width,)."""
    if not isinstance(cost, CostByCount):
        return np.full(width, cost)
    counts, seconds = zip(*cost.steps, strict=True)
    return np.array(seconds)[np.searchsorted(counts, np.arange(width), side="right") - 1]


def _error(problem: str, value: object) -> InputError:
    return InputError(problem, value=value, expected=_EXPECTED)
