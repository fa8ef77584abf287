"""What back ends share: one-sided rows, answers without a solver, the scale undone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.milp.backends import BackendAnswer, ModelRefusedError, SolveOptions
from bfreplay.milp.backends.arrays import refuse_sets, resolve_unbounded, trivial_answer, unscale, with_one_sided_rows
from bfreplay.milp.backends.backend import objective_scale
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus
from bfreplay.testing.models import INF, linear

MODEL = linear(
    [1, 2, 4], [(-INF, {2: 5, 0: 3}, 9), (1, {0: 7}, 1), (2, {1: 8, 2: 6}, 4), (-INF, {0: 1}, INF), (0, {}, 1)]
)


def activity(model: LinearModel, x: np.ndarray) -> np.ndarray:
    """``A x``."""
    sums = np.zeros(model.n_rows)
    np.add.at(sums, model.entry_row, model.entry_value * x[model.entry_column])
    return sums


def test_one_sided_rows_say_the_same():
    split, sense = with_one_sided_rows(MODEL)
    assert sense.tolist() == ["<", "=", ">", "<", ">", "<"]
    assert split.row_names == ("row0", "row1", "row2", "row2", "row4", "row4")
    np.testing.assert_array_equal(split.row_lower, [-INF, 1, 2, -INF, 0, -INF])
    np.testing.assert_array_equal(split.row_upper, [9, 1, INF, 4, INF, 1])
    for x in np.random.default_rng(1).integers(0, 3, (20, 3)):
        np.testing.assert_array_equal(activity(split, x), activity(MODEL, x)[[0, 1, 2, 2, 4, 4]])


def test_one_sided_rows_of_no_rows():
    split, sense = with_one_sided_rows(linear([1]))
    assert (split.n_rows, sense.shape) == (0, (0,))


def test_a_model_with_something_to_solve_is_not_settled():
    assert trivial_answer(linear([1], [(0, {0: 1}, 4), (-1, {}, 1)])) is None


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (linear([1], [(0, {0: 1}, 1), (1, {}, 2)]), "row row1 has no entries and cannot hold"),
        (linear([1], [(5, {0: 1}, 4)]), "the sides of row row0 exclude each other"),
        (linear([1], [(INF, {0: 1}, INF)]), "the sides of row row0 exclude each other"),
        (linear([1, 1], lower=[0, 3], upper=[1, 2]), "column x1 has no value"),
    ],
)
def test_contradictions_are_infeasible_and_named(model, said):
    answer = trivial_answer(model)
    assert (answer.solver_status, answer.message, answer.x) == (SolverStatus.INFEASIBLE, said, None)


def test_a_model_without_columns_is_worth_its_constant():
    answer = trivial_answer(linear([], constant=3))
    assert (answer.solver_status, answer.objective, answer.bound) == (SolverStatus.OPTIMAL, 3.0, 3.0)


def test_the_scale_is_the_largest_coefficient_and_is_undone():
    model = linear([-4, 2], constant=1)
    assert objective_scale(model) == 4.0
    assert unscale(0.5, model, 4.0, math.nan) == 3.0


@pytest.mark.parametrize("reported", [None, math.nan, math.inf, -math.inf, 1e20, -1e30, 1e50, 1.8e308])
def test_what_is_no_number_is_absent(reported):
    assert unscale(reported, linear([1]), 1.0, math.inf) == math.inf


def test_an_objective_of_zeros_has_scale_one():
    assert objective_scale(linear([0, 0])) == 1.0
    assert objective_scale(linear([])) == 1.0


def test_sets_are_refused_with_a_way_out():
    refuse_sets(linear([1]), "mine")
    with pytest.raises(ModelRefusedError, match=r"^mine takes no special ordered sets, and the model has 1; take"):
        refuse_sets(linear([1, 1], sets=[(1, [0, 1], [1, 2])]), "mine")


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (BackendAnswer(SolverStatus.OPTIMAL, np.zeros(1), 0.0), SolverStatus.UNBOUNDED),
        (BackendAnswer(SolverStatus.FEASIBLE, np.zeros(1), 0.0), SolverStatus.UNBOUNDED),
        (BackendAnswer(SolverStatus.INFEASIBLE), SolverStatus.INFEASIBLE),
        (BackendAnswer(SolverStatus.NO_SOLUTION), SolverStatus.UNKNOWN),
    ],
)
def test_unbounded_or_infeasible_is_told_apart_by_solving_for_nothing(found, status):
    model, options = linear([3], constant=2), SolveOptions(1.0)

    def solve(nothing, same_options):
        assert same_options is options
        assert (nothing.objective.tolist(), nothing.objective_constant) == ([0.0], 0.0)
        assert replace(nothing, objective=model.objective).column_upper is model.column_upper
        return found

    assert resolve_unbounded(solve, model, options) is status
