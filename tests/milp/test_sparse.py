"""The matrix of a model by columns and by rows: entries in their order, empty ones too."""

from __future__ import annotations

import numpy as np

from bfreplay.milp.model import by_column, by_row
from bfreplay.testing.models import INF, linear

MODEL = linear(
    [1, 2, 4], [(-INF, {2: 5, 0: 3}, 9), (1, {0: 7}, 1), (2, {1: 8, 2: 6}, 4), (-INF, {0: 1}, INF), (0, {}, 1)]
)


def test_a_matrix_by_column():
    matrix = by_column(MODEL)
    np.testing.assert_array_equal(matrix.start, [0, 3, 4, 6])
    np.testing.assert_array_equal(matrix.index, [0, 1, 3, 2, 0, 2])
    np.testing.assert_array_equal(matrix.value, [3, 7, 1, 8, 5, 6])
    assert (matrix.start.dtype, matrix.index.dtype, matrix.value.dtype) == (np.int32, np.int32, np.float64)


def test_a_matrix_by_row():
    matrix = by_row(MODEL)
    np.testing.assert_array_equal(matrix.start, [0, 2, 3, 5, 6, 6])
    np.testing.assert_array_equal(matrix.index, [2, 0, 0, 1, 2, 0])
    np.testing.assert_array_equal(matrix.value, [5, 3, 7, 8, 6, 1])


def test_a_matrix_without_entries():
    assert by_column(linear([1, 2])).start.tolist() == [0, 0, 0]
    assert by_row(linear([])).start.tolist() == [0]
