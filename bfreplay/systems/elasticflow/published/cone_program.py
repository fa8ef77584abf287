"""Small second-order cone program, solved by the same interior-point steps as ECOS.

The method is that of Domahidi, Chu and Boyd, "ECOS: An SOCP solver for embedded systems" (ECC 2013): a homogeneous
self-dual embedding, Nesterov-Todd scaling and Mehrotra's predictor and corrector. Where a program has many optimal
answers, the result depends on the path of the method. Its constants are therefore those of ECOS, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

Floats = NDArray[np.float64]

TOLERANCE = 1e-8
MAX_STEPS = 100
STEP_SHARE = 0.99
"""Fraction of the way to the border of the cones in a step."""
LONGEST_STEP, SHORTEST_STEP = 0.999, 1e-6
LEAST_CENTRING = 1e-4
REGULARISATION = 7e-8
"""Added to the diagonal of the equations of a step, without later correction, as in ECOS."""
EQUILIBRATIONS = 3
MIRROR = np.array([1.0, -1.0, -1.0])


@dataclass(frozen=True, slots=True, eq=False)
class ConeProgram:
    """Minimise ``cost @ x`` so that ``bounds - rows @ x`` is in the cones.

    Parameters
    ----------
    cost
        Shape (N,).
    rows
        Shape (M, N).
    bounds
        Shape (M,).
    n_linear
        Number of rows, at the start, that are not negative. The others are three to a second-order cone: the first is
        at least the norm of the two after it.
    """

    cost: Floats
    rows: Floats
    bounds: Floats
    n_linear: int

    @property
    def degree(self) -> int:
        """Number of cones: each linear row is one."""
        return self.n_linear + (len(self.bounds) - self.n_linear) // 3

    def identity(self) -> Floats:
        """Return the vector e of the cones, shape (M,)."""
        one = np.ones(len(self.bounds))
        one[self.n_linear + 1 :: 3] = 0
        one[self.n_linear + 2 :: 3] = 0
        return one

    def cones(self, vector: Floats) -> Floats:
        """Return the part of a vector in second-order cones, shape (K, 3)."""
        return vector[self.n_linear :].reshape(-1, 3)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Iterate of the embedding, or a direction: unknowns, slacks, multipliers, and the two numbers that scale them."""

    x: Floats
    s: Floats
    z: Floats
    tau: float
    kappa: float

    def move(self, direction: _Point, step: float) -> _Point:
        names = ("x", "s", "z", "tau", "kappa")
        return _Point(*(getattr(self, name) + step * getattr(direction, name) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class _Residuals:
    """Residuals of the equations of the embedding."""

    x: Floats
    z: Floats
    tau: float

    @classmethod
    def at(cls, program: ConeProgram, point: _Point) -> _Residuals:
        return cls(
            program.rows.T @ point.z + program.cost * point.tau,
            point.s + program.rows @ point.x - program.bounds * point.tau,
            float(point.kappa + program.cost @ point.x + program.bounds @ point.z),
        )


def solve(program: ConeProgram) -> Floats:
    """Return the optimal ``x``, shape (N,); that of the last step if rounding stops the method."""
    scaled, columns = _equilibrate(program)
    layout = _Layout(scaled)
    point = _first_point(scaled)
    for _ in range(MAX_STEPS):
        residuals = _Residuals.at(scaled, point)
        is_inside = min(_depth(scaled, point.s), _depth(scaled, point.z)) > 0
        if _is_optimal(scaled, point, residuals) or not is_inside:
            break
        try:
            point = _step(scaled, layout, point, residuals)
        except RuntimeError:  # singular equations
            break
    return point.x / columns / point.tau


def _equilibrate(program: ConeProgram) -> tuple[ConeProgram, Floats]:
    """Return the program with rows and columns of about the same size, and the factors of the columns.

    The rows of a second-order cone have one factor, the sum of their own ones.
    """
    rows, factors, columns = program.rows, np.ones(len(program.bounds)), np.ones(len(program.cost))
    for _ in range(EQUILIBRATIONS):
        of_row, of_column = np.abs(rows).max(axis=1), np.abs(rows).max(axis=0)
        of_row[program.n_linear :] = np.repeat(program.cones(of_row).sum(axis=1), 3)
        of_row = np.where(of_row < 1e-6, 1.0, np.sqrt(of_row))
        of_column = np.where(of_column < 1e-6, 1.0, np.sqrt(of_column))
        rows = rows / of_row[:, None] / of_column
        factors, columns = factors * of_row, columns * of_column
    return ConeProgram(program.cost / columns, rows, program.bounds / factors, program.n_linear), columns


def _first_point(program: ConeProgram) -> _Point:
    """Return least-squares answers, moved along e until slacks and multipliers are inside the cones."""
    rows = program.rows
    squares = rows.T @ rows
    x = np.asarray(np.linalg.solve(squares, rows.T @ program.bounds), dtype=np.float64)
    z = rows @ np.linalg.solve(squares, -program.cost)
    return _Point(x, _inside(program, program.bounds - rows @ x), _inside(program, z), 1.0, 1.0)


def _inside(program: ConeProgram, vector: Floats) -> Floats:
    depth = _depth(program, vector)
    return vector + (1 + (-depth if depth <= 0 else -STEP_SHARE)) * program.identity()


def _depth(program: ConeProgram, vector: Floats) -> float:
    """Return the distance along e from the border of the cones; not positive outside."""
    cones = program.cones(vector)
    depths = cones[:, 0] - np.hypot(cones[:, 1], cones[:, 2])
    return float(min(vector[: program.n_linear].min(initial=np.inf), depths.min(initial=np.inf)))


def _is_optimal(program: ConeProgram, point: _Point, residuals: _Residuals) -> bool:
    gap = float(point.s @ point.z)
    cost = float(program.cost @ point.x) / point.tau
    bound = -float(program.bounds @ point.z) / point.tau
    relative = gap / -cost if cost < 0 else gap / bound if bound > 0 else np.inf
    size_primal = max(1.0, _norm(program.bounds)) + _norm(point.x) + _norm(point.s)
    size_dual = max(1.0, _norm(program.cost)) + _norm(point.z)
    primal = _norm(residuals.z) / size_primal / point.tau
    dual = _norm(residuals.x) / size_dual / point.tau
    return max(primal, dual) < TOLERANCE and min(gap, relative) < TOLERANCE


def _step(program: ConeProgram, layout: _Layout, point: _Point, residuals: _Residuals) -> _Point:
    """Predict the step towards the optimum; take it with the centring that follows from it."""
    equations = _Equations(program, layout, point, residuals)
    scaling = equations.scaling
    squared = scaling.product(scaling.scaled, scaling.scaled)
    products = point.tau * point.kappa
    predicted = equations.direction(1.0, -squared, -products)
    centring = (1 - equations.longest_step(predicted)) ** 3
    centring = min(max(centring, LEAST_CENTRING), 1.0)
    mu = (float(point.s @ point.z) + products) / (program.degree + 1)
    second_order = scaling.product(scaling.divide(predicted.s), scaling.times(predicted.z))
    corrected = equations.direction(
        1 - centring,
        -(squared + second_order - centring * mu * program.identity()),
        -(products + predicted.tau * predicted.kappa - centring * mu),
    )
    return point.move(corrected, STEP_SHARE * equations.longest_step(corrected))


class _Scaling:
    """Nesterov-Todd scaling W of a point: W z equals the inverse of W times s.

    W is a diagonal, shape (L,), for the linear rows, and a symmetric block, shape (K, 3, 3), for each cone.
    """

    def __init__(self, program: ConeProgram, point: _Point) -> None:
        self._program = program
        self._linear = np.sqrt(point.s[: program.n_linear] / point.z[: program.n_linear])
        s, z = program.cones(point.s), program.cones(point.z)
        s_norm, z_norm = np.sqrt(_determinants(s)), np.sqrt(_determinants(z))
        s, z = s / s_norm[:, None], z / z_norm[:, None]
        middle = np.sqrt((1 + (s * z).sum(axis=1)) / 2)
        direction = (s + MIRROR * z) / (2 * middle[:, None])
        factor = np.sqrt(s_norm / z_norm)[:, None, None]
        tail = direction[:, 1:]
        blocks = np.empty((len(s), 3, 3))
        blocks[:, 0, :] = blocks[:, :, 0] = direction
        blocks[:, 1:, 1:] = np.eye(2) + tail[:, :, None] * tail[:, None, :] / (1 + direction[:, :1, None])
        self._blocks = blocks * factor
        self._inverse_blocks = blocks * MIRROR[:, None] * MIRROR / factor
        self.linear_squared = self._linear**2
        self.blocks_squared = self._blocks @ self._blocks
        self.scaled = self.times(point.z)

    def times(self, vector: Floats) -> Floats:
        """Return W times a vector."""
        return self._product(self._linear, self._blocks, vector)

    def divide(self, vector: Floats) -> Floats:
        """Return the inverse of W times a vector."""
        return self._product(1 / self._linear, self._inverse_blocks, vector)

    def times_twice(self, vector: Floats) -> Floats:
        """Return W times W times a vector."""
        return self._product(self.linear_squared, self.blocks_squared, vector)

    def _product(self, linear: Floats, blocks: Floats, vector: Floats) -> Floats:
        of_cones = blocks @ self._program.cones(vector)[:, :, None]
        return np.concatenate([linear * vector[: self._program.n_linear], of_cones.ravel()])

    def product(self, a: Floats, b: Floats) -> Floats:
        """Return the Jordan product of the cones."""
        result = a * b
        u, v, out = (self._program.cones(each) for each in (a, b, result))
        out[:, 0] = (u * v).sum(axis=1)
        out[:, 1:] = u[:, :1] * v[:, 1:] + v[:, :1] * u[:, 1:]
        return result

    def quotient(self, a: Floats) -> Floats:
        """Return the vector whose Jordan product with the scaled point is ``a``."""
        result = a / self.scaled
        u, v, out = (self._program.cones(each) for each in (self.scaled, a, result))
        first = (u[:, 0] * v[:, 0] - (u[:, 1:] * v[:, 1:]).sum(axis=1)) / _determinants(u)
        out[:, 0] = first
        out[:, 1:] = (v[:, 1:] - first[:, None] * u[:, 1:]) / u[:, :1]
        return result

    def steepest(self, direction: Floats) -> float:
        """Return one over the step at which the scaled point leaves the cones; not positive if it never does."""
        n_linear = self._program.n_linear
        u, v = self._program.cones(self.scaled), self._program.cones(direction)
        squares = _determinants(u)
        if (squares <= 0).any():  # rounding: such a cone does not count
            u, v, squares = u[squares > 0], v[squares > 0], squares[squares > 0]
        norms = np.sqrt(squares)
        unit = u / norms[:, None]
        along = unit[:, 0] * v[:, 0] - (unit[:, 1:] * v[:, 1:]).sum(axis=1)
        across = v[:, 1:] - ((along + v[:, 0]) / (unit[:, 0] + 1))[:, None] * unit[:, 1:]
        cones = (np.hypot(across[:, 0], across[:, 1]) - along) / norms
        linear = -direction[:n_linear] / self.scaled[:n_linear]
        return float(max(linear.max(initial=-np.inf), cones.max(initial=-np.inf)))


class _Equations:
    """Linear equations of the directions from a point."""

    def __init__(self, program: ConeProgram, layout: _Layout, point: _Point, residuals: _Residuals) -> None:
        self._program = program
        self._point = point
        self._residuals = residuals
        self.scaling = _Scaling(program, point)
        self._factors = splu(layout.matrix(self.scaling), permc_spec="MMD_AT_PLUS_A")
        self._x, self._z = self._solve(-program.cost, program.bounds)

    def direction(self, share: float, scaled: Floats, products: float) -> _Point:
        """Return the direction that removes a share of the residuals.

        ``scaled`` is the total change of W z and of the inverse of W times s, each times the scaled point; ``products``
        that of tau times kappa.
        """
        program, point = self._program, self._point
        from_scaled = self.scaling.times(self.scaling.quotient(scaled))
        x, z = self._solve(-share * self._residuals.x, -share * self._residuals.z - from_scaled)
        tau = share * self._residuals.tau + products / point.tau + program.cost @ x + program.bounds @ z
        tau /= point.kappa / point.tau - program.cost @ self._x - program.bounds @ self._z
        z = z + tau * self._z
        return _Point(
            x + tau * self._x,
            from_scaled - self.scaling.times_twice(z),
            z,
            float(tau),
            float((products - point.kappa * tau) / point.tau),
        )

    def longest_step(self, direction: _Point) -> float:
        """Return the longest step that keeps all inside the cones."""
        steepest = max(
            self.scaling.steepest(self.scaling.times(direction.z)),
            self.scaling.steepest(self.scaling.divide(direction.s)),
            -direction.tau / self._point.tau,
            -direction.kappa / self._point.kappa,
        )
        return min(max(1 / steepest, SHORTEST_STEP), LONGEST_STEP) if steepest > 0 else LONGEST_STEP

    def _solve(self, of_x: Floats, of_z: Floats) -> tuple[Floats, Floats]:
        """Solve rows.T z + r x = of_x and rows x - (W W + r) z = of_z, where r is the regularisation."""
        solution = self._factors.solve(np.concatenate([of_x, of_z]))
        return solution[: len(of_x)], solution[len(of_x) :]


class _Layout:
    """Positions of the numbers in the equations' matrix, of shape (N + M, N + M), the same in all steps."""

    def __init__(self, program: ConeProgram) -> None:
        m, n = program.rows.shape
        row, column = np.nonzero(program.rows)
        diagonal = np.arange(n + program.n_linear)
        places = np.arange(n + program.n_linear, n + m).reshape(-1, 3, 1).repeat(3, axis=2)
        self._of_x = np.full(n, REGULARISATION)
        self._of_rows = program.rows[row, column]
        rows = np.concatenate([diagonal, n + row, column, places.ravel()])
        columns = np.concatenate([diagonal, column, n + row, places.swapaxes(1, 2).ravel()])
        self._order = csc_array((np.arange(len(rows)), (rows, columns)), shape=(n + m, n + m))

    def matrix(self, scaling: _Scaling) -> csc_array:
        """Return the matrix for a scaling."""
        values = np.concatenate(
            [
                self._of_x,
                -scaling.linear_squared - REGULARISATION,
                self._of_rows,
                self._of_rows,
                (-scaling.blocks_squared - REGULARISATION * np.eye(3)).ravel(),
            ]
        )
        order = self._order
        return csc_array((values[order.data], order.indices, order.indptr), shape=order.shape)


def _norm(vector: Floats) -> float:
    return float(np.linalg.norm(vector))


def _determinants(cones: Floats) -> Floats:
    """Return the square of the first less those of the others, shape (K,); positive inside the cones."""
    norms = np.hypot(cones[:, 1], cones[:, 2])
    return (cones[:, 0] - norms) * (cones[:, 0] + norms)
