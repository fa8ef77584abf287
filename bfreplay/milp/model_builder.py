"""``ModelBuilder``: a linear model written with named variables, sums and comparisons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from bfreplay.errors import InputError
from bfreplay.milp.expressions import Constraint, Expression, Floats, constant, widened
from bfreplay.milp.formulations.entries import Columns, Rows
from bfreplay.milp.model import LinearModel


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

    def __repr__(self) -> str:
        return f"<ModelBuilder: {len(self._columns.names):,} columns, {len(self._rows.names):,} rows>"

    def binary(self, name: str, shape: int | tuple[int, ...] = (), *, upper: ArrayLike = 1.0) -> Expression:
        """Return variables that are 0 or 1; an ``upper`` of 0 fixes one at 0."""
        return self.variable(name, shape, upper=upper, integer=True)

    def variable(
        self, name: str, shape: int | tuple[int, ...] = (), *, lower: ArrayLike = 0.0, upper: ArrayLike = np.inf,
        integer: bool = False,
    ) -> Expression:  # fmt: skip
        """Return an array of variables ``name[i,j,...]``; ``lower`` and ``upper`` broadcast."""
        made = np.zeros(shape)
        low, up = (np.broadcast_to(np.asarray(each, np.float64), made.shape).ravel() for each in (lower, upper))
        if name in self._lower:
            raise InputError(f"the variable {name!r} exists already", expected="a name of its own for every variable")
        if not (low <= up).all():
            first = int(np.argmin(low <= up))
            raise InputError(
                f"no value lies within the bounds of {name!r}", value=(float(low[first]), float(up[first]))
            )
        column = self._columns.add(name, *np.indices(made.shape or (1,)).reshape(made.ndim or 1, -1), upper=up,
                                   integer=integer)  # fmt: skip
        self._lower[name] = low
        n = column.size
        return Expression(csr_array((np.ones(n), (np.arange(n), column)), (n, len(self._columns.names))), made, self)

    def add(self, constraint: Constraint, name: str = "row") -> None:
        """Add a row ``name[i]`` for every element of the constraint."""
        if not isinstance(constraint, Constraint):
            raise InputError("this is no constraint", value=constraint, expected="a comparison, such as x + y <= 1")
        self.check_own(constraint.expression)
        entries, shift = constraint.expression.factors.tocoo(), constraint.expression.constant.ravel()
        first = self._rows.add(name, shift.size, constraint.lower - shift, constraint.upper - shift)
        self._rows.put(first + entries.row, entries.col, entries.data)

    def maximise(self, objective: Expression | ArrayLike) -> None:
        """Set what is maximised: the sum of all elements; 0 where any feasible point will do."""
        objective = objective if isinstance(objective, Expression) else constant(objective)
        self.check_own(objective)
        self._objective = objective.sum()

    maximize = maximise

    def build(self) -> LinearModel:
        """Return the model."""
        total = self._objective
        if total is None:
            raise InputError(
                "the model has no objective", fix="call maximise; maximise(0) if any feasible point will do"
            )
        self._columns.objective = [widened(total.factors, len(self._columns.names)).toarray().ravel()]
        model = self._rows.model_of(self._columns, objective_constant=float(total.constant))
        return replace(model, column_lower=np.concatenate([*self._lower.values()]))

    def check_own(self, expression: Expression) -> None:
        """Raise ``InputError`` for an expression of another builder's variables."""
        if (other := expression.builder) not in (None, self):
            names, columns = other._columns.names, expression.factors.indices
            name = names[columns[0]].partition("[")[0] if columns.size else "the expression"
            raise InputError(f"{name} belongs to another ModelBuilder", fix="make all variables of a model with one")
