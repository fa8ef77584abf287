"""A law fitted to measurements: parameters, intervals, and how well it fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from bfreplay.errors import InputError
from bfreplay.scalability.law import Floats, Law, find_law, name_of
from bfreplay.scalability.measurements import Measurements
from bfreplay.scalability.region import Region, snap_to_bounds, unit_covariance

CONFIDENCE = 0.95
LACK_OF_FIT_LEVEL = 0.01
"""A law does not fit if a lack of fit as large as its own has less than this probability."""
_EXACT = 1e-9
_FINEST_SCATTER = 1e-4
_SMALLEST_STEP = 1e-30


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """A law fitted by least squares of log rates.

    Parameters
    ----------
    curve
        The law with its fitted parameters.
    measurements
        Measurements of the fit.
    intervals
        Simultaneous 95 % interval of each parameter, in the order of ``curve.parameters``: see `fit`.
    scatter
        Residual standard deviation of the log rates: 0.04 is about 4 %.
    aicc
        Akaike's criterion, corrected for few measurements; infinite where they are too few for it.
    lack_of_fit_p
        Probability of a lack of fit at least as large if the law is right; ``None`` where nothing tests it: no count
        was measured twice, or there are as many counts as parameters.
    """

    curve: Law
    measurements: Measurements
    intervals: tuple[tuple[float, float], ...]
    scatter: float
    aicc: float
    lack_of_fit_p: float | None
    _region: Region = field(repr=False, compare=False)

    @property
    def fits(self) -> bool:
        """True if the measurements do not contradict the law."""
        return self.lack_of_fit_p is None or self.lack_of_fit_p >= LACK_OF_FIT_LEVEL

    @property
    def residuals(self) -> Floats:
        """Measured over fitted rate, minus 1, of each measurement: shape ``(N,)``."""
        rates = np.asarray(self.measurements.rates)
        return np.asarray(rates / self.curve.rates(self.measurements.nodes) - 1.0, dtype=np.float64)

    def band(self, nodes: Floats) -> tuple[Floats, Floats]:
        """Return the least and largest rate at each of ``nodes``: they hold the true curve in 95 of 100 cases.

        It is how far the curve reaches while its parameters stay in the region of the ``intervals``.
        """
        extremes = [self._region.of_function(*_log_rate_at(type(self.curve), float(count))) for count in nodes]
        low, high = np.exp(np.asarray(extremes, dtype=np.float64)).T
        return low, high

    def leverage(self, nodes: Floats) -> Floats:
        """Variance of the fitted log rate over that of one measurement, linearised: shape as ``nodes``."""
        of_parameters = unit_covariance(self._region.jacobian(self._region.best))
        slopes = _slopes(type(self.curve), np.asarray(nodes, dtype=np.float64), self._region.best)
        return np.asarray(np.einsum("ij,jk,ik->i", slopes, of_parameters, slopes), dtype=np.float64)


def fit(nodes: Sequence[float] | Floats, rates: Sequence[float] | Floats, law: str | type[Law]) -> FittedLaw:
    """Fit one law to measured rates.

    Rates scatter in proportion to their size, so the squares of log rates are summed, within the bounds of the law's
    parameters, from each of its ``starts``; the same measurements give the same fit.

    The intervals are simultaneous: if the law is right and the scatter normal, ALL its parameters lie in theirs in at
    least 95 of 100 cases. They are the projections of the joint likelihood region, that is, of the parameters with
    S <= S_min (1 + p/(N-p) F), F the 95 % point of the F distribution of p and N-p degrees of freedom (D. M. Bates and
    D. G. Watts, Nonlinear Regression Analysis and Its Applications, 1988). The region holds the truth in 95 of 100
    cases, hence its projections in more: 97 to 99.8 (benchmarks/bench_fit_coverage.py). Profile-likelihood intervals
    after Bonferroni are 8 to 14 % narrower, but hold all parameters in 95.5 to 96.3 cases only. The region follows the
    curvature of the law and stops at the bounds of parameters, where symmetric t intervals would not; and the band
    of the fitted curve (`FittedLaw.band`) comes from the same region.

    Parameters
    ----------
    nodes, rates
        One measurement each, in samples/s; repeats of a count are welcome: they test the law.
    law
        Name or class of the law.

    Raises
    ------
    InputError
        Measurements out of range (see `Measurements`); too few for this law; rates that fall over the whole range; or
        rates that fall from some count on, and a law that cannot.
    """
    return fit_law(Measurements(nodes, rates), find_law(law) if isinstance(law, str) else law)


def needs(law: type[Law]) -> tuple[int, int]:
    """Return the number of node counts (as many as parameters) and measurements (one more) that the law needs."""
    return len(law.parameters), len(law.parameters) + 1


def too_few(measurements: Measurements, law: type[Law]) -> bool:
    """Return whether there are fewer node counts or measurements than the law needs."""
    counts, number = needs(law)
    return len(measurements.counts) < counts or len(measurements.nodes) < number


def why_not(measurements: Measurements, law: type[Law]) -> InputError | None:
    """Return the error if this law cannot be fitted to these measurements; ``None`` if it can.

    Raises
    ------
    InputError
        The rates fall over the whole range: nothing can be fitted to them.
    """
    n_parameters, counts = len(law.parameters), measurements.counts
    if too_few(measurements, law):
        return InputError(
            f"{law.law} has {n_parameters} parameters: too many for {len(measurements.nodes)} measurements at "
            f"{len(counts)} node counts",
            column="nodes",
            value=counts.tolist(),
            expected=f"at least {n_parameters} node counts and {n_parameters + 1} measurements",
            fix="measure at more node counts",
        )
    falls_from = measurements.falls_from()
    if falls_from is not None and not law.can_fall:
        return InputError(
            f"the rates fall from {falls_from} nodes on, which {law.law} cannot",
            column="nodes",
            value=falls_from,
            expected="a law whose rate can fall",
            fix="fit usl or communication-strong; or drop the counts beyond the peak, if no job will run there",
        )
    return None


def fit_law(measurements: Measurements, law: type[Law]) -> FittedLaw:
    """Fit one law to measurements, as `fit` does; it raises as `fit` does."""
    from scipy.optimize import least_squares
    from scipy.special import fdtri

    refusal = why_not(measurements, law)
    if refusal is not None:
        raise refusal
    nodes = np.asarray(measurements.nodes, dtype=np.float64)
    log_rates = np.log(measurements.rates)
    shape = law.parameters[1:]
    low, high = (
        np.array([getattr(parameter, bound) for parameter in shape], dtype=np.float64) for bound in ("low", "high")
    )
    _check_complex(law, nodes, 0.5 * (low + np.minimum(high, low + 1.0)))

    def residuals(parameters: Floats) -> Floats:
        return _log_rates(law, nodes, parameters) - log_rates

    jacobian = partial(_slopes, law, nodes)
    bounds = (np.append(-np.inf, low), np.append(np.inf, high))
    results = []
    for start in law.starts(nodes, np.exp(log_rates)):
        start_in_bounds = np.clip(np.asarray(start, dtype=np.float64), low, high)
        log_level = float(np.mean(log_rates - np.log(law.shape(nodes, *start_in_bounds))))
        begin = np.append(log_level, start_in_bounds)
        result = least_squares(
            residuals, begin, jac=jacobian, bounds=bounds, x_scale="jac", ftol=1e-12, xtol=1e-12, gtol=1e-12
        )
        results.append(result)
    optimum = min(results, key=lambda result: float(result.cost)).x
    unit = np.sqrt(np.diag(unit_covariance(jacobian(optimum)))) * _FINEST_SCATTER
    best = snap_to_bounds(optimum, unit, *bounds)
    n_measurements, n_parameters = len(nodes), len(best)
    squares = float(residuals(best) @ residuals(best))
    variance = max(squares / (n_measurements - n_parameters), _EXACT**2)
    region = Region(
        residuals,
        jacobian,
        best,
        squares,
        squares + n_parameters * float(fdtri(n_parameters, n_measurements - n_parameters, CONFIDENCE)) * variance,
        *bounds,
    )
    intervals = [region.of_parameter(parameter_index) for parameter_index in range(n_parameters)]
    with np.errstate(over="ignore"):
        intervals[0] = (float(np.exp(intervals[0][0])), float(np.exp(intervals[0][1])))
    law_class: Callable[..., Law] = law
    return FittedLaw(
        law_class(math.exp(best[0]), *(float(parameter_value) for parameter_value in best[1:])),
        measurements,
        tuple(intervals),
        math.sqrt(squares / (n_measurements - n_parameters)),
        _aicc(squares, n_measurements, n_parameters + 1),
        _lack_of_fit_p(measurements, squares, n_parameters),
        region,
    )


def _aicc(squares: float, n_measurements: int, n_parameters: int) -> float:
    """Corrected Akaike criterion (Hurvich and Tsai, Biometrika 76 (1989) 297); the scatter is one of the parameters."""
    if n_measurements - n_parameters - 1 <= 0:
        return math.inf
    return (
        n_measurements * math.log(max(squares / n_measurements, _EXACT**2))
        + 2 * n_parameters
        + 2 * n_parameters * (n_parameters + 1) / (n_measurements - n_parameters - 1)
    )


def _lack_of_fit_p(measurements: Measurements, squares: float, n_parameters: int) -> float | None:
    """F test of the lack of fit against the scatter of repeats (Bates and Watts, 1988)."""
    from scipy.special import fdtrc

    pure_squares, freedom = measurements.pure_error
    excess = len(measurements.counts) - n_parameters
    if freedom == 0 or excess <= 0:
        return None
    # rates are written with a few digits: repeats that agree in all of them are not free of scatter
    scatter = max(pure_squares / freedom, _FINEST_SCATTER**2)
    return float(fdtrc(excess, freedom, max(squares - pure_squares, 0.0) / excess / scatter))


def _log_rates(law: type[Law], nodes: Floats, parameters: Floats) -> Floats:
    return np.asarray(parameters[0] + np.log(law.shape(nodes, *parameters[1:])), dtype=np.float64)


def _slopes(law: type[Law], nodes: Floats, parameters: Floats) -> Floats:
    """Derivatives of the log rates, by complex step: shape ``(len(nodes), len(parameters))``."""
    slopes = np.ones((len(nodes), len(parameters)))
    for parameter_index in range(1, len(parameters)):
        shifts_of_parameters = [complex(parameter_value) for parameter_value in parameters[1:]]
        shifts_of_parameters[parameter_index - 1] += complex(0.0, _SMALLEST_STEP)
        rates = law.shape(nodes, *shifts_of_parameters)
        slopes[:, parameter_index] = rates.imag / rates.real / _SMALLEST_STEP
    return slopes


def _log_rate_at(law: type[Law], count: float) -> tuple[Callable[[Floats], float], Callable[[Floats], Floats]]:
    """Return the log rate on ``count`` nodes and its gradient, as functions of the parameters."""
    node_counts = np.array([count])
    return (
        lambda parameters: float(_log_rates(law, node_counts, parameters)[0]),
        lambda parameters: np.asarray(_slopes(law, node_counts, parameters)[0], dtype=np.float64),
    )


def _check_complex(law: type[Law], nodes: Floats, values: Floats) -> None:
    rates = law.shape(nodes, *(complex(parameter_value) for parameter_value in values))
    if not np.iscomplexobj(rates):
        raise InputError(
            f"the law {name_of(law)} cannot be fitted: its shape drops the imaginary part of its parameters",
            expected="plain arithmetic on arrays, without abs, float() and casts",
            fix="calculate the shape with + - * / ** and numpy functions of complex arrays",
        )


_COUNTS_FOR_KAPPA = 3


def quick_usl(nodes: ArrayLike, rates: ArrayLike, weights: ArrayLike | None = None) -> tuple[float, float, float]:
    """Fit P(n) = rate_1 n / (1 + serial (n-1) + kappa n (n-1)) by weighted non-negative least squares.

    The law is linear in n/P = a + b n + c n (n-1), with rate_1 = 1/(a+b), serial = b/(a+b), kappa = c/(a+b) (N. J.
    Gunther, Guerrilla Capacity Planning, 2007, fits a quadratic through the same transform). What is
    minimised is the sum of w ((fitted n/P - n/P) / (n/P))², relative errors, since rates scatter in proportion to
    their size. Where an exact law goes through all points, that law is returned. For a fit with intervals and a
    choice of laws take `fit`.

    Parameters
    ----------
    nodes
        Node counts of the points, at least 1, shape ``(N,)``; a count may be there several times.
    rates
        Rate at each, above 0, shape ``(N,)``.
    weights
        Weight of each, not negative and not all 0, shape ``(N,)``; by default all 1.

    Returns
    -------
    rate_1, serial, kappa
        ``rate_1 > 0``, ``0 <= serial <= 1``, ``0 <= kappa <= 1``. Of two distinct counts (of a weight above 0) kappa is
        0: Amdahl's law. Of one count serial is 0 as well: rates in proportion to nodes, the most that one count allows.

    Raises
    ------
    InputError
        No point of a weight above 0, arrays of different shapes, or a count, rate or weight out of range.
    """
    from scipy.optimize import nnls

    counts = np.asarray(nodes, dtype=np.float64)
    rates_array = np.asarray(rates, dtype=np.float64)
    weights_array = np.ones_like(counts) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(counts, rates_array, weights_array)
    n_distinct = len(set(counts[weights_array > 0].tolist()))
    per_node = rates_array / counts
    count_pairs = counts * (counts - 1.0)
    # bounds are built in: every law within them is a sum, with factors >= 0, of the laws at the corners of the bounds
    corners = [np.ones_like(counts), counts, 1.0 + count_pairs, counts + count_pairs]
    columns = np.stack(corners[:n_distinct] if n_distinct < _COUNTS_FOR_KAPPA else corners, axis=1)
    root_weights = np.sqrt(weights_array)
    scaling_columns = columns * (root_weights * per_node)[:, None]
    column_norms = np.sqrt(np.einsum("ij,ij->j", scaling_columns, scaling_columns))
    coefficients = np.zeros(4)
    coefficients[: columns.shape[1]] = nnls(scaling_columns / column_norms, root_weights)[0] / column_norms
    per_rate = float(coefficients.sum())
    return (
        1.0 / per_rate,
        float(coefficients[1] + coefficients[3]) / per_rate,
        float(coefficients[2] + coefficients[3]) / per_rate,
    )


def _check(counts: np.ndarray, rates: np.ndarray, weights: np.ndarray) -> None:
    if counts.ndim != 1 or counts.shape != rates.shape or counts.shape != weights.shape:
        raise InputError(
            "nodes, rates and weights do not belong together",
            value=(counts.shape, rates.shape, weights.shape),
            expected="three arrays of one length",
        )
    for column_name, array, is_good, expectation in (
        ("nodes", counts, counts >= 1, "node counts >= 1"),
        ("rates", rates, rates > 0, "rates > 0"),
        ("weights", weights, weights >= 0, "weights >= 0"),
    ):
        is_good = is_good & np.isfinite(array)
        if not is_good.all():
            raise InputError(
                "a point cannot be fitted",
                column=column_name,
                value=float(array[~is_good][0]),
                expected=f"finite {expectation}",
            )
    if not weights.any():
        raise InputError(
            "there is no point to fit", column="weights", expected="at least one point of a weight above 0"
        )
