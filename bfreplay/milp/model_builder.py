"""Linear models written with named variables: arrays of linear expressions, their comparisons, ``ModelBuilder``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array

from bfreplay.errors import InputError
from bfreplay.milp.model import Columns, LinearModel, Rows

Floats: TypeAlias = NDArray[np.float64]


class Expression:
    """An array of linear expressions over the variables of one ``ModelBuilder``; a variable is one, too.

    It takes ``+``, ``-``, ``*``, ``/`` and ``@`` with finite numbers and arrays that broadcast, ``sum(axis)``, ``T``
    and indexing. Comparisons with ``<=``, ``>=`` and ``==`` make a ``Constraint``.
    """

    __array_ufunc__ = None  # so that ``array * expression`` comes here
    __hash__ = None  # type: ignore[assignment]  # == makes a constraint

    terms: dict[int, float] | None = None  # factors by column of a single element: a loop makes many of them

    def __init__(self, factors: Any, constant: ArrayLike, builder: Any = None) -> None:
        self.constant = np.asarray(constant, dtype=np.float64)
        self.factors = factors
        self.builder = builder  # the ``ModelBuilder`` of its variables; None for plain numbers

    @classmethod
    def _element(cls, terms: dict[int, float], builder: Any) -> Expression:
        element = cls.__new__(cls)
        element.terms, element.builder = terms, builder
        return element

    @cached_property
    def constant(self) -> Floats:
        """Constant terms; their shape is that of the expression."""
        return np.asarray((self.terms or {})[_CONSTANT], np.float64)  # else set by the constructor

    @cached_property
    def factors(self) -> Any:
        """Sparse factors: a row an element, a column for each variable up to the last one in it."""
        terms = self.terms or {}
        columns = sorted(column for column, factor in terms.items() if factor and column != _CONSTANT)
        values = [terms[column] for column in columns]
        return csr_array((values, columns, [0, len(columns)]), (1, max(columns, default=-1) + 1))

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

    def __bool__(self) -> bool:
        raise InputError("an expression is neither true nor false", fix="compare it: m.add(x + y <= 1)")

    def __iter__(self) -> Iterator[Expression]:
        if not self.shape:
            raise InputError("this is one expression, not several", value=self, fix="write a list of it: m.sum([x, y])")
        return (self[row] for row in range(self.shape[0]))

    def __getitem__(self, index: Any) -> Expression:
        place = self._places[index]
        if place.ndim:
            return self._at(place)
        factors = self.factors
        row = slice(factors.indptr[place], factors.indptr[place + 1])
        terms = dict(zip(factors.indices[row].tolist(), factors.data[row].tolist(), strict=True))
        return self._element({**terms, _CONSTANT: self.constant.item(place)}, self.builder)

    def _plus(self, operand: Expression | ArrayLike, *, in_place: bool = False) -> Expression:
        if self.terms is not None and (others := _terms_of(operand)) is not None:
            if isinstance(operand, Expression):
                self.builder.check_own(operand)
            terms = self.terms if in_place else self.terms.copy()
            for column, factor in others.items():
                terms[column] = terms.get(column, 0.0) + factor
            return self._element(terms, self.builder)
        one, two = self, operand if isinstance(operand, Expression) else constant(operand)
        if one.builder is not None:
            one.builder.check_own(two)
        shape, width = _common_shape(one.shape, two.shape), max(one.factors.shape[1], two.factors.shape[1])
        one, two = (terms._at(np.broadcast_to(terms._places, shape)) for terms in (one, two))
        factors = widen(one.factors, width) + widen(two.factors, width)
        return Expression(factors, one.constant + two.constant, self.builder)

    def __mul__(self, numbers: ArrayLike) -> Expression:
        if self.terms is not None and (number := _terms_of(numbers)) and not isinstance(numbers, Expression):
            terms = {column: factor * number[_CONSTANT] for column, factor in self.terms.items()}
            return self._element(terms, self.builder)
        factor = _finite(numbers)
        first_operand = self._at(np.broadcast_to(self._places, _common_shape(self.shape, factor.shape)))
        factors = diags_array(np.broadcast_to(factor, first_operand.shape).ravel()) @ first_operand.factors
        return Expression(factors, first_operand.constant * factor, self.builder)

    def __truediv__(self, numbers: ArrayLike) -> Expression:
        divisor = _finite(numbers)
        if not divisor.all():
            raise InputError("an expression is divided by 0", value=numbers, expected="numbers other than 0")
        return self * (1.0 / divisor)

    def __matmul__(self, numbers: ArrayLike) -> Expression:
        by = _finite(numbers)
        if by.ndim not in (1, 2) or self.shape[-1:] != by.shape[:1]:
            raise InputError(f"the shapes {self.shape} and {by.shape} do not fit for @", expected="as for numpy arrays")
        return (self * by).sum(-1) if by.ndim == 1 else (self[..., None] * by).sum(-2)

    def __rmatmul__(self, numbers: ArrayLike) -> Expression:
        return (self.T @ np.asarray(numbers).T).T

    def __neg__(self) -> Expression:
        return self * -1.0

    def __sub__(self, operand: Expression | ArrayLike) -> Expression:
        return self + -(operand if isinstance(operand, Expression | int | float) else _finite(operand))

    def __rsub__(self, operand: ArrayLike) -> Expression:
        return -self + operand

    __add__, __radd__, __rmul__ = _plus, _plus, __mul__

    def __le__(self, operand: Expression | ArrayLike) -> Constraint:
        return Constraint(self - operand, -np.inf, 0.0)

    def __ge__(self, operand: Expression | ArrayLike) -> Constraint:
        return Constraint(self - operand, 0.0, np.inf)

    def __eq__(self, operand: Expression | ArrayLike) -> Constraint:  # type: ignore[override]
        return Constraint(self - operand, 0.0, 0.0)

    def __ne__(self, operand: object) -> bool:
        raise InputError("this is no linear constraint", expected="<=, >= or ==")

    __lt__ = __gt__ = __ne__

    def sum(self, axis: int | tuple[int, ...] | None = None, out: None = None) -> Expression:
        """Return the sum over one axis, several, or all; ``out`` is there for ``np.sum``."""
        total = constant(self.constant.sum(axis))
        into = total._places if axis is None else np.expand_dims(total._places, axis)
        place = np.broadcast_to(into, self.shape).ravel()
        adder = csr_array((np.ones(place.size), (place, np.arange(place.size))), (total.constant.size, place.size))
        return Expression(adder @ self.factors, total.constant, self.builder)

    def value(self, x: Floats) -> Floats:
        """Return the values, in the shape of the expression, at column values ``x`` ``(C,)`` of the built model."""
        columns, width = np.asarray(x, np.float64), self.factors.shape[1]
        if columns.ndim != 1 or columns.size < width:
            raise InputError(
                "these are not the values of the columns", value=columns.shape, expected=f"shape (C,), C >= {width}"
            )
        values: Floats = (self.factors @ columns[:width]).reshape(self.shape) + self.constant
        return values

    @cached_property
    def _places(self) -> Any:
        return np.arange(self.constant.size).reshape(self.shape)

    def _at(self, place: Any) -> Expression:
        return Expression(self.factors[np.ravel(place)], self.constant.ravel()[place], self.builder)


_CONSTANT = -1
"""Key of the constant term in the terms of a single element."""


def _terms_of(operand: Any) -> dict[int, float] | None:
    """Return the terms of a single element, or of a finite number; ``None`` for anything else."""
    if isinstance(operand, Expression):
        return operand.terms
    is_number = isinstance(operand, int | float | np.integer) and math.isfinite(operand)
    return {_CONSTANT: operand} if is_number else None


class Constraint:
    """``lower <= expression <= upper`` for every element of the expression."""

    def __init__(self, expression: Expression, lower: float, upper: float) -> None:
        self.expression, self.lower, self.upper = expression, lower, upper

    def __repr__(self) -> str:
        return f"<Constraint: {self.lower:g} <= {self.expression!r} <= {self.upper:g}>"

    def __bool__(self) -> bool:
        fix = "write a <= x <= b as two constraints, without `if`"
        raise InputError("a constraint is neither true nor false", fix=fix)


def _finite(numbers: ArrayLike) -> Floats:
    if isinstance(numbers, Expression):
        raise InputError("two expressions are multiplied or divided", expected="numbers as a factor")
    try:
        array = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None or numbers is None:
        raise InputError("this is neither an expression nor numbers", value=numbers, expected="x, 2 * x, an array")
    if not np.isfinite(array).all():
        raise InputError(
            "a number is not finite",
            value=numbers,
            fix="leave out a row or a bound that never binds; np.where(allowed, value, 0) for a factor",
        )
    return array


def _common_shape(one: tuple[int, ...], two: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(one, two)
    except ValueError:
        raise InputError(f"the shapes {one} and {two} do not fit", expected="shapes that broadcast in numpy") from None


def constant(numbers: ArrayLike) -> Expression:
    """Return numbers as an expression without variables."""
    return Expression(csr_array((np.size(numbers), 0)), _finite(numbers))


def widen(factors: Any, width: int) -> Any:
    """Return sparse factors with ``width`` columns, of which the last ones are 0."""
    return csr_array((factors.data, factors.indices, factors.indptr), (factors.shape[0], width))


class ModelBuilder:
    """Builds a ``LinearModel``: variables first, then ``add`` and ``maximise``, then ``build``.

    Factors are finite. ``problem.value`` has -inf where a count is not allowed: with
    ``allowed = problem.value > -np.inf`` multiply by ``np.where(allowed, problem.value, 0)``, and keep the variable
    at 0 by ``upper=allowed``.
    """

    def __init__(self) -> None:
        self._columns, self._rows = Columns(), Rows()
        self._objective: Expression | None = None
        self._lower: dict[str, Floats] = {}  # by variable
        self._n_rows: Counter[str] = Counter()  # by name

    def __repr__(self) -> str:
        return f"<ModelBuilder: {len(self._columns.names):,} columns, {len(self._rows.names):,} rows>"

    def binary(self, name: str, shape: int | tuple[int, ...] = (), *, upper: ArrayLike = 1.0) -> Expression:
        """Return variables that are 0 or 1; an ``upper`` of 0 fixes one at 0, any other but 1 is an ``InputError``."""
        if not np.isin(upper, (0, 1)).all():
            expected, fix = "0 or 1, also true or false", "integer variables are made by variable(..., integer=True)"
            raise InputError(f"the upper bound of the binary {name!r}", value=upper, expected=expected, fix=fix)
        return self.variable(name, shape, upper=upper, integer=True)

    def variable(
        self,
        name: str,
        shape: int | tuple[int, ...] = (),
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: bool = False,
    ) -> Expression:
        """Return an array of variables ``name[i,j,...]``; ``lower`` and ``upper`` broadcast."""
        try:
            made = np.zeros(shape)
            low, up = (np.broadcast_to(np.asarray(limit, np.float64), made.shape).ravel() for limit in (lower, upper))
        except (TypeError, ValueError) as error:
            raise InputError(f"the variable {name!r} cannot be made: {error}", value=shape) from error
        if name in self._lower:
            raise InputError(f"the variable {name!r} exists already", expected="a name of its own for every variable")
        if not (low <= up).all():
            first = int(np.argmin(low <= up))
            raise InputError(
                f"no value lies within the bounds of {name!r}", value=(float(low[first]), float(up[first]))
            )
        column = self._columns.add(
            name, *np.indices(made.shape or (1,)).reshape(made.ndim or 1, -1), upper=up, integer=integer
        )
        self._lower[name] = low
        n = column.size
        return Expression(csr_array((np.ones(n), (np.arange(n), column)), (n, len(self._columns.names))), made, self)

    def sum(self, summands: Iterable[Expression | float]) -> Expression:
        """Return the sum of expressions and numbers, such as those of a loop; 0 of none."""
        total = Expression._element({_CONSTANT: 0.0}, self)
        for summand in summands:
            total = total._plus(summand, in_place=True)
        return total

    def add(self, constraint: Constraint, name: str = "row") -> None:
        """Add a row ``name[i]`` for every element of the constraint; ``i`` goes on where the name is used again."""
        if not isinstance(constraint, Constraint):
            remedy = "give the constraint first, then its name" if isinstance(constraint, str) else None
            raise InputError("this is no constraint", value=constraint, expected="such as x + y <= 1", fix=remedy)
        expression, n_before = constraint.expression, self._n_rows[name]
        self.check_own(expression)
        self._n_rows[name] += 1 if expression.terms is not None else expression.constant.size
        if expression.terms is not None:
            terms = expression.terms.copy()
            number = terms.pop(_CONSTANT)
            self._rows.add_row(f"{name}[{n_before}]", constraint.lower - number, constraint.upper - number, terms)
            return
        entries, shift = expression.factors.tocoo(), expression.constant.ravel()
        numbers = np.arange(n_before, self._n_rows[name])
        first = self._rows.add(name, shift.size, constraint.lower - shift, constraint.upper - shift, numbers)
        self._rows.put(first + entries.row, entries.col, entries.data)

    def maximise(self, objective: Expression | ArrayLike) -> None:
        """Set what is maximised: the sum of all elements; 0 where any feasible point will do."""
        objective = objective if isinstance(objective, Expression) else constant(objective)
        self.check_own(objective)
        self._objective = objective.sum()

    def minimise(self, objective: Expression | ArrayLike) -> None:
        """Set what is minimised: the sum of all elements."""
        self.maximise(-(objective if isinstance(objective, Expression) else constant(objective)))

    maximize, minimize = maximise, minimise

    def build(self) -> LinearModel:
        """Return the model."""
        total = self._objective
        if total is None:
            raise InputError(
                "the model has no objective", fix="call maximise; maximise(0) if any feasible point will do"
            )
        self._columns.objective = [widen(total.factors, len(self._columns.names)).toarray().ravel()]
        model = self._rows.model_of(self._columns, objective_constant=float(total.constant))
        return replace(model, column_lower=np.concatenate([*self._lower.values()]))

    def check_own(self, expression: Expression) -> None:
        """Raise ``InputError`` for an expression of another builder's variables."""
        if (operand := expression.builder) not in (None, self):
            names, columns = operand._columns.names, expression.factors.indices
            name = names[columns[0]].partition("[")[0] if columns.size else "the expression"
            raise InputError(f"{name} belongs to another ModelBuilder", fix="make all variables of a model with one")
