"""Kinks of curves, and abstract nodes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.milp.formulations.curves import kinks
from bfreplay.milp.formulations.formulation import map_violation, node_holdings
from tests.milp.small_problems import problem_of_two


@given(table=st.lists(st.integers(-50, 50), min_size=1, max_size=40).map(lambda row: np.array(row) * 0.1))
def test_interpolating_between_kinks_gives_the_table_back(table):
    points = kinks(table)
    counts = np.arange(len(table))
    np.testing.assert_allclose(np.interp(counts, points, table[points]), table, atol=1e-8)
    assert points[0] == 0
    assert points[-1] == len(table) - 1


def test_a_straight_table_has_two_kinks_although_rounding_bends_it():
    assert kinks(np.arange(65) * 0.1).tolist() == [0, 64]


def test_held_nodes_are_numbered_in_job_order_and_free_ones_come_last():
    assert np.argwhere(node_holdings(problem_of_two())).tolist() == [[0, 0], [1, 1], [1, 2]]


def test_a_map_that_gives_a_node_twice_or_migrates_is_named():
    problem = problem_of_two()
    assert map_violation(problem, ((0, 3, 4), (1, 2))) == ""
    assert "node 3 is given to 2 jobs" in map_violation(problem, ((0, 3), (1, 2, 3)))
    assert "job 1 migrates" in map_violation(problem, ((0,), (1, 3)))
