"""``ModelBuilder``: a linear model written with named variables, sums and comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bfreplay.errors import InputError
from bfreplay.milp.formulations.entries import Columns, Rows
from bfreplay.milp.model import LinearModel

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
Shape: TypeAlias = int | tuple[int, ...]


class Expression:
    """An array of linear expressions over the variables of one ``ModelBuilder``; a variable is one, too.

    It takes ``+``, ``-``, ``*`` and ``/`` with numbers and arrays that broadcast, ``sum(axis)`` and indexing.
    Comparisons with ``<=``, ``>=`` and ``==`` make a ``Constraint``.
    """

    __array_ufunc__ = None  # so that ``array * expression`` comes here
    __hash__ = None  # type: ignore[assignment]  # == makes a constraint

    def __init__(self, constant: Floats, element: Whole, column: Whole, factor: Floats) -> None:
        self.constant = constant  # its shape is that of the expression
        self._terms = element, column, factor  # element is a place in the flat array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.constant.shape

    def __repr__(self) -> str:
        return f"<Expression: shape {self.shape}, {len(self._terms[0]):,} terms>"

    def __getitem__(self, index: object) -> Expression:
        place: Any = np.arange(self.constant.size).reshape(self.shape)
        return self._taken(place[index])

    def __add__(self, other: Expression | ArrayLike) -> Expression:
        if not isinstance(other, Expression):
            numbers = np.asarray(other, dtype=np.float64)
            mine = self._broadcast(np.broadcast_shapes(self.shape, numbers.shape))
            return Expression(mine.constant + numbers, *mine._terms)
        shape = np.broadcast_shapes(self.shape, other.shape)
        one, two = self._broadcast(shape), other._broadcast(shape)
        terms: Any = map(np.concatenate, zip(one._terms, two._terms, strict=True))
        return Expression(one.constant + two.constant, *terms)

    def __mul__(self, numbers: ArrayLike) -> Expression:
        if isinstance(numbers, Expression):
            raise InputError("two expressions are multiplied", expected="numbers, or an array of them, as a factor")
        factors = np.asarray(numbers, dtype=np.float64)
        mine = self._broadcast(np.broadcast_shapes(self.shape, factors.shape))
        element, column, factor = mine._terms
        by_element = np.broadcast_to(factors, mine.shape).ravel()
        return Expression(mine.constant * factors, element, column, factor * by_element[element])

    def __neg__(self) -> Expression:
        return self * -1.0

    def __sub__(self, other: Expression | ArrayLike) -> Expression:
        return self + (-other if isinstance(other, Expression) else -np.asarray(other, dtype=np.float64))

    def __rsub__(self, other: ArrayLike) -> Expression:
        return -self + other

    def __truediv__(self, numbers: ArrayLike) -> Expression:
        return self * (1.0 / np.asarray(numbers, dtype=np.float64))

    __radd__, __rmul__ = __add__, __mul__

    def __le__(self, other: Expression | ArrayLike) -> Constraint:
        return Constraint(self - other, -np.inf, 0.0)

    def __ge__(self, other: Expression | ArrayLike) -> Constraint:
        return Constraint(self - other, 0.0, np.inf)

    def __eq__(self, other: Expression | ArrayLike) -> Constraint:  # type: ignore[override]
        return Constraint(self - other, 0.0, 0.0)

    def sum(self, axis: int | None = None) -> Expression:
        """Return the sum over one axis, or over all elements."""
        constant = np.asarray(self.constant.sum(axis))
        place: Any = np.arange(constant.size).reshape(constant.shape)
        place = np.broadcast_to(place if axis is None else np.expand_dims(place, axis), self.shape).ravel()
        element, column, factor = self._terms
        return Expression(constant, place[element], column, factor)

    def value(self, x: Floats) -> Floats:
        """Return the values, in the shape of the expression, at column values ``x`` ``(C,)`` of the built model."""
        element, column, factor = self._terms
        made: Floats = _totals(element, factor * x[column], self.constant.size).reshape(self.shape) + self.constant
        return made

    def _broadcast(self, shape: tuple[int, ...]) -> Expression:
        place = np.arange(self.constant.size).reshape(self.shape)
        return self if shape == self.shape else self._taken(np.broadcast_to(place, shape))

    def _taken(self, place: Whole) -> Expression:
        """Return the elements at these places of the flat array, each with its terms."""
        place = np.asarray(place)
        element, column, factor = self._terms
        order = np.argsort(element, kind="stable")
        n_terms = np.bincount(element, minlength=self.constant.size)
        wanted = n_terms[place.ravel()]
        first = (np.cumsum(n_terms) - n_terms)[place.ravel()]
        term = order[np.repeat(first - (np.cumsum(wanted) - wanted), wanted) + np.arange(wanted.sum())]
        return Expression(
            self.constant.ravel()[place], np.repeat(np.arange(place.size), wanted), column[term], factor[term]
        )


class Constraint:
    """``lower <= expression <= upper`` for every element of the expression."""

    def __init__(self, expression: Expression, lower: float, upper: float) -> None:
        self.expression, self.lower, self.upper = expression, lower, upper

    def __bool__(self) -> bool:
        raise InputError("a constraint is neither true nor false", fix="write a <= x <= b as two constraints")


class ModelBuilder:
    """Builds a ``LinearModel`` to maximise: variables first, then ``add`` and ``maximise``, then ``build``."""

    def __init__(self) -> None:
        self._columns, self._rows, self._lower = Columns(), Rows(), [np.zeros(0)]
        nothing = np.zeros(0, dtype=np.int64)
        self._objective = Expression(np.zeros(()), nothing, nothing, np.zeros(0))

    def __repr__(self) -> str:
        return f"<ModelBuilder: {len(self._columns.names):,} columns, {len(self._rows.names):,} rows>"

    def binary(self, name: str, shape: Shape = (), *, upper: ArrayLike = 1.0) -> Expression:
        """Return variables that are 0 or 1; an ``upper`` of 0 fixes one at 0."""
        return self.variable(name, shape, upper=upper, integer=True)

    def variable(
        self, name: str, shape: Shape = (), *, lower: ArrayLike = 0.0, upper: ArrayLike = np.inf, integer: bool = False
    ) -> Expression:
        """Return an array of variables ``name[i, j, ...]`` with these bounds, which broadcast."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        bounds = [np.broadcast_to(np.asarray(each, dtype=np.float64), shape).ravel() for each in (lower, upper)]
        place = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((1, 1), dtype=np.int64)
        column = self._columns.add(name, *place, upper=bounds[1], integer=integer)
        self._lower.append(bounds[0])
        return Expression(np.zeros(shape), np.arange(column.size), column, np.ones(column.size))

    def add(self, constraint: Constraint, name: str = "row") -> None:
        """Add a row ``name[i]`` for every element of the constraint."""
        shifted, (element, column, factor) = constraint.expression.constant.ravel(), constraint.expression._terms
        lower, upper = constraint.lower - shifted, constraint.upper - shifted
        first = self._rows.add(name, shifted.size, lower, upper)
        element, column, factor = _merged(element, column, factor)
        self._rows.put(first + element, column, factor)

    def maximise(self, objective: Expression) -> None:
        """Set what is maximised: the sum of all elements."""
        self._objective = objective.sum()

    def build(self) -> LinearModel:
        """Return the model."""
        _, column, factor = self._objective._terms
        self._columns.objective = [_totals(column, factor, len(self._columns.names))]
        model = self._rows.model_of(self._columns, objective_constant=float(self._objective.constant))
        return replace(model, column_lower=np.concatenate(self._lower))


def _merged(element: Whole, column: Whole, factor: Floats) -> tuple[Whole, Whole, Floats]:
    """Add up the terms of a column that stands several times in one element."""
    width = int(column.max(initial=0)) + 1
    pair, which = np.unique(element * width + column, return_inverse=True)
    return pair // width, pair % width, _totals(which, factor, pair.size)


def _totals(place: Whole, number: Floats, size: int) -> Floats:
    return np.bincount(place, number, minlength=size).astype(np.float64)
