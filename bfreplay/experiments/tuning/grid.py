"""What is tried: values of the grid on two parts of the log, and what every pair of values gave there."""

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
"""Of a log on which all usual values are tried; on longer logs these:"""

LONG_LOG_T_FWD: tuple[ForwardTime, ...] = (30.0, 120.0, 600.0, AUTO)
LONG_LOG_MAX_PARALLEL = (10, 35, 70)

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
    t_fwd: Sequence[ForwardTime] | None, max_parallel: Sequence[int] | None, *, n_jobs: int | None, shortest_s: float,
    n_pool_events: int = 0,
) -> Grid:  # fmt: skip
    """Check what was given, put the usual values where nothing was, and cut.

    Parameters
    ----------
    t_fwd, max_parallel
        ``None`` for the usual values.
    n_jobs
        More jobs at once than there are change nothing, so such numbers are cut to it; ``None`` where nobody knows.
    shortest_s
        Length of the shorter part of the log. Usual values of t_fwd beyond it are left out.
    n_pool_events
        Of the whole log: more than ``MOST_POOL_EVENTS``, and fewer usual values are tried.

    Raises
    ------
    InputError
        No values, a value twice, or one that no run could use.
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
    seconds = _checked("t_fwd", t_fwd, usual_t_fwd)
    fixed = sorted(each for each in seconds if not isinstance(each, str))
    if t_fwd is None:
        usable = [each for each in fixed if each <= shortest_s] or fixed[:1]
        if len(usable) < len(fixed):
            notes.append(f"Values of T_fwd above {usable[-1]:g} s were left out: a part of the log is shorter.")
        fixed = usable
    numbers = sorted(_checked("max_parallel", max_parallel, usual_max_parallel))
    if n_jobs is not None and numbers[-1] > n_jobs:
        left_out = ", ".join(str(each) for each in numbers if each > n_jobs)
        notes.append(f"There are {n_jobs:,} jobs, so {n_jobs:,} stands for more at once ({left_out}).")
        numbers = sorted({min(each, n_jobs) for each in numbers})
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


def seconds(t_fwd: float | str) -> str:
    """``300 s``, or ``auto``."""
    return t_fwd if isinstance(t_fwd, str) else f"{t_fwd:g} s"


def percent(share: float) -> str:
    """``97.6`` of 0.976, ``0.5`` of 0.005, ``0.04`` of 0.0004: as many decimals as a difference needs."""
    value = 100 * share
    if value == 0:
        return "0"
    return f"{value:.1f}" if abs(value) >= 0.995 else f"{value:.2g}" if abs(value) >= 0.005 else f"{value:.1g}"


_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """A window of the log, in microseconds since the epoch; ``end_us`` is outside."""

    start_us: int
    end_us: int

    @property
    def duration_s(self) -> float:
        """Its length."""
        return (self.end_us - self.start_us) / _SECOND_US

    @property
    def window(self) -> tuple[str, str]:
        """As ``RunOptions`` takes it."""
        return iso_utc(self.start_us), iso_utc(self.end_us)


def split(start_us: int, end_us: int, train: float) -> tuple[Part, Part]:
    """The first ``train`` of a window, and the rest; together they are the window, and they share no moment.

    The border is a whole second where one lies inside.

    Raises
    ------
    InputError
        ``train`` leaves nothing for one of them.
    """
    share = checks.number("train", train, above=0, most=1)
    border = start_us + round(share * (end_us - start_us))
    whole = border - border % _SECOND_US
    border = whole if whole > start_us else border
    if not start_us < border < end_us:
        raise InputError(
            "train leaves nothing to tune on, or nothing to validate on", column="train", value=train,
            expected="a share of the log between 0 and 1", fix="two thirds (0.67) is a good start",
        )  # fmt: skip
    return Part(start_us, border), Part(border, end_us)


SAMPLES, FINISH = "samples", "finish"
"""What is measured: samples processed in the part; or, where every run did all the work, when it was done."""


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Of one part of the log. Arrays are (T, M): a row for each t_fwd, a column for each max_parallel.

    Parameters
    ----------
    measure
        ``"samples"`` or ``"finish"``.
    value : float64
        Samples; or seconds from the start of the part to when all work was done.
    rescales : int64
        Jobs scaled_up and scaled_down by decision.
    share_of_bound : float64
        Samples over the upper bound; nan where there is none.
    n_pool_events
        Events of the part.
    idle_nodes
        Their mean.
    """

    measure: str
    value: NDArray[np.float64]
    rescales: NDArray[np.int64]
    share_of_bound: NDArray[np.float64]
    n_pool_events: int
    idle_nodes: float

    @property
    def share(self) -> NDArray[np.float64]:
        """How near each pair comes to the best of the grid, 0 to 1: samples over most samples, or least time over time.

        0 everywhere where none processed anything.
        """
        value = self.value
        if self.measure == SAMPLES:
            most = value.max()
            return value / most if most > 0 else np.zeros_like(value)
        share = np.ones_like(value)  # jobs without work are done at once
        np.divide(value.min(), value, out=share, where=value > 0)
        return share


def surface_of(results: pa.Table, grid: Grid, *, unlimited_work: bool, start_us: int) -> Surface:
    """The results of a sweep for one part, in the order of ``grid``: t_fwd outside, max_parallel inside.

    Parameters
    ----------
    results
        Rows of ``SweepResult.results``, all finished.
    grid
        What they stand for.
    unlimited_work
        Jobs never end, so samples are what is measured.
    start_us
        Start of the part.
    """
    shape = len(grid.t_fwd), len(grid.max_parallel)
    samples, last_finish, bound, scaled_up, scaled_down, n_events, idle_nodes = (
        results[name].to_pylist()
        for name in (
            "samples", "last_finish", "share_of_bound", "n_scale_ups", "n_scale_downs",
            "n_pool_events", "equivalent_nodes",
        )
    )  # fmt: skip
    done = not unlimited_work and None not in last_finish
    value = [(microseconds_of(time) - start_us) / 1e6 for time in last_finish] if done else samples
    return Surface(
        FINISH if done else SAMPLES,
        np.array(value, dtype=np.float64).reshape(shape),
        (np.array(scaled_up, dtype=np.int64) + np.array(scaled_down, dtype=np.int64)).reshape(shape),
        np.array(bound, dtype=np.float64).reshape(shape),
        int(n_events[0]),
        float(idle_nodes[0]),
    )
