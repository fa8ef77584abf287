"""Grid of a tuning, two parts of the log, and the results of every pair of values on each part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.datasets.times import iso_utc, microseconds_of
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import OPTIONS
from bfreplay.experiments.option_checks import AUTO
from bfreplay.options import option_name

ForwardTime = float | str
"""Seconds, or ``"auto"``."""

USUAL_T_FWD: tuple[ForwardTime, ...] = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, AUTO)
USUAL_MAX_PARALLEL = (5, 10, 20, 35, 70)

MOST_POOL_EVENTS = 30_000
"""Longest log on which all usual values are tried; longer logs have the following ones."""

LONG_LOG_T_FWD: tuple[ForwardTime, ...] = (30.0, 120.0, 600.0, AUTO)
LONG_LOG_MAX_PARALLEL = (10, 35, 70)

_Value = TypeVar("_Value", bound="float | str")


@dataclass(frozen=True, slots=True)
class Grid:
    """Values of a tuning: every pair is tried.

    Parameters
    ----------
    t_fwd
        Seconds, ascending; then ``"auto"`` if it is tried.
    max_parallel
        Ascending.
    takes_all_jobs
        True if the largest ``max_parallel`` covers all jobs.
    notes
        Sentences on omitted values.
    """

    t_fwd: tuple[ForwardTime, ...]
    max_parallel: tuple[int, ...]
    takes_all_jobs: bool = False
    notes: tuple[str, ...] = ()


def grid_of(
    t_fwd: Sequence[ForwardTime] | None,
    max_parallel: Sequence[int] | None,
    *,
    n_jobs: int | None,
    shortest_s: float,
    n_pool_events: int = 0,
) -> Grid:
    """Return the grid of the given or the usual values, checked and cut.

    Parameters
    ----------
    t_fwd, max_parallel
        ``None`` for the usual values.
    n_jobs
        Number of jobs, to which larger values of max_parallel are cut; ``None`` if unknown.
    shortest_s
        Length of the shorter part of the log. Usual values of t_fwd beyond it are omitted.
    n_pool_events
        Pool events of the whole log; with more than ``MOST_POOL_EVENTS``, fewer usual values are tried.

    Raises
    ------
    InputError
        No values, a duplicate value, or an invalid one.
    """
    notes = []
    usual_t_fwd: Sequence[ForwardTime] = USUAL_T_FWD
    usual_max_parallel: Sequence[int] = USUAL_MAX_PARALLEL
    if n_pool_events > MOST_POOL_EVENTS and (t_fwd is None or max_parallel is None):
        usual_t_fwd, usual_max_parallel = LONG_LOG_T_FWD, LONG_LOG_MAX_PARALLEL
        notes.append(
            f"The log has {n_pool_events:,} pool events, more than {MOST_POOL_EVENTS:,}: fewer values are tried by "
            "default. --t-fwd and --max-parallel try others."
        )
    seconds = check_values("t_fwd", t_fwd, usual_t_fwd)
    fixed_s = sorted(second for second in seconds if not isinstance(second, str))
    if t_fwd is None:
        usable = [value_s for value_s in fixed_s if value_s <= shortest_s] or fixed_s[:1]
        if len(usable) < len(fixed_s):
            notes.append(f"Values of T_fwd above {usable[-1]:g} s are omitted: a part of the log is shorter.")
        fixed_s = usable
    numbers = sorted(check_values("max_parallel", max_parallel, usual_max_parallel))
    if n_jobs is not None and numbers[-1] > n_jobs:
        larger = ", ".join(str(n_at_once) for n_at_once in numbers if n_at_once > n_jobs)
        notes.append(f"There are {n_jobs:,} jobs, so larger numbers at once ({larger}) are replaced by {n_jobs:,}.")
        numbers = sorted({min(n_at_once, n_jobs) for n_at_once in numbers})
    forward_times: tuple[ForwardTime, ...] = (*fixed_s, AUTO) if AUTO in seconds else tuple(fixed_s)
    return Grid(forward_times, tuple(numbers), n_jobs is not None and numbers[-1] >= n_jobs, tuple(notes))


def check_values(field: str, values: Sequence[_Value] | None, usual: Sequence[_Value]) -> list[_Value]:
    """Return the values of an option, each checked by the option."""
    option = option_name(field)
    raw_values = usual if values is None else values

    def refusal(problem: str, value: object, expected: str, fix: str) -> InputError:
        return InputError(f"{option} {problem}", column=option, value=value, expected=expected, fix=fix)

    if isinstance(raw_values, str) or not isinstance(raw_values, Sequence):
        raise refusal("is not a list", raw_values, "a list of values", "put it in brackets")
    if not raw_values:
        raise refusal("has no values", list(raw_values), "at least one", "add some, or omit it for the default values")
    checked_values = [OPTIONS[field].check(option, value) for value in raw_values]
    duplicates = [value for index, value in enumerate(checked_values) if value in checked_values[:index]]
    if duplicates:
        raise refusal("has a duplicate value", duplicates[0], "each value once", "remove one")
    return checked_values


def seconds(t_fwd: float | str) -> str:
    """Return ``300 s``, or ``auto``."""
    return t_fwd if isinstance(t_fwd, str) else f"{t_fwd:g} s"


_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class LogPart:
    """A window of the log, in microseconds since the epoch; ``end_us`` is outside."""

    start_us: int
    end_us: int

    @property
    def duration_s(self) -> float:
        """Length of the part."""
        return (self.end_us - self.start_us) / _SECOND_US

    @property
    def window(self) -> tuple[str, str]:
        """Start and end for ``RunOptions``."""
        return iso_utc(self.start_us), iso_utc(self.end_us)


def split(start_us: int, end_us: int, train: float) -> tuple[LogPart, LogPart]:
    """Split a window into its first share ``train`` and the rest, which do not overlap.

    The border is a whole second if one lies inside.

    Raises
    ------
    InputError
        ``train`` leaves nothing for one of them.
    """
    share = checks.number("train", train, above=0, most=1)
    border = start_us + round(share * (end_us - start_us))
    whole_seconds_us = border - border % _SECOND_US
    border = whole_seconds_us if whole_seconds_us > start_us else border
    if not start_us < border < end_us:
        raise InputError(
            "train leaves nothing to tune on, or nothing to validate on",
            column="train",
            value=train,
            expected="a share of the log between 0 and 1",
            fix="two thirds (0.67) is a good start",
        )
    return LogPart(start_us, border), LogPart(border, end_us)


SAMPLES, FINISH = "samples", "finish"
"""Measures: samples processed in the part; or finish time, if every run did all the work."""


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Results on one part of the log. Arrays are (T, M): a row for each t_fwd, a column for each max_parallel.

    Parameters
    ----------
    measure
        ``"samples"`` or ``"finish"``.
    value : float64
        Samples; or seconds from the start of the part until all work was done.
    rescales : int64
        Number of times that jobs were scaled up or down.
    share_of_bound : float64
        Samples over the upper bound; nan without one.
    n_pool_events
        Pool events of the part.
    idle_nodes
        Mean number of idle nodes.
    """

    measure: str
    value: NDArray[np.float64]
    rescales: NDArray[np.int64]
    share_of_bound: NDArray[np.float64]
    n_pool_events: int
    idle_nodes: float

    @property
    def share(self) -> NDArray[np.float64]:
        """Share of the best of the grid, 0 to 1: samples over most samples, or least time over time.

        0 everywhere if no run processed anything.
        """
        value = self.value
        if self.measure == SAMPLES:
            largest = value.max()
            return value / largest if largest > 0 else np.zeros_like(value)
        share = np.ones_like(value)  # jobs without work are done at once
        np.divide(value.min(), value, out=share, where=value > 0)
        return share


def surface_of(results: pa.Table, grid: Grid, *, unlimited_work: bool, start_us: int) -> Surface:
    """Return the results of a sweep for one part, in the order of ``grid``: t_fwd outside, max_parallel inside.

    Parameters
    ----------
    results
        Rows of ``SweepResult.results``, all finished.
    grid
        Values of the rows.
    unlimited_work
        True if jobs never end, so that samples are the measure.
    start_us
        Start of the part.
    """
    shape = len(grid.t_fwd), len(grid.max_parallel)
    columns = results.to_pydict()
    are_finished = not unlimited_work and None not in columns["last_finish"]
    values = columns["samples"]
    if are_finished:
        values = [(microseconds_of(time) - start_us) / 1e6 for time in columns["last_finish"]]
    n_scale_ups, n_scale_downs = (np.array(columns[name], np.int64) for name in ("n_scale_ups", "n_scale_downs"))
    return Surface(
        FINISH if are_finished else SAMPLES,
        np.array(values, dtype=np.float64).reshape(shape),
        (n_scale_ups + n_scale_downs).reshape(shape),
        np.array(columns["share_of_bound"], dtype=np.float64).reshape(shape),
        int(columns["n_pool_events"][0]),
        float(columns["equivalent_nodes"][0]),
    )
