"""Fits of one law: what they recover, and how sure they are of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import fdtri
from scipy.stats import linregress

from bfreplay.errors import InputError
from bfreplay.scalability import (
    Amdahl,
    CommunicationStrong,
    CommunicationWeak,
    Gustafson,
    Measurements,
    PowerLaw,
    UniversalScalability,
    find_law,
    fit,
)
from bfreplay.scalability.fitting import fit_law
from bfreplay.scalability.law import LAWS
from tests.scalability.test_laws import Logarithm

COUNTS = np.array([1, 2, 4, 8, 16, 32, 64])
DESIGN = np.repeat(COUNTS, 3)
TRUE = {
    "amdahl": Amdahl(2831.0, 0.02),
    "gustafson": Gustafson(120.0, 0.15),
    "usl": UniversalScalability(500.0, 0.03, 3e-4),
    "power": PowerLaw(80.0, 0.85),
    "communication-weak": CommunicationWeak(300.0, 0.08, 0.004),
    "communication-strong": CommunicationStrong(300.0, 0.02, 2e-4),
}


def noisy(law, nodes, scatter, rng):
    return law.rates(nodes) * np.exp(scatter * rng.standard_normal(len(nodes)))


@pytest.mark.often("power")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in ("usl", "power") else pytest.mark.thorough) for name in LAWS.names()],
)
def test_all_parameters_lie_in_their_intervals_in_93_of_100_cases(name):
    law, inside = TRUE[name], 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        found = fit(DESIGN, noisy(law, DESIGN, 0.03 + 0.02 * (seed % 2), rng), name)
        inside += all(low <= value <= high for value, (low, high) in zip(law.values, found.intervals, strict=True))
    assert inside >= 93


@pytest.mark.parametrize("name", LAWS.names())
def test_rates_without_scatter_give_the_law_back(name):
    found = fit(COUNTS, TRUE[name].rates(COUNTS), name)
    assert found.curve.values == pytest.approx(TRUE[name].values, rel=1e-5, abs=1e-9)
    assert found.scatter < 1e-6
    for value, (low, high) in zip(found.curve.values, found.intervals, strict=True):
        assert low <= value <= high
        assert high - low < 1e-4 * max(value, 1e-3)


def test_a_power_law_is_the_straight_line_over_logarithms_with_its_exact_region():
    rates = noisy(TRUE["power"], DESIGN, 0.05, np.random.default_rng(8))
    found = fit(DESIGN, rates, "power")
    line = linregress(np.log(DESIGN), np.log(rates))
    assert found.curve.values == pytest.approx((np.exp(line.intercept), line.slope), rel=1e-8)
    reach = np.sqrt(2 * fdtri(2, len(DESIGN) - 2, 0.95))
    for (low, high), middle, error in zip(
        [np.log(found.intervals[0]), found.intervals[1]],
        [line.intercept, line.slope],
        [line.intercept_stderr, line.stderr],
        strict=True,
    ):
        assert (low, high) == pytest.approx((middle - reach * error, middle + reach * error), rel=1e-5)


def test_the_ends_of_an_interval_are_where_the_profile_meets_the_limit():
    """Against a profile made in another way: kappa fixed, the others fitted by scalar minimisation."""
    rates = noisy(TRUE["usl"], DESIGN, 0.04, np.random.default_rng(3))
    found = fit(DESIGN, rates, "usl")
    logs, n = np.log(rates), len(DESIGN)

    def least(kappa):
        def squares(serial):
            off = logs - np.log(UniversalScalability.shape(DESIGN.astype(float), serial, kappa))
            return float(((off - off.mean()) ** 2).sum())

        return minimize_scalar(squares, bounds=(0, 0.2), method="bounded", options={"xatol": 1e-10}).fun

    limit = least(found.curve.kappa) * (1 + 3 / (n - 3) * fdtri(3, n - 3, 0.95))
    for end in found.intervals[2]:
        assert least(end) == pytest.approx(limit, rel=1e-3)


def test_an_interval_ends_at_the_bound_of_its_parameter():
    rates = noisy(Amdahl(100.0, 0.0), DESIGN, 0.03, np.random.default_rng(1))
    found = fit(DESIGN, rates, "usl")
    assert found.intervals[1][0] == 0.0
    assert found.intervals[2][0] == 0.0
    assert 0 < found.intervals[2][1] < 1e-3


@pytest.mark.slow
def test_the_true_curve_lies_in_the_band_at_all_counts():
    inside = 0
    for seed in range(60):
        found = fit(DESIGN, noisy(TRUE["usl"], DESIGN, 0.04, np.random.default_rng(seed)), "usl")
        low, high = found.band(COUNTS.astype(float))
        assert (low <= found.curve.rates(COUNTS)).all()
        assert (found.curve.rates(COUNTS) <= high).all()
        inside += bool(((low <= TRUE["usl"].rates(COUNTS)) & (TRUE["usl"].rates(COUNTS) <= high)).all())
    assert inside >= 55


def test_leverages_add_up_to_the_number_of_parameters():
    found = fit(DESIGN, noisy(TRUE["usl"], DESIGN, 0.04, np.random.default_rng(2)), "usl")
    assert found.leverage(DESIGN.astype(float)).sum() == pytest.approx(3.0, rel=1e-6)


def test_the_order_of_measurements_does_not_matter():
    rates = noisy(TRUE["usl"], DESIGN, 0.04, np.random.default_rng(2))
    shuffled = np.random.default_rng(0).permutation(len(DESIGN))
    one, other = fit(DESIGN, rates, "usl"), fit(DESIGN[shuffled], rates[shuffled], "usl")
    assert other.curve.values == pytest.approx(one.curve.values, rel=1e-6)
    assert fit(DESIGN, rates, "usl").curve == one.curve


def test_a_law_that_the_repeats_contradict_does_not_fit():
    rates = noisy(TRUE["usl"], DESIGN, 0.03, np.random.default_rng(4))
    assert fit(DESIGN, rates, "usl").fits
    assert not fit(DESIGN, rates, "power").fits


def test_the_lack_of_fit_of_a_true_law_is_evenly_spread():
    chances = [
        fit(DESIGN, noisy(TRUE["amdahl"], DESIGN, 0.04, np.random.default_rng(seed)), "amdahl").lack_of_fit_p
        for seed in range(100)
    ]
    assert 0.35 < np.mean(chances) < 0.65
    assert sum(chance < 0.05 for chance in chances) <= 13


def test_without_repeats_nothing_tests_a_law():
    found = fit(COUNTS, TRUE["usl"].rates(COUNTS), "power")
    assert found.lack_of_fit_p is None
    assert found.fits
    assert found.scatter > 0.05


def test_akaike_s_criterion_by_hand():
    rates = noisy(TRUE["power"], DESIGN, 0.05, np.random.default_rng(8))
    found = fit(DESIGN, rates, "power")
    squares = found.scatter**2 * (21 - 2)
    assert found.aicc == pytest.approx(21 * np.log(squares / 21) + 6 + 24 / 17)
    assert fit([1, 2, 4, 8], [10.0, 19.0, 35.0, 61.0], "power").aicc == np.inf


def test_residuals_are_measured_over_fitted_rates():
    found = fit([1, 2, 4], [10.0, 20.0, 44.0], PowerLaw)
    assert (1 + found.residuals) * found.curve.rates([1, 2, 4]) == pytest.approx([10.0, 20.0, 44.0])


@pytest.mark.parametrize(
    ("nodes", "law", "says"),
    [
        ([1, 2], "amdahl", "amdahl has 2 parameters: too many for 2 measurements at 2 node counts"),
        ([1, 1, 2, 2], "usl", "usl has 3 parameters: too many for 4 measurements at 2 node counts"),
        ([1, 2, 4], "communication-weak", "too many for 3 measurements at 3 node counts"),
    ],
)
def test_too_few_counts_for_a_law_are_refused_with_the_reason(nodes, law, says):
    with pytest.raises(InputError, match=says):
        fit(nodes, [10.0 * n**0.9 for n in nodes], law)


@pytest.mark.parametrize("name", LAWS.names())
def test_rates_that_fall_are_fitted_by_laws_that_can_and_refused_by_the_others(name):
    rates = noisy(UniversalScalability(100.0, 0.02, 2e-3), DESIGN, 0.03, np.random.default_rng(6))
    if find_law(name).can_fall:
        assert fit(DESIGN, rates, name).fits
    else:
        with pytest.raises(InputError, match=f"the rates fall from (16|32) nodes on, which {name} cannot"):
            fit(DESIGN, rates, name)


def test_counts_of_thousands_and_unidentified_parameters_leave_wide_intervals():
    nodes = np.repeat([1000, 2000, 4000, 8000, 10000], 3)
    found = fit(
        nodes, noisy(CommunicationWeak(28.0, 0.2, 1e-4), nodes, 0.04, np.random.default_rng(0)), CommunicationWeak
    )
    for value, (low, high) in zip((28.0, 0.2, 1e-4), found.intervals, strict=True):
        assert low <= value <= high
    assert found.intervals[1][1] > 10


def test_a_stranger_s_law_is_fitted_too():
    law = Logarithm(50.0, 0.8)
    found = fit(DESIGN, noisy(law, DESIGN, 0.03, np.random.default_rng(0)), Logarithm)
    for value, (low, high) in zip(law.values, found.intervals, strict=True):
        assert low <= value <= high


@dataclass(frozen=True, slots=True)
class Real(Logarithm):
    """A law whose shape knows real parameters only."""

    law: ClassVar = "real"

    @staticmethod
    def shape(nodes, *parameters):
        return 1.0 + np.real(parameters[0]) * np.log(nodes)


def test_a_law_without_derivatives_is_refused():
    with pytest.raises(InputError, match="drops the imaginary part"):
        fit_law(Measurements(DESIGN, np.sqrt(DESIGN)), Real)
