"""Checks of counts and of claimed objectives, worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.milp.verify import agrees, largest_coefficient, magnitude, objective_of, violation
from tests.milp.small_problems import left_on_seven, problem_of_two

INF = np.inf


@pytest.mark.parametrize(
    ("counts", "worth"),
    [([3, 2], 8 - 1 + 5), ([1, 2], 2 + 5), ([0, 0], -0.5 - 0.5), ([1, 4], 2 + 5.75 - 1), ([0, 4], -0.5 + 5.75 - 1)],
)
def test_feasible_counts_are_worth_their_gains_less_what_changing_loses(counts, worth):
    assert violation(problem_of_two(), np.array(counts)) == ""
    assert objective_of(problem_of_two(), np.array(counts)) == pytest.approx(worth, rel=1e-15)


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ([3, 2], "counts are a list, expected an array"),
        (np.array([3.0, 2.0]), "counts are of type float64"),
        (np.array([3]), r"counts have shape \(1,\), expected \(2,\)"),
        (np.array([4, 2]), "counts sum to 6 of 5 idle nodes"),
        (np.array([-1, 2]), "job 0 gets -1 nodes, allowed are 0 or 1 to 4$"),
        (np.array([0, 1]), "job 1 gets 1 nodes, allowed are 0 or 2 to 4$"),
        (np.array([5, 0]), "job 0 gets 5 nodes"),
    ],
)
def test_other_counts_are_said_to_be_wrong(counts, says):
    import re

    assert re.match(says, violation(problem_of_two(), counts))
    if isinstance(counts, np.ndarray):
        assert objective_of(problem_of_two(), counts) == -INF


def test_counts_beyond_the_limit_on_changes_are_said_to_be_wrong_with_the_limit():
    said = violation(problem_of_two(change_limit=1), np.array([3, 2]))
    assert said == "job 0 gets 3 nodes, allowed are 0 or 1 to 4, at most 1 from 1"


def test_counts_that_a_loss_forbids_are_said_to_be_wrong_as_such():
    said = violation(left_on_seven(), np.array([5, 1]))
    assert said == "job 0 gets 5 nodes, allowed are 0 or 1 to 8, and not where the loss is infinite"
    assert violation(left_on_seven(), np.array([7, 2])) == ""
    assert objective_of(left_on_seven(), np.array([7, 2])) == 40 - 1 + 14 - 2


def test_losses_by_count_are_measured_where_they_are_finite():
    loss = left_on_seven().loss.copy()
    loss[0, 3] = 1e6  # no answer: a third of nine nodes goes to job 0 only if it may change by four
    assert (magnitude(left_on_seven()), largest_coefficient(left_on_seven())) == (80, 80)
    dear = replace(left_on_seven(), loss=loss, change_limit=3)
    assert (magnitude(dear), largest_coefficient(dear)) == (80, 1e6)


GAIN = problem_of_two().gain
HUGE = np.where(np.arange(5) == 4, 1e9, GAIN)


@pytest.mark.parametrize(
    ("changes", "of_answers", "of_all"),
    [
        ({}, 8.5, 8.5),
        ({"gain": -GAIN}, 8.5, 8.5),
        ({"scale_up_loss": np.array([1.0, 90.0])}, 90, 90),
        ({"scale_down_loss": np.array([80.0, 0.5])}, 80, 80),
        # no answer can have these: four nodes of three, growing beyond the most, shrinking from nothing
        ({"gain": HUGE, "capacity": 3}, 8, 1e9),
        ({"scale_up_loss": np.array([1.0, 1e9]), "current": np.array([1, 4])}, 8.5, 1e9),
        ({"scale_down_loss": np.array([1e9, 0.5]), "current": np.array([0, 2])}, 8.5, 1e9),
        # columns above max_nodes are not read
        ({"gain": HUGE, "max_nodes": np.array([3, 3])}, 8, 8),
    ],
)
def test_answers_are_measured_against_what_they_can_be_and_solvers_against_all_that_they_read(
    changes, of_answers, of_all
):
    problem = problem_of_two(**changes)
    assert (magnitude(problem), largest_coefficient(problem)) == (of_answers, of_all)


@pytest.mark.parametrize(
    ("claimed", "recomputed", "scale", "is_equal"),
    [
        (12.0, 12.0, 0.0, True),
        (1e6 + 0.9, 1e6, 0.0, True),
        (1e6 + 1.1, 1e6, 0.0, False),
        (-1e6 - 0.9, -1e6, 0.0, True),
        (2.00009, 2.0, 100.0, True),
        (2.00011, 2.0, 100.0, False),
        (0.0, 0.0, 0.0, True),
        (math.inf, 1.0, math.inf, False),
        (math.nan, 1.0, 1.0, False),
    ],
)
def test_objectives_agree_to_a_millionth_of_the_largest(claimed, recomputed, scale, is_equal):
    assert agrees(claimed, recomputed, scale) is is_equal
