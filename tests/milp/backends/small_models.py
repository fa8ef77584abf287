"""Linear models that a person can solve, and one that no solver can in a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bfreplay.milp.model import LinearModel, SpecialOrderedSet

INF = np.inf


def linear(
    objective: Sequence[float],
    rows: Sequence[tuple[float, Mapping[int, float], float]] = (),
    *,
    lower: Sequence[float] | float = 0.0,
    upper: Sequence[float] | float = 10.0,
    whole: Sequence[bool] | bool = True,
    constant: float = 0.0,
    sets: Sequence[tuple[int, Sequence[int], Sequence[float]]] = (),
    start: Sequence[float] | None = None,
) -> LinearModel:
    """Maximise ``objective``. Rows: (lower side, {column: coefficient}, upper side), sets: (kind, columns, weights)."""
    n = len(objective)
    entries = [(r, c, v) for r, (_, row, _) in enumerate(rows) for c, v in row.items()]
    return LinearModel(
        objective=np.array(objective, dtype=np.float64),
        objective_constant=constant,
        column_lower=np.broadcast_to(np.array(lower, dtype=np.float64), (n,)).copy(),
        column_upper=np.broadcast_to(np.array(upper, dtype=np.float64), (n,)).copy(),
        is_integer=np.broadcast_to(np.array(whole, dtype=np.bool_), (n,)).copy(),
        column_names=tuple(f"x{i}" for i in range(n)),
        row_lower=np.array([low for low, _, _ in rows], dtype=np.float64),
        row_upper=np.array([high for _, _, high in rows], dtype=np.float64),
        row_names=tuple(f"row{i}" for i in range(len(rows))),
        entry_row=np.array([r for r, _, _ in entries], dtype=np.int64),
        entry_column=np.array([c for _, c, _ in entries], dtype=np.int64),
        entry_value=np.array([v for _, _, v in entries], dtype=np.float64),
        sets=tuple(SpecialOrderedSet(kind, np.array(c), np.array(w, dtype=np.float64)) for kind, c, w in sets),
        start=None if start is None else np.array(start, dtype=np.float64),
    )


def activity(model: LinearModel, x: np.ndarray) -> np.ndarray:
    """``A x``."""
    sums = np.zeros(model.n_rows)
    np.add.at(sums, model.entry_row, model.entry_value * x[model.entry_column])
    return sums


def holds(model: LinearModel, x: np.ndarray, tolerance: float = 1e-6) -> bool:
    """Whether ``x`` keeps to bounds, rows and integrality."""
    sums = activity(model, x)
    return bool(
        (x >= model.column_lower - tolerance).all()
        and (x <= model.column_upper + tolerance).all()
        and (sums >= model.row_lower - tolerance).all()
        and (sums <= model.row_upper + tolerance).all()
        and (np.abs(x - np.rint(x))[model.is_integer] <= tolerance).all()
    )


def market_split(*, exact: bool) -> LinearModel:
    """Five equations over fifty binaries (Cornuejols and Dawande, 1999), which branch and bound does not solve.

    Some choice keeps all of them. ``exact``: it is the start of the model, and nothing else feasible is easy to find.
    Otherwise what the equations are missed by is to be as small as possible: feasible is easy, and the optimum is 0.
    """
    rng = np.random.default_rng(5)
    n_rows, n = 5, 50
    weights = rng.integers(0, 100, (n_rows, n))
    chosen = rng.integers(0, 2, n)
    sides = (weights @ chosen).astype(float)
    rows: list[tuple[float, dict[int, float], float]] = []
    for r in range(n_rows):
        row = {c: float(weights[r, c]) for c in range(n) if weights[r, c]}
        if not exact:
            row |= {n + 2 * r: 1.0, n + 2 * r + 1: -1.0}
        rows.append((sides[r], row, sides[r]))
    if exact:
        return linear(rng.integers(1, 100, n).tolist(), rows, upper=1.0, start=chosen.tolist())
    return linear([0.0] * n + [-1.0] * (2 * n_rows), rows, upper=[1.0] * n + [1e4] * (2 * n_rows))
