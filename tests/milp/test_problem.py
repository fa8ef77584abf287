"""Validation of a decision's arrays."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from bfreplay import solve
from bfreplay.errors import InputError
from bfreplay.milp import AllocationProblem
from bfreplay.milp.problem import charge, problem_with_charges, value_table

_GOOD = {
    "current": np.array([1, 0]),
    "min_nodes": np.array([1, 1]),
    "max_nodes": np.array([2, 2]),
    "gain": np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 3.0]]),
    "scale_up_loss": np.zeros(2),
    "scale_down_loss": np.zeros(2),
    "capacity": 3,
}


def test_a_sound_problem_is_solved():
    assert solve(AllocationProblem(**_GOOD)).objective == 4.0


def test_lists_become_arrays():
    lists = {name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in _GOOD.items()}
    assert solve(AllocationProblem(**{**lists, "scale_up_loss": [0, 0]})).objective == 4.0


def test_jobs_may_hold_all_nodes_that_there_are():
    assert solve(AllocationProblem(**{**_GOOD, "current": np.array([2, 1])})).objective == 4.0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"min_nodes": np.array([1])}, "min_nodes has the wrong shape"),
        ({"gain": np.zeros((3, 3))}, "gain has the wrong shape"),
        ({"capacity": -1}, "capacity is out of range"),
        ({"capacity": 1.5}, "capacity is out of range"),
        ({"change_limit": -1}, "change_limit is out of range"),
        ({"current": [0.5, 0]}, "current has the wrong type"),
        ({"current": np.array([0.5, 0.5])}, "current has the wrong type"),
        ({"current": np.array([[1, 0]])}, "current has the wrong shape"),
        ({"min_nodes": np.array([0, 1])}, "min_nodes of job 0 is out of range"),
        ({"max_nodes": np.array([2, 3])}, "max_nodes of job 1 is out of range"),
        ({"min_nodes": np.array([1, 2]), "max_nodes": np.array([2, 1])}, "max_nodes of job 1 is out of range"),
        ({"current": np.array([-1, 0])}, "current of job 0 is out of range"),
        ({"scale_up_loss": np.array([0.0, -1.0])}, "scale_up_loss of job 1 is out of range"),
        ({"scale_down_loss": np.array([np.nan, 1.0])}, "scale_down_loss of job 0 is out of range"),
        ({"gain": np.array([[0.0, np.inf, 2.0], [0.0, 1.0, 3.0]])}, "not finite"),
        ({"current": np.array([2, 2])}, "hold more nodes than there are"),
    ],
)
def test_an_unsound_problem_is_refused_with_what_is_wrong(changes, says):
    with pytest.raises(InputError, match=says):
        solve(AllocationProblem(**{**_GOOD, **changes}))


_BY_COUNT = {
    **{name: _GOOD[name] for name in ("current", "min_nodes", "max_nodes", "gain", "capacity")},
    "loss": np.array([[0.0, 1.0, np.inf], [0.0, 0.5, 0.0]]),
}


def test_a_sound_problem_by_count_is_solved():
    solution = solve(AllocationProblem.by_count(**_BY_COUNT))
    assert (solution.counts.tolist(), solution.objective) == ([0, 2], 3.0)
    lists = {name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in _BY_COUNT.items()}
    assert solve(AllocationProblem.by_count(**lists)).objective == 3.0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"loss": np.zeros((2, 2))}, "loss has the wrong shape"),
        ({"loss": np.zeros(2)}, "loss has the wrong shape"),
        ({"loss": np.zeros((2, 3), np.int64)}, "loss has the wrong type"),
        ({"loss": np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])}, "loss of job 1 at 1 nodes is out of range"),
        ({"loss": np.array([[0.0, 1.0, np.nan], [0.0, 1.0, 0.0]])}, "loss of job 0 at 2 nodes is out of range"),
        ({"loss": np.array([[0.0, 1.0, 0.0], [np.inf, 1.0, 0.0]])}, "a finite number: 0 nodes cannot be forbidden"),
        ({"min_nodes": np.array([0, 1])}, "min_nodes of job 0 is out of range"),
        ({"gain": np.array([[0.0, np.inf, 2.0], [0.0, 1.0, 3.0]])}, "not finite"),
        ({"gain": np.zeros((3, 3))}, "gain has the wrong shape"),
        ({"current": np.array([2, 2])}, "hold more nodes than there are"),
    ],
)
def test_an_unsound_problem_by_count_is_refused_with_what_is_wrong(changes, says):
    with pytest.raises(InputError, match=says):
        solve(AllocationProblem.by_count(**{**_BY_COUNT, **changes}))


def test_losses_above_the_most_nodes_are_not_read():
    loss = np.array([[0.0, 1.0, np.nan], [0.0, 0.5, -1.0]])
    problem = AllocationProblem.by_count(**{**_BY_COUNT, "max_nodes": np.array([1, 1]), "loss": loss})
    problem.validate()
    assert problem.value.tolist() == [[0, 0, _NO], [0, 0.5, _NO]]
    assert problem.largest_loss == 1.0


def test_a_problem_by_count_has_no_losses_of_the_other_kind_and_says_what_to_read():
    problem = AllocationProblem.by_count(**_BY_COUNT)
    assert (problem.has_constant_losses, AllocationProblem(**_GOOD).has_constant_losses) == (False, True)
    for name in ("scale_up_loss", "scale_down_loss"):
        with pytest.raises(AttributeError, match=f"no {name}: its losses depend on the count; read value, or gain and"):
            getattr(problem, name)
    with pytest.raises(AttributeError, match=r"no anything$"):
        _ = problem.anything


def test_a_problem_by_count_is_copied_and_changed_as_one():
    problem = AllocationProblem.by_count(**_BY_COUNT)
    copies = replace(problem, capacity=2), deepcopy(problem), pickle.loads(pickle.dumps(problem))
    for copied in (*copies, problem.within_published_limit()):
        assert not copied.has_constant_losses
        assert copied.loss.tolist() == problem.loss.tolist()
    assert [copied.capacity for copied in copies] == [2, 3, 3]
    assert problem.within_published_limit().change_limit == 2


def test_what_a_job_loses_is_read_alike_from_both_kinds():
    # the job holds 3, and loses 1 above and 2 below, also at counts that it may not have
    three = np.array([3]), np.array([2]), np.array([5]), 10.0 * np.arange(7)[None, :]
    problem = AllocationProblem(*three, np.ones(1), np.full(1, 2.0), 4)
    assert problem.loss.tolist() == [[2, 2, 2, 0, 1, 1, 1]]
    again = AllocationProblem.by_count(*three, problem.loss, 4)
    assert again.value.tolist() == problem.value.tolist() == [[-2, _NO, 18, 30, 39, _NO, _NO]]
    with pytest.raises(ValueError, match="read-only"):
        problem.loss[0, 0] = 0.0  # the value table would not follow


_NO = -np.inf


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({}, [-2, 8, 18, 30, 39, 49, _NO]),
        ({"capacity": 9}, [-2, 8, 18, 30, 39, 49, 59]),
        ({"min_nodes": np.array([2])}, [-2, _NO, 18, 30, 39, 49, _NO]),
        ({"max_nodes": np.array([4])}, [-2, 8, 18, 30, 39, _NO, _NO]),
        ({"current": np.array([0])}, [0, 9, 19, 29, 39, 49, _NO]),
        ({"change_limit": 3}, [-2, 8, 18, 30, 39, 49, _NO]),
        ({"change_limit": 2}, [_NO, 8, 18, 30, 39, 49, _NO]),
        ({"change_limit": 1}, [_NO, _NO, 18, 30, 39, _NO, _NO]),
        ({"change_limit": 0}, [_NO, _NO, _NO, 30, _NO, _NO, _NO]),
        ({"change_limit": 1, "min_nodes": np.array([5])}, [_NO] * 7),
    ],
)
def test_the_value_of_each_count_is_its_gain_less_the_loss_and_what_is_forbidden_has_none(changes, value):
    # three nodes held; 10 a node, less 1 for growing and 2 for shrinking
    fields = {
        "current": np.array([3]),
        "min_nodes": np.array([1]),
        "max_nodes": np.array([6]),
        "gain": 10.0 * np.arange(7)[None, :],
        "scale_up_loss": np.ones(1),
        "scale_down_loss": np.full(1, 2.0),
        "capacity": 5,
    }
    assert AllocationProblem(**{**fields, **changes}).value.tolist() == [value]


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({}, [-2, 9, _NO, 29.5, 36, 41, _NO]),
        ({"capacity": 9}, [-2, 9, _NO, 29.5, 36, 41, 59]),
        ({"min_nodes": np.array([2])}, [-2, _NO, _NO, 29.5, 36, 41, _NO]),
        ({"max_nodes": np.array([4])}, [-2, 9, _NO, 29.5, 36, _NO, _NO]),
        ({"change_limit": 2}, [_NO, 9, _NO, 29.5, 36, 41, _NO]),
        ({"change_limit": 0}, [_NO, _NO, _NO, 29.5, _NO, _NO, _NO]),
        ({"current": np.array([2]), "change_limit": 0}, [_NO] * 7),
    ],
)
def test_a_loss_by_count_is_paid_on_every_count_and_an_infinite_one_forbids(changes, value):
    # three nodes held; 10 a node; staying pays the rest of a pause, and two nodes are not offered
    fields = {
        "current": np.array([3]),
        "min_nodes": np.array([1]),
        "max_nodes": np.array([6]),
        "gain": 10.0 * np.arange(7)[None, :],
        "loss": np.array([[2.0, 1.0, np.inf, 0.5, 4.0, 9.0, 1.0]]),
        "capacity": 5,
    }
    assert AllocationProblem.by_count(**{**fields, **changes}).value.tolist() == [value]


def test_the_published_limit_and_one_that_is_there_both_hold():
    problem = AllocationProblem(**{**_GOOD, "capacity": 9})
    limits = [AllocationProblem(**{**_GOOD, "capacity": 9, "change_limit": n}) for n in (4, 6)]
    assert problem.within_published_limit().change_limit == 5
    assert [each.within_published_limit().change_limit for each in limits] == [4, 5]


def test_changing_a_field_does_not_keep_the_old_value_table():
    problem = AllocationProblem(**_GOOD)
    assert np.isfinite(problem.value[1, 2])
    assert problem.value[1, 2] != replace(problem, capacity=1).value[1, 2]


def test_a_charged_problem_has_the_losses_of_the_rule_and_the_value_table_of_its_arrays():
    gain = np.array([[0.0, 5.0, 9.0, 12.0], [0.0, 4.0, 7.0, 9.0], [0.0, 3.0, 5.0, 6.0]])
    current, least, most = np.array([2, 1, 0]), np.array([1, 2, 1]), np.array([3, 3, 2])
    costs_s = (np.array([2.0, 3.0, 4.0]), np.array([0.5, 1.0, 1.5]))
    charges = charge(current, least, most, gain, np.array([10.0, 20.0, 0.0]), *costs_s, 4)
    posed = problem_with_charges(current, least, most, gain, charges, 4)
    assert posed.scale_up_loss.tolist() == [20, 0, 0]  # the second holds too few nodes to make anything
    assert posed.scale_down_loss.tolist() == [5, 0, 0]
    assert (posed.value == value_table(posed)).all()
    assert posed.value[0].tolist() == [-5, 0, 9, -8]
    posed.validate()
