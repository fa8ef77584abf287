"""The published model's own rows, and what follows from them."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.problem import AllocationProblem, published_change_limit
from tests.milp.formulations.checking import broken, solved
from tests.milp.small_problems import one_hungry_job, problem_of_two


@pytest.mark.parametrize("capacity", [1, 2, 5, 6, 9])
def test_the_published_rows_allow_exactly_the_published_limit(cbc, capacity):
    """One job that wants every node gets floor((n_idle + 1) / 2); put right, it gets all."""
    problem = one_hungry_job(capacity)
    for name, most in (("published", published_change_limit(capacity)), ("node_level", capacity)):
        formulation, _, answer = solved(cbc, name, problem)
        assert formulation.read(problem, answer.x)[0].tolist() == [most]


@pytest.mark.parametrize("capacity", [1, 2, 5, 6, 9])
def test_the_published_rows_limit_losses_as_well(cbc, capacity):
    """One job that would rather stop keeps what the limit does not let it lose."""
    problem = AllocationProblem(
        current=np.array([capacity]),
        min_nodes=np.array([1]),
        max_nodes=np.array([capacity]),
        gain=-np.arange(capacity + 1.0)[None, :],
        scale_up_loss=np.zeros(1),
        scale_down_loss=np.zeros(1),
        capacity=capacity,
    )
    for name, least in (("published", capacity - published_change_limit(capacity)), ("node_level", 0)):
        formulation, _, answer = solved(cbc, name, problem)
        assert formulation.read(problem, answer.x)[0].tolist() == [least]


def values(model, **chosen: float) -> np.ndarray:
    """Column values by name, ``x_0_1=1`` for ``x[0,1]``; the others as in the start."""
    x = model.start.copy()
    for key, value in chosen.items():
        name, *index = key.split("_")
        x[model.column_names.index(f"{name}[{','.join(index)}]")] = value
    return x


def test_a_change_is_each_node_gained_or_lost():
    """Job 0 holds node 0 and job 1 nodes 1 and 2; job 0 gets node 3 as well."""
    model = formulation_of("published").build(problem_of_two())
    grown = {"x_0_3": 1, "weight_0_2": 1, "up_0": 1, "migr_0": 0}
    model_point = values(model, **grown)
    curve = model.column_names.index("weight[0,0]"), model.column_names.index("weight[0,2]")
    assert model_point[list(curve)].tolist() == [0.5, 1.0]  # the start's half of 0 and 2 nodes, and all of 2
    right = values(model, **grown, weight_0_0=0, change_0_3=1)
    assert broken(model, right) == []
    assert broken(model, values(model, **grown, weight_0_0=0)) == ["change_2[0,3]"]
    assert broken(model, values(model, **grown, weight_0_0=0, change_0_3=1, change_1_1=1)) == [
        "change_4[1,1]",
        "migr_1[1]",
    ]
    assert broken(model, values(model, **{**grown, "up_0": 0}, weight_0_0=0, change_0_3=1)) == ["up_1[0]"]


def test_a_job_may_not_give_a_node_up_and_get_another():
    model = formulation_of("published").build(problem_of_two())
    swapped = {"x_0_0": 0, "x_0_3": 1, "change_0_0": 1, "change_0_3": 1}
    assert broken(model, values(model, **swapped, migr_0=0)) == ["migr_1[0]"]
    assert broken(model, values(model, **swapped, migr_0=1)) == ["migr_2[0]"]
    assert "node[1]" in broken(model, values(model, x_0_1=1))
