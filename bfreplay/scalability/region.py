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

    def of_parameter(self, i: int) -> tuple[float, float]:
        """Least and largest value of a parameter; a bound (or infinity) where nothing stops it before."""
        gradient = np.zeros(len(self.best))
        gradient[i] = 1.0

        def value(x: Floats) -> float:
            return float(x[i])

        low, high = (self._furthest(value, lambda _: gradient, sign) for sign in (-1.0, 1.0))
        return (
            self._profile_end(i, -1.0) if low is None else float(low[i]),
            self._profile_end(i, 1.0) if high is None else float(high[i]),
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
        """Return the point of the region with the largest ``sign * value``; ``None`` if not found, or at infinity."""
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
            "fun": lambda z: -self._excess(self.best + z * unit),
            "jac": lambda z: (
                -2.0 * (self.residuals(self.best + z * unit) @ self.jacobian(self.best + z * unit)) * unit / room
            ),
        }
        linearised = sign * (covariance @ slope) / size / unit
        for factor in _STARTS:
            with np.errstate(all="ignore"):  # trial steps may go far out; what comes back is checked
                result = minimise(
                    lambda z: -sign * value(self.best + z * unit) / size,
                    np.clip(factor * linearised, low, high),
                    jac=lambda z: -sign * gradient(self.best + z * unit) * unit / size,
                    method="SLSQP",
                    bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
                    constraints=limit,
                    options={"ftol": 1e-9, "maxiter": _STEPS},
                )
                x = snap_to_bounds(self.best + result.x * unit, unit, self.low, self.high)
                if self._is_end(x, sign * gradient(x) * unit, unit):
                    return x
        return None

    def _profile_end(self, i: int, sign: float) -> float:
        """Return where the least sum of squares over the other parameters first meets the limit, or the bound before.

        Slower than `_furthest`, but it follows long, bent regions to their end.
        """
        from scipy.optimize import brentq, least_squares

        others = np.arange(len(self.best)) != i
        bound = float((self.low if sign < 0 else self.high)[i])
        near = self.best

        def along(fixed: float) -> Floats:
            def whole(free: Floats) -> Floats:
                x = np.empty(len(self.best))
                x[i], x[others] = fixed, free
                return x

            def residuals(free: Floats) -> Floats:
                return self.residuals(whole(free))

            def jacobian(free: Floats) -> Floats:
                return np.asarray(self.jacobian(whole(free))[:, others], dtype=np.float64)

            box = (self.low[others], self.high[others])
            return whole(least_squares(residuals, near[others], jac=jacobian, bounds=box, x_scale="jac").x)

        width = float(np.sqrt(spread(self.jacobian(self.best))[i, i] * (self.limit - self.least))) or 1.0
        inside = float(self.best[i])
        for doubling in range(_DOUBLINGS):
            outside = inside + sign * width * 2.0**doubling
            outside = max(outside, bound) if sign < 0 else min(outside, bound)
            x = along(outside)
            if not self._excess(x) <= 0:
                end = brentq(lambda fixed: self._excess(along(fixed)), inside, outside, rtol=_ON_LIMIT)
                return float(end)
            if outside == bound:
                return bound
            inside, near = outside, x
        return bound

    def _excess(self, x: Floats) -> float:
        """Sum of squares above the limit, over what the limit leaves above the least: 0 on the region's boundary."""
        return (_squares(self.residuals(x)) - self.limit) / (self.limit - self.least)

    def _is_end(self, x: Floats, slope: Floats, unit: Floats) -> bool:
        """Return whether ``x`` is the furthest point of the region up ``slope``, to first order (Karush, Kuhn, Tucker).

        ``slope`` has to be a sum, none of its factors negative, of the outward normals of what holds ``x`` back: the
        bounds that it lies on, and the limit where its sum of squares is that.
        """
        from scipy.optimize import nnls

        excess = self._excess(x)
        if not (np.isfinite(slope).all() and excess <= _ON_LIMIT):  # false for what is no number, too
            return False
        axes = np.eye(len(x))
        normals = [*(-axes[x == self.low]), *axes[x == self.high]]
        if excess >= -_ON_LIMIT:
            outward = self.residuals(x) @ self.jacobian(x) * unit
            normals.append(outward / (np.linalg.norm(outward) or 1.0))
        if not normals:
            return False
        return bool(nnls(np.stack(normals, axis=1), slope)[1] <= _STATIONARY * np.linalg.norm(slope))


def spread(jacobian: Floats) -> Floats:
    """Covariance of fitted parameters over the variance of a measurement, linearised: shape ``(p, p)``."""
    size = np.linalg.norm(jacobian, axis=0)
    size[size == 0] = 1.0  # a parameter that changes nothing here
    scaled = jacobian / size
    return np.asarray(np.linalg.pinv(scaled.T @ scaled) / np.outer(size, size), dtype=np.float64)


def snap_to_bounds(x: Floats, unit: Floats, low: Floats, high: Floats) -> Floats:
    """``x`` within its bounds, and on one where it is closer than a millionth of ``unit``: solvers stop just short."""
    x = np.where(np.abs(x - low) <= _CLOSE * unit, low, x)
    x = np.where(np.abs(x - high) <= _CLOSE * unit, high, x)
    return np.asarray(np.clip(x, low, high), dtype=np.float64)


def _squares(residuals: Floats) -> float:
    return float(residuals @ residuals)
