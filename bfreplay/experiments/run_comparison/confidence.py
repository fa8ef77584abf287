"""Measures of a run in each bin of time, and confidence intervals of differences: bootstrap over blocks and jobs.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bfreplay.datasets.idleness.pool import StepColumns
from bfreplay.errors import InputError
from bfreplay.experiments.study_options import Bootstrap
from bfreplay.result_folders.comparison import Estimate
from bfreplay.result_folders.records import table_by
from bfreplay.runs.comparison_tables import HOUR_WORDS
from bfreplay.runs.explain.saved_tables import NODE_US_PER_HOUR, SavedAllocations
from bfreplay.runs.run_result import RunResult
from bfreplay.wording import count

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

US_PER_S = 1_000_000
MOST_BINS = 100_000
MEASURES = tuple(HOUR_WORDS)
"""Measures of a bin, in the order of the table ``hours``."""


def bin_edges(start_us: int, end_us: int, bin_s: float) -> Ints:
    """Return (T + 1,) edges in microseconds since the epoch, from the start of the window; the last bin may be shorter.

    Raises
    ------
    InputError
        There would be more than ``MOST_BINS``.
    """
    step = round(bin_s * US_PER_S)
    n_bins = max(1, -(-(end_us - start_us) // step))
    if n_bins > MOST_BINS:
        raise InputError(
            f"there would be {n_bins:,} bins",
            column="bin",
            value=bin_s,
            expected=f"at most {MOST_BINS:,}",
            fix="use longer bins (--bin)",
        )
    return np.append(start_us + step * np.arange(n_bins, dtype=np.int64), end_us)


@dataclass(frozen=True, slots=True, eq=False)
class RunHours:
    """One run in T bins.

    Parameters
    ----------
    edge_us : (T + 1,) int64
        Bins, in microseconds since the epoch.
    values
        A ``(T,)`` float array for each of ``MEASURES``.
    """

    edge_us: Ints
    values: dict[str, Floats]


def run_hours(run: RunResult, edge_us: Ints, idle_node_hours: Floats | None = None) -> RunHours:
    """Compute the measures of ``run`` in each bin; ``idle_node_hours`` (T,) is by default its ``best_known_idle``.

    - ``samples``: progress since the previous row of the table ``decisions``, split over bins in proportion to time.
      The ledger's samples less the sum of all rows belong to the time after the last row, so that the bins add up to
      the samples of the run, to rounding.
    - ``held_node_hours``: allocated node-hours, exact, from the table ``allocations``.
    - ``free_node_hours``: idle less allocated node-hours.
    - ``rescale_cost_samples``, ``preemption_cost_samples``: costs charged in the bin, worked off a little later.
    - ``n_scale_ups``, ``n_scale_downs``, ``n_preemptions``: rescales and preemptions of single jobs.

    A bin includes its begin but not its end; the last bin includes both.
    """
    rescale_cost = (
        ("rescale_cost_samples", "rescale_cost_samples"),
        ("preemption_cost_samples", "preemption_cost_samples"),
        ("n_scale_ups", "n_jobs_scaled_up"),
        ("n_scale_downs", "n_jobs_scaled_down"),
        ("n_preemptions", "n_jobs_preempted"),
    )
    rows = run.columns("decisions", "time", "samples_since_last", *(column for _, column in rescale_cost))
    time_us = times_us(rows["time"])
    samples = _floats(rows["samples_since_last"])
    bin_index = np.clip(np.searchsorted(edge_us, time_us, side="right") - 1, 0, edge_us.size - 2)
    node_us = StepColumns(edge_us)
    for step_us, n_nodes in SavedAllocations.of(run).nodes_in_parts(int(edge_us[0]), int(edge_us[-1])):
        node_us.add(step_us, n_nodes)
    node_hours = node_us.area_us.astype(np.float64) / NODE_US_PER_HOUR
    idle = best_known_idle([run], edge_us) if idle_node_hours is None else idle_node_hours
    samples_by_bin = _samples_by_bin(run, time_us, samples, edge_us)
    values = {"samples": samples_by_bin, "held_node_hours": node_hours, "free_node_hours": idle - node_hours}
    for measure, column in rescale_cost:
        in_bin = np.bincount(bin_index, weights=_floats(rows[column]), minlength=edge_us.size - 1)
        values[measure] = np.asarray(in_bin, dtype=np.float64)
    return RunHours(edge_us, values)


def _samples_by_bin(run: RunResult, time_us: Ints, samples: Floats, edge_us: Ints) -> Floats:
    until = np.append(time_us, run.record.config.window_end_us)
    since = np.append(edge_us[0], time_us)
    samples_made = np.append(samples, run.summary.ledger.samples - float(samples.sum()))
    in_bin = np.zeros(edge_us.size - 1)
    # rows without duration (the first, or the last of the published clock) belong to one bin
    is_point = until <= since
    bin_index = np.clip(np.searchsorted(edge_us, until[is_point], side="right") - 1, 0, in_bin.size - 1)
    np.add.at(in_bin, bin_index, samples_made[is_point])
    since, until, samples_made = since[~is_point], until[~is_point], samples_made[~is_point]
    return in_bin + _in_proportion(since, until, samples_made, edge_us)


def _in_proportion(since: Ints, until: Ints, amount: Floats, edge_us: Ints) -> Floats:
    """Split the amounts of consecutive intervals over the bins in proportion to time."""
    if not since.size:
        return np.zeros(edge_us.size - 1)
    # times from the first edge, which floats hold exactly
    knots = np.append(since, until[-1]) - edge_us[0]
    upto = np.concatenate([[0.0], np.cumsum(amount)])
    at_edge = np.interp((edge_us - edge_us[0]).astype(np.float64), knots.astype(np.float64), upto)
    return np.asarray(np.diff(at_edge), dtype=np.float64)


def best_known_idle(runs: Sequence[RunResult], edge_us: Ints) -> Floats:
    """Return the idle node-hours of the log in each bin (T,), from runs that replay the same log.

    Every decision has the number of idle nodes from then on, and decisions end with the last job. So the run with the
    longest jobs is used, and the rest of its ledger is spread evenly over the time after that.
    """
    start_us, end_us = int(edge_us[0]), int(edge_us[-1])
    longest = max(runs, key=lambda run: _known_until(run, start_us, end_us))
    rows = longest.columns("decisions", "time", "n_idle")
    time_us, n_idle = times_us(rows["time"]), _floats(rows["n_idle"])
    end_of_record_us = _known_until(longest, start_us, end_us)
    until = np.append(time_us[1:], end_of_record_us)[: time_us.size]
    is_span = until > time_us
    in_bin = _in_proportion(time_us[is_span], until[is_span], (n_idle * (until - time_us))[is_span], edge_us)
    unknown_us = end_us - end_of_record_us
    if unknown_us:
        n_mean = (float(longest.summary.ledger.idle_node_us) - float(in_bin.sum())) / unknown_us
        covered_us = np.diff(np.minimum(edge_us, end_of_record_us))
        in_bin = in_bin + n_mean * (np.diff(edge_us) - covered_us).astype(np.float64)
    return in_bin / NODE_US_PER_HOUR


def _known_until(run: RunResult, start_us: int, end_us: int) -> int:
    """Return the time until which the decisions of a run have the number of idle nodes."""
    time_us = times_us(run.columns("decisions", "time")["time"])
    if not time_us.size:
        return start_us
    return end_us if run.summary.last_finish_us is None else int(time_us[-1])


def hours_table(runs: Sequence[RunHours], labels: Sequence[str]) -> pa.Table:
    """Return the rows of all runs, bin by bin: ``run``, ``begin``, ``end``, ``MEASURES``."""
    n_bins = runs[0].edge_us.size - 1
    times = np.tile(runs[0].edge_us.astype("datetime64[us]"), (len(runs), 1))
    columns = (np.concatenate([run.values[measure] for run in runs]) for measure in MEASURES)
    return table_by(HOURS, [np.repeat(labels, n_bins).tolist(), times[:, :-1].ravel(), times[:, 1:].ravel(), *columns])


HOURS = pa.schema(
    [
        ("run", pa.string()),
        ("begin", pa.timestamp("us", tz="UTC")),
        ("end", pa.timestamp("us", tz="UTC")),
        *((name, pa.float64()) for name in MEASURES),
    ]
)


def times_us(column: pa.ChunkedArray) -> Ints:
    """Return a column of times without nulls in microseconds since the epoch."""
    return np.asarray(column.cast("int64"), dtype=np.int64)


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column, dtype=np.float64)


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


def mean_difference(
    difference: Floats, bootstrap: Bootstrap, unit: str = BIN, n_overlapping: int = 1
) -> tuple[Estimate, Band]:
    """Estimate the mean of a series of differences (T,), and its cumulative sum.

    Parameters
    ----------
    difference
        B - A in each bin, so that both runs are resampled together.
    bootstrap
        Seed, and number of series drawn.
    unit
        ``BIN`` or ``START``: name of a value.
    n_overlapping
        Number of neighbouring values that are of the same time, at least the length of a block.
    """
    mean, n_values = float(difference.mean()), difference.size
    ends = np.unique(np.linspace(1, n_values, min(n_values, _BAND_ENDS)).round().astype(np.int64))
    total = np.cumsum(difference)[ends - 1]
    nothing = np.full(ends.size, np.nan)
    # no scatter: no difference, or the same in enough bins
    if not difference.any() or (n_values >= LEAST_BINS and float(np.ptp(difference)) == 0.0):
        return Estimate.interval(mean, mean, mean, n_values), Band(ends, total, total, total)
    length, why_not = _blocks(difference, unit, n_overlapping)
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


def _blocks(series: Floats, unit: str = BIN, least_length: int = 1) -> tuple[int | None, str | None]:
    """Return the length of a block, or the reason for having no interval."""
    n_values = series.size
    if n_values < LEAST_BINS:
        return None, f"only {count(n_values, unit)}: at least {LEAST_BINS} are needed; {_MORE[unit]}"
    length = min(n_values, max(block_length(series), least_length))
    if n_values < LEAST_BLOCKS * length:
        return None, (
            f"{n_values} {unit}s are {n_values / length:.1f} blocks of {length} (the range of correlation): at least "
            f"{LEAST_BLOCKS} are needed; use a longer {'window' if unit == BIN else 'log'}"
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
