"""Linear models for all back ends: hand-made ones, and one that no solver solves within a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bfreplay.milp.model import LinearModel, SpecialOrderedSet

INF = np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Solvable:
    """Linear model with its optimum and the optimal point; ``None`` if several points are optimal."""

    model: LinearModel
    optimum: float
    x: Sequence[float] | None = None


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
    n_columns = len(objective)
    entries = [(r, column, factor) for r, (_, row, _) in enumerate(rows) for column, factor in row.items()]
    return LinearModel(
        objective=np.array(objective, dtype=np.float64),
        objective_constant=constant,
        column_lower=np.broadcast_to(np.array(lower, dtype=np.float64), (n_columns,)).copy(),
        column_upper=np.broadcast_to(np.array(upper, dtype=np.float64), (n_columns,)).copy(),
        is_integer=np.broadcast_to(np.array(whole, dtype=np.bool_), (n_columns,)).copy(),
        column_names=tuple(f"x{i}" for i in range(n_columns)),
        row_lower=np.array([low for low, _, _ in rows], dtype=np.float64),
        row_upper=np.array([high for _, _, high in rows], dtype=np.float64),
        row_names=tuple(f"row{i}" for i in range(len(rows))),
        entry_row=np.array([r for r, _, _ in entries], dtype=np.int64),
        entry_column=np.array([column for _, column, _ in entries], dtype=np.int64),
        entry_value=np.array([factor for _, _, factor in entries], dtype=np.float64),
        sets=tuple(
            SpecialOrderedSet(kind, np.array(column), np.array(w, dtype=np.float64)) for kind, column, w in sets
        ),
        start=None if start is None else np.array(start, dtype=np.float64),
    )


def solvable_models() -> dict[str, Solvable]:
    """Return models that a person can solve, with one trap each, by the name of the trap."""
    two_sides = [(-INF, {0: 1.0}, 9.0), (2.0, {0: 1.0, 1: 2.0}, 5.0), (-INF, {1: 1.0}, 9.0)]
    one_side = [(-INF, {0: 1.0, 1: 1.0}, INF), (3.0, {0: 1.0}, INF), (-INF, {1: -1.0}, -2.0), (-INF, {}, INF)]
    mixed = [(-INF, {0: 1.0, 1: 1.0}, 3.7)]
    below = [(-30.0, {0: 1.0}, INF), (-5.0, {0: 1.0, 1: 1.0}, INF)]
    return {
        "whole columns": Solvable(linear([3, 2], [(1, {0: 1, 1: 1}, 4)], upper=[3, 10]), 11, [3, 1]),
        # the relaxation is worth 10.5 at (1.5, 3)
        "whole columns that the relaxation gets wrong": Solvable(
            linear([1, 3], [(-INF, {0: 2, 1: 1}, 6), (-INF, {0: -2, 1: 4}, 9)]), 8, [2, 2]
        ),
        "whole and continuous columns": Solvable(
            linear([3, 2], mixed, upper=[3.5, 1.2], whole=[True, False]), 10.4, [3, 0.7]
        ),
        "continuous columns only": Solvable(linear([3, 2], mixed, upper=[3.5, 1.2], whole=False), 10.9, [3.5, 0.2]),
        "an equation": Solvable(linear([1, 1], [(7, {0: 2, 1: 3}, 7)], upper=5), 3, [2, 1]),
        "a row with two sides, to the upper": Solvable(linear([3, 2], two_sides), 15, [5, 0]),
        "a row with two sides, to the lower": Solvable(linear([-3, -2], two_sides), -2, [0, 1]),
        "rows with one side and rows without any": Solvable(linear([-1, -1], one_side), -5, [3, 2]),
        "a constant in the objective": Solvable(
            linear([3, 2], [(-INF, {0: 1, 1: 1}, 4)], upper=3, constant=100), 111, [3, 1]
        ),
        "an objective of zeros": Solvable(linear([0, 0], [(3, {0: 1, 1: 1}, 3)], constant=5), 5),
        "negative bounds": Solvable(
            linear([1, -1], [(-4, {0: 1, 1: 1}, INF)], lower=[-5, -3], upper=[-2, 4]), 0, [-2, -2]
        ),
        "bounds that are not whole": Solvable(linear([1, -1], lower=0.5, upper=2.5), 1, [2, 1]),
        "a knapsack": knapsack(),
        "infinite upper bounds": Solvable(
            linear([2, 1], [(-INF, {0: 1, 1: 1}, 700), (-INF, {0: 1}, 200)], upper=INF), 900, [200, 500]
        ),
        "infinite lower bounds": Solvable(linear([-1, -2], below, lower=-INF, upper=[25, 400]), 35, [25, -30]),
        "an empty row that holds": Solvable(linear([1], [(-1, {}, 2), (0, {}, 0), (-INF, {0: 1}, 4)]), 4, [4]),
        "no rows at all": Solvable(linear([3, -2], constant=1), 31, [10, 0]),
        "no columns at all": Solvable(linear([], [(-1, {}, 1)], constant=7), 7, []),
        **{f"an objective of size {size:g}": _of_size(size) for size in (1e-7, 1.0, 1e7)},
        "differences of a millionth": _nearly_alike(),
        # worth -1 by neighbours, 1.5 by the two ends
        "at most two neighbours of an SOS2": Solvable(_curve(), -1, [0, 1, 0]),
        "at most one member of an SOS1": Solvable(_one_of_three(whole=False), 9, [3, 0, 0]),
        "an SOS2 whose columns are not in the order of their weights": Solvable(_curve(shuffled=True), -1, [0, 1, 0]),
        "an SOS1 over whole columns": Solvable(_one_of_three(whole=True), 9, [3, 0, 0]),
        "several sets of either kind": Solvable(
            linear(
                [1, 2, 3, 2, 9, 2],
                upper=1,
                whole=False,
                sets=[(2, [0, 1, 2], [1, 2, 3]), (1, [3, 4], [1, 2]), (2, [5, 0], [1, 2])],
            ),
            16,
            [0, 1, 1, 0, 1, 1],
        ),
        **{
            f"a start that {case}": Solvable(
                linear([3, 2], [(1, {0: 1, 1: 1}, 4)], upper=[3, 10], start=start), 11, [3, 1]
            )
            for case, start in (
                ("is optimal", [3, 1]),
                ("is feasible", [0, 1]),
                ("breaks a row below", [0, 0]),
                ("breaks a row above", [3, 10]),
                ("breaks bounds", [-7, 1e6]),
                ("is not whole", [0.5, 0.5]),
            )
        },
    }


def infeasible_models() -> dict[str, LinearModel]:
    """Return models without a feasible point, by the reason."""
    return {
        "two rows": linear([1, 1], [(5, {0: 1, 1: 1}, INF), (-INF, {0: 1, 1: 1}, 4)]),
        "the sides of a row": linear([1, 1], [(5, {0: 1, 1: 1}, 4)]),
        "integrality": linear([1, 1], [(3, {0: 2, 1: 2}, 3)]),
        "integrality, with a start": linear([1, 1], [(3, {0: 2, 1: 2}, 3)], start=[1, 0]),
        "the bounds of a column": linear([1, 1], lower=[0, 5], upper=[3, 4]),
        "nothing whole between two bounds": linear([1, 1], lower=[0.2, 0], upper=[0.8, 1]),
        "bounds and a row": linear([0, 0], [(2, {0: 1, 1: 1}, INF)], upper=[1, 0]),
        # what ``choices`` builds for a job whose change limit allows no count at all
        "an empty row that is to be 1": linear([1], [(1, {}, 1), (-INF, {0: 1}, 4)]),
        "an empty row with a lower side": linear([1], [(1, {}, INF), (-INF, {0: 1}, 4)]),
        "an empty row with an upper side": linear([1], [(-INF, {}, -1), (-INF, {0: 1}, 4)]),
        "an empty row, without columns": linear([], [(1, {}, 1)]),
    }


def unbounded_models() -> dict[str, LinearModel]:
    """Return unbounded models. All have infinite bounds."""
    return {
        "whole columns": linear([1, 1], [(0, {0: 1, 1: -1}, 3)], upper=INF),
        "continuous columns": linear([1, 1], [(0, {0: 1, 1: -1}, 3)], upper=INF, whole=False),
        "no rows at all": linear([1], upper=INF),
        "a column that stands in no row": linear([1, 1], [(1, {0: 1}, 3)], upper=INF),
        # worth 10 + x0 at x1 = -5 - x0
        "one column up, the other down": linear(
            [-1, -2], [(-30, {0: 1}, INF), (-5, {0: 1, 1: 1}, INF)], lower=-INF, upper=[INF, 400]
        ),
    }


def market_split(*, exact: bool) -> LinearModel:
    """Five equations over fifty binaries (Cornuejols and Dawande, 1999), which branch and bound does not solve.

    Some choice satisfies all. ``exact``: it is the start of the model, and other feasible points are hard to find.
    Otherwise the violation of the equations is minimised: feasible points are easy to find, and the optimum is 0.
    """
    generator = np.random.default_rng(5)
    n_rows, n_binaries = 5, 50
    weights = generator.integers(0, 100, (n_rows, n_binaries))
    solution = generator.integers(0, 2, n_binaries)
    sides = (weights @ solution).astype(float)
    rows: list[tuple[float, dict[int, float], float]] = []
    for row_index in range(n_rows):
        row = {column: float(weights[row_index, column]) for column in range(n_binaries) if weights[row_index, column]}
        if not exact:
            row |= {n_binaries + 2 * row_index: 1.0, n_binaries + 2 * row_index + 1: -1.0}
        rows.append((sides[row_index], row, sides[row_index]))
    if exact:
        return linear(generator.integers(1, 100, n_binaries).tolist(), rows, upper=1.0, start=solution.tolist())
    return linear([0.0] * n_binaries + [-1.0] * (2 * n_rows), rows, upper=[1.0] * n_binaries + [1e4] * (2 * n_rows))


def knapsack() -> Solvable:
    """Return a knapsack with thirty items, a third of which fit; its optimum is from dynamic programming."""
    generator = np.random.default_rng(2)
    weights: list[int] = generator.integers(10, 60, 30).tolist()
    worth: list[int] = generator.integers(10, 60, 30).tolist()
    capacity = 300
    best_worth = np.zeros(capacity + 1)  # best[c]: optimum over the items so far within a weight of c
    for weight, value in zip(weights, worth, strict=True):
        best_worth[weight:] = np.maximum(best_worth[weight:], best_worth[:-weight] + value)
    return Solvable(linear(worth, [(-INF, dict(enumerate(weights)), capacity)], upper=1), float(best_worth[-1]))


def _of_size(magnitude: float) -> Solvable:
    """(1, 1, 1, 0) and (0, 1, 1, 1) differ by a hundred-thousandth of the largest coefficient."""
    worth = (np.array([1.00001, 2.7, 1.9, 1.0]) * magnitude).tolist()
    model = linear(worth, [(-INF, dict.fromkeys(range(4), 1.0), 3)], upper=1, constant=2 * magnitude)
    return Solvable(model, (1.00001 + 2.7 + 1.9 + 2) * magnitude, [1, 1, 1, 0])


def _nearly_alike() -> Solvable:
    """Return a choice of one of forty columns. CBC's default increment of 1e-5 would accept the first one found."""
    worth = 1.0 + 2e-6 * np.random.default_rng(1).permutation(40)
    model = linear(worth.tolist(), [(-INF, dict.fromkeys(range(40), 1.0), 1)], upper=1)
    return Solvable(model, float(worth.max()))


def _curve(*, shuffled: bool = False) -> LinearModel:
    """Return weights on (0, 0), (1, -1), (2, 3), at 1; columns in the set's order or another (optimum 1.5)."""
    rows: list[tuple[float, dict[int, float], float]] = [(1, {0: 1, 1: 1, 2: 1}, 1), (1, {1: 1, 2: 2}, 1)]
    order = [2, 0, 1] if shuffled else [0, 1, 2]
    return linear([0, -1, 3], rows, upper=1, whole=False, sets=[(2, order, [float(column) for column in order])])


def _one_of_three(*, whole: bool) -> LinearModel:
    rows: list[tuple[float, dict[int, float], float]] = [(-INF, {0: 1, 1: 1, 2: 1}, 5)]
    return linear([3, 4, 3], rows, upper=[3, 1, 2], whole=whole, sets=[(1, [0, 1, 2], [1, 2, 3])])
