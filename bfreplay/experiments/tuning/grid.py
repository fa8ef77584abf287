"""The values that are tried: given or usual, checked, and cut to what the jobs and the log can use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.experiments.run_options import AUTO

ForwardTime = float | str
"""Seconds, or ``"auto"``."""

USUAL_T_FWD: tuple[ForwardTime, ...] = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, AUTO)
USUAL_MAX_PARALLEL = (5, 10, 20, 35, 70)

_Value = TypeVar("_Value", bound="float | str")


@dataclass(frozen=True, slots=True)
class Grid:
    """Every pair of these is tried.

    Parameters
    ----------
    t_fwd
        Seconds, ascending; then ``"auto"`` where it is tried.
    max_parallel
        Ascending.
    takes_all_jobs
        The largest ``max_parallel`` stands for all the jobs that there are.
    notes
        What was cut, as sentences.
    """

    t_fwd: tuple[ForwardTime, ...]
    max_parallel: tuple[int, ...]
    takes_all_jobs: bool = False
    notes: tuple[str, ...] = ()


def grid_of(
    t_fwd: Sequence[ForwardTime] | None, max_parallel: Sequence[int] | None, *, n_jobs: int | None, shortest_s: float
) -> Grid:
    """Check what was given, put the usual values where nothing was, and cut.

    Parameters
    ----------
    t_fwd, max_parallel
        ``None`` for the usual values.
    n_jobs
        More jobs at once than there are change nothing, so such numbers are cut to it; ``None`` where nobody knows.
    shortest_s
        Length of the shorter part of the log. Usual values of t_fwd beyond it are left out.

    Raises
    ------
    InputError
        No values, a value twice, or one that no run could use.
    """
    notes = []
    seconds = _checked("t-fwd", USUAL_T_FWD if t_fwd is None else t_fwd, _forward_time)
    fixed = sorted(each for each in seconds if not isinstance(each, str))
    if t_fwd is None:
        usable = [each for each in fixed if each <= shortest_s] or fixed[:1]
        if len(usable) < len(fixed):
            notes.append(f"Values of T_fwd above {usable[-1]:g} s were left out: a part of the log is shorter.")
        fixed = usable
    numbers = sorted(_checked("max-parallel", USUAL_MAX_PARALLEL if max_parallel is None else max_parallel, _number))
    if n_jobs is not None and numbers[-1] > n_jobs:
        cut = sorted({min(each, n_jobs) for each in numbers})
        left_out = ", ".join(str(each) for each in numbers if each > n_jobs)
        notes.append(f"There are {n_jobs:,} jobs, so {n_jobs:,} stands for more at once ({left_out}).")
        numbers = cut
    forward_times: tuple[ForwardTime, ...] = (*fixed, AUTO) if AUTO in seconds else tuple(fixed)
    return Grid(forward_times, tuple(numbers), n_jobs is not None and numbers[-1] >= n_jobs, tuple(notes))


def listed(option: str, text: str) -> list[str]:
    """Split ``"10,30, auto"`` at its commas.

    Raises
    ------
    InputError
        There is nothing between two of them.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise InputError(
            f"--{option} has an empty place in its list", column=option, value=text,
            expected="values with commas between them, such as 60,120,300", fix="drop the comma that is too many",
        )  # fmt: skip
    return words


def forward_time_of(word: str) -> ForwardTime:
    """``"300"`` or ``"auto"``; InputError for anything else."""
    if word == AUTO:
        return AUTO
    try:
        return float(word)
    except ValueError:
        raise InputError(
            "--t-fwd has something that is neither a number of seconds nor 'auto'", column="t-fwd", value=word,
            expected="a list such as 60,120,300,auto", fix="write seconds in digits, with commas between values",
        ) from None  # fmt: skip


def number_of(word: str) -> int:
    """``"35"``; InputError for anything else."""
    try:
        return int(word)
    except ValueError:
        raise InputError(
            "--max-parallel has something that is no whole number", column="max-parallel", value=word,
            expected="a list such as 5,10,20", fix="write whole numbers, with commas between them",
        ) from None  # fmt: skip


def _checked(option: str, values: Sequence[_Value], check: Callable[[object], _Value]) -> list[_Value]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError(
            f"{option} is no list", column=option, value=values, expected="a list of values", fix="put it in brackets"
        )
    if not values:
        raise InputError(
            f"{option} has no values", column=option, value=list(values), expected="one at least",
            fix="add some, or leave it out for the usual ones",
        )  # fmt: skip
    found = [check(each) for each in values]
    twice = [each for k, each in enumerate(found) if each in found[:k]]
    if twice:
        raise InputError(
            f"{option} has a value twice", column=option, value=twice[0], expected="each value once", fix="drop one"
        )
    return found


def _forward_time(value: object) -> ForwardTime:
    if value == AUTO:
        return AUTO
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise InputError(
            "t-fwd has a value that is no forward-looking time", column="t-fwd", value=value,
            expected=f"seconds > 0, or {AUTO!r}", fix="drop it, or write another",
        )  # fmt: skip
    return float(value)


def _number(value: object) -> int:
    return checks.whole("max-parallel", value, 1)
