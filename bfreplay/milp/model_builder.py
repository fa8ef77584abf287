"""``ModelBuilder``: a linear model written with named variables, sums and comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array

from bfreplay.errors import InputError
from bfreplay.milp.formulations.entries import Columns, Rows
from bfreplay.milp.model import LinearModel

Floats: TypeAlias = NDArray[np.float64]


class Expression:
    """An array of linear expressions over the variables of one ``ModelBuilder``; a variable is one, too.

    It takes ``+``, ``-`` and ``*`` with numbers and arrays that broadcast, ``sum(axis)`` and indexing.
    Comparisons with ``<=``, ``>=`` and ``==`` make a ``Constraint``.
    """

    __array_ufunc__ = None  # so that ``array * expression`` comes here
    __hash__ = None  # type: ignore[assignment]  # == makes a constraint

    def __init__(self, factors: Any, constant: ArrayLike) -> None:
        self.constant = np.asarray(constant, dtype=np.float64)  # its shape is that of the expression
        self.factors = factors  # sparse: a row an element, a column for each variable up to the last one in it

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.constant.shape

    def __repr__(self) -> str:
        return f"<Expression: shape {self.shape}, {self.factors.nnz:,} terms>"

    def __getitem__(self, index: Any) -> Expression:
        return self._at(self._places[index])

    def __add__(self, other: Expression | ArrayLike) -> Expression:
        one, two = self, other if isinstance(other, Expression) else _numbers(other)
        shape, width = np.broadcast_shapes(one.shape, two.shape), max(one.factors.shape[1], two.factors.shape[1])
        one, two = (each._at(np.broadcast_to(each._places, shape)) for each in (one, two))
        return Expression(_widened(one.factors, width) + _widened(two.factors, width), one.constant + two.constant)

    def __mul__(self, numbers: ArrayLike) -> Expression:
        if isinstance(numbers, Expression):
            raise InputError("two expressions are multiplied", expected="numbers, or an array of them, as a factor")
        by = np.asarray(numbers, dtype=np.float64)
        one = self._at(np.broadcast_to(self._places, np.broadcast_shapes(self.shape, by.shape)))
        return Expression(diags_array(np.broadcast_to(by, one.shape).ravel()) @ one.factors, one.constant * by)

    def __neg__(self) -> Expression:
        return self * -1.0

    def __sub__(self, other: Expression | ArrayLike) -> Expression:
        return self + -(other if isinstance(other, Expression) else np.asarray(other, dtype=np.float64))

    def __rsub__(self, other: ArrayLike) -> Expression:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __le__(self, other: Expression | ArrayLike) -> Constraint:
        return Constraint(self - other, -np.inf, 0.0)

    def __ge__(self, other: Expression | ArrayLike) -> Constraint:
        return Constraint(self - other, 0.0, np.inf)

    def __eq__(self, other: Expression | ArrayLike) -> Constraint:  # type: ignore[override]
        return Constraint(self - other, 0.0, 0.0)

    def sum(self, axis: int | None = None) -> Expression:
        """Return the sum over one axis, or over all elements."""
        total = _numbers(self.constant.sum(axis))
        into = total._places if axis is None else np.expand_dims(total._places, axis)
        place = np.broadcast_to(into, self.shape).ravel()
        adder = csr_array((np.ones(place.size), (place, np.arange(place.size))), (total.constant.size, place.size))
        return Expression(adder @ self.factors, total.constant)

    def value(self, x: Floats) -> Floats:
        """Return the values, in the shape of the expression, at column values ``x`` ``(C,)`` of the built model."""
        made: Floats = (self.factors @ x[: self.factors.shape[1]]).reshape(self.shape) + self.constant
        return made

    @property
    def _places(self) -> Any:
        return np.arange(self.constant.size).reshape(self.shape)

    def _at(self, place: Any) -> Expression:
        return Expression(self.factors[np.ravel(place)], self.constant.ravel()[place])


class Constraint:
    """``lower <= expression <= upper`` for every element of the expression."""

    def __init__(self, expression: Expression, lower: float, upper: float) -> None:
        self.expression, self.lower, self.upper = expression, lower, upper

    def __bool__(self) -> bool:
        raise InputError("a constraint is neither true nor false", fix="write a <= x <= b as two constraints")


class ModelBuilder:
    """Builds a ``LinearModel``: variables first, then ``add`` and ``maximise``, then ``build``."""

    def __init__(self) -> None:
        self._columns, self._rows, self._objective = Columns(), Rows(), _numbers(0.0)
        self._lower: list[Floats] = []

    def __repr__(self) -> str:
        return f"<ModelBuilder: {len(self._columns.names):,} columns, {len(self._rows.names):,} rows>"

    def binary(self, name: str, shape: int | tuple[int, ...] = (), *, upper: ArrayLike = 1.0) -> Expression:
        """Return variables that are 0 or 1; an ``upper`` of 0 fixes one at 0."""
        return self.variable(name, shape, (0.0, upper), integer=True)

    def variable(
        self, name: str, shape: int | tuple[int, ...] = (), bounds: tuple[ArrayLike, ArrayLike] = (0.0, np.inf), *,
        integer: bool = False,
    ) -> Expression:  # fmt: skip
        """Return an array of variables ``name[i,j,...]`` within ``bounds``, numbers or arrays that broadcast."""
        made = np.zeros(shape)
        lower, upper = (np.broadcast_to(np.asarray(each, dtype=np.float64), made.shape).ravel() for each in bounds)
        column = self._columns.add(name, *np.indices(made.shape or (1,)).reshape(made.ndim or 1, -1), upper=upper,
                                   integer=integer)  # fmt: skip
        self._lower.append(lower)
        n = column.size
        return Expression(csr_array((np.ones(n), (np.arange(n), column)), (n, len(self._columns.names))), made)

    def add(self, constraint: Constraint, name: str = "row") -> None:
        """Add a row ``name[i]`` for every element of the constraint."""
        entries, shift = constraint.expression.factors.tocoo(), constraint.expression.constant.ravel()
        first = self._rows.add(name, shift.size, constraint.lower - shift, constraint.upper - shift)
        self._rows.put(first + entries.row, entries.col, entries.data)

    def maximise(self, objective: Expression) -> None:
        """Set what is maximised: the sum of all elements."""
        self._objective = objective.sum()

    def build(self) -> LinearModel:
        """Return the model."""
        total = self._objective
        self._columns.objective = [_widened(total.factors, len(self._columns.names)).toarray().ravel()]
        model = self._rows.model_of(self._columns, objective_constant=float(total.constant))
        return replace(model, column_lower=np.concatenate(self._lower))


def _numbers(numbers: ArrayLike) -> Expression:
    return Expression(csr_array((np.size(numbers), 0)), numbers)


def _widened(factors: Any, width: int) -> Any:
    return csr_array((factors.data, factors.indices, factors.indptr), (factors.shape[0], width))
