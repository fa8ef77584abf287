"""The joint likelihood region: its ends are its ends, whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from bfreplay.errors import InputError
from bfreplay.scalability import fit

DESIGNS = (
    np.repeat([1, 2, 4, 8], 3),
    np.repeat([1, 2, 4, 8, 16, 32], 2),
    np.array([1, 2, 4, 8, 16, 32]),
    np.repeat([1, 2, 4, 8, 16, 32, 64], 3),
    np.repeat([1, 2, 4, 8, 16], 2),
    np.array([2, 2, 3, 5, 9, 17, 17, 40]),
)
NOISES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5)


def data_set(seed):
    """Node counts and rates; every fifth set has a measurement that is off by a factor of ten."""
    rng = np.random.default_rng(seed)
    nodes = DESIGNS[seed % 6].astype(float)
    serial, kappa = rng.choice([0.0, 0.002, 0.03, 0.2]), rng.choice([0.0, 0.0, 1e-4, 2e-3])
    rates = 400 * nodes / (1 + (nodes - 1) * (serial + kappa * nodes))
    rates *= np.exp(NOISES[seed // 6 % 6] * rng.standard_normal(len(nodes)))
    if rng.random() < 0.2:
        rates[rng.integers(len(nodes))] /= 10
    return nodes, rates


def fitted(seed, law):
    """The fit, or ``None`` where these rates are refused."""
    try:
        return fit(*data_set(seed), law)
    except InputError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.thorough)])
def test_the_two_names_of_one_curve_have_the_same_intervals(step):
    """usl and communication-strong, with serial = 2 bandwidth and kappa = latency, where usl's bounds do not cut."""
    compared = 0
    for seed in range(0, 240, step):
        one, other = fitted(seed, "usl"), fitted(seed, "communication-strong")
        assert (one is None) == (other is None)
        if one is None or other is None:
            continue
        ours, theirs = np.array(one.intervals), np.array(other.intervals) * [[1.0], [2.0], [1.0]]
        if max(ours[1:].max(), theirs[1:].max()) < 1:
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-9, err_msg=f"data set {seed}")
            compared += 1
    assert compared > 120 // step


def test_an_outlier_does_not_make_an_interval_of_no_width():
    nodes = np.repeat([1, 2, 4, 8], 3)
    rates = [100.0, 99.0, 101.0, 190.0, 192.0, 19.0, 370.0, 366.0, 371.0, 700.0, 690.0, 705.0]
    assert fit(nodes, rates, "usl").intervals[2] == pytest.approx((0.0, 0.0718051), rel=1e-5)


@pytest.mark.often("power-23")
@pytest.mark.parametrize("step", [23, pytest.param(11, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "law",
    ["usl", "power", *(pytest.param(f"communication-{way}", marks=pytest.mark.thorough) for way in ("weak", "strong"))],
)
def test_an_interval_holds_its_value_and_ends_where_the_profile_leaves_the_region(law, step):
    """The profile anew: one parameter fixed at the end and beyond it, the others fitted."""
    ends = 0
    for seed in range(0, 240, step):
        found = fitted(seed, law)
        if found is None:
            continue
        region, p = found._region, len(found.intervals)
        for i, interval in enumerate(found.intervals):
            assert interval[0] <= found.curve.values[i] <= interval[1]
            others = np.arange(p) != i
            for end, bound in zip(interval, (region.low[i], region.high[i]), strict=True):
                end = np.log(end) if i == 0 else end
                if end == bound:
                    continue

                def least(fixed, i=i, region=region, others=others):
                    def residuals(free):
                        x = np.empty(len(others))
                        x[i], x[others] = fixed, free
                        return region.residuals(x)

                    box = (region.low[others], region.high[others])
                    starts = [region.best[others], *(np.full(others.sum(), each) for each in (1e-4, 1e-2, 0.9, 6.0))]
                    return min(
                        2 * least_squares(residuals, np.clip(start, *box), bounds=box, x_scale="jac", xtol=1e-12).cost
                        for start in starts
                    )

                room = region.limit - region.least
                assert least(end) <= region.limit + 1e-4 * room
                assert least(end + 0.01 * (end - region.best[i])) > region.limit
                ends += 1
    assert ends > 330 // step
