"""The values that are tried: given or usual, checked, and cut to what the jobs and the log can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from bfreplay.errors import InputError
from bfreplay.experiments.run_options import AUTO, OPTIONS
from bfreplay.options import option_name

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
    seconds = _checked("t_fwd", t_fwd, USUAL_T_FWD)
    fixed = sorted(each for each in seconds if not isinstance(each, str))
    if t_fwd is None:
        usable = [each for each in fixed if each <= shortest_s] or fixed[:1]
        if len(usable) < len(fixed):
            notes.append(f"Values of T_fwd above {usable[-1]:g} s were left out: a part of the log is shorter.")
        fixed = usable
    numbers = sorted(_checked("max_parallel", max_parallel, USUAL_MAX_PARALLEL))
    if n_jobs is not None and numbers[-1] > n_jobs:
        cut = sorted({min(each, n_jobs) for each in numbers})
        left_out = ", ".join(str(each) for each in numbers if each > n_jobs)
        notes.append(f"There are {n_jobs:,} jobs, so {n_jobs:,} stands for more at once ({left_out}).")
        numbers = cut
    forward_times: tuple[ForwardTime, ...] = (*fixed, AUTO) if AUTO in seconds else tuple(fixed)
    return Grid(forward_times, tuple(numbers), n_jobs is not None and numbers[-1] >= n_jobs, tuple(notes))


def _checked(field: str, values: Sequence[_Value] | None, usual: Sequence[_Value]) -> list[_Value]:
    """Values of an option, each as the option itself has it."""
    name = option_name(field)
    given = usual if values is None else values
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(
            f"{name} is no list", column=name, value=given, expected="a list of values", fix="put it in brackets"
        )
    if not given:
        raise InputError(
            f"{name} has no values", column=name, value=list(given), expected="one at least",
            fix="add some, or leave it out for the usual ones",
        )  # fmt: skip
    found = [OPTIONS[field].check(name, each) for each in given]
    twice = [each for k, each in enumerate(found) if each in found[:k]]
    if twice:
        raise InputError(
            f"{name} has a value twice", column=name, value=twice[0], expected="each value once", fix="drop one"
        )
    return found
