"""Linear expressions over arrays of variables, and their comparisons."""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array

from bfreplay.errors import InputError

Floats: TypeAlias = NDArray[np.float64]


class Expression:
    """An array of linear expressions over the variables of one ``ModelBuilder``; a variable is one, too.

    It takes ``+``, ``-``, ``*``, ``/`` and ``@`` with finite numbers and arrays that broadcast, ``sum(axis)``, ``T``
    and indexing. Comparisons with ``<=``, ``>=`` and ``==`` make a ``Constraint``.
    """

    __array_ufunc__ = None  # so that ``array * expression`` comes here
    __hash__ = None  # type: ignore[assignment]  # == makes a constraint

    def __init__(self, factors: Any, constant: ArrayLike, builder: Any = None) -> None:
        self.constant = np.asarray(constant, dtype=np.float64)  # its shape is that of the expression
        self.factors = factors  # sparse: a row an element, a column for each variable up to the last one in it
        self.builder = builder  # the ``ModelBuilder`` of its variables; None for plain numbers

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.constant.shape

    @property
    def T(self) -> Expression:  # noqa: N802  # as numpy calls it
        """The array transposed."""
        return self._at(self._places.T)

    def __repr__(self) -> str:
        return f"<Expression: shape {self.shape}, {self.factors.nnz:,} terms>"

    def __getitem__(self, index: Any) -> Expression:
        return self._at(self._places[index])

    def __add__(self, other: Expression | ArrayLike) -> Expression:
        one, two = self, other if isinstance(other, Expression) else constant(other)
        if one.builder is not None:
            one.builder.check_own(two)
        shape, width = np.broadcast_shapes(one.shape, two.shape), max(one.factors.shape[1], two.factors.shape[1])
        one, two = (each._at(np.broadcast_to(each._places, shape)) for each in (one, two))
        factors = widened(one.factors, width) + widened(two.factors, width)
        return Expression(factors, one.constant + two.constant, self.builder)

    def __mul__(self, numbers: ArrayLike) -> Expression:
        by = _finite(numbers)
        one = self._at(np.broadcast_to(self._places, np.broadcast_shapes(self.shape, by.shape)))
        factors = diags_array(np.broadcast_to(by, one.shape).ravel()) @ one.factors
        return Expression(factors, one.constant * by, self.builder)

    def __truediv__(self, numbers: ArrayLike) -> Expression:
        divisor = _finite(numbers)
        return self * np.divide(1.0, divisor, out=np.full_like(divisor, np.inf), where=divisor != 0.0)

    def __matmul__(self, numbers: ArrayLike) -> Expression:
        by = _finite(numbers)
        if by.ndim not in (1, 2) or self.shape[-1:] != by.shape[:1]:
            raise InputError(f"the shapes {self.shape} and {by.shape} do not fit for @", expected="as for numpy arrays")
        return (self * by).sum(-1) if by.ndim == 1 else (self[..., None] * by).sum(-2)

    def __rmatmul__(self, numbers: ArrayLike) -> Expression:
        return (self.T @ np.asarray(numbers).T).T

    def __neg__(self) -> Expression:
        return self * -1.0

    def __sub__(self, other: Expression | ArrayLike) -> Expression:
        return self + -(other if isinstance(other, Expression) else _finite(other))

    def __rsub__(self, other: ArrayLike) -> Expression:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __le__(self, other: Expression | ArrayLike) -> Constraint:
        return Constraint(self - other, -np.inf, 0.0)

    def __ge__(self, other: Expression | ArrayLike) -> Constraint:
        return Constraint(self - other, 0.0, np.inf)

    def __eq__(self, other: Expression | ArrayLike) -> Constraint:  # type: ignore[override]
        return Constraint(self - other, 0.0, 0.0)

    def __ne__(self, other: object) -> NoReturn:
        raise InputError("!= is no linear constraint", expected="<=, >= or ==")

    def sum(self, axis: int | tuple[int, ...] | None = None, out: None = None) -> Expression:
        """Return the sum over one axis, several, or all; ``out`` is there for ``np.sum``."""
        total = constant(self.constant.sum(axis))
        into = total._places if axis is None else np.expand_dims(total._places, axis)
        place = np.broadcast_to(into, self.shape).ravel()
        adder = csr_array((np.ones(place.size), (place, np.arange(place.size))), (total.constant.size, place.size))
        return Expression(adder @ self.factors, total.constant, self.builder)

    def value(self, x: Floats) -> Floats:
        """Return the values, in the shape of the expression, at column values ``x`` ``(C,)`` of the built model."""
        made: Floats = (self.factors @ x[: self.factors.shape[1]]).reshape(self.shape) + self.constant
        return made

    @property
    def _places(self) -> Any:
        return np.arange(self.constant.size).reshape(self.shape)

    def _at(self, place: Any) -> Expression:
        return Expression(self.factors[np.ravel(place)], self.constant.ravel()[place], self.builder)


class Constraint:
    """``lower <= expression <= upper`` for every element of the expression."""

    def __init__(self, expression: Expression, lower: float, upper: float) -> None:
        self.expression, self.lower, self.upper = expression, lower, upper

    def __repr__(self) -> str:
        return f"<Constraint: {self.lower:g} <= {self.expression!r} <= {self.upper:g}>"

    def __bool__(self) -> bool:
        raise InputError("a constraint is neither true nor false", fix="write a <= x <= b as two constraints")


def _finite(numbers: ArrayLike) -> Floats:
    if isinstance(numbers, Expression):
        raise InputError("two expressions are multiplied or divided", expected="numbers as a factor")
    found = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(found).all():
        raise InputError("a number is not finite", value=numbers, fix="np.where(allowed, value, 0) for value")
    return found


def constant(numbers: ArrayLike) -> Expression:
    """Return numbers as an expression without variables."""
    return Expression(csr_array((np.size(numbers), 0)), _finite(numbers))


def widened(factors: Any, width: int) -> Any:
    """Return sparse factors with ``width`` columns, of which the last ones are 0."""
    return csr_array((factors.data, factors.indices, factors.indptr), (factors.shape[0], width))
