"""Joint likelihood region of a law's parameters, and the range of functions over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bfreplay.scalability.law import Floats

_ON_LIMIT = 1e-6
_STATIONARY = 1e-2
_STEPS = 100
_STARTS = (1.0, 0.5, 0.0, 0.1, 2.0)
_DOUBLINGS = 40
_CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class Region:
    """All parameters within their bounds whose sum of squared residuals is at most ``limit``.

    Parameters
    ----------
    residuals, jacobian
        Functions of the parameters: shapes ``(N,)`` and ``(N, p)``.
    best
        Parameters of the least sum of squares, shape ``(p,)``.
    least, limit
        That least sum of squares, and the largest that still belongs to the region; ``limit > least``.
    low, high
        Bounds of the parameters, shape ``(p,)``; they may be infinite.
    """

    residuals: Callable[[Floats], Floats]
    jacobian: Callable[[Floats], Floats]
    best: Floats
    least: float
    limit: float
    low: Floats
    high: Floats

    def of_parameter(self, parameter_index: int) -> tuple[float, float]:
        """Least and largest value of a parameter; a bound (or infinity) where nothing stops it before."""
        gradient = np.zeros(len(self.best))
        gradient[parameter_index] = 1.0

        def value(parameters: Floats) -> float:
            return float(parameters[parameter_index])

        low, high = (self._furthest(value, lambda _: gradient, sign) for sign in (-1.0, 1.0))
        return (
            self._profile_end(parameter_index, -1.0) if low is None else float(low[parameter_index]),
            self._profile_end(parameter_index, 1.0) if high is None else float(high[parameter_index]),
        )

    def of_function(
        self, function: Callable[[Floats], float], gradient: Callable[[Floats], Floats]
    ) -> tuple[float, float]:
        """Least and largest value of a smooth function of the parameters; infinite where no end is found."""
        low, high = (self._furthest(function, gradient, sign) for sign in (-1.0, 1.0))
        return -np.inf if low is None else function(low), np.inf if high is None else function(high)

    def _furthest(
        self, function: Callable[[Floats], float], gradient: Callable[[Floats], Floats], sign: float
    ) -> Floats | None:
        """Return the point of the region with the largest ``sign * value``; ``None`` if not found, or at infinity."""
        from scipy import optimize

        minimise: Any = optimize.minimize  # its stubs know no constraints as functions of arrays
        # in units of the linearised region, so that all parameters and the limit are of the order of 1
        covariance = unit_covariance(self.jacobian(self.best)) * (self.limit - self.least)
        units = np.sqrt(np.diag(covariance))
        units[units == 0] = 1.0
        low, high = (self.low - self.best) / units, (self.high - self.best) / units
        slope = gradient(self.best)
        slope_size = float(np.sqrt(slope @ covariance @ slope)) or 1.0
        slack = self.limit - self.least
        constraint: Any = {
            "type": "ineq",
            "fun": lambda offset: -self._excess(self.best + offset * units),
            "jac": lambda offset: -2.0 * self._half_gradient(self.best + offset * units) * units / slack,
        }
        direction = sign * (covariance @ slope) / slope_size / units
        for factor in _STARTS:
            with np.errstate(all="ignore"):  # trial steps may go far out; what comes back is checked
                result = minimise(
                    lambda offset: -sign * function(self.best + offset * units) / slope_size,
                    np.clip(factor * direction, low, high),
                    jac=lambda offset: -sign * gradient(self.best + offset * units) * units / slope_size,
                    method="SLSQP",
                    bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
                    constraints=constraint,
                    options={"ftol": 1e-9, "maxiter": _STEPS},
                )
                candidate = snap_to_bounds(self.best + result.x * units, units, self.low, self.high)
                if self._is_end(candidate, sign * gradient(candidate) * units, units):
                    return candidate
        return None

    def _profile_end(self, number: int, sign: float) -> float:
        """Return where the least sum of squares over the other parameters first meets the limit, or the bound before.

        Slower than `_furthest`, but it follows long, bent regions to their end.
        """
        from scipy.optimize import brentq, least_squares

        others = np.arange(len(self.best)) != number
        bound = float((self.low if sign < 0 else self.high)[number])
        start = self.best

        def profile_at(value: float) -> Floats:
            def with_others(other_values: Floats) -> Floats:
                parameters = np.empty(len(self.best))
                parameters[number], parameters[others] = value, other_values
                return parameters

            def residuals(other_values: Floats) -> Floats:
                return self.residuals(with_others(other_values))

            def jacobian(other_values: Floats) -> Floats:
                return np.asarray(self.jacobian(with_others(other_values))[:, others], dtype=np.float64)

            bounds = (self.low[others], self.high[others])
            return with_others(least_squares(residuals, start[others], jac=jacobian, bounds=bounds, x_scale="jac").x)

        half_width = (
            float(np.sqrt(unit_covariance(self.jacobian(self.best))[number, number] * (self.limit - self.least))) or 1.0
        )
        inside = float(self.best[number])
        for doubling in range(_DOUBLINGS):
            outside = inside + sign * half_width * 2.0**doubling
            outside = max(outside, bound) if sign < 0 else min(outside, bound)
            parameters = profile_at(outside)
            if not self._excess(parameters) <= 0:
                crossing = brentq(lambda value: self._excess(profile_at(value)), inside, outside, rtol=_ON_LIMIT)
                return float(crossing)
            if outside == bound:
                return bound
            inside, start = outside, parameters
        return bound

    def _excess(self, parameters: Floats) -> float:
        """Sum of squares above the limit, over what the limit leaves above the least: 0 on the region's boundary."""
        residuals = self.residuals(parameters)
        return (float(residuals @ residuals) - self.limit) / (self.limit - self.least)

    def _half_gradient(self, parameters: Floats) -> Floats:
        """Return half the gradient of the sum of squares."""
        return self.residuals(parameters) @ self.jacobian(parameters)

    def _is_end(self, parameters: Floats, slope: Floats, units: Floats) -> bool:
        """Return whether a point is the furthest of the region up ``slope``, to first order (Karush, Kuhn, Tucker).

        ``slope`` has to be a sum, none of its factors negative, of the outward normals of what holds the point back:
        the bounds that it lies on, and the limit where its sum of squares is that.
        """
        from scipy.optimize import nnls

        excess = self._excess(parameters)
        if not (np.isfinite(slope).all() and excess <= _ON_LIMIT):  # false for what is no number, too
            return False
        unit_vectors = np.eye(len(parameters))
        normals = [*(-unit_vectors[parameters == self.low]), *unit_vectors[parameters == self.high]]
        if excess >= -_ON_LIMIT:
            outward = self._half_gradient(parameters) * units
            normals.append(outward / (np.linalg.norm(outward) or 1.0))
        if not normals:
            return False
        return bool(nnls(np.stack(normals, axis=1), slope)[1] <= _STATIONARY * np.linalg.norm(slope))


def unit_covariance(jacobian: Floats) -> Floats:
    """Covariance of fitted parameters over the variance of a measurement, linearised: shape ``(p, p)``."""
    column_norms = np.linalg.norm(jacobian, axis=0)
    column_norms[column_norms == 0] = 1.0  # a parameter that changes nothing here
    normalized = jacobian / column_norms
    return np.asarray(
        np.linalg.pinv(normalized.T @ normalized) / np.outer(column_norms, column_norms), dtype=np.float64
    )


def snap_to_bounds(parameters: Floats, units: Floats, low: Floats, high: Floats) -> Floats:
    """Return parameters within bounds, on one if closer than a millionth of ``units``: solvers stop just short."""
    parameters = np.where(np.abs(parameters - low) <= _CLOSE * units, low, parameters)
    parameters = np.where(np.abs(parameters - high) <= _CLOSE * units, high, parameters)
    return np.asarray(np.clip(parameters, low, high), dtype=np.float64)
