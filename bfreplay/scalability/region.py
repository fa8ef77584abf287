"""The joint likelihood region of a law's parameters, and how far things reach within it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bfreplay.scalability.law import Floats

_SLACK = 1e-3
_STEPS = 100
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

    def of_parameter(self, i: int) -> tuple[float, float]:
        """Least and largest value of a parameter; a bound (or infinity) where nothing stops it before."""
        gradient = np.zeros(len(self.best))
        gradient[i] = 1.0

        def value(x: Floats) -> float:
            return float(x[i])

        low, high = (self._furthest(value, lambda _: gradient, sign) for sign in (-1.0, 1.0))
        return (
            float(self.low[i]) if low is None else float(low[i]),
            float(self.high[i]) if high is None else float(high[i]),
        )

    def of_function(
        self, value: Callable[[Floats], float], gradient: Callable[[Floats], Floats]
    ) -> tuple[float, float]:
        """Least and largest value of a smooth function of the parameters; infinite where no end is found."""
        low, high = (self._furthest(value, gradient, sign) for sign in (-1.0, 1.0))
        return -np.inf if low is None else value(low), np.inf if high is None else value(high)

    def _furthest(
        self, value: Callable[[Floats], float], gradient: Callable[[Floats], Floats], sign: float
    ) -> Floats | None:
        """Where in the region ``sign * value`` is largest; ``None`` if that is not found, or lies at infinity."""
        from scipy import optimize

        minimise: Any = optimize.minimize  # its stubs know no constraints as functions of arrays
        # in units of the linearised region, so that all parameters and the limit are of the order of 1
        covariance = spread(self.jacobian(self.best)) * (self.limit - self.least)
        unit = np.sqrt(np.diag(covariance))
        unit[unit == 0] = 1.0
        low, high = (self.low - self.best) / unit, (self.high - self.best) / unit
        slope = gradient(self.best)
        size = float(np.sqrt(slope @ covariance @ slope)) or 1.0
        room = self.limit - self.least
        limit: Any = {
            "type": "ineq",
            "fun": lambda z: (self.limit - _squares(self.residuals(self.best + z * unit))) / room,
            "jac": lambda z: (
                -2.0 * (self.residuals(self.best + z * unit) @ self.jacobian(self.best + z * unit)) * unit / room
            ),
        }
        linearised = sign * (covariance @ slope) / size / unit
        found: list[tuple[float, Floats]] = []
        for start in (linearised, 0.5 * linearised, np.zeros(len(unit))):
            with np.errstate(all="ignore"):  # trial steps may go far out; what comes back is checked
                result = minimise(
                    lambda z: -sign * value(self.best + z * unit) / size,
                    np.clip(start, low, high),
                    jac=lambda z: -sign * gradient(self.best + z * unit) * unit / size,
                    method="SLSQP",
                    bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
                    constraints=limit,
                    options={"ftol": 1e-9, "maxiter": _STEPS},
                )
            x = snapped(self.best + result.x * unit, unit, self.low, self.high)
            excess = (_squares(self.residuals(x)) - self.limit) / room
            if np.isfinite(x).all() and excess <= _SLACK:
                found.append((sign * value(x), x))
                if result.success:
                    break
        return max(found, key=lambda each: each[0])[1] if found else None


def spread(jacobian: Floats) -> Floats:
    """Covariance of fitted parameters over the variance of a measurement, linearised: shape ``(p, p)``."""
    size = np.linalg.norm(jacobian, axis=0)
    size[size == 0] = 1.0  # a parameter that changes nothing here
    scaled = jacobian / size
    return np.asarray(np.linalg.pinv(scaled.T @ scaled) / np.outer(size, size), dtype=np.float64)


def snapped(x: Floats, unit: Floats, low: Floats, high: Floats) -> Floats:
    """``x`` within its bounds, and on one where it is closer than a millionth of ``unit``: solvers stop just short."""
    x = np.where(np.abs(x - low) <= _CLOSE * unit, low, x)
    x = np.where(np.abs(x - high) <= _CLOSE * unit, high, x)
    return np.asarray(np.clip(x, low, high), dtype=np.float64)


def _squares(residuals: Floats) -> float:
    return float(residuals @ residuals)
