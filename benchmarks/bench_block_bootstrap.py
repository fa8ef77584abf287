"""How often the 95 % interval of a paired difference holds the true one: made-up hours whose mean is known.

Run it: ``python benchmarks/bench_block_bootstrap.py [SERIES]``. Five minutes for its 400 series.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from measure import heading, table_head, table_row
from numpy.typing import NDArray
from scipy.signal import lfilter

from bfreplay.experiments.run_comparison.confidence import Estimate, mean_difference, relative_difference
from bfreplay.experiments.study_options import Bootstrap

HOURS = (96, 168, 336, 720)
LEVEL = 100.0  # samples of the baseline in an hour, on average
DIFFERENCE = 3.0
RESAMPLES = 500

Series = NDArray[np.float64]


def autoregressive(phi: float, noise: Callable[[np.random.Generator, int], Series]) -> Callable[..., Series]:
    """Mean 0; each hour ``phi`` times the hour before plus noise."""

    def draw(rng: np.random.Generator, n: int) -> Series:
        return np.asarray(lfilter([1.0], [1.0, -phi], noise(rng, n + 300))[300:])

    return draw


def daily(rng: np.random.Generator, n: int) -> Series:
    """Mean 0 over whole days: a daily wave and autoregressive noise."""
    return autoregressive(0.6, normal)(rng, n) + 1.5 * np.sin(2 * np.pi * np.arange(n) / 24)


def normal(rng: np.random.Generator, n: int) -> Series:
    """Variance 1."""
    return rng.standard_normal(n)


def heavy(rng: np.random.Generator, n: int) -> Series:
    """Student's t with 3 degrees of freedom."""
    return rng.standard_t(3, n)


def skewed(rng: np.random.Generator, n: int) -> Series:
    """Exponential, less its mean."""
    return rng.exponential(1.0, n) - 1.0


CASES = (
    ("independent", autoregressive(0.0, normal)),
    ("each 0.3 of the one before", autoregressive(0.3, normal)),
    ("each 0.6 of the one before", autoregressive(0.6, normal)),
    ("each 0.8 of the one before", autoregressive(0.8, normal)),
    ("each 0.9 of the one before", autoregressive(0.9, normal)),
    ("0.6, heavy tails (t, 3)", autoregressive(0.6, heavy)),
    ("0.6, skewed (exponential)", autoregressive(0.6, skewed)),
    ("0.6 and a daily wave", daily),
)


def main(n_series: int) -> None:
    """Print one table."""
    print(heading("Paired differences of runs: coverage of the 95 % intervals by block bootstrap"))
    print(
        f"{n_series:,} pairs of series each, {RESAMPLES} resamples; standard error about "
        f"{100 * math.sqrt(0.05 * 0.95 / n_series):.1f} points. Mean difference / relative difference; a part of the "
        "mean difference follows the baseline's hours (each 0.8 of the one before). In brackets the share of series "
        "that got no interval, having fewer than four blocks.\n"
    )
    table_head("noise of the differences", *(f"{n} hours" for n in HOURS))
    for label, draw in CASES:
        cells = []
        for n in HOURS:
            held: list[list[bool]] = [[], []]
            for seed in range(n_series):
                rng = np.random.default_rng(seed)
                baseline = LEVEL + 10.0 * autoregressive(0.8, normal)(rng, n)
                # a part of each difference follows the hour's samples: a slow wave under the noise
                other = baseline * (1.0 + DIFFERENCE / LEVEL) + draw(rng, n)
                mean, _ = mean_difference(other - baseline, Bootstrap(resamples=RESAMPLES, seed=seed))
                ratio = relative_difference(baseline, other, Bootstrap(resamples=RESAMPLES, seed=seed))
                for found, true, to in ((mean, DIFFERENCE, held[0]), (ratio, DIFFERENCE / LEVEL, held[1])):
                    if found.low is not None:
                        to.append(_holds(found, true))
            shares = " / ".join(f"{np.mean(each):.1%}" if each else "-" for each in held)
            without = 1 - len(held[0]) / n_series
            cells.append(shares + (f" ({without:.0%})" if without >= 0.005 else ""))
        table_row(label, *cells)


def _holds(found: Estimate, true: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= true <= found.high


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
