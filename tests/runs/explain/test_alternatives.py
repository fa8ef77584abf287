"""The best decisions with and without a count are those that trying all of them finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.errors import BfreplayError
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.verify import objective_of
from bfreplay.runs.explain.why_these_nodes import best_of_all, best_with, best_without
from tests.examples import examples
from tests.runs.explain.brute_force import best


@st.composite
def problems(draw: st.DrawFn) -> AllocationProblem:
    n_jobs, width = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    capacity = draw(st.integers(0, 8))
    whole = st.integers(0, 30).map(float)
    gain = np.array([[0.0, *draw(st.lists(whole, min_size=width, max_size=width))] for _ in range(n_jobs)])
    low = [draw(st.integers(1, width)) for _ in range(n_jobs)]
    high = [draw(st.integers(least, width)) for least in low]
    current, left = [], capacity
    for most in high:
        current.append(draw(st.integers(0, min(most, left))))
        left -= current[-1]
    losses = [np.array(draw(st.lists(whole, min_size=n_jobs, max_size=n_jobs))) for _ in range(2)]
    return AllocationProblem(
        np.array(current), np.array(low), np.array(high), gain, *losses, capacity, draw(st.none() | st.integers(0, 4))
    )


def check(found, objective, problem, allowed) -> None:
    """``objective`` by brute force; whole numbers, so that equal is equal."""
    if objective is None:
        assert found is None
        return
    assert found.objective == objective == objective_of(problem, found.counts)
    assert allowed(found.counts.tolist())


@settings(max_examples=examples(400))
@given(problem=problems(), data=st.data())
def test_the_best_decisions_are_those_that_trying_all_finds(problem, data):
    job = data.draw(st.integers(0, problem.n_jobs - 1))
    count = data.draw(st.integers(0, problem.gain.shape[1] - 1))
    check(best_of_all(problem), best(problem), problem, lambda counts: True)
    check(
        best_with(problem, job, count),
        best(problem, lambda counts: counts[job] == count),
        problem,
        lambda counts: counts[job] == count,
    )
    check(
        best_without(problem, job, count),
        best(problem, lambda counts: counts[job] != count),
        problem,
        lambda counts: counts[job] != count,
    )


def test_a_count_that_the_table_does_not_have_is_in_no_decision():
    one = np.array([1])
    problem = AllocationProblem(one, one, one, np.array([[0.0, 1.0]]), np.zeros(1), np.zeros(1), 1)
    assert best_with(problem, 0, 2) is None
    assert best_with(problem, 0, -1) is None


def test_the_problem_is_left_as_it_was():
    one = np.array([1])
    problem = AllocationProblem(one, one, one, np.array([[0.0, 1.0]]), np.zeros(1), np.zeros(1), 1)
    best_without(problem, 0, 1)
    best_with(problem, 0, 0)
    assert problem.value.tolist() == [[0.0, 1.0]]


def test_what_is_too_large_to_calculate_with_is_said():
    one = np.array([1])
    problem = AllocationProblem(one, one, one, np.array([[0.0, 1e300]]), np.zeros(1), np.zeros(1), 1)
    with pytest.raises(BfreplayError, match="too large"):
        best_of_all(problem)
