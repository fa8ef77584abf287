"""Confidence intervals of differences: block bootstrap over time, and bootstrap over jobs.

Neighbouring hours of a log are correlated, so blocks of hours are drawn: the circular block bootstrap (Politis and
Romano, 1992). The length of a block is ``LENGTHEN`` times the larger of two numbers: the optimal length for the
variance of the series (Politis and White, 2004; corrected by Patton, Politis and White, 2009), and the cube root of the
number of hours, as the rule misses a slow wave under much noise.

The ends are those of the percentile interval, moved away from the estimate by ``_widening``: with only k blocks,
percentiles are too narrow by the ratio of a normal quantile to one of Student's t with k - 1 degrees of freedom.
Measured coverage: benchmarks/bench_block_bootstrap.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bfreplay.experiments.run_comparison.hours import Floats, Ints
from bfreplay.experiments.study_options import Bootstrap
from bfreplay.result_folders.comparison import Estimate
from bfreplay.wording import count

LEVEL = 0.95
_TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
LENGTHEN = 1.5
LEAST_BLOCKS = 4
LEAST_BINS = 16
LEAST_JOBS = 8
BIN, START = "bin", "start"
"""Names for a value of a series, in the reasons for having no interval."""
_MORE = {BIN: "use shorter bins (--bin)", START: "use more (--starts)"}
_BAND_ENDS = 240
"""Largest number of points of a band, evenly spaced, the last one at the end."""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Cumulative differences at P times, with pointwise 95 % intervals.

    Parameters
    ----------
    bins : (P,) int64
        Number of bins summed.
    value, low, high : (P,) float64
        ``low`` and ``high`` are nan without an interval.
    """

    bins: Ints
    value: Floats
    low: Floats
    high: Floats


def block_length(series: Floats) -> int:
    """Return the number of bins in a block for ``series`` (T,), at most T, by the rule above."""
    n_values = series.size
    longest = min(3 * math.sqrt(n_values), n_values / 3)  # the maximum of the rule
    with np.errstate(divide="ignore", invalid="ignore"):  # series that stand still for long
        length = min(_optimal_length(series), math.ceil(longest))
    if not math.isfinite(length):
        length = longest
    return min(n_values, math.ceil(LENGTHEN * max(length, math.cbrt(n_values))))


def _optimal_length(series: Floats) -> float:
    """Return the length of a block by Politis and White; not finite for a series without scatter.

    Autocovariances are weighted by a flat top, up to twice the first lag from which on ``quiet`` lags in a row are
    insignificant.
    """
    n_values, deviation = series.size, series - series.mean()
    quiet = max(5, int(math.log10(n_values)))
    lags = np.arange(math.ceil(math.sqrt(n_values)) + quiet + 1)
    products = np.array([deviation[lag:] @ deviation[: n_values - lag] for lag in lags])
    squares = np.array(
        [(deviation[lag:] @ deviation[lag:]) * (deviation[:-lag] @ deviation[:-lag]) for lag in lags + 1]
    )
    is_small = np.abs(products) / np.sqrt(squares) < 2 * math.sqrt(math.log10(n_values) / n_values)
    first_lag = next((lag for lag in lags[:-quiet] if is_small[lag : lag + quiet].all()), lags[-1])
    last_lag = min(2 * max(first_lag, 1), lags[-1])
    used = lags[1 : last_lag + 1]
    covariances = 2 * np.minimum(1, 2 * (1 - used / last_lag)) * products[used] / n_values
    variance = products[0] / n_values + covariances.sum()
    return float(np.cbrt(2 * (used @ covariances) ** 2 / (4 / 3 * variance**2) * n_values))


def mean_difference(difference: Floats, bootstrap: Bootstrap, unit: str = BIN) -> tuple[Estimate, Band]:
    """Estimate the mean of a series of differences (T,), and its cumulative sum.

    Parameters
    ----------
    difference
        B - A in each bin, so that both runs are resampled together.
    bootstrap
        Seed, and number of series drawn.
    unit
        ``BIN`` or ``START``: name of a value.
    """
    mean, n_values = float(difference.mean()), difference.size
    ends = np.unique(np.linspace(1, n_values, min(n_values, _BAND_ENDS)).round().astype(np.int64))
    total = np.cumsum(difference)[ends - 1]
    nothing = np.full(ends.size, np.nan)
    # no scatter: no difference, or the same in enough bins
    if not difference.any() or (n_values >= LEAST_BINS and float(np.ptp(difference)) == 0.0):
        return Estimate.interval(mean, mean, mean, n_values), Band(ends, total, total, total)
    length, why_not = _blocks(difference, unit)
    if length is None:
        return Estimate.alone(mean, n_values, why_not), Band(ends, total, nothing, nothing)
    resampled = _resample(difference[:, None], length, bootstrap, lambda block: np.cumsum(block[:, 0])[ends - 1])
    low, high = total + _widening(n_values / length) * (np.quantile(resampled, _TAILS, axis=0) - mean * ends)
    estimate = Estimate.interval(mean, float(low[-1]) / n_values, float(high[-1]) / n_values, n_values, length)
    return estimate, Band(ends, total, low, high)


def relative_difference(baseline: Floats, other: Floats, bootstrap: Bootstrap) -> Estimate:
    """Estimate ``sum(other) / sum(baseline) - 1`` of two series (T,), resampled together.

    The length of blocks is that of ``other - ratio * baseline``, which is proportional to the ratio's error.
    """
    n_values, below = baseline.size, float(baseline.sum())
    if below <= 0.0:
        return Estimate.alone(None, n_values, "A has none of it")
    ratio = float(other.sum()) / below
    error = other - ratio * baseline
    if not np.any(baseline != other):
        return Estimate.interval(0.0, 0.0, 0.0, n_values)
    if n_values >= LEAST_BINS and np.ptp(error) <= 1e-12 * float(np.abs(other).max()):
        return Estimate.interval(ratio - 1.0, ratio - 1.0, ratio - 1.0, n_values)
    length, why_not = _blocks(error)
    if length is None:
        return Estimate.alone(ratio - 1.0, n_values, why_not)
    resampled = _resample(np.stack([baseline, other], axis=1), length, bootstrap, lambda block: block.sum(axis=0))
    if not (resampled[:, 0] > 0.0).all():
        return Estimate.alone(ratio - 1.0, n_values, "A has none of it in most hours")
    quantiles = np.quantile(resampled[:, 1] / resampled[:, 0], _TAILS)
    low, high = (ratio + _widening(n_values / length) * (quantiles - ratio)).tolist()
    return Estimate.interval(ratio - 1.0, low - 1.0, high - 1.0, n_values, length)


def median_over_jobs(difference: Floats, bootstrap: Bootstrap) -> Estimate:
    """Estimate the median of differences of J jobs (J,), with the percentile interval of the bootstrap over jobs.

    Jobs of one run share its nodes, so they are not independent: the interval shows the spread of the jobs, not the
    outcome on another log.
    """
    n_jobs = difference.size
    if n_jobs == 0:
        return Estimate.alone(None, 0, "there is no such job")
    median = float(np.median(difference))
    if not difference.any() or (n_jobs >= LEAST_JOBS and np.ptp(difference) == 0.0):
        return Estimate.interval(median, median, median, n_jobs)
    if n_jobs < LEAST_JOBS:
        return Estimate.alone(median, n_jobs, f"{n_jobs} of at least {LEAST_JOBS} jobs that are needed")
    low, high = np.quantile(_resample(difference, 1, bootstrap, np.median), _TAILS)
    return Estimate.interval(median, float(low), float(high), n_jobs)


def _blocks(series: Floats, unit: str = BIN) -> tuple[int | None, str | None]:
    """Return the length of a block, or the reason for having no interval."""
    n_values = series.size
    if n_values < LEAST_BINS:
        return None, f"only {count(n_values, unit)}: at least {LEAST_BINS} are needed; {_MORE[unit]}"
    length = block_length(series)
    if n_values < LEAST_BLOCKS * length:
        return None, (
            f"{n_values} {unit}s are {n_values / length:.1f} blocks of {length} (the range of correlation): at least "
            f"{LEAST_BLOCKS} are needed; use a longer window"
        )
    return length, None


def _resample(columns: Floats, length: int, bootstrap: Bootstrap, statistic: Callable[[Floats], Any]) -> Floats:
    """Return ``statistic`` of ``columns`` (T, ...) in every resample, of blocks that go on at the start: (R, ...)."""
    generator, n_values = np.random.default_rng(bootstrap.seed), len(columns)
    n_blocks, inside = math.ceil(n_values / length), np.arange(length)
    resampled = []
    for _ in range(bootstrap.resamples):
        positions = (generator.integers(n_values, size=n_blocks)[:, None] + inside).ravel()[:n_values] % n_values
        resampled.append(statistic(columns[positions]))
    return np.asarray(resampled, dtype=np.float64)


def _widening(n_blocks: float) -> float:
    """Return Student's t with k - 1 degrees of freedom over the normal quantile, and the root of k / (k - 1)."""
    from scipy.special import ndtri, stdtrit

    return float(stdtrit(n_blocks - 1, _TAILS[1]) / ndtri(_TAILS[1]) * math.sqrt(n_blocks / (n_blocks - 1)))
