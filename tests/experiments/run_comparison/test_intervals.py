"""Intervals: exact where nothing scatters, seeded, paired, wider for fewer blocks, and of the coverage they claim."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from bfreplay.experiments.run_comparison import confidence
from bfreplay.experiments.run_comparison.confidence import (
    LEAST_BINS,
    START,
    block_length,
    mean_difference,
    median_over_jobs,
    relative_difference,
)
from bfreplay.experiments.study_options import Bootstrap

FEW = Bootstrap(resamples=300)


def _series(n: int, phi: float, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(n + 200)
    return lfilter([1.0], [1.0, -phi], noise)[200:]


def test_no_difference_is_exactly_none():
    mean, band = mean_difference(np.zeros(40), FEW)
    assert (mean.value, mean.low, mean.high, mean.block_length) == (0.0, 0.0, 0.0, None)
    assert not band.low.any()
    assert not band.high.any()
    a = np.arange(40.0)
    ratio = relative_difference(a, a.copy(), FEW)
    assert (ratio.value, ratio.low, ratio.high) == (0.0, 0.0, 0.0)


def test_what_is_the_same_in_every_hour_is_certain():
    mean, band = mean_difference(np.full(40, 2.0), FEW)
    assert (mean.low, mean.high) == (2.0, 2.0)
    assert band.value[-1] == band.low[-1] == 80.0
    a = 5.0 + np.arange(40.0)
    ratio = relative_difference(a, 1.25 * a, FEW)
    assert (ratio.low, ratio.high) == pytest.approx((0.25, 0.25))


def test_both_runs_are_resampled_together():
    # hours differ a hundredfold, but by the same factor in both: only pairing makes the ratio nearly certain
    rng = np.random.default_rng(1)
    a = np.exp(rng.normal(0.0, 2.0, 200))
    b = a * (1.1 + rng.normal(0.0, 0.001, 200))
    found = relative_difference(a, b, FEW)
    assert found.low is not None
    assert 0.0 < found.high - found.low < 0.002


def test_intervals_of_independent_hours_are_those_of_the_normal_distribution():
    difference = np.random.default_rng(2).normal(0.3, 1.0, 1_000)
    mean, _ = mean_difference(difference, Bootstrap(resamples=4_000, seed=0))
    error = difference.std() / np.sqrt(1_000)
    assert mean.low == pytest.approx(difference.mean() - 1.96 * error, abs=0.25 * error)
    assert mean.high == pytest.approx(difference.mean() + 1.96 * error, abs=0.25 * error)


def test_hours_that_resemble_each_other_widen_the_interval():
    difference = _series(400, 0.8, 0)
    together, _ = mean_difference(difference, FEW)
    shuffled_difference = np.random.default_rng(0).permutation(difference)
    shuffled, _ = mean_difference(shuffled_difference, FEW)
    assert block_length(difference) > 15 > block_length(shuffled_difference)
    assert together.high - together.low > 1.8 * (shuffled.high - shuffled.low)


def test_a_block_is_no_shorter_than_the_values_that_are_of_the_same_time():
    difference = _series(40, 0.0, 0)
    assert block_length(difference) < 10
    assert mean_difference(difference, FEW, START, 10)[0].block_length == 10
    assert mean_difference(difference, FEW, START, 11)[0].why_no_interval.startswith("40 starts are 3.6 blocks of 11")
    assert mean_difference(difference, FEW, START, 99)[0].why_no_interval.startswith("40 starts are 1.0 blocks of 40")


@pytest.mark.slow
def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    held = [mean_difference(_series(336, 0.6, seed), Bootstrap(resamples=300, seed=0))[0] for seed in range(80)]
    share = np.mean([found.low <= 0.0 <= found.high for found in held])
    assert 0.86 <= share <= 0.99  # three standard errors around 93 %; benchmarks/bench_block_bootstrap.py has 400


def test_the_same_seed_gives_the_same_interval_and_another_one_another():
    difference = _series(200, 0.5, 3)
    first, again, other = (mean_difference(difference, Bootstrap(resamples=200, seed=seed))[0] for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_the_global_random_state_is_left_alone():
    np.random.seed(5)  # noqa: NPY002  # that is what is tested
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    mean_difference(_series(200, 0.5, 3), FEW)
    median_over_jobs(_series(50, 0.0, 4), FEW)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_the_band_ends_with_the_interval_of_the_total():
    difference = _series(500, 0.5, 4) + 0.2
    mean, band = mean_difference(difference, FEW)
    assert band.bins[-1] == 500
    assert band.bins.size == 240
    assert band.value[-1] == pytest.approx(difference.sum())
    assert (band.low[-1], band.high[-1]) == pytest.approx((500 * mean.low, 500 * mean.high))
    assert (band.low < band.value).all()
    assert (band.value < band.high).all()


def test_few_bins_and_few_blocks_get_a_difference_and_a_reason():
    short, band = mean_difference(np.arange(LEAST_BINS - 1.0), FEW)
    assert short.value == 7.0
    assert short.low is None
    assert "only 15 bins" in short.why_no_interval
    assert "--bin" in short.why_no_interval
    assert np.isnan(band.low).all()
    wave, _ = mean_difference(np.sin(np.arange(96) * np.pi / 12) + 0.1 * _series(96, 0.0, 0), FEW)
    assert wave.low is None
    assert "a longer window" in wave.why_no_interval


def test_one_hour_tells_nothing_about_others_unless_it_is_the_same_in_both():
    one, _ = mean_difference(np.array([3.0]), FEW)
    assert (one.value, one.low) == (3.0, None)
    assert "only 1 bin:" in one.why_no_interval
    assert relative_difference(np.array([2.0]), np.array([3.0]), FEW).low is None
    none, _ = mean_difference(np.array([0.0]), FEW)
    assert (none.low, none.high) == (0.0, 0.0)


def test_a_baseline_of_nothing_has_no_relative_difference():
    found = relative_difference(np.zeros(50), np.arange(50.0), FEW)
    assert found.value is None
    assert found.why_no_interval == "A has none of it"
    seldom = np.zeros(400)
    seldom[7] = 1.0
    found = relative_difference(seldom, seldom + _series(400, 0.0, 5), FEW)
    assert found.value is not None
    assert found.low is None
    assert "in most hours" in found.why_no_interval


def test_fewer_blocks_are_trusted_less():
    factors = [confidence._widening(k) for k in (4, 8, 30, 1_000)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] == pytest.approx(3.182 / 1.960 * np.sqrt(4 / 3), rel=1e-3)
    assert factors[-1] == pytest.approx(1.0, abs=0.005)


def test_the_median_over_jobs_and_its_interval():
    difference = np.random.default_rng(0).normal(10.0, 2.0, 101)
    found = median_over_jobs(difference, FEW)
    assert found.value == np.median(difference)
    assert found.low < found.value < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * 1.253 * 2.0 / np.sqrt(101), rel=0.4)
    few = median_over_jobs(difference[:7], FEW)
    assert few.low is None
    assert "7 of at least 8 jobs" in few.why_no_interval
    assert median_over_jobs(np.zeros(0), FEW).value is None
    same = median_over_jobs(np.full(8, 4.0), FEW)
    assert (same.low, same.high) == (4.0, 4.0)
    assert median_over_jobs(np.full(3, 4.0), FEW).low is None
    assert median_over_jobs(np.zeros(3), FEW).high == 0.0


@pytest.mark.parametrize(
    ("n", "phi", "length"),
    [
        (16, 0.0, 1.806219475473792),
        (40, 0.3, 1.0982613999721729),
        (336, 0.6, 11.172913777243068),
        (400, 0.95, 35.01774378925205),
        (2500, 0.8, 38.3633133037658),
    ],
)
def test_the_optimal_length_is_that_of_the_library_arch_8(n, phi, length):
    assert confidence._optimal_length(_series(n, phi, 1)) == pytest.approx(length, rel=1e-12)


def test_where_a_series_stands_still_a_block_is_as_long_as_the_rule_allows():
    assert block_length(np.ones(400)) == 1.5 * 3 * 20
    assert block_length(np.r_[np.zeros(200), np.ones(200)]) == 57


def test_blocks_are_drawn_as_the_library_arch_draws_them_and_go_on_at_the_start():
    resamples = confidence._resample(np.arange(10.0), 4, Bootstrap(resamples=100, seed=3), np.copy)
    assert resamples.shape == (100, 10)
    assert resamples[:2].tolist() == [[8, 9, 0, 1, 0, 1, 2, 3, 1, 2], [2, 3, 4, 5, 1, 2, 3, 4, 8, 9]]
    steps = np.diff(resamples, axis=1) % 10
    assert (steps[:, [0, 1, 2, 4, 5, 6, 8]] == 1).all()


def test_a_known_series_has_the_interval_that_it_had_with_the_library_arch():
    mean, _ = mean_difference(_series(336, 0.8, 0), Bootstrap(resamples=100, seed=0))
    assert (mean.low, mean.high, mean.block_length) == pytest.approx(
        (-0.7188732065872571, 0.2449128304070149, 30), rel=1e-12
    )
