"""The problem on several types: its values, its checks, its relaxation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from bfreplay.errors import InputError
from bfreplay.milp.typed.prices import best_choices, choices_of, mend, node_prices
from bfreplay.milp.typed.problem import NO_TYPE, objective_of, violation
from tests.examples import examples
from tests.milp.typed.small_typed_problems import choices_by_hand, drawn, two_jobs, typed_problems, worth_by_hand


@settings(max_examples=examples(60))
@given(problem=typed_problems())
def test_the_table_holds_what_the_definition_says_and_forbids_everything_else(problem):
    allowed = np.full(problem.value.shape, -np.inf)
    for j in range(problem.n_jobs):
        for kind, count in choices_by_hand(problem, j):
            kinds = slice(None) if kind == NO_TYPE else kind
            allowed[j, kinds, count] = worth_by_hand(problem, j, kind, count)
    assert np.array_equal(problem.value, allowed)


def bound_at(choices, price, capacity) -> float:
    return float(price @ capacity + best_choices(choices, price)[1].sum())


@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize("capacity", [[4, 4, 4], [36, 1, 0], [3, 5, 7, 9, 2], [500, 500]])
def test_the_prices_give_the_value_of_the_linear_relaxation(elastic, capacity):
    problem = drawn(2, 40, capacity, elastic=elastic)
    choices = choices_of(problem.value)
    job = np.repeat(np.arange(40), np.diff(choices.offset))
    uses = np.array([np.where(choices.kind == t, choices.nodes, 0) for t in range(len(capacity))])
    relaxed = linprog(
        -choices.value, uses, capacity, (job == np.arange(40)[:, None]).astype(float), np.ones(40), method="highs"
    )
    price = node_prices(choices, problem.capacity)
    assert (price >= 0).all()
    assert bound_at(choices, price, problem.capacity) == pytest.approx(-relaxed.fun, rel=1e-9)


@settings(max_examples=examples(60))
@given(problem=typed_problems())
def test_mended_choices_are_feasible_and_no_job_alone_can_improve_them(problem):
    choices = choices_of(problem.value)
    price = node_prices(choices, problem.capacity)
    base, worth = best_choices(choices, price)
    job = np.repeat(np.arange(problem.n_jobs), np.diff(choices.offset))
    loss = worth[job] - (choices.value - price[choices.kind] * choices.nodes)
    chosen = mend(choices, loss, base, problem.capacity)
    counts = choices.nodes[chosen]
    types = np.where(counts > 0, choices.kind[chosen], NO_TYPE)
    here = objective_of(problem, types, counts)
    assert np.isfinite(here)
    for j in range(problem.n_jobs):
        for kind, count in choices_by_hand(problem, j):
            other_types, other_counts = types.copy(), counts.copy()
            other_types[j], other_counts[j] = kind, count
            assert objective_of(problem, other_types, other_counts) <= here + 1e-9 * max(1.0, abs(here))


@pytest.mark.parametrize(
    ("types", "counts", "said"),
    [
        ([0, 1], [2, 2], ""),
        ([0, NO_TYPE], [2, 0], ""),
        ([0, 0], [2, 1], "type 0: counts sum to 3 of 2"),
        ([0, 1], [2, 0], "job 1 gets 0 nodes of type 1"),
        ([0, 2], [2, 1], "job 1 gets 1 nodes of type 2 of 2"),
        ([NO_TYPE, 1], [1, 1], "job 0 gets 1 nodes of type -1"),
        ([NO_TYPE, 1], [-1, 1], "job 0 gets -1 nodes"),
        ([0], [1], "types have shape (1,)"),
        ([0.0, 1.0], [1, 1], "types are no array of whole numbers"),
    ],
)
def test_what_is_wrong_with_an_answer_is_said(types, counts, said):
    found = violation(two_jobs(), np.array(types), np.array(counts))
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"capacity": np.array([2.0, 2.0])}, "capacity is no array"),
        ({"capacity": np.array([[2, 2]])}, "capacity has the wrong shape"),
        ({"gain": np.zeros((2, 3, 3))}, "gain has the wrong shape"),
        ({"gain": np.full((2, 2, 3), np.nan)}, "not finite"),
        ({"current_type": np.array([2, NO_TYPE])}, "current_type of job 0"),
        ({"current_type": np.array([0, 1])}, "current_type of job 1"),
        ({"current_type": np.array([0])}, "current_type has the wrong shape"),
        ({"current_type": np.array([0.0, -1.0])}, "current_type is no array"),
        ({"capacity": np.array([1, 2])}, "the jobs hold more nodes than there are"),
        ({"scale_up_loss": np.array([-1.0, 0.0])}, "scale_up_loss of job 0"),
        ({"min_nodes": np.array([1, 3])}, "max_nodes of job 1"),
    ],
)
def test_an_unsound_problem_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        two_jobs(**change).validate()


def test_a_gain_without_nodes_that_depends_on_the_type_is_refused():
    gain = two_jobs().gain.copy()
    gain[1, 1, 0] = 1.0
    with pytest.raises(InputError, match="differs between types at no node"):
        two_jobs(gain=gain).validate()
