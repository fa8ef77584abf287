"""Special ordered sets posed by binaries: the same optimum, and the same answer in the first columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from bfreplay.errors import InputError
from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.backends.arrays import without_sets
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.model import LinearModel, SpecialOrderedSet, model_fault
from bfreplay.milp.solution import SolverStatus
from bfreplay.milp.verify import agrees, objective_of
from tests.examples import examples
from tests.milp.formulations.checking import WITH_SETS, broken, posed_by
from tests.milp.small_problems import optimum_by_enumeration, problem_of_two, problems


@pytest.fixture(scope="module")
def cbc():
    with IsolatedBackend("cbc") as isolated:
        yield isolated


def one_set(kind: int = 2, size: int = 4, **changes: object) -> LinearModel:
    """Columns worth 3, 1, 2, 4 (as many as asked for), each at most 1, and a set of all of them: 0, 3, 1, 2."""
    fields: dict = {
        "objective": np.array([3.0, 1.0, 2.0, 4.0])[:size],
        "objective_constant": 0.5,
        "column_lower": np.zeros(size),
        "column_upper": np.ones(size),
        "is_integer": np.zeros(size, dtype=bool),
        "column_names": tuple(f"w{i}" for i in range(size)),
        "row_lower": np.array([-np.inf]),
        "row_upper": np.array([9.0]),
        "row_names": ("loose",),
        "entry_row": np.zeros(size, dtype=np.int64),
        "entry_column": np.arange(size),
        "entry_value": np.ones(size),
        "sets": (SpecialOrderedSet(kind, np.arange(size), np.array([1.0, 3.0, 4.0, 2.0])[:size]),),
    }
    return LinearModel(**{**fields, **changes})


@pytest.mark.parametrize("name", WITH_SETS)
@settings(max_examples=examples(40), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_the_optimum_stays_and_the_answer_reads_back(cbc, name, problem):
    formulation, posed = formulation_of(name), posed_by(name, problem)
    model = formulation.build(problem)
    plain = without_sets(model)
    assert plain.sets == ()
    assert model_fault(plain) == ""
    answer = cbc.solve(plain, SolveOptions(60.0)).answer
    best, _ = optimum_by_enumeration(posed)
    if best == -np.inf:  # CBC's preprocessing calls some such models optimal, but its answers break rows
        assert answer.solver_status is SolverStatus.INFEASIBLE or broken(plain, np.rint(answer.x))
        return
    assert answer.solver_status is SolverStatus.OPTIMAL
    counts, _ = formulation.read(problem, answer.x[: model.n_columns])
    scale = float(np.abs(model.objective).max(initial=0.0))
    assert agrees(objective_of(posed, counts), best, scale)
    assert agrees(answer.objective, best, scale)


@pytest.mark.parametrize("name", WITH_SETS)
@given(problem=problems())
@settings(max_examples=examples(50), deadline=None)
def test_a_start_goes_on_as_a_feasible_one(name, problem):
    model = formulation_of(name).build(problem)
    plain = without_sets(model)
    assert (plain.start is None) == (model.start is None)
    if plain.start is not None:
        assert plain.start[: model.n_columns].tolist() == model.start.tolist()
        assert broken(plain, plain.start) == []


@pytest.mark.parametrize(("kind", "optimum", "chosen"), [(1, 4.5, [0, 0, 0, 1]), (2, 7.5, [1, 0, 0, 1])])
def test_one_member_or_two_neighbours_are_not_zero(cbc, kind, optimum, chosen):
    model = one_set(kind)
    answer = cbc.solve(without_sets(model), SolveOptions(60.0)).answer
    assert answer.objective == pytest.approx(optimum)
    assert answer.x[:4].tolist() == pytest.approx(chosen)


@pytest.mark.parametrize(("kind", "size", "columns", "rows"), [(1, 4, 4, 5), (2, 4, 3, 5), (2, 3, 2, 4), (1, 2, 2, 3)])
def test_it_is_as_large_as_documented(kind, size, columns, rows):
    model = one_set(kind, size)
    plain = without_sets(model)
    assert (plain.n_columns, plain.n_rows) == (size + columns, 1 + rows)
    assert plain.is_integer[size:].all()


@pytest.mark.parametrize(("kind", "size"), [(2, 2), (2, 1), (1, 1)])
def test_a_set_that_forbids_nothing_just_goes(kind, size):
    plain = without_sets(one_set(kind, size))
    assert plain.sets == ()
    assert (plain.n_columns, plain.n_rows) == (size, 1)


@pytest.mark.parametrize(
    ("start", "segment"),
    [([1, 0, 0, 0], 0), ([0, 0, 1, 0], 2), ([0, 0.5, 0, 0.5], 1), ([0, 0, 0, 0], 0), ([0.5, 0.5, 0, 0], None)],
)
def test_a_start_chooses_its_segment_and_is_dropped_where_it_breaks_the_set(start, segment):
    """The set's order is that of its weights: the segments are columns 0 and 3, 3 and 1, 1 and 2."""
    plain = without_sets(one_set(start=np.array(start, dtype=float)))
    if segment is None:
        assert plain.start is None
    else:
        assert plain.start[4:].tolist() == [float(s == segment) for s in range(3)]
        assert broken(plain, plain.start) == []


def test_a_member_without_bounds_is_refused_by_name():
    with pytest.raises(InputError, match="no finite upper bound") as caught:
        without_sets(one_set(column_upper=np.array([1, 1, np.inf, 1])))
    assert caught.value.column == "w2"
    with pytest.raises(InputError, match="may be negative"):
        without_sets(one_set(column_lower=np.array([0, -1.0, 0, 0])))


def test_a_set_of_another_type_is_refused():
    with pytest.raises(InputError, match="unknown type"):
        without_sets(one_set(kind=3))


def test_a_model_without_sets_stays_as_it_is():
    model = formulation_of("choices").build(problem_of_two())
    assert without_sets(replace(model)).n_columns == model.n_columns
