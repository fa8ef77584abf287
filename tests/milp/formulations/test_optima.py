"""Every formulation has the optimum it promises, and reads back what it built."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bfreplay.errors import InputError
from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.formulations import FORMULATIONS, Formulation, formulation_of
from bfreplay.milp.formulations.kinks import kinks
from bfreplay.milp.formulations.node_rows import held_nodes, map_violation
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.problem import AllocationProblem, published_change_limit
from bfreplay.milp.solution import SolverStatus
from bfreplay.milp.verify import agrees, objective_of, violation
from tests.milp.small_problems import one_hungry_job, optimum_by_enumeration, problem_of_two, problems

ALL = ["published", "node_level", "choices"]
NODE_LEVEL = ["published", "node_level"]


@pytest.fixture(scope="module")
def cbc():
    """CBC in a worker: a crash fails one test, not the run."""
    with IsolatedBackend("cbc") as isolated:
        yield isolated


def solved(cbc: IsolatedBackend, name: str, problem: AllocationProblem):
    formulation = formulation_of(name)
    model = formulation.build(problem)
    ran = cbc.solve(model, SolveOptions(60.0))
    assert ran.answer is not None, ran.message
    return formulation, model, ran.answer


def check_optimum(cbc: IsolatedBackend, name: str, problem: AllocationProblem) -> None:
    formulation, model, answer = solved(cbc, name, problem)
    posed = problem.held_to_published_limit() if formulation.change_limited else problem
    best, _ = optimum_by_enumeration(posed)
    if best == -np.inf:
        assert answer.solver_status is SolverStatus.INFEASIBLE
        return
    assert answer.solver_status is SolverStatus.OPTIMAL
    counts, nodes = formulation.read(problem, answer.x)
    assert violation(posed, counts) == ""
    scale = float(np.abs(model.objective).max(initial=0.0))
    assert agrees(objective_of(posed, counts), best, scale)
    assert agrees(answer.objective, best, scale)
    if nodes is not None:
        assert map_violation(problem, nodes) == ""
        assert [len(mine) for mine in nodes] == counts.tolist()


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
@example(problem=problem_of_two())
@example(problem=problem_of_two(change_limit=0))
@example(problem=problem_of_two(change_limit=1))
def test_the_optimum_is_the_one_found_by_trying_everything(cbc, name, problem):
    check_optimum(cbc, name, problem)


@pytest.mark.parametrize("name", ALL)
def test_the_hand_worked_example_has_optimum_12(cbc, name):
    formulation, _, answer = solved(cbc, name, problem_of_two())
    counts, _ = formulation.read(problem_of_two(), answer.x)
    assert counts.tolist() == [3, 2]
    assert answer.objective == pytest.approx(12.0)


@pytest.mark.parametrize("name", ALL)
def test_a_job_whose_minimum_exceeds_the_pool_gets_nothing(cbc, name):
    problem = problem_of_two(min_nodes=np.array([1, 4]), max_nodes=np.array([4, 4]), capacity=3)
    check_optimum(cbc, name, problem)


@pytest.mark.parametrize("name", ALL)
def test_a_job_left_below_its_minimum_by_a_preemption_stops_or_grows(cbc, name):
    problem = problem_of_two(min_nodes=np.array([2, 3]))
    check_optimum(cbc, name, problem)


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


@pytest.mark.parametrize("name", ALL)
@given(problem=problems())
@settings(max_examples=30, deadline=None)
def test_models_are_well_formed(name, problem):
    formulation = formulation_of(name)
    model = formulation.build(problem)
    entries = set(zip(model.entry_row.tolist(), model.entry_column.tolist(), strict=True))
    assert len(entries) == len(model.entry_value)
    assert np.isfinite(model.entry_value).all()
    assert np.isfinite(model.objective).all()
    assert len(model.column_names) == len(set(model.column_names)) == model.n_columns
    assert len(model.row_names) == len(set(model.row_names)) == model.n_rows
    assert bool(model.sets) <= formulation.needs_sos
    assert isinstance(formulation, Formulation)


@pytest.mark.parametrize("name", NODE_LEVEL)
def test_the_node_level_size_is_as_documented(name):
    problem = problem_of_two()
    model = formulation_of(name).build(problem)
    jobs, nodes, breakpoints = 2, 5, 4 + 5  # job 0 is straight from 0 to 2
    assert model.n_columns == jobs * (nodes + 4) + breakpoints
    assert model.n_rows == nodes + 8 * jobs


def test_the_choices_size_is_as_documented():
    model = formulation_of("choices").build(problem_of_two())
    assert (model.n_columns, model.n_rows) == (5 + 4, 3)


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
    assert np.argwhere(held_nodes(problem_of_two())).tolist() == [[0, 0], [1, 1], [1, 2]]


def test_a_map_that_gives_a_node_twice_or_migrates_is_named():
    problem = problem_of_two()
    assert map_violation(problem, ((0, 3, 4), (1, 2))) == ""
    assert "node 3 is given to 2 jobs" in map_violation(problem, ((0, 3), (1, 2, 3)))
    assert "job 1 migrates" in map_violation(problem, ((0,), (1, 3)))


def test_an_unknown_name_is_refused_with_what_exists_and_the_nearest():
    with pytest.raises(InputError) as caught:
        formulation_of("choises")
    assert "published, node_level, choices" in str(caught.value)
    assert "did you mean 'choices'?" in str(caught.value)


def test_a_strangers_class_is_found_by_module_and_name():
    assert formulation_of("bfreplay.milp.formulations.choices:Choices").name == "choices"


@pytest.mark.parametrize(
    "location", ["no.such.module:Class", "bfreplay.milp.formulations.choices:Chioces", "json:loads", ":"]
)
def test_a_location_that_cannot_be_imported_is_refused(location):
    with pytest.raises(InputError):
        formulation_of(location)


def test_other_packages_announce_formulations_by_entry_point(monkeypatch):
    from importlib.metadata import EntryPoint

    point = EntryPoint("theirs", "bfreplay.milp.formulations.choices:Choices", "bfreplay.formulations")
    monkeypatch.setattr("bfreplay.registry.entry_points", lambda group: [point])
    assert FORMULATIONS.names() == [*ALL, "theirs"]
    assert formulation_of("theirs").name == "choices"
