import sys

import numpy as np
import pytest

from bfreplay.bounds import fluid
from bfreplay.bounds.fluid import Entries, dual_values


def entries(rows):
    matrix = np.array(rows)
    row, column = np.nonzero(matrix)
    return Entries(row, column, matrix[row, column])


# most of 2 x + 3 y with x + y <= 4, y <= 3, x - y == 0: x = y = 2
ROWS = entries([[1.0, 1.0], [0.0, 1.0], [1.0, -1.0]]), np.array([4.0, 3.0, 0.0]), 2
DUALS = [-2.5, 0.0, 0.5]


@pytest.mark.parametrize("primal_simplex", [False, True])
def test_dual_values_are_those_worked_out_by_hand(primal_simplex):
    assert dual_values(np.array([-2.0, -3.0]), *ROWS, primal_simplex=primal_simplex).tolist() == pytest.approx(DUALS)


def test_beside_or_tools_scipy_gives_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, fluid.OR_TOOLS[0], object())
    assert dual_values(np.array([-2.0, -3.0]), *ROWS).tolist() == pytest.approx(DUALS)


def test_a_program_without_an_answer_has_no_dual_values():
    no_x = entries([[1.0]]), np.array([-1.0]), 1
    assert dual_values(np.array([1.0]), *no_x) is None
    assert fluid._by_scipy(np.array([1.0]), *no_x) is None
